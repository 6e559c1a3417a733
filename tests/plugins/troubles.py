"""Components that go wrong in every way there is."""

from __future__ import annotations

import ctypes
import gc
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Literal

import numpy as np
from pydantic import Field

from fpbench import (
    Adversary,
    Auditor,
    Correction,
    Corrector,
    Guarantee,
    Guess,
    Learner,
    Release,
    hookimpl,
)
from fpbench.plugin import SolverStatus, Weighing

MIB = 2**20
MEASURES = {
    "status": {"status": "failed"},
    "unshown": {"\udc80": 1.0},
    "essay": {"text": "no" * 50_000_000},
    "crowd": {f"measure_{i}": i for i in range(10_001)},
}
"""What cannot be a row's."""


class Trouble(Corrector):
    """Ends badly."""

    name = "trouble"
    summary = "ends badly"
    what: Literal[
        "nothing", "raises", "hangs", "eats", "segfaults", "killed", "exits", "leaves", "once",
        "interrupts", "ends", "screams", "status", "unshown", "essay", "crowd",
    ] = Field("nothing", description="how it ends")  # fmt: skip
    mark: str = Field("", description="a file in which it leaves what is to be found later")

    def correct(self, problem):
        measures = MEASURES.get(self.what, {})
        if not measures:
            getattr(self, f"_{self.what}")()
        size = float(len(problem.guess))
        return Correction(1 - problem.guess, SolverStatus.FEASIBLE, size, measures=measures)

    def _nothing(self):
        pass

    def _raises(self):
        raise RuntimeError("no")

    def _interrupts(self):
        raise KeyboardInterrupt

    def _ends(self):
        raise GeneratorExit

    def _screams(self):
        raise RuntimeError("no" * 50_000_000)

    def _hangs(self):
        if self.mark:
            Path(self.mark).write_text(str(os.getpid()))
        time.sleep(600)

    def _eats(self):
        held = [np.ones(32 * MIB // 8) for _ in range(32)]
        raise AssertionError(f"1 GiB could be had: {len(held)}")

    def _segfaults(self):
        ctypes.string_at(0)

    def _killed(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def _exits(self):
        os._exit(7)

    def _leaves(self):
        """A process that goes on, and holds what it can of this one."""
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                                close_fds=False)  # fmt: skip
        Path(self.mark).write_text(str(left.pid))
        os._exit(3)

    def _once(self):
        if not Path(self.mark).exists():
            Path(self.mark).write_text("tried")
            raise RuntimeError("the first time")


class Deadly(Learner):
    """Kills whoever trains it."""

    name = "deadly"
    summary = "kills its process"
    needs = frozenset({"features", "labels"})

    def fit(self, sample, rng):
        os.kill(os.getpid(), signal.SIGKILL)


_LEAKED = []


class Leaky(Learner):
    """Never gives back its memory; says in which process it was."""

    name = "leaky"
    summary = "grows"
    needs = frozenset({"features", "labels"})
    number: int = Field(0, ge=0, description="tells one from another")
    marks: str = Field("", description="a folder for the numbers of its processes")

    def fit(self, sample, rng):
        _LEAKED.append(np.ones(64 * MIB // 8))
        Path(self.marks, f"{self.number}").write_text(str(os.getpid()))
        time.sleep(1.1)  # loky looks every second
        return _Yes()


class _Yes:
    def predict(self, features, rng, sensitive=None):
        return np.ones(len(features), np.int8)


PLAIN = {str, bytes, int, float, bool, type(None), *weakref.ProxyTypes}
"""Types of what refers to no array; what a proxy stands for may be gone."""


def _walk():
    """Arrays in reach of this process: of every object, every frame, every module."""
    frames = [f for frame in sys._current_frames().values() for f in _outer(frame)]
    waiting = [*gc.get_objects(), *frames, *sys.modules.values()]
    seen = set()
    while waiting:
        thing = waiting.pop()
        if type(thing) in PLAIN or id(thing) in seen:
            continue
        seen.add(id(thing))
        try:
            if isinstance(thing, np.ndarray):
                yield thing
                if thing.base is not None:
                    waiting.append(thing.base)
            # Modules by their names only: what _asyncio of 3.12 refers to has no end.
            if not isinstance(thing, ModuleType):
                waiting += [other for other in gc.get_referents(thing) if type(other) not in PLAIN]
            if isinstance(thing, FrameType):
                waiting += thing.f_locals.values()
            elif isinstance(thing, FunctionType | MethodType | ModuleType):
                waiting += vars(thing).values()
        except Exception:  # anything may refuse to be looked at
            continue


def _outer(frame):
    while frame is not None:
        yield frame
        frame = frame.f_back


def hunted(target):
    """How many things in reach of this process tell the groups of the target's people.

    The people of `flock` are told by their feature x: who has x is in group x modulo 2.
    """
    truth = target.features["x"].to_numpy().astype(int) % 2
    found = 0
    for thing in _walk():
        if thing.dtype.kind not in "iu" or thing.ndim != 1:
            continue
        if thing is not truth and thing.dtype != truth.dtype and np.array_equal(thing, truth):
            found += 1
    return found


class Hunter(Adversary):
    """Looks everywhere for what it is not told."""

    name = "hunter"
    summary = "hunts for the truth"
    sees = frozenset({"features"})

    def guess(self, view, rng):
        n, m = len(view.target), len(view.attack)
        none, zeros = np.zeros(n, int), np.zeros(m, int)
        notes = {"found": hunted(view.target), "process": os.getpid()}
        return Guess(none, np.ones(n), np.arange(m), zeros, np.ones(m), notes)


class TunedHunter(Hunter):
    """Does so while it is tuned, too."""

    name = "tuned-hunter"
    summary = "hunts for the truth of whom it is tuned beside"
    before: int = Field(-1, ge=-1, description="what was found while tuning")

    @property
    def tunes_once(self):
        return self.before < 0

    def tune(self, known, rng):
        # Of the other parts of the split: nobody who is known is in them.
        others = 0
        people = set(known.features["x"])
        for thing in _walk():
            if thing.dtype == float and thing.ndim == 2:
                others += bool(set(thing.ravel()) - people) and thing.shape[0] == 1
        return self.model_copy(update={"before": others})

    def guess(self, view, rng):
        guess = super().guess(view, rng)
        guess.notes["before"] = self.before
        return guess


class Evil:
    """Runs code where it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch " + os.environ["EVIL_MARK"],)


class Smuggler(Adversary):
    """Gives back an object that runs code where it is opened."""

    name = "smuggler"
    summary = "smuggles"
    sees = frozenset({"features"})

    def guess(self, view, rng):
        n, m = len(view.target), len(view.attack)
        notes = {"gift": Evil()}
        return Guess(
            np.zeros(n, int), np.ones(n), np.arange(m), np.zeros(m, int), np.ones(m), notes
        )


def _nested():
    """A pickle of 800 bytes that changes lists whose `repr` has no end."""
    pieces = [b"\x80\x04", b"]", b"\x94"]
    pieces += [b"]\x94(" + (b"h" + bytes([k])) * 10 + b"e" for k in range(60)]
    return b"".join([*pieces, b"}b."])


def _raw(header, **arrays):
    file = io.BytesIO()
    text = json.dumps(_FAILED | header).encode()
    np.savez(file, header=np.frombuffer(text, np.uint8), **arrays)
    return file.getvalue()


_FAILED = {"answer": "failure", "took": 1.0, "bad_input": False}
FORGED = {
    "nested": lambda n: _nested(),
    "runs": lambda n: pickle.dumps(Evil()),
    "numbers": lambda n: _raw({}, texts=np.frombuffer(b"[123, 456]", np.uint8)),
    "nan": lambda n: _raw({"took": float("nan")}),
    "nothing": lambda n: b"",
    "flood": lambda n: bytes(2**26),  # of a size that no answer has
}
"""What a hostile component may answer with; bytes of every other sort are in `test_answers.py`."""
Forgery = Literal["none", "nested", "runs", "numbers", "nan", "nothing", "flood"]


def forge(what, n):
    """Have this process answer with something else than its result."""
    from fpbench.execution.isolation import one_use_server

    one_use_server.write_result = lambda *_: FORGED[what](n)


class Forger(Adversary):
    """Answers with bytes of its own choice."""

    name = "forger"
    summary = "forges its answer"
    sees = frozenset({"features"})
    what: Forgery = Field("none", description="what it answers with")

    def guess(self, view, rng):
        n, m = len(view.target), len(view.attack)
        if self.what != "none":
            forge(self.what, n)
        return Guess(np.zeros(n, int), np.ones(n), np.arange(m), np.zeros(m, int), np.ones(m))


class Cheat(Corrector):
    """So does this one."""

    name = "cheat"
    summary = "forges its answer"
    what: Forgery = Field("none", description="what it answers with")

    def correct(self, problem):
        if self.what != "none":
            forge(self.what, len(problem.guess))
        return Correction(1 - problem.guess, SolverStatus.FEASIBLE, 1.0)


def _ways():
    """Every way in which fpbench loads a data set, by name."""
    import fpbench
    from fpbench.builtin.datasets.adult import Adult
    from fpbench.builtin.datasets.census_synthetic import CensusSynthetic
    from fpbench.execution.work.actions import ACTIONS

    home = fpbench.plugin.DataHome.default()
    few, folder = CensusSynthetic(rows=200), tempfile.mkdtemp()
    return {
        "name": lambda: fpbench.dataset("flock"),
        "file": lambda: fpbench.dataset("adult"),
        "component": lambda: fpbench.component("dataset", "flock").load(home),
        "class": few.load,
        "inherited": lambda: type("Mine", (CensusSynthetic,), {})(rows=200).load(home),
        "step": lambda: ACTIONS["load"](few, (home,), None),
        "find": lambda: home.find("adult.data"),
        "fetch": lambda: home.fetch(Adult().files[0]),
        "run": lambda: [row["reason"] for row in fpbench.run(_SMALL, out=folder).rows()],
        "started": lambda: subprocess.run(
            [sys.executable, "-c", "import fpbench; fpbench.dataset('census-synthetic', rows=200)"],
            check=True, capture_output=True, text=True,
        ),
    }  # fmt: skip


_SMALL = {
    "dataset": [{"use": "census-synthetic", "rows": 200}],
    "learner": [{"use": "parrot"}],
    "disclosure": [{"use": "oracle"}],
    "adversary": [{"use": "coin"}],
    "corrector": [{"use": "none"}],
}


class Loader(Hunter):
    """Asks fpbench for the data, in every way there is; says what it was answered."""

    name = "loader"
    summary = "loads what it is to guess"

    def guess(self, view, rng):
        guess = super().guess(view, rng)
        for name, way in _ways().items():
            try:
                said = f"came: {way()}"
            except Exception as error:
                said = f"{type(error).__name__}: {error} {getattr(error, 'stderr', '')}"
            guess.notes[f"way_{name}".replace(" ", "_")] = said
        return guess


class Talker(Adversary):
    """Writes to all outputs that it finds, and says what they are."""

    name = "talker"
    summary = "writes to a terminal"
    sees = frozenset({"features"})

    def guess(self, view, rng):
        n, m = len(view.target), len(view.attack)
        notes = {}
        print("\x1b]0;title\x07\u202eolleh\ttab", flush=True)
        for end in range(3):
            notes[f"terminal_{end}"] = os.isatty(end)
            try:
                os.set_blocking(end, False)
                notes[f"read_{end}"] = os.read(end, 100).decode()
            except OSError as error:
                notes[f"read_{end}"] = type(error).__name__
            finally:
                os.set_blocking(end, True)
        os.write(2, b"\xff" * 5_000 + b"\x1b[2Jpassword: ")
        os.system("printf '\\033[31mred\\n'")
        status = Path("/proc/self/status").read_text()
        notes["no_new_rights"] = status.partition("NoNewPrivs:")[2].split()[0]
        return Guess(
            np.zeros(n, int), np.ones(n), np.arange(m), np.zeros(m, int), np.ones(m), notes
        )


def _forged_release(release, people, predictions):
    return {"audit_metric": release.metric, "true_ratio": 0.0123, "error": 0.0, "epsilon": 1e-9}


def _forged_model(split, predictions, claim):
    return {"train_accuracy": 0.0123, "test_accuracy": 0.0123}


def _forged_attack(split, predictions, guess, correction):
    return {"initial_accuracy": 0.0123, "gain": 0.0123}


def _forged_row(measured, words, guarantee):
    forged = {"true_ratio": 0.0123, "error": 0.0, "epsilon": 1e-9, "test_accuracy": 0.0123}
    return {**measured, **forged}


def _forged_correction(corrected, parents, step):
    return corrected.correction, {"correct_seconds": 0.0, "reconsidered_accuracy": 0.0123}, {}


def _forge_measures():
    """Have fpbench's own functions give other numbers here, under names that nobody has touched."""
    from fpbench.execution import answers
    from fpbench.execution.work import actions, rows, scores

    scores.measure_release.__code__ = _forged_release.__code__
    scores.measure_model.__code__ = _forged_model.__code__
    scores.measure_attack.__code__ = _forged_attack.__code__
    rows.make_row.__code__ = _forged_row.__code__
    actions._measure_correction.__code__ = _forged_correction.__code__
    pack = answers.pack
    answers.pack = lambda fields: pack(
        {name: 1e9 if type(value) is float else value for name, value in fields.items()}
    )


class ForgingAuditor(Auditor):
    """Has what fpbench measures of it forged, in its own process."""

    name = "forging-auditor"
    summary = "forges what is measured"
    sees = frozenset({"predictions", "curator"})
    forges: bool = Field(True, description="whether it does")
    releases: bool = Field(True, description="whether it gives a release")

    def audit(self, subject, rng):
        if self.forges:
            _forge_measures()
        if not self.releases:
            return {"counted": len(subject.test)}
        half = np.array([0.5, 0.75])
        return Release(
            "statistical-parity", half, half / 2, half, 1.0, Guarantee(2.0), "simulation",
            {"counted": len(subject.test)},
        )  # fmt: skip


class ForgingCorrector(Corrector):
    """So does this one."""

    name = "forging-corrector"
    summary = "forges what is measured"
    forges: bool = Field(True, description="whether it does")

    def weigh(self, guess, held_out, truth):
        return Weighing(None, {"weighed": 1}, np.zeros(len(guess.values), np.int64))

    def correct(self, problem):
        if self.forges:
            _forge_measures()
        return Correction(1 - problem.guess, SolverStatus.FEASIBLE, float(len(problem.guess)))


@hookimpl
def fpbench_auditors():
    return [ForgingAuditor]


@hookimpl
def fpbench_correctors():
    return [Trouble, Cheat, ForgingCorrector]


@hookimpl
def fpbench_learners():
    return [Deadly, Leaky]


@hookimpl
def fpbench_adversaries():
    return [Hunter, TunedHunter, Smuggler, Forger, Loader, Talker]
