"""What a step changes in its process is found; nothing innocent is computed there any more."""

import builtins
import ctypes
import decimal
import fractions
import gc
import json
import locale
import os
import platform
import resource
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn import linear_model, metrics

import fpbench
from fpbench.components.records import Guess
from fpbench.execution.work.actions import ACTIONS
from fpbench.execution.work.process_watch import Watch

MATRIX = {
    "seeds": 2,
    "dataset": [{"use": "flock"}],
    "learner": [{"use": "parrot"}],
    "disclosure": [{"use": "oracle"}],
    "adversary": [{"use": "coin"}],
    "corrector": [{"use": "flip"}],
}
TIMES = ["seconds", "correct_seconds"]


def other(*_, **__):
    return 0.123


def innocents(run):
    return [
        {name: v for name, v in row.items() if name not in TIMES}
        for row in run.rows()
        if "spoiler" not in row["learner"]
    ]


def reasons(run):
    return {row["reason"] for row in run.rows() if "spoiler" in row["learner"]}


@pytest.fixture
def spoilers(toys, install):
    install("fpbench-spoilers", "spoilers")


def spoiling(what, **parameters):
    """The spoiler before and between the innocent."""
    spoiler = {"use": "spoiler", "what": what, **parameters}
    return MATRIX | {"learner": [spoiler, {"use": "parrot", "number": {"sweep": [0, 1, 2]}}]}


REPLACED = {
    "numpy.mean": (np, "mean", other),
    "numpy.pi": (np, "pi", 3.0),
    "numpy.random.default_rng": (np.random, "default_rng", other),
    "numpy.linalg.solve": (np.linalg, "solve", other),
    "builtins.sum": (builtins, "sum", other),
    "fpbench.execution.work.scores.measure_attack": (fpbench.execution.work.scores, "measure_attack", other),
    "fpbench.components.records.Guess.__init__": (Guess, "__init__", other),
    "sklearn.metrics.accuracy_score": (metrics, "accuracy_score", other),
    "sklearn.linear_model._logistic.LogisticRegression.fit": (
        linear_model.LogisticRegression, "fit", other,
    ),
    "pandas.DataFrame.to_numpy": (pd.DataFrame, "to_numpy", other),
    "scipy.sparse._csr.csr_array.__matmul__": (scipy.sparse.csr_array, "__matmul__", other),
    "fractions.Fraction.__add__": (fractions.Fraction, "__add__", other),
    "json.encoder.JSONEncoder.encode": (json.JSONEncoder, "encode", other),
    "secrets.randbelow": (secrets, "randbelow", other),
    "signal.getsignal": (signal, "getsignal", other),
    "threading.enumerate": (threading, "enumerate", other),
    "os.getpid": (os, "getpid", other),
}  # fmt: skip


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", REPLACED)
def test_a_name_that_stands_for_another_thing_is_found(monkeypatch, name):
    watch = Watch()
    assert watch.look().words == ""
    with monkeypatch.context() as changing:
        changing.setattr(*REPLACED[name])
        (found,) = watch.look().replaced
    assert found.rpartition(".")[2] == name.rpartition(".")[2]
    assert watch.look().replaced  # it has been put back: another change
    assert watch.look().replaced == ()


def test_names_are_found_however_they_were_changed(monkeypatch):
    watch = Watch()
    monkeypatch.setitem(vars(np), "median", other)
    assert watch.look().replaced == ("numpy.median",)
    monkeypatch.setitem(ACTIONS, "score", other)
    assert watch.look().replaced == ("fpbench.execution.work.actions.ACTIONS.score",)
    monkeypatch.delattr(np, "bincount")
    assert watch.look().replaced == ("numpy.bincount",)
    # New names, before which older ones were found.
    monkeypatch.setattr(fpbench.execution.work.scores, "sum", other, raising=False)
    assert watch.look().replaced == ("fpbench.execution.work.scores.sum",)
    monkeypatch.setattr(linear_model.LogisticRegression, "get_params", other)
    (found,) = watch.look().replaced
    assert found.endswith("LogisticRegression.get_params")


def test_a_strangers_function_in_a_library_that_was_just_imported_is_found(monkeypatch):
    watch = Watch(frozenset({other.__module__.partition(".")[0]}))
    made = type(np)("sklearn.new")
    made.useful = other
    made.own = metrics.accuracy_score
    monkeypatch.setitem(sys.modules, "sklearn.new", made)
    assert watch.look().replaced == ("sklearn.new.useful",)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", ["sklearn.metrics", "numpy.linalg", "json"])
@pytest.mark.parametrize("how", ["another", "none", "missing"])
def test_another_module_under_a_name_is_found(monkeypatch, name, how):
    """Whoever imports it later gets the other one."""
    watch = Watch()
    with monkeypatch.context() as changing:
        if how == "missing":
            changing.delitem(sys.modules, name)
        else:
            changing.setitem(sys.modules, name, type(np)(name) if how == "another" else None)
        assert watch.look().replaced == (f"sys.modules.{name}",)
    watch.look()
    monkeypatch.setitem(sys.modules, "mine", type(np)("mine"))
    monkeypatch.setitem(sys.modules, "mine", type(np)("mine"))
    assert watch.look() == ((), ())


@pytest.fixture
def put_back():
    """Settings of this process as they were."""
    mathematics.fesetround(0)
    size, patience, blocked = np.getbufsize(), socket.getdefaulttimeout(), _block()
    seterr, mask, spelt = np.geterr(), os.umask(0o22), locale.setlocale(locale.LC_ALL)
    os.umask(mask)
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)
    alarm, depth = signal.getsignal(signal.SIGUSR1), sys.getrecursionlimit()
    threshold, where, precision = gc.get_threshold(), Path.cwd(), decimal.getcontext().prec
    yield
    np.seterr(**seterr)
    os.umask(mask)
    locale.setlocale(locale.LC_ALL, spelt)
    resource.setrlimit(resource.RLIMIT_NOFILE, soft)
    signal.signal(signal.SIGUSR1, alarm)
    sys.setrecursionlimit(depth)
    gc.set_threshold(*threshold)
    os.chdir(where)
    decimal.getcontext().prec = precision
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
    sklearn.set_config(assume_finite=False)
    mathematics.fesetround(0)
    np.setbufsize(size)
    np.seterrcall(None)
    socket.setdefaulttimeout(patience)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _block(*signals):
    return signal.pthread_sigmask(signal.SIG_BLOCK, signals)


mathematics = ctypes.CDLL(None)
UPWARD = {"x86_64": 0x800, "AMD64": 0x800, "aarch64": 0x400000, "arm64": 0x400000}


class Finder:
    """An importer that finds nothing."""

    def find_spec(self, *_):
        return None


def lower_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 200) - 1, hard))


SETTINGS = {
    "the environment": lambda: os.environ.update(OMP_DYNAMIC="true"),
    "the working directory": lambda: os.chdir("/"),
    "resource limits": lower_limit,
    "warnings that are errors": lambda: warnings.simplefilter("error", ResourceWarning),
    "numpy.seterr": lambda: np.seterr(all="raise"),
    "signal handlers": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
    "timers": lambda: signal.alarm(1000),
    "the umask": lambda: os.umask(0o777),
    "the decimal context": lambda: setattr(decimal.getcontext(), "prec", 3),
    "sys.path": lambda: sys.path.insert(0, "/nowhere"),
    "sys.meta_path": lambda: sys.meta_path.insert(0, Finder()),
    "the recursion limit": lambda: sys.setrecursionlimit(5000),
    "the garbage collector": lambda: gc.set_threshold(1),
    "options of libraries": lambda: sklearn.set_config(assume_finite=True),
    "the rounding of floats": lambda: mathematics.fesetround(UPWARD[platform.machine()]),
    "the timeout of sockets": lambda: socket.setdefaulttimeout(1e-6),
    "sys.path_hooks": lambda: sys.path_hooks.insert(0, str),
}
MORE = {
    "numpy.seterr": lambda: np.setbufsize(16),
    "numpy.seterr ": lambda: np.seterrcall(print),
    "signal handlers": lambda: _block(signal.SIGTERM),
    "timers": lambda: signal.setitimer(signal.ITIMER_PROF, 1000),
    "timers ": lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 1000),
}
"""Other ways to change the same; blanks tell them apart."""


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize(
    ("name", "change"), [*SETTINGS.items(), *((name.strip(), MORE[name]) for name in MORE)]
)
def test_a_setting_that_is_another_is_found(monkeypatch, put_back, name, change):
    if name == "the rounding of floats" and platform.machine() not in UPWARD:
        pytest.skip("nobody knows the number of this rounding here")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "path_hooks", list(sys.path_hooks))
    monkeypatch.setenv("OMP_DYNAMIC", "")  # what a change sets is unset afterwards
    monkeypatch.delenv("OMP_DYNAMIC")
    with warnings.catch_warnings():
        watch = Watch()
        change()
        assert watch.look() == ((), (name,))
        assert watch.look() == ((), ())


class Unlike(list):
    """A list that cannot be compared."""

    def __eq__(self, _):
        raise ValueError

    __hash__ = None


@pytest.mark.parametrize(
    ("owner", "name", "value", "setting"),
    [
        (os, "environ", {}, "the environment"),
        (os, "environ", None, "the environment"),
        (sys, "path", None, "sys.path"),
        (warnings, "filters", None, "warnings that are errors"),
        (sys, "meta_path", 5, "sys.meta_path"),
        (pd, "options", None, "options of libraries"),
        (os, "environ", type("E", (), {"_data": Unlike()})(), "the environment"),
    ],
)
def test_a_setting_that_cannot_be_read_any_more_is_found(monkeypatch, owner, name, value, setting):
    """Whoever puts something else in its place does not make the look itself fail."""
    watch = Watch()
    with monkeypatch.context() as changing:
        changing.setattr(owner, name, value)
        assert watch.look().settings == (setting,)
        assert watch.look().settings in ((), (setting,))
    assert watch.look().settings == (setting,)
    assert watch.look() == ((), ())


def test_files_left_open_are_found():
    watch, files = Watch(), []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/dev/fd")))  # numbers below it may be free or not
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 100, hard))
        assert watch.look().settings == ("resource limits",)
        while not files or files[-1] < highest + 40:
            files.append(os.open(os.devnull, os.O_RDONLY))
        assert watch.look() == ((), ())
        with suppress(OSError):
            while files[-1] < highest + 100:
                files.append(os.open(os.devnull, os.O_RDONLY))
        os.close(files.pop())  # which the look itself needs
        assert watch.look().settings == ("open files",)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in files:
            os.close(file)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda path: [*path, Finder()], False),
        (lambda path: [*path[::-1]], True),
        (lambda path: path[1:], True),
        (lambda path: [*path[:1], Finder(), *path[1:]], True),
    ],
)
def test_only_an_importer_behind_all_others_is_no_change(monkeypatch, change, found):
    watch = Watch()
    monkeypatch.setattr(sys, "meta_path", change(list(sys.meta_path)))
    assert watch.look().settings == (("sys.meta_path",) if found else ())


@pytest.mark.slow
def test_the_libraries_of_correctors_change_nothing():
    """Pyomo puts an importer of its own before all others; in a process that has not seen it."""
    code = (
        "import sys; from fpbench.execution.work.execute import make_watch; watch = make_watch();"
        "import pyomo.environ, docplex.cp.model;"
        "print(repr(watch.look().words))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "''\n"


def test_a_thread_that_goes_on_is_found():
    watch, end = Watch(), threading.Event()
    threading.Thread(target=end.wait).start()
    assert watch.look().settings == ("threads",)
    end.set()


def test_what_libraries_do_when_they_are_imported_is_no_change(monkeypatch):
    watch = Watch()
    monkeypatch.setenv("KMP_INIT_AT_FORK", "FALSE")
    made = type(np)("numpy.new")
    made.mean = np.mean
    monkeypatch.setitem(sys.modules, "numpy.new", made)
    monkeypatch.setattr(np, "new", made, raising=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "nothing")
        assert watch.look() == ((), ())


SPOILED = {
    "numpy": "train spoiler: changed numpy.mean in its process",
    "environment": None,
    "limits": None,
    "clock": "train spoiler: ZeroDivisionError: division by zero",
}
"""What a spoiler may do, and the reason that its own rows give."""


@pytest.mark.parametrize(
    ("engine", "ways"),
    [
        ("loky", [*SPOILED]),
        pytest.param("dask", ["numpy", "limits", "clock"], marks=pytest.mark.slow),
    ],
)
def test_a_spoiled_worker_is_used_no_more(tmp_path, spoilers, engine, ways):
    """Its steps are done elsewhere; whoever spoils runs alone, where it spoils itself only."""
    if engine == "dask":
        pytest.importorskip("distributed")
    expected = innocents(fpbench.run(spoiling("nothing"), out=tmp_path / "clean"))
    for what in ways:
        run = fpbench.run(spoiling(what), out=tmp_path / what, engine=engine, jobs=2)
        assert innocents(run) == expected, what
        assert reasons(run) == {SPOILED[what]}


@pytest.mark.slow
def test_steps_wait_until_a_spoiled_worker_of_a_cluster_is_replaced(
    tmp_path, spoilers, monkeypatch
):
    """Sent to whoever takes them, they would be turned away by the same one again and again.

    A process that takes longer to start than dask waits for lost workers takes its place, too.
    """
    dask = pytest.importorskip("dask")
    monkeypatch.setattr("fpbench.execution.runner._MOST_REJECTIONS", 3)
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "0.1s"}):
        run = fpbench.run(spoiling("limits"), out=tmp_path / "run", engine="dask", jobs=1)
    assert {row["reason"] for row in run.rows()} == {None}


@pytest.mark.slow
def test_in_one_process_the_run_ends_when_it_is_spoiled(tmp_path, spoilers, monkeypatch):
    mean = np.mean
    monkeypatch.setattr(np, "mean", mean)  # put back afterwards
    with pytest.raises(
        fpbench.InputError, match=r"^(?s:.*)train spoiler.*: changed numpy\.mean of"
    ):
        fpbench.run(spoiling("numpy"), out=tmp_path / "run")
    np.mean = mean
    run = fpbench.run(spoiling("numpy") | {"limits": {"timeout": 600}}, out=tmp_path / "alone")
    assert reasons(run) == {"train spoiler: changed numpy.mean in its process"}
    assert innocents(run) == innocents(fpbench.run(spoiling("nothing"), out=tmp_path / "clean"))


def test_what_a_standard_module_notes_down_is_no_change(monkeypatch):
    watch = Watch()
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "UTC-9")
        time.tzset()
        assert watch.look().replaced == ()
    time.tzset()
