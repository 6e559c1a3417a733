"""Letters that a terminal obeys, or that cannot be seen, spelt out."""

from __future__ import annotations

from unicodedata import category

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of letters that are not shown as they are."""


def plain(text: str, but: str = "") -> str:
    """Text without letters that a terminal obeys, or that cannot be seen: they are spelt out.

    What is shown may come from a stranger's matrix or run directory.

    Parameters
    ----------
    text
        What is to be shown.
    but
        Letters that are left as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        letter.encode("unicode_escape").decode()
        if category(letter) in _UNSEEN and letter not in but
        else letter
        for letter in text
    )
