"""The exceptions of fpbench, and the one way to suggest the nearest valid name."""

from collections.abc import Iterable


class FpbenchError(Exception):
    """Base class of every error that fpbench raises on purpose."""


class InputError(FpbenchError, ValueError):
    """Something the user gave is wrong: the command line exits with 2."""


class MatrixError(InputError):
    """A matrix file that cannot be read, or says something it may not say."""


class NameUnknownError(InputError):
    """A kind or a component that is not installed under that name."""


class DataError(InputError):
    """A data file that is missing, or does not hold what its loader needs."""


class StoreError(InputError):
    """A run directory that cannot be used as asked."""


class RunLostError(FpbenchError):
    """A run directory that was taken away while a run wrote to it: the command exits with 1."""


class BudgetError(InputError):
    """A private answer that would cost more than what is left of the budget."""


class HiddenError(FpbenchError, AttributeError):
    """A component asked for something that it does not see."""


class PluginError(FpbenchError):
    """A plugin, or a component of one, that breaks its contract."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Say what `name` may have meant: the nearest of `valid`, or all of them."""
    # difflib costs a few milliseconds, and only a mistake needs it.
    from difflib import get_close_matches

    names = sorted(valid)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    if not close:  # of another case, a name has few letters in common with itself
        plain = {known.casefold(): known for known in names}
        found = get_close_matches(name.casefold(), plain, n=1, cutoff=0.5)
        close = [plain[word] for word in found]
    if close:
        return f"did you mean {close[0]!r}?"
    return f"valid: {', '.join(names)}" if names else "there is nothing to choose from"
