"""An instant toy component of every kind, registered as a third party would."""

from __future__ import annotations

import os
import pickle
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
import typer
from pydantic import Field

from fpbench import (
    Adversary,
    Auditor,
    Claim,
    Component,
    Correction,
    Corrector,
    Dataset,
    Disclosure,
    Guess,
    InputError,
    Learner,
    Mechanism,
    Policy,
    Table,
    hookimpl,
)
from fpbench.claims import RateConstraint
from fpbench.execution import (
    Engine,
    EngineError,
    InlineEngine,
    StepTask,
    WorkerCheck,
)
from fpbench.plugin import Lazy, SolverStatus
from fpbench.privacy import COUNT_SENSITIVITY


def trace(what: str) -> None:
    """Append to the file that TOY_TRACE names, so that tests see what really ran, anywhere."""
    if "TOY_TRACE" in os.environ:
        with Path(os.environ["TOY_TRACE"]).open("a") as file:
            file.write(what + "\n")


class Flock(Dataset):
    """People with one feature."""

    name = "flock"
    summary = "a few people with one feature"
    rows: int = Field(60, ge=3, description="people")
    groups: int = Field(2, ge=1, le=5, description="groups")

    @property
    def n_groups(self) -> int:
        return self.groups

    def load(self, home):
        trace("load")
        rows = np.arange(self.rows)
        groups = [f"g{i}" for i in range(self.groups)]
        sensitive = pd.Categorical.from_codes(rows % self.groups, groups)
        return Table(
            self.name,
            pd.DataFrame({"x": rows.astype(float)}),
            (rows // 2) % 2,
            pd.DataFrame({"group": sensitive}),
        )


class Model:
    """Says 1 of every person whose feature a seeded coin picks."""

    notes: ClassVar[dict[str, float]] = {"toy_note": 1.0}

    def predict(self, features, rng, sensitive=None):
        return rng.integers(0, 2, len(features)).astype(np.int8)

    def predict_proba(self, features, rng, sensitive=None):
        return np.tile([0.25, 0.75], (len(features), 1))


class Parrot(Learner):
    """Trains nothing."""

    name = "parrot"
    summary = "predicts by tossing a coin"
    needs = frozenset({"features", "labels"})
    gives_scores = True
    number: int = Field(0, ge=0, description="tells one parrot from another")
    fails: Literal["never", "raises", "input"] = Field("never", description="how training ends")

    def asked(self):
        return RateConstraint("statistical-parity", 0.1)

    def fit(self, sample, rng):
        trace(f"train {self.number}")
        assert sample.seen == {"features", "labels"}
        if self.fails == "raises":
            raise RuntimeError("the parrot\n bit")
        if self.fails == "input":
            raise InputError("the parrot wants other data")
        return Model()


class Oracle(Disclosure):
    """Says the tolerance it was told to say."""

    name = "oracle"
    summary = "claims a tolerance"
    tolerance: float = Field(0.1, ge=0, le=1, description="what it claims")

    def claim(self, context, rng):
        trace("disclose")
        return Claim(RateConstraint("statistical-parity", self.tolerance), self.name)


class Coin(Adversary):
    """Guesses by tossing a coin."""

    name = "coin"
    summary = "guesses by tossing a coin"
    sees = frozenset({"features"})

    def guess(self, view, rng):
        trace("guess coin")
        n, m, k = len(view.target), len(view.attack), len(view.target.groups)
        return Guess(
            rng.integers(0, k, n),
            rng.random(n),
            np.arange(m),
            rng.integers(0, k, m),
            rng.random(m),
        )


class Peek(Coin):
    """Looks at the predictions too."""

    name = "peek"
    summary = "guesses what was predicted"
    sees = frozenset({"features", "predictions"})

    def guess(self, view, rng):
        trace("guess peek")
        n, m = view.target.predictions.astype(int), view.attack.predictions.astype(int)
        return Guess(n, np.ones(len(n)), np.arange(len(m)), m, np.ones(len(m)))


class Keen(Coin):
    """Looks at scores, and is tuned once."""

    name = "keen"
    summary = "is tuned once"
    sees = frozenset({"features", "predictions", "scores"})
    tuned: int = Field(0, ge=0, description="people it was tuned on")

    @property
    def tunes_once(self):
        return self.tuned == 0

    def tune(self, known, rng):
        trace("tune keen")
        assert known.seen == {"features", "sensitive"}
        return self.model_copy(update={"tuned": len(known)})

    def guess(self, view, rng):
        trace("guess keen")
        assert (view.target.scores == 0.75).all()
        assert (view.attack.scores == 0.75).all()
        return replace(super().guess(view, rng), notes={"tuned_on": self.tuned})


class Flip(Corrector):
    """Turns every guess around."""

    name = "flip"
    summary = "turns every guess around"
    sleep: float = Field(0.0, ge=0, description="seconds it takes")

    def incompatible(self, other: Component):
        if isinstance(other, Flock) and other.groups > 2:
            return "flip turns around two groups only"
        return super().incompatible(other)

    def correct(self, problem):
        trace("correct")
        time.sleep(self.sleep)
        return Correction(1 - problem.guess, SolverStatus.FEASIBLE, float(len(problem.guess)))


class Hiss(Mechanism):
    """Adds normal noise."""

    name = "hiss"
    summary = "adds noise"
    scale: float = Field(1.0, gt=0, description="of the noise")

    continuous = True

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        shape = np.broadcast_shapes(np.shape(counts), np.shape(epsilon))
        return counts + rng.normal(0, self.scale, shape) * sensitivity.l2 / epsilon


class Clamp(Policy):
    """Cuts off."""

    name = "clamp"
    summary = "cuts off what is out of range"

    def repair(self, answers, total, upper=None):
        return np.clip(answers, 0, np.asarray(total)[..., None])


class Counter(Auditor):
    """Counts the people of the first group, with noise."""

    name = "counter"
    summary = "counts people"
    sees = frozenset({"sensitive", "model"})
    mechanism: Mechanism = Field(description="noise")
    policy: Policy | None = Field(None, description="repair")

    def audit(self, subject, rng):
        trace("audit")
        assert isinstance(subject.model, Model)
        count = np.array([np.count_nonzero(subject.test.sensitive == 0)])
        noisy = self.mechanism.release(count, COUNT_SENSITIVITY["add-remove"], 1.0, rng)
        if self.policy:
            noisy = self.policy.repair(noisy, len(subject.test))
        return {"members": float(noisy[0])}


@hookimpl
def fpbench_datasets():
    return [Flock]


@hookimpl
def fpbench_learners():
    return [Parrot]


@hookimpl
def fpbench_disclosures():
    return [Oracle]


@hookimpl
def fpbench_adversaries():
    return [Coin, Peek, Keen]


@hookimpl
def fpbench_correctors():
    return [Flip]


@hookimpl
def fpbench_mechanisms():
    return [Hiss]


@hookimpl
def fpbench_policies():
    return [Clamp]


@hookimpl
def fpbench_auditors():
    return [Counter]


class Relay(Engine):
    """Does each step in this process, from a pickle, as a worker elsewhere would."""

    summary = "hands each step to itself"

    def __init__(self, setup):
        super().__init__(setup)
        self.loader = InlineEngine(setup)
        self.check = pickle.dumps(WorkerCheck.from_setup(setup))
        if differences := pickle.loads(self.check).run():
            raise EngineError(f"this process has {differences}")

    @property
    def at_once(self):
        return 3

    def submit(self, step, parents, *, final=False, alone=False):
        if step.action == "load":
            return self.loader.submit(step, (), alone=alone or step.third_party)
        answer = Future()
        task = pickle.loads(pickle.dumps(StepTask(step, self.setup.limits, final, alone)))
        result = task.do(parents)
        answer.set_result(task.read(task.write(result), result.value))
        return answer

    def close(self, *, now):
        self.loader.close(now=now)


@hookimpl
def fpbench_engines():
    return [Lazy("relay", "toys:Relay")]


@hookimpl
def fpbench_commands():
    return [Lazy("toy", "toys:play")]


def play():
    """Play."""
    typer.echo("played")
