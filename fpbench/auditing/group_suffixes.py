"""Names of groups within names of measures."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from fpbench.base.argument_types import check_arguments

_COMPARISONS = {"<=": " to ", ">=": " from ", "<": " below ", ">": " above "}
"""Words for the signs in names of groups: "age < 60" and "age >= 60" must stay different."""


@check_arguments
def make_suffixes(groups: Sequence[str]) -> list[str]:
    """Suffixes of names of measures, one for each group: ASCII, snake_case, all different.

    Parameters
    ----------
    groups
        Names of the groups.
    """
    suffixes: list[str] = []
    for number, group in enumerate(groups):
        text = group.casefold()
        for sign, word in _COMPARISONS.items():
            text = text.replace(sign, word)
        # A decimal point becomes p: numbers must stay different.
        text = re.sub(r"(?<=\d)\.(?=\d)", "p", text)
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        name = re.sub("[^a-z0-9]+", "_", text).strip("_") or f"group_{number}"
        taken = {*suffixes}
        while name in taken:
            name = f"{name}_{number}"
        suffixes.append(name)
    return suffixes
