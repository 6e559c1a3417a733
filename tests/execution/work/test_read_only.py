"""A component that writes into what it is given changes nothing for others, on any engine."""

import numpy as np
import pandas as pd
import pytest

import fpbench
from fpbench.components.records import Problem
from fpbench.execution.work.execute import make_read_only

SOURCE = """
from typing import Literal
from pydantic import Field
from fpbench import Adversary, Auditor, Claim, Correction, Corrector, Disclosure, Learner, hookimpl
from toys import Coin, Flip, Oracle, Parrot


def write(column):
    if hasattr(column, "columns"):
        for write_through in (column["x"].values, column["x"].array):
            try:
                write_through[0] = 7.0
            except ValueError as error:
                assert "read-only" in str(error)
        column.iloc[:, 0] = 7.0
        column["another"] = 1.0
        del column[column.columns[0]]
    else:
        column[:] = 0


class Student(Parrot):
    name, summary = "student", "writes into its book"
    column: Literal["features", "labels"] = Field("labels", description="what is written")
    def fit(self, sample, rng):
        write(getattr(sample, self.column))
        return super().fit(sample, rng)


class Liar(Oracle):
    name, summary = "liar", "writes into the truth"
    def claim(self, context, rng):
        write(context.target.sensitive)
        return super().claim(context, rng)


class Forger(Coin):
    name, summary = "forger", "writes into the groups that it is shown"
    column: Literal["features", "sensitive"] = Field("sensitive", description="what is written")
    def guess(self, view, rng):
        write(getattr(view.attack, self.column))
        return super().guess(view, rng)


class Eraser(Flip):
    name, summary = "eraser", "writes into the guess"
    def correct(self, problem):
        write(problem.guess)
        return super().correct(problem)


@hookimpl
def fpbench_learners():
    return [Student]

@hookimpl
def fpbench_disclosures():
    return [Liar]

@hookimpl
def fpbench_adversaries():
    return [Forger]

@hookimpl
def fpbench_correctors():
    return [Eraser]
"""

COLUMNS = {"column": {"sweep": ["features", "labels"]}}
WRITERS = {
    "learner": {"use": "student", **COLUMNS},
    "disclosure": {"use": "liar"},
    "adversary": {"use": "forger", "column": {"sweep": ["features", "sensitive"]}},
    "corrector": {"use": "eraser"},
}
INNOCENT = {"learner": "parrot", "disclosure": "oracle", "adversary": "coin", "corrector": "flip"}


def matrix(*, writers):
    tables = {kind: [{"use": name}] for kind, name in INNOCENT.items()}
    if writers:
        tables = {kind: [WRITERS[kind], *tables[kind]] for kind in tables}
    return {"title": "T", "seeds": 2, "dataset": [{"use": "flock"}], **tables}


OWN = ["status", "train_accuracy", "test_unfairness", "initial_accuracy", "corrected_accuracy",
       "without_accuracy", "log_loss"]  # fmt: skip
"""Measures of a cell that do not depend on who else is in the run."""


def of_innocents(run):
    frame = run.frame()
    chosen = np.logical_and.reduce([frame[kind] == name for kind, name in INNOCENT.items()])
    return frame.loc[chosen, OWN].reset_index(drop=True)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("jobs", [1, 2])
def test_writing_into_inputs_changes_nothing_for_others(toys, install, tmp_path, jobs):
    install("fpbench-writers", "writers", SOURCE)
    alone = of_innocents(fpbench.run(matrix(writers=False), out=tmp_path / "alone"))
    run = fpbench.run(matrix(writers=True), out=tmp_path / "together", jobs=jobs)
    assert len(alone) == 2
    pd.testing.assert_frame_equal(of_innocents(run), alone)
    frame = run.frame()
    steps = {reason.partition(":")[0] for reason in frame.reason.dropna()}
    assert steps == {"train student", "disclose liar", "guess forger", "correct eraser"}
    assert frame.reason.dropna().str.endswith("copy an input before you change it").all()
    # Its own copy of the features is a component's to write to.
    own = frame[(frame.learner == "student features") & (frame.disclosure == "oracle")]
    assert "done" in set(own.status)


def test_arrays_of_records_and_containers_are_locked():
    guess, answers = np.zeros(3, int), np.ones((3, 2))
    problem = Problem(guess, 2, np.ones(3, int), None, (), beliefs=np.full((3, 2), 0.5))
    sample = fpbench.Sample(
        ("a", "b"), labels=np.ones(3, np.int8), features=pd.DataFrame(
            {"x": [1.0, 2.0, 3.0], "job": pd.Categorical(["nurse", "smith", "nurse"])}
        ),
        query=fpbench.data.ModelAnswers(answers),
    )  # fmt: skip
    make_read_only((problem, {"of": [sample]}))
    for array in (guess, problem.beliefs, problem.predictions, sample.labels, answers):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    for name in ("x", "job"):
        with pytest.raises(ValueError, match="read-only"):
            sample.features[name].array[0] = sample.features[name].array[1]
    mine = sample.features
    mine.iloc[0, 0] = 5.0
    mine.loc[0, "job"] = "smith"
    assert sample.features["job"].tolist() == ["nurse", "smith", "nurse"]
    assert sample.features.iloc[0, 0] == 1.0


@pytest.mark.slow
def test_the_users_own_arrays_stay_writable(toys, tmp_path):
    labels = (np.arange(60) // 2 % 2).astype(np.int8)
    people = pd.DataFrame({"group": pd.Categorical(["a", "b"] * 30)})
    table = fpbench.Table("mine", pd.DataFrame({"x": np.arange(60.0)}), labels, people)
    tables = {kind: [{"use": name}] for kind, name in INNOCENT.items()}
    mine = {"title": "T", "seeds": 1, "dataset": [{"use": "table", "table": "mine"}], **tables}
    run = fpbench.run(mine, out=tmp_path / "mine", tables={"mine": table})
    assert run.frame().status.eq("done").all()
    labels[0] = 1
