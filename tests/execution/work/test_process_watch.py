"""What a step changes in its process is found; nothing innocent is computed there any more."""

import builtins
import decimal
import gc
import locale
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
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
}  # fmt: skip


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


@pytest.fixture
def put_back():
    """Settings of this process as they were."""
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
    signal.setitimer(signal.ITIMER_REAL, 0)
    sklearn.set_config(assume_finite=False)


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
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_another_is_found(monkeypatch, put_back, name):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delenv("OMP_DYNAMIC", raising=False)
    with warnings.catch_warnings():
        watch = Watch()
        SETTINGS[name]()
        assert watch.look() == ((), (name,))
        assert watch.look() == ((), ())
    monkeypatch.delenv("OMP_DYNAMIC", raising=False)


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


@pytest.mark.parametrize(("what", "reason"), [
    ("numpy", "train spoiler: changed numpy.mean in its process"),
    ("limits", None),
])  # fmt: skip
@pytest.mark.parametrize("engine", ["loky", "dask"])
def test_a_spoiled_worker_is_used_no_more(tmp_path, spoilers, engine, what, reason):
    """Its steps are done elsewhere; whoever spoils runs alone, where it spoils itself only."""
    if engine == "dask":
        pytest.importorskip("distributed")
    expected = innocents(fpbench.run(spoiling("nothing"), out=tmp_path / "clean"))
    run = fpbench.run(spoiling(what), out=tmp_path / "run", engine=engine, jobs=2)
    assert innocents(run) == expected
    assert reasons(run) == {reason}


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
