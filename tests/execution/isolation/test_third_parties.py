"""What a component of another distribution changes in its process reaches no step of others."""

import os
from collections import Counter

import pytest
from toy_runs import ATTACK, timeless

import fpbench
from fpbench.execution.session import Session
from fpbench.execution.work.actions import ACTIONS
from fpbench.execution.work.execute import execute
from fpbench.matrix.matrix import read
from fpbench.matrix.step import Sealed, Step

MATRIX = ATTACK | {"seeds": 2}


@pytest.fixture(autouse=True)
def _spoilers(toys, install):
    install("fpbench-spoilers", "spoilers")


def list_alone(**kinds):
    """Actions and components of the steps that run code of third parties."""
    matrix = MATRIX | {"seeds": 1} | kinds
    if "auditor" in kinds:
        for kind in ("disclosure", "adversary", "corrector"):
            del matrix[kind]
    steps = Session.prepare(read(matrix), {}).plan.steps.values()
    assert "split" in map(str, steps)
    return {str(step) for step in steps if step.third_party}


OURS = {
    "dataset": [{"use": "census-synthetic", "rows": 300}],
    "learner": [{"use": "plain"}],
    "disclosure": [{"use": "published", "metric": "statistical-parity"}],
    "adversary": [{"use": "majority"}],
    "corrector": [{"use": "none"}],
}


def test_steps_with_code_of_third_parties_are_known():
    """Also of those whose inputs hold objects of third parties, which must be opened there."""
    assert list_alone(**OURS) == set()
    assert list_alone() == {
        "load flock", "train parrot", "predict parrot", "disclose oracle", "guess coin",
        "correct flip",
    }  # fmt: skip
    assert list_alone(**{**OURS, "dataset": MATRIX["dataset"]}) == {"load flock"}
    theirs = {**OURS, "learner": MATRIX["learner"]}
    assert list_alone(**theirs) == {"train parrot", "predict parrot"}
    assert list_alone(**{**OURS, "disclosure": MATRIX["disclosure"]}) == {
        "disclose oracle", "correct none",
    }  # fmt: skip
    people = {kind: OURS[kind] for kind in ("dataset", "learner")}
    pafer = {"use": "pafer", "epsilon": 1.0, "mechanism": {"use": "laplace"}}
    assert list_alone(**people, auditor=[pafer]) == set()
    slot = [{**pafer, "mechanism": {"use": "hiss"}}]
    assert list_alone(**people, auditor=slot) == {"audit pafer"}
    people |= {"learner": MATRIX["learner"]}
    lent = {"train parrot", "predict parrot", "audit individual-fairness"}
    assert list_alone(**people, auditor=[{"use": "individual-fairness"}]) == lent


def test_a_third_party_spoils_its_own_process_only(tmp_path):
    """With one worker, whose other steps would all come after the spoiler's."""
    ways = {"numpy": None, "environment": None, "limits": None,
            "clock": "train spoiler: ZeroDivisionError: division by zero"}  # fmt: skip
    learners = [{"use": "spoiler", "what": {"sweep": ["nothing", *ways]}}, {"use": "plain"}]
    ours = {**OURS, "learner": [{"use": "plain"}]}
    expected = timeless(fpbench.run({**ours, "seeds": 1}, out=tmp_path / "clean"))
    run = fpbench.run(
        {**ours, "learner": learners, "seeds": 1}, out=tmp_path / "run", engine="loky", jobs=1
    )
    assert [row for row in timeless(run) if row["learner"] == "plain"] == expected
    reasons = {row["learner"]: row["reason"] for row in run.rows()}
    assert reasons == {f"spoiler {way}": why for way, why in ways.items()} | {
        "spoiler nothing": None, "plain": None,
    }  # fmt: skip


CUCKOO = """
import os
from pathlib import Path
import numpy as np
from fpbench import Learner, hookimpl
from fpbench.builtin.datasets.census_synthetic import CensusSynthetic

def note():
    with Path(os.environ["CUCKOO_NEST"]).open("a") as file:
        file.write(f"{os.getpid()}\\n")

class Birds(CensusSynthetic):
    name = "birds"
    summary = "notes where it is loaded"
    def load(self, home):
        note()
        return super().load(home)

class Egg:
    def __setstate__(self, state):
        note()
    def __getstate__(self):
        return {"some": "state"}
    def predict(self, features, rng, sensitive=None):
        return np.ones(len(features), np.int8)

class Cuckoo(Learner):
    name = "cuckoo"
    summary = "notes where its models are unpickled"
    needs = frozenset({"features", "labels"})
    def fit(self, sample, rng):
        return Egg()

@hookimpl
def fpbench_datasets():
    return [Birds]

@hookimpl
def fpbench_learners():
    return [Cuckoo]
"""


def test_objects_of_third_parties_are_opened_in_no_shared_process(tmp_path, install, monkeypatch):
    """A process that is used once opens a model once; our auditor needs the model, too."""
    install("cuckoo", "cuckoo", CUCKOO)
    monkeypatch.setenv("CUCKOO_NEST", str(tmp_path / "nest"))
    matrix = {
        "seeds": 3, "dataset": [{"use": "birds", "rows": 300}], "learner": [{"use": "cuckoo"}],
        "auditor": [{"use": "individual-fairness"}],
    }  # fmt: skip
    run = fpbench.run(matrix, out=tmp_path / "run", engine="loky", jobs=1)
    assert {row["reason"] for row in run.rows()} == {None}
    opened = Counter((tmp_path / "nest").read_text().split())
    assert len(opened) == 1 + 6  # the data set; a prediction and an audit of each seed
    assert set(opened.values()) == {1}
    assert str(os.getpid()) not in opened


def test_a_step_without_a_component_opens_nothing(monkeypatch):
    """Scores are measured where the truth is."""
    monkeypatch.setitem(ACTIONS, "score", lambda component, inputs, step: inputs[0])
    sealed = Sealed(b"no pickle")
    assert execute(Step("key", "stream", "score", None, ()), (sealed,)).value is sealed
