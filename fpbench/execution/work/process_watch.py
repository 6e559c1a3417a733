"""What a step can change in a process so that others, run there later, give something else.

Looked at are public names of libraries that results rest on, and settings of the process. A
component that hides what it does is not found.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import decimal
import gc
import locale
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

import numpy as np

_PLACE = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)
"""Where the number is: behind what all objects have, and how many entries there are."""


def _number(table: dict[Any, Any]) -> ctypes.c_uint64:
    """The number of a dictionary, to be read as long as that lives."""
    return ctypes.c_uint64.from_address(id(table) + _PLACE)


def _is_kept() -> bool:
    """Whether this Python keeps such numbers: what changes them, and what does not, is tried."""
    if dict.__basicsize__ < _PLACE + ctypes.sizeof(ctypes.c_uint64):
        return False
    table: dict[str, Any] = {"old": 1}
    number = _number(table)
    seen = [number.value]
    table["old"] = 2.5
    seen.append(number.value)
    table["new"] = 3
    seen.append(number.value)
    del table["new"]
    seen.append(number.value)
    dict(table)
    return len(set(seen)) == len(seen) and number.value == seen[-1]


KEPT = _is_kept()


class Versions:
    """Tells which of some dictionaries have been written to."""

    def __init__(self) -> None:
        self._tables: list[dict[str, Any]] = []
        self._numbers: list[ctypes.c_uint64] = []
        self._before: list[int] = []

    def add(self, table: dict[str, Any]) -> None:
        """Begin to watch one more, which is kept alive."""
        self._tables.append(table)
        if KEPT:
            self._numbers.append(_number(table))
            self._before.append(self._numbers[-1].value)

    def written(self) -> list[int]:
        """Those, in the order they were added in, that may be others since this was last asked."""
        if not KEPT:
            return list(range(len(self._tables)))
        before, self._before = self._before, [number.value for number in self._numbers]
        if before == self._before:
            return []
        pairs = zip(before, self._before, strict=True)
        return [place for place, (old, new) in enumerate(pairs) if old != new]


def names_of(owner: Any) -> dict[str, Any]:
    """The dictionary of a module or a class, itself: of a class, Python shows a proxy of it."""
    names = owner if isinstance(owner, dict) else vars(owner)
    if isinstance(names, MappingProxyType):
        (names,) = gc.get_referents(names)
    return names


_LIBRARIES = ("fpbench", "joblib", "numpy", "pandas", "scipy", "sklearn")
_WHOLE = ("fpbench", "sklearn")
"""Libraries whose private modules are looked at, too."""
_WITH_CLASSES = ("fpbench", "pandas", "sklearn")
"""Libraries whose classes are looked at, too; of pandas, those that it shows at the top."""
_DEEPEST = {"numpy": 1, "pandas": 1, "scipy": 1}
"""How many dots names of modules may have: of the public ones, deeper ones are inner parts."""
_STANDARD = (
    "bisect", "builtins", "cloudpickle", "collections", "copy", "dataclasses", "decimal",
    "fractions", "functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "os",
    "pickle", "random", "re", "statistics", "time", "warnings",
)  # fmt: skip
_NOT_SHADOWS = frozenset({
    "__annotations__", "__abstractmethods__", "__doc__", "__module__", "__slotnames__", "_abc_impl",
})  # fmt: skip
"""What Python itself adds to classes."""
_SIGNALS = (
    signal.SIGINT, signal.SIGTERM, signal.SIGFPE,
    *(getattr(signal, name) for name in ("SIGALRM", "SIGCHLD", "SIGPIPE", "SIGUSR1", "SIGXFSZ")
      if hasattr(signal, name)),
)  # fmt: skip
_HEAP_TYPE = 1 << 9
"""A flag of classes that can be changed."""
_DOING = (
    "BLIS_", "FPBENCH", "HOME", "JOBLIB", "LANG", "LC_", "LD_", "MKL_", "NPY_", "NUMEXPR", "OMP_",
    "OPENBLAS_", "PATH", "PYTHON", "SKLEARN_", "TMPDIR", "TZ", "VECLIB_",
)  # fmt: skip
"""How names of the environment begin that are known to do something once they are there."""
_MOST_NAMED = 5
_GONE = object()


class Changes(NamedTuple):
    """What a step has changed."""

    replaced: tuple[str, ...] = ()
    """Functions, classes and constants, by name: what is computed with them is another thing."""
    settings: tuple[str, ...] = ()
    """What of the process is set otherwise."""

    @property
    def words(self) -> str:
        """What was changed, for messages; empty if nothing was."""
        names = [*self.replaced, *self.settings]
        more = len(names) - _MOST_NAMED
        return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class _Names(NamedTuple):
    """A module, a class or a table of names, as it was."""

    label: str
    live: dict[str, Any]
    before: dict[str, Any]
    bases: tuple[type, ...]
    """What a class inherits from: a name that is added may hide one of theirs."""


class Watch:
    """Knows how the process was, and tells what has changed since it was looked at last.

    Parameters
    ----------
    strangers
        Packages that have no business in the libraries: those of plugins.
    """

    def __init__(self, strangers: frozenset[str] = frozenset()) -> None:
        self._strangers = strangers
        self._names: list[_Names] = []
        self._known: set[int] = set()
        self._versions = Versions()
        self._modules = 0
        list(self._take_new())
        self._settings = _settings()

    def look(self) -> Changes:
        """What has changed since the last time."""
        before, self._settings = self._settings, _settings()
        changed = tuple(
            name for name, now in self._settings.items() if not _is_alike(name, before[name], now)
        )
        return Changes(self.replaced(), changed)

    def replaced(self) -> tuple[str, ...]:
        """Names that stand for another thing than the last time."""
        names = [name for place in self._versions.written() for name in self._changed(place)]
        if len(sys.modules) != self._modules:
            names += self._take_new()
        return tuple(dict.fromkeys(names))

    def _changed(self, place: int) -> Iterator[str]:
        names = self._names[place]
        now = dict(names.live)
        for name, old in names.before.items():
            new = now.get(name, _GONE)
            if new is not old and not _is_harmless(name, old, new, names.label):
                yield f"{names.label}.{name}"
        for name in now.keys() - names.before.keys():
            if _shadows(name, now[name], names):
                yield f"{names.label}.{name}"
        names.before.clear()
        names.before.update(now)

    def _take_new(self) -> Iterator[str]:
        """Begin to watch what has been imported, and name what is a plugin's in it."""
        self._modules = len(sys.modules)
        for label, owner, bases in _watched():
            live = names_of(owner)
            if id(live) not in self._known:
                self._known.add(id(live))
                self._versions.add(live)
                self._names.append(_Names(label, live, dict(live), bases))
                for name, value in list(live.items()):
                    if _root(value) in self._strangers and isinstance(value, FunctionType | type):
                        yield f"{label}.{name}"


def _root(value: Any) -> str:
    """The package that a function or a class is of."""
    module = getattr(value, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def _is_harmless(name: str, old: Any, new: Any, label: str) -> bool:
    """Whether a library may change a name of its own so: something that it notes down."""
    if callable(old) or isinstance(old, ModuleType):
        return False
    noted = label in _STANDARD or not isinstance(old, bool | int | float | str | tuple)
    return (name.startswith("_") or noted) and not callable(new)


def _shadows(name: str, value: Any, names: _Names) -> bool:
    """Whether a new name hides one that was found elsewhere until now."""
    if names.bases:
        hides = any(name in vars(base) for base in names.bases) and name not in _NOT_SHADOWS
        return hides and (callable(value) or hasattr(value, "__get__"))
    dunder = name.startswith("__") and name.endswith("__")
    return hasattr(builtins, name) and not dunder and not isinstance(value, ModuleType)


def _watched() -> Iterator[tuple[str, Any, tuple[type, ...]]]:
    """Modules, classes and tables that are looked at, with their names and what they inherit."""
    seen: set[type] = set()
    for name, module in list(sys.modules.items()):
        root = name.partition(".")[0]
        if not _is_watched(name, root) or not isinstance(module, ModuleType):
            continue
        yield name, module, ()
        if root not in _WITH_CLASSES or (root == "pandas" and name != root):
            continue
        for key, value in list(vars(module).items()):
            if root == "fpbench" and isinstance(value, dict) and key.isupper() and key[0] != "_":
                yield f"{name}.{key}", value, ()
            if isinstance(value, type) and value not in seen:
                seen.add(value)
                for owner in value.__mro__:
                    if owner.__flags__ & _HEAP_TYPE and _root(owner) in _WITH_CLASSES:
                        yield f"{owner.__module__}.{owner.__name__}", owner, owner.__mro__[1:]


def _is_watched(name: str, root: str) -> bool:
    if root not in _LIBRARIES:
        return name in _STANDARD
    if root in _WHOLE:
        return True
    private = any(part.startswith("_") for part in name.split("."))
    return not private and name.count(".") <= _DEEPEST.get(root, sys.maxsize)


def _directory() -> str | None:
    with contextlib.suppress(OSError):  # somebody has removed it
        return os.getcwd()
    return None


def _timer() -> bool:
    """Whether a signal will come."""
    return sys.platform != "win32" and signal.getitimer(signal.ITIMER_REAL)[0] > 0


def _umask() -> int:
    os.umask(mask := os.umask(0o77))
    return mask


def _streams() -> tuple[Any, ...]:
    """What standard input, output and error are."""
    about: list[Any] = [sys.stdin, sys.stdout, sys.stderr]
    for number in range(3):
        try:
            status = os.fstat(number)
            about.append((status.st_dev, status.st_ino))
        except OSError:
            about.append(None)
    return tuple(about)


def _resource_limits() -> tuple[Any, ...]:
    if sys.platform == "win32":
        return ()
    import resource

    return tuple(map(resource.getrlimit, _kinds_of_limits()))


@cache
def _kinds_of_limits() -> tuple[int, ...]:
    import resource

    kinds = {number for name, number in vars(resource).items() if name.startswith("RLIMIT_")}
    return tuple(sorted(kinds))


def _options() -> list[Any]:
    """Options of libraries, if these are loaded."""
    options: list[Any] = []
    if sklearn := sys.modules.get("sklearn"):
        options.append(sklearn.get_config())
    if pandas := sys.modules.get("pandas"):
        nested = object.__getattribute__(pandas.options, "d")
        options.append({k: dict(v) if isinstance(v, dict) else v for k, v in nested.items()})
    return options


def _context() -> tuple[Any, ...]:
    context = decimal.getcontext()
    return context.prec, context.rounding, context.Emin, context.Emax


def _threads() -> int:
    """How many threads there are that nobody has named, as libraries do with theirs."""
    return sum(thread.name.startswith("Thread-") for thread in threading.enumerate())


def _environment() -> dict[Any, Any]:
    """The environment as Python keeps it, which is sooner had than decoded."""
    return dict(vars(os.environ)["_data"])


_SETTINGS: dict[str, Callable[[], Any]] = {
    "the environment": _environment,
    "the working directory": _directory,
    "resource limits": _resource_limits,
    "warnings that are errors": lambda: [f for f in warnings.filters if f[0] == "error"],
    "numpy.seterr": np.geterr,
    "signal handlers": lambda: [signal.getsignal(number) for number in _SIGNALS],
    "timers": _timer,
    "the umask": _umask,
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "the decimal context": _context,
    "sys.path": lambda: list(sys.path),
    "sys.meta_path": lambda: list(sys.meta_path),
    "the recursion limit": sys.getrecursionlimit,
    "the garbage collector": lambda: (gc.isenabled(), gc.get_threshold()),
    "sys.settrace": lambda: (sys.gettrace(), sys.getprofile()),
    "standard input and output": _streams,
    "threads": _threads,
    "options of libraries": _options,
}


def _settings() -> dict[str, Any]:
    return {name: read() for name, read in _SETTINGS.items()}


def _is_like_environment(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> bool:
    """Whether nothing was changed; what is new counts if it is known to do something."""
    if any(now.get(name, _GONE) != value for name, value in before.items()):
        return False
    return not any(os.fsdecode(name).startswith(_DOING) for name in now.keys() - before.keys())


def _is_like_options(before: list[Any], now: list[Any]) -> bool:
    """Whether no option is another; libraries that have been loaded since bring theirs."""
    return all(options in now for options in before)


def _is_alike(name: str, before: Any, now: Any) -> bool:
    return bool(before == now) or (name in _ALIKE and _ALIKE[name](before, now))


_ALIKE: dict[str, Callable[[Any, Any], bool]] = {
    "the environment": _is_like_environment,
    "options of libraries": _is_like_options,
    # Libraries add what imports their parts, behind all others.
    "sys.meta_path": lambda before, now: now[: len(before)] == before,
    # One that has ended is none that was left.
    "threads": lambda before, now: now <= before,
}
