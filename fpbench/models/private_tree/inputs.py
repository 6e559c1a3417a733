"""What users may give, as private trees take it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.data.domain import Domain
from fpbench.models.rules import Rules

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]


def bounds_of(bounds: Any, d: int) -> tuple[Floats, Floats]:
    """Lower and upper bounds (d,) from numbers or arrays.

    Raises
    ------
    InputError
        If they are none.
    """
    try:
        low, high = (np.broadcast_to(np.asarray(e, np.float64), (d,)) for e in bounds)
    except (TypeError, ValueError):
        low = high = np.zeros(0)
    if len(low) != d or not np.isfinite([low, high]).all() or not (low < high).all():
        raise InputError(
            "bounds must be (low, high): finite numbers, or arrays with one for each of the "
            f"{d} features, the lower first; not {bounds!r}"
        )
    return low, high


def with_categories(X: DataFrame, domain: Domain) -> DataFrame:
    """Columns of words as categoricals, if that is what they are declared as.

    Numbers stay numbers, whatever is declared of them.

    Raises
    ------
    InputError
        If there are words of which nothing is declared.
    """
    import pandas as pd

    found = X.copy(deep=False)
    for name, column in X.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            continue
        if pd.api.types.is_numeric_dtype(column):
            continue
        if str(name) in domain.categories:
            known = pd.Index(domain.categories[str(name)])
            found[name] = pd.Categorical.from_codes(known.get_indexer(pd.Index(column)), known)
        else:
            raise InputError(
                f"the feature {name!r} is {column.dtype}, not numbers; declare all that it may be, "
                f'domain={{"{name}": ["...", "..."]}}'
            )
    return found


def generator_from(random_state: Any) -> np.random.Generator:
    """A generator from all that scikit-learn takes, and a generator.

    Raises
    ------
    InputError
        If it is none of them.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            "random_state must be a seed, a numpy.random.RandomState or Generator, or None, not "
            f"{random_state!r}"
        ) from None


@dataclass(frozen=True)
class _Within:
    """Finds rules of people after their features were brought into a domain."""

    domain: Domain
    rules: Rules

    def __call__(self, features: DataFrame) -> NDArray[Any]:
        return self.rules.apply(self.domain.fit(with_categories(features, self.domain)))


def rules_within(rules: Rules, domain: Domain) -> Rules:
    """The same rules, for features that may go beyond a domain, or name its categories otherwise.

    A column of a data frame has categories of its own, in an order of its own; the rules are about
    columns that the declared ones make.

    Parameters
    ----------
    rules
        Of a tree over encoded columns.
    domain
        Public bounds and categories.
    """
    return replace(rules, find=_Within(domain, rules))
