"""What adversaries give back, opened where the truth is: numbers and words, no object of theirs.

The bytes come from a process that an adversary had for itself, so it may have chosen each of them.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, ClassVar

import numpy as np

from fpbench.errors import PluginError
from fpbench.records import Guess
from fpbench.steps import Result


def opened(content: bytes) -> Result:
    """The result of an adversary's step.

    Raises
    ------
    PluginError
        If it holds anything but arrays, numbers, words and our own records.
    """
    try:
        result = _Plain(io.BytesIO(content)).load()
    except Exception as error:  # whatever can be wrong with bytes
        raise PluginError(f"what it gives must be plain arrays and numbers: {error}") from None
    if not isinstance(result, Result):
        raise PluginError(f"what it gives must be a result, not {type(result).__name__}")
    return result


def _give_state(unpickler: Any) -> None:
    """Only what has just been made is given a state."""
    made = unpickler.stack[-2]
    if not isinstance(made, np.ndarray | np.dtype | Guess):
        raise pickle.UnpicklingError(f"not a change of {made!r}")
    pickle._Unpickler.dispatch[pickle.BUILD[0]](unpickler)


class _Plain(pickle._Unpickler):
    """Makes arrays, numbers, words and our own records; nothing else, and changes nothing.

    Python's own unpickler, because that of C gives a state to whatever stands there, which may be
    a class or a function: its attributes would be others, here, for all steps to come.
    """

    _CLASSES: ClassVar[set[tuple[str, str]]] = {
        ("fpbench.steps", "Result"),
        ("fpbench.steps", "Failure"),
        ("fpbench.steps", "Sealed"),
        ("fpbench.records", "Guess"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        *((f"numpy.{core}.multiarray", name) for core in ("core", "_core")
          for name in ("_reconstruct", "scalar")),
        *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
    }  # fmt: skip
    dispatch: ClassVar[dict[int, Any]] = {
        **pickle._Unpickler.dispatch,
        pickle.BUILD[0]: _give_state,
    }

    def find_class(self, module: str, name: str) -> Any:
        """One of these classes and functions."""
        if (module, name) not in self._CLASSES:
            raise pickle.UnpicklingError(f"not {module}.{name}")
        return super().find_class(module, name)


__all__ = ["opened"]
