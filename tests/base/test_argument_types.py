"""Arguments are checked by their annotations, however a library writes these."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from fpbench import InputError
from fpbench.base.argument_types import check_arguments

_Number = TypeVar("_Number")
Alias = TypeAliasType(
    "Alias", np.ndarray[tuple[int, ...], np.dtype[_Number]], type_params=(_Number,)
)
"""As numpy 2.5 writes NDArray."""


@check_arguments
def take_class(values: NDArray[np.integer]) -> object:
    return values


@check_arguments
def take_alias(values: Alias[np.integer]) -> object:
    return values


@pytest.mark.parametrize("take", [take_class, take_alias])
def test_arrays_are_checked_by_a_class_and_by_an_alias_of_it(take):
    assert take([1, 2]).tolist() == [1, 2]
    with pytest.raises(InputError, match="values"):
        take(["a", "b"])
    with pytest.raises(InputError, match="values"):
        take([0.5])
