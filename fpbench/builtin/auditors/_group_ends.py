"""Names of groups in names of measures."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SIGNS = {"<=": " to ", ">=": " from ", "<": " below ", ">": " above "}
"""Of the groups that rules make: without them "age < 60" and "age >= 60" would be one name."""


def group_ends(groups: Iterable[str]) -> list[str]:
    """Names of groups as the ends of names of measures: words and underscores, all different."""
    found: list[str] = []
    for number, group in enumerate(groups):
        text = group.casefold()
        for sign, word in _SIGNS.items():
            text = text.replace(sign, word)
        # A decimal point tells numbers apart; no other sign does.
        text = re.sub(r"(?<=\d)\.(?=\d)", "p", text)
        words = "".join(sign if f"a{sign}".isidentifier() else "_" for sign in text)
        name = re.sub("_+", "_", words).strip("_") or f"group_{number}"
        taken = {*found}
        while name in taken:
            name = f"{name}_{number}"
        found.append(name)
    return found
