"""Changes by which a step can spoil later steps in the same process.

A watch looks at public names of libraries that results depend on, and at settings of the process.
It does not find a component that hides its changes.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import builtins
import contextlib
import ctypes
import decimal
import errno
import gc
import locale
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_OFFSET = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)
"""Offset of a dictionary's version number: behind the object header and the number of entries."""
_WORD = 8


def _number(table: dict[Any, Any]) -> ctypes.c_uint64:
    """The version number of a dictionary, which must live as long as it is read."""
    return ctypes.c_uint64.from_address(id(table) + _OFFSET)


def _is_kept() -> bool:
    """Whether this Python counts writes to dictionaries: tried with writes and with a read."""
    if dict.__basicsize__ < _OFFSET + _WORD or ctypes.sizeof(ctypes.c_void_p) != _WORD:
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


@cache
def _view_memory() -> NDArray[np.uint64]:
    """The words of this process's memory from address 8; only known words may be read.

    Reading a thousand version numbers takes two microseconds this way, and forty one by one.
    """
    words = ctypes.c_uint64 * (2**47 // _WORD - 1)
    return np.ctypeslib.as_array(words.from_address(_WORD))  # from address 0, NumPy would copy


class Versions:
    """Finds the dictionaries, of those watched, that have been written to."""

    def __init__(self) -> None:
        self._tables: list[dict[str, Any]] = []
        self._before = np.zeros(0, np.uint64)
        self._words = np.zeros(0, np.intp)
        """Positions of the version numbers in `_view_memory()`."""

    def add(self, *tables: dict[str, Any]) -> None:
        """Watch more dictionaries, which must live as long as this object."""
        self._tables += tables
        if KEPT and tables:
            words = np.array([(id(table) + _OFFSET) // _WORD - 1 for table in tables])
            self._words = np.concatenate([self._words, words])
            self._before = np.concatenate([self._before, _view_memory().take(words)])

    def written(self) -> list[int]:
        """Positions of dictionaries that may have been written to since the last call."""
        if not KEPT:
            return list(range(len(self._tables)))
        # Methods of arrays, which no component can replace, unlike functions of numpy.
        before, self._before = self._before, _view_memory().take(self._words)
        positions: list[int] = (before != self._before).nonzero()[0].tolist()
        return positions


def names_of(owner: Any) -> dict[str, Any]:
    """The dictionary of a module or a class itself, not the proxy that Python shows for a class."""
    names = owner if isinstance(owner, dict) else vars(owner)
    if isinstance(names, MappingProxyType):
        (names,) = gc.get_referents(names)
    return names


_LIBRARIES = ("fpbench", "joblib", "numpy", "pandas", "scipy", "sklearn")
_WHOLE = ("fpbench", "sklearn")
"""Libraries whose private modules are watched, too."""
_WITH_CLASSES = ("fpbench", "fractions", "json", "pandas", "pathlib", "scipy", "sklearn")
"""Libraries whose classes are watched, too; of pandas, those of its top module."""
_DEEPEST = {"numpy": 1, "pandas": 1, "scipy": 1}
"""Greatest number of dots in the name of a watched module: deeper modules are inner parts."""
_STANDARD = (
    "bisect", "builtins", "cloudpickle", "collections", "contextlib", "copy", "ctypes",
    "dataclasses", "decimal", "fractions", "functools", "gc", "hashlib", "heapq", "importlib",
    "inspect", "itertools", "json", "locale", "math", "operator", "os", "pathlib", "pickle",
    "random", "re", "secrets", "signal", "socket", "statistics", "struct", "subprocess", "tempfile",
    "threading", "time", "warnings",
)  # fmt: skip
_NOT_SHADOWS = frozenset({
    "__annotations__", "__abstractmethods__", "__doc__", "__module__", "__slotnames__", "_abc_impl",
})  # fmt: skip
"""Names that Python itself adds to classes."""
_SIGNALS = (
    signal.SIGINT, signal.SIGTERM, signal.SIGFPE,
    *(getattr(signal, name) for name in ("SIGALRM", "SIGCHLD", "SIGPIPE", "SIGUSR1", "SIGXFSZ")
      if hasattr(signal, name)),
)  # fmt: skip
_HEAP_TYPE = 1 << 9
"""The flag of classes that can be changed."""
_DOING = (
    "BLIS_", "FPBENCH", "HOME", "JOBLIB", "LANG", "LC_", "LD_", "MKL_", "NPY_", "NUMEXPR", "OMP_",
    "OPENBLAS_", "PATH", "PYTHON", "SKLEARN_", "TMPDIR", "TZ", "VECLIB_",
)  # fmt: skip
"""Beginnings of environment variables that have an effect as soon as they are set."""
_IMPORTERS = ("pyomo",)
"""Libraries whose import puts an importer before all others."""
_MOST_NAMED = 5
_SPARE_FILES = 32
"""Number of files that a step must be able to open, connections included."""
_EPS = 2.0**-52
_SMALLEST = 2.0**-1022
"""The smallest float that is not subnormal."""
_SUBNORMAL = 2.0**-1074
_LIMITS = ("AS", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "STACK")
"""Limits that can make a step fail; reading each costs a system call. The others are about core
dumps, priorities, queues and signals, or Linux ignores them."""
_GONE = object()


class ProcessChanges(NamedTuple):
    """Changes that a step made."""

    replaced: tuple[str, ...] = ()
    """Names of functions, classes and constants with other values: results may be wrong."""
    settings: tuple[str, ...] = ()
    """Settings of the process that differ."""

    @property
    def words(self) -> str:
        """The changes, for messages; empty if there are none."""
        names = [*self.replaced, *self.settings]
        more = len(names) - _MOST_NAMED
        return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class _Names(NamedTuple):
    """The names of a module, a class or a table, and their earlier values."""

    label: str
    live: dict[str, Any]
    before: dict[str, Any]
    bases: tuple[type, ...]
    """Base classes of a class: a new name may hide one of their names."""


class Watch:
    """Finds what has changed in the process since the last look.

    `strangers`: packages of plugins, whose functions do not belong in the libraries.
    """

    def __init__(self, strangers: frozenset[str] = frozenset()) -> None:
        self._strangers = strangers
        self._names: list[_Names] = []
        self._known: set[int] = set()
        self._versions = Versions()
        self._modules = 0
        self._take([_Names("sys.modules", sys.modules, dict(sys.modules), ())])
        self._take_new()
        self._settings = _read_settings()

    def look(self) -> ProcessChanges:
        """The changes since the last look."""
        # First, because the settings are read by functions that may have been replaced.
        replaced = self.replaced()
        before, self._settings = self._settings, _read_settings()
        return ProcessChanges(replaced, _list_changed(before, self._settings))

    def replaced(self) -> tuple[str, ...]:
        """Names with another value than at the last look."""
        names = [name for place in self._versions.written() for name in self._changed(place)]
        if len(sys.modules) != self._modules:
            names += self._find_strangers(self._take_new())
        return tuple(dict.fromkeys(names))

    def _changed(self, place: int) -> Iterator[str]:
        names = self._names[place]
        now = dict(names.live)
        for name, old in names.before.items():
            new = now.get(name, _GONE)
            if new is not old and not _is_harmless(name, old, new, names.label):
                yield f"{names.label}.{name}"
        for name in now.keys() - names.before.keys():
            if _hides_name(name, now[name], names):
                yield f"{names.label}.{name}"
        names.before.clear()
        names.before.update(now)

    def _take_new(self) -> Collection[_Names]:
        """Watch newly imported modules, and return their names."""
        self._modules = len(sys.modules)
        new: dict[int, _Names] = {}
        for label, owner, bases in _list_watched():
            live = names_of(owner)
            if id(live) not in self._known and id(live) not in new:
                new[id(live)] = _Names(label, live, dict(live), bases)
        self._known |= new.keys()
        self._take(new.values())
        return new.values()

    def _find_strangers(self, new: Collection[_Names]) -> Iterator[str]:
        """The names whose functions or classes are from a plugin."""
        for names in new:
            for name, value in names.before.items():
                if isinstance(value, FunctionType | type) and _find_root(value) in self._strangers:
                    yield f"{names.label}.{name}"

    def _take(self, new: Collection[_Names]) -> None:
        self._names += new
        self._versions.add(*(names.live for names in new))


def _find_root(value: Any) -> str:
    """The package of a function or a class."""
    module = getattr(value, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def _is_harmless(name: str, old: Any, new: Any, label: str) -> bool:
    """Whether a library itself may make such a change, as to a cache or a note."""
    if label == "sys.modules":
        return not _is_watched(name, name.partition(".")[0])
    if callable(old) or isinstance(old, ModuleType):
        return False
    noted = label in _STANDARD or not isinstance(old, bool | int | float | str | tuple)
    return (name.startswith("_") or noted) and not callable(new)


def _hides_name(name: str, value: Any, names: _Names) -> bool:
    """Whether a new name hides an inherited one or a builtin."""
    if names.bases:
        hides = any(name in vars(base) for base in names.bases) and name not in _NOT_SHADOWS
        return hides and (callable(value) or hasattr(value, "__get__"))
    dunder = name.startswith("__") and name.endswith("__")
    return hasattr(builtins, name) and not dunder and not isinstance(value, ModuleType)


def _list_watched() -> Iterator[tuple[str, Any, tuple[type, ...]]]:
    """Names of modules, classes and tables; the objects; and base classes of classes."""
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
                    if owner.__flags__ & _HEAP_TYPE and _find_root(owner) in _WITH_CLASSES:
                        yield f"{owner.__module__}.{owner.__name__}", owner, owner.__mro__[1:]


def _is_watched(name: str, root: str) -> bool:
    if root not in _LIBRARIES:
        return name in _STANDARD
    if root in _WHOLE:
        return True
    private = any(part.startswith("_") for part in name.split("."))
    return not private and name.count(".") <= _DEEPEST.get(root, sys.maxsize)


def _read_directory() -> str | None:
    with contextlib.suppress(OSError):  # somebody has removed it
        return os.getcwd()
    return None


def _read_timers() -> list[bool]:
    """Whether each timer is set."""
    if sys.platform == "win32":
        return []
    kinds = signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF
    return [signal.getitimer(kind)[0] > 0 for kind in kinds]


def _read_signals() -> list[Any]:
    """The handlers of signals, and the blocked signals; as numbers, because enums take longer."""
    handlers: list[Any] = list(map(_signal.getsignal, _SIGNALS))
    if sys.platform != "win32":
        handlers.append(_signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    return handlers


def _read_float_modes() -> tuple[bool, ...]:
    """Whether floats are rounded to the nearest, and subnormal ones are not set to 0."""
    return 1 + 0.25 * _EPS == 1, 1 + 0.75 * _EPS > 1, _SMALLEST * 0.5 > 0, _SUBNORMAL * 2 > 0


def _read_ufunc_state() -> tuple[Any, ...]:
    """Numpy's treatment of errors, and its buffer size, on which its sums depend."""
    return np.geterr(), np.geterrcall(), np.getbufsize()


def _lacks_files() -> bool:
    """Whether hardly any more files can be opened."""
    if sys.platform == "win32":
        return False
    import resource

    try:
        least = os.dup(0)  # a tenth of the time of opening a file
    except OSError as error:
        if error.errno != errno.EBADF:
            return True
        try:
            least = os.open(os.devnull, os.O_RDONLY)
        except OSError:
            return True
    os.close(least)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most != resource.RLIM_INFINITY and least + _SPARE_FILES > most


def _read_umask() -> int:
    os.umask(mask := os.umask(0o77))
    return mask


def _read_streams() -> tuple[Any, ...]:
    """Identities of standard input, output and error."""
    about: list[Any] = [sys.stdin, sys.stdout, sys.stderr]
    for number in range(3):
        try:
            status = os.fstat(number)
            about.append((status.st_dev, status.st_ino))
        except OSError:
            about.append(None)
    return tuple(about)


def _read_resource_limits() -> tuple[Any, ...]:
    if sys.platform == "win32":
        return ()
    import resource

    return tuple(map(resource.getrlimit, _list_limit_kinds()))


@cache
def _list_limit_kinds() -> tuple[int, ...]:
    import resource

    kinds = (getattr(resource, f"RLIMIT_{name}", None) for name in _LIMITS)
    return tuple(kind for kind in kinds if kind is not None)


def _read_options() -> list[Any]:
    """Options of loaded libraries."""
    options: list[Any] = []
    if sklearn := sys.modules.get("sklearn"):
        options.append(sklearn.get_config())
    if pandas := sys.modules.get("pandas"):
        nested = object.__getattribute__(pandas.options, "d")
        options.append({k: dict(v) if isinstance(v, dict) else v for k, v in nested.items()})
    return options


def _read_context() -> tuple[Any, ...]:
    context = decimal.getcontext()
    return context.prec, context.rounding, context.Emin, context.Emax


def _count_threads() -> int:
    """Number of threads with default names; libraries name their threads."""
    return sum(thread.name.startswith("Thread-") for thread in threading.enumerate())


def _read_environment() -> dict[Any, Any]:
    """The environment as Python stores it, which is faster than decoding it."""
    return dict(vars(os.environ)["_data"])


_SETTINGS: dict[str, Callable[[], Any]] = {
    "the environment": _read_environment,
    "the working directory": _read_directory,
    "resource limits": _read_resource_limits,
    "warnings that are errors": lambda: [f for f in warnings.filters if f[0] == "error"],
    "numpy.seterr": _read_ufunc_state,
    "the rounding of floats": _read_float_modes,
    "signal handlers": _read_signals,
    "timers": _read_timers,
    "the umask": _read_umask,
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "the decimal context": _read_context,
    "sys.path": lambda: list(sys.path),
    "sys.meta_path": lambda: list(sys.meta_path),
    "sys.path_hooks": lambda: list(sys.path_hooks),
    "the recursion limit": sys.getrecursionlimit,
    "the garbage collector": lambda: (gc.isenabled(), gc.get_threshold()),
    "sys.settrace": lambda: (sys.gettrace(), sys.getprofile()),
    "standard input and output": _read_streams,
    "open files": _lacks_files,
    "the timeout of sockets": socket.getdefaulttimeout,
    "threads": _count_threads,
    "options of libraries": _read_options,
}


def _read_settings() -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, read in _SETTINGS.items():
        try:
            settings[name] = read()
        except Exception:  # somebody has put another object in its place
            settings[name] = _GONE
    return settings


def _is_like_environment(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> bool:
    """Whether no variable was changed or removed, and no new one is known to have an effect."""
    if any(now.get(name, _GONE) != value for name, value in before.items()):
        return False
    return not any(os.fsdecode(name).startswith(_DOING) for name in now.keys() - before.keys())


def _is_like_options(before: list[Any], now: list[Any]) -> bool:
    """Whether no option was changed; newly loaded libraries bring new options."""
    return all(options in now for options in before)


def _is_like_importers(before: list[Any], now: list[Any]) -> bool:
    """Whether no importer was removed, and new ones come last or are of known libraries."""
    others = [one for one in now if one in before or _find_root(one) not in _IMPORTERS]
    return others[: len(before)] == before


def _list_changed(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, ...]:
    """Names of settings that differ."""
    with contextlib.suppress(Exception):  # objects that cannot be compared
        if before == now:
            return ()
    return tuple(name for name in now if not _is_alike(name, before[name], now[name]))


def _is_alike(name: str, before: Any, now: Any) -> bool:
    if now is _GONE:
        return before is _GONE
    try:
        return bool(before == now) or (name in _ALIKE and _ALIKE[name](before, now))
    except Exception:  # of another type, or an object that cannot be compared
        return False


_ALIKE: dict[str, Callable[[Any, Any], bool]] = {
    "the environment": _is_like_environment,
    "options of libraries": _is_like_options,
    "sys.meta_path": _is_like_importers,
    # A thread may end.
    "threads": lambda before, now: now <= before,
}
