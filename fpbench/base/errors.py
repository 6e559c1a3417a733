"""The exceptions of fpbench, and mends that messages name: the nearest name, an extra."""

from collections.abc import Iterable

_LONGEST, _MOST_COMPARED = 100, 10_000
"""Letters and number of names that are compared: time grows with the square of the former."""
_MOST_LISTED = 100


class FpbenchError(Exception):
    """Base class of every error that fpbench raises on purpose."""


class InputError(FpbenchError, ValueError):
    """Wrong input from the user: the command line exits with 2."""


class MatrixError(InputError):
    """A matrix file that cannot be read, or has an invalid key or value."""


class NameUnknownError(InputError):
    """A kind or a component that is not installed under that name."""


class DataError(InputError):
    """A data file that is missing, or does not hold what its loader needs."""


class StoreError(InputError):
    """A run directory that cannot be read, written or combined with another."""


class RunLostError(FpbenchError):
    """A run directory that was removed while a run wrote to it: the command exits with 1."""


class BudgetError(InputError):
    """A private answer that would cost more than the rest of the budget."""


class HiddenError(FpbenchError, AttributeError):
    """A component that asks for a column it may not see."""


class PluginError(FpbenchError):
    """A plugin, or a component of one, that breaks its contract."""


_SAME_WORDS = (
    {"sex", "gender"}, {"race", "ethnicity", "race-ethnicity"}, {"attack", "attacker", "adversary"},
    {"model", "classifier", "learner"}, {"data", "dataset"}, {"claim", "disclosure"},
    {"outcome", "target", "y", "label"}, {"noise", "mechanism"}, {"audit", "auditor"},
)  # fmt: skip
"""Words that people use for each other."""


def find_near_name(name: object, valid: Iterable[str]) -> str | None:
    """The valid name that `name` is a slip of the pen for, or says in another word; else None.

    That letters are alike is no reason: `hire-rate` is no `hit-rate`. Each word must be a slip of
    the other's, or the name a whole word of only one valid name.
    """
    # difflib takes a few milliseconds to import, and only a mistake needs it.
    from difflib import get_close_matches

    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        return None
    names = sorted(known for known in valid if len(known) <= _LONGEST)[:_MOST_COMPARED]
    written = name.casefold()
    folded = {known.casefold() for known in names}
    close = get_close_matches(written, folded, n=9, cutoff=0.5)  # the most alike first
    slips = [
        (distance, close.index(known.casefold()), _measure_distance(name, known), known)
        for known in names
        if known.casefold() in close
        and (distance := _count_slips(written, known.casefold())) is not None
    ]
    longer = {known.casefold() for *_, known in slips if known.casefold().startswith(written)}
    if slips and len(longer) < 2:  # else it is the beginning of several
        return min(slips)[-1]
    same = {word for words in _SAME_WORDS if written in words for word in words}
    holding = [known for known in names if known.casefold() in same] or [
        known for known in names
        if len(written) > 2
        and (written in _split_words(known.casefold()) or known.casefold().startswith(written))
    ]  # fmt: skip
    return holding[0] if len(holding) == 1 else None


def _split_words(name: str) -> list[str]:
    return name.replace("_", "-").replace(" ", "-").replace(".", "-").split("-")


def _count_slips(one: str, other: str) -> int | None:
    """Number of letters that differ, if no more than a slip of the pen leaves; else None."""
    pairs = list(zip(_split_words(one), _split_words(other), strict=False))
    if len(_split_words(one)) != len(_split_words(other)):  # a separator left out, or too many
        pairs = [("".join(_split_words(one)), "".join(_split_words(other)))]
    total = 0
    for mine, theirs in pairs:
        begun = len(mine) > 3 and theirs.startswith(mine)  # equal-odds, for equalized-odds
        distance = int(mine != theirs) if begun else _measure_distance(mine, theirs)
        longest = max(len(mine), len(theirs))
        # Another letter in a word of three is another word.
        short = int(len(mine) != len(theirs))
        most = short if longest < 4 else min(longest // 4 + (longest > 4), 3)
        if distance > most and sorted(mine) != sorted(theirs):
            return None
        total += distance
    return total


def _measure_distance(one: str, other: str) -> int:
    """Least number of letters put in, left out, replaced or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, mine in enumerate(one, 1):
        last, row = row, [i]
        for j, theirs in enumerate(other, 1):
            steps = [last[j] + 1, row[-1] + 1, last[j - 1] + (mine != theirs)]
            if before and j > 1 and mine == other[j - 2] and one[i - 2] == theirs:
                steps.append(before[j - 2] + 1)
            row.append(min(steps))
        before = last
    return row[-1]


def suggest_name(name: object, valid: Iterable[str]) -> str:
    """A hint for messages: the valid name nearest to `name`, or the valid names.

    Parameters
    ----------
    name
        The name as written; only texts have near names.
    valid
        The valid names.
    """
    names = sorted(valid)
    near = find_near_name(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    more = f", ... ({len(names):,} in all)" if len(names) > _MOST_LISTED else ""
    listed = ", ".join(names[:_MOST_LISTED])
    return f"valid: {listed}{more}" if names else "there is nothing to choose from"


def check_choice(what: str, value: object, valid: Iterable[str]) -> None:
    """Raise InputError, with the nearest valid name, if a value is not a valid name."""
    names = tuple(valid)
    if not isinstance(value, str) or value not in names:
        shown = repr(value).replace("\n", " ")
        raise InputError(f"unknown {what} {shown}; {suggest_name(str(value), names)}")


DISTRIBUTION = "fpbench-toolkit"
"""The name under which fpbench is installed, which is not that of its package: on the package
index, `fpbench` belongs to somebody else, a benchmark of floating-point numbers."""


def tell_extra(extra: str) -> str:
    """The command that installs an extra.

    Parameters
    ----------
    extra
        Its name, such as `report`; `pyproject.toml` lists them.
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"
