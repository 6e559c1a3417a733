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


def find_near_name(name: object, valid: Iterable[str]) -> str | None:
    """The valid name nearest to `name`; None if none is near."""
    # difflib takes a few milliseconds to import, and only a mistake needs it.
    from difflib import get_close_matches

    if not isinstance(name, str) or len(name) > _LONGEST:
        return None
    names = sorted(known for known in valid if len(known) <= _LONGEST)[:_MOST_COMPARED]
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    if not close:  # in another case, few letters match
        folded = {known.casefold(): known for known in names}
        close = [folded[n] for n in get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)]
    return close[0] if close else None


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
