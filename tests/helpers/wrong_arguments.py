"""Functions given wrong arguments: what values are wrong, and how a function takes them."""

import inspect
import math

import numpy as np

from fpbench import FpbenchError, InputError

HUGE = 10**400
WRONG = (
    None, 5, -1, HUGE, 1.5, math.nan, math.inf, True, "nobody", "", "\0", b"x", [], [None], [HUGE],
    [[1], [1, 2]], {}, {"a": 1}, {1: "a"}, (1, 2), object(), type, print, np.zeros((2, 3)),
    np.array([]), np.array(5), np.array([math.nan]), np.array(["a"]),
)  # fmt: skip
"""Of every sort; some are right for some arguments."""


def list_unclear(function, right, wrong=lambda annotation: (), skip=(), errors=InputError):
    """How a function that takes right arguments answers wrong ones but by one error, a line each.

    `wrong` gives values that an annotation never allows: they must be refused. Whole numbers are
    not tried on the arguments to skip.
    """
    unclear = []
    for argument, parameter in inspect.signature(function).parameters.items():
        if argument == "self" or parameter.kind in (
            parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD,
        ):  # fmt: skip
            continue
        never = tuple(wrong(str(parameter.annotation)))
        for number, value in enumerate((*WRONG, *never)):
            if type(value) is int and argument in skip:
                continue
            said = ""
            try:
                function(**{**right, argument: value})
            except errors as error:
                if isinstance(error, FpbenchError):
                    said = str(error) if "\n" in str(error) else ""
                elif argument not in str(error):
                    said = f"{error!r:.130}"
            except Exception as error:
                said = f"{error!r:.130}"
            else:
                said = "taken" if number >= len(WRONG) else ""
            if said:
                shown = f"{value!r:.30}".replace("\n", " ")
                unclear.append(f"{argument}={shown}: {said}")
    return unclear
