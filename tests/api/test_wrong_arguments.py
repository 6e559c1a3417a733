"""Each argument of each function of the first tier, given something else: one error that says so."""

import inspect

import numpy as np
import pandas as pd
import pytest
from wrong_arguments import list_unclear

import fpbench
from fpbench import FpbenchError

FUNCTIONS = {n: f for n in fpbench.__all__ if inspect.isfunction(f := getattr(fpbench, n))}
PLANNED = inspect.signature(fpbench.plan).parameters
COUNTS = {"jobs", "repetitions", "resamples", "retries", "seeds", "sample", "rng"}
"""Numbers of what is run, of which a larger one is right, only slow."""
EITHER = (FpbenchError, TypeError)
X = pd.DataFrame({"age": [20, 30, 40, 50] * 3, "job": pd.Categorical(list("abcd") * 3)})
GROUPS, PREDICTIONS = [0, 1] * 6, [1, 0, 0] * 4
TABLE = fpbench.table(X.assign(sex=GROUPS, y=PREDICTIONS), label="y", sensitive="sex", positive=1)
MATRIX = {
    "seeds": 1,
    "dataset": [{"use": "table", "table": "mine"}],
    "learner": [{"use": "plain"}],
    "auditor": [{"use": "group-fairness"}],
}
RUN = {**MATRIX, "dataset": [{"use": "census-synthetic", "rows": 300}]}


class Model:
    """Predicts 0 and 1 in turn."""

    def predict(self, people):
        return np.arange(len(people)) % 2


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    """Right arguments for every function."""
    place = tmp_path_factory.mktemp("runs")
    run = fpbench.run(RUN, out=place / "saved")
    report = fpbench.FairnessReport.from_predictions(X, PREDICTIONS, GROUPS, by=["job"])
    return {
        "assess": {"report": report, "X": X, "predictions": PREDICTIONS, "seconds": 1.0},
        "attack": {"model": Model(), "X": X, "labels": PREDICTIONS, "groups": GROUPS,
                   "adversary": "prior", "seeds": 1, "known": np.arange(12) < 10},
        "audit": {"model": Model(), "X": X, "groups": GROUPS, "epsilon": 1.0, "resamples": 20},
        "component": {"kind": "learner", "name": "plain"},
        "correct": {"guess": GROUPS, "predictions": PREDICTIONS},
        "dataset": {"name": "census-synthetic", "rows": 100},
        "load": {"run_dir": run.path},
        "plan": {"matrix": MATRIX, "tables": {"mine": TABLE}, "out": place / "planned"},
        "run": {"matrix": MATRIX, "tables": {"mine": TABLE}, "out": place / "run", "fresh": True},
        "table": {"frame": X.assign(sex=GROUPS, y=PREDICTIONS), "label": "y", "sensitive": "sex"},
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_argument_is_named(arguments, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = FUNCTIONS[name]
    function(**arguments[name])
    planned = PLANNED if name == "run" else ()  # as `plan` does, `run` plans first
    unclear = [
        each
        for each in list_unclear(function, arguments[name], skip=COUNTS, errors=EITHER)
        if each.partition("=")[0] not in planned
    ]
    assert not unclear, "\n".join(unclear)


METHODS = {
    "Run.results": {}, "Run.read": {}, "Run.labels": {"kind": "learner"}, "Run.leaderboard": {},
    "Run.leaderboards": {}, "Run.report": {"output": "r.html"},
    "Run.figures": {}, "Run.figure": {"name": "test_accuracy-by-learner", "output": "f.svg"},
    "Run.export": {"output": "e.csv"}, "Run.verify": {"sample": 1},
    "Run.diff": {"other": "other"}, "Run.merge": {"others": ["other"], "out": "merged"}, "Snapshot.select": {"where": []},
    "Snapshot.leaderboard": {}, "Snapshot.leaderboards": {},
    "Snapshot.labels": {"kind": "learner"},
    "Assessment.to_json": {}, "Assessment.to_text": {},
    "Assessment.to_model_index": {"model": "ours", "dataset": "people"},
    "AttackResult.figure": {"name": "people", "output": "f.svg"},
    "FairnessReport.describe_slice": {"row": 0}, "FairnessReport.facts": {
        "X": X, "predictions": PREDICTIONS},
    "FairnessReport.from_file": {"file": "r.csv"},
    "FairnessReport.from_frame": {"frame": None}, "FairnessReport.from_predictions": {
        "X": X, "predictions": PREDICTIONS, "groups": GROUPS, "by": ["job"], "labels": GROUPS},
    "FairnessReport.with_people": {"X": X, "predictions": PREDICTIONS},
    "FairnessReport.protect": {}, "FairnessReport.take": {"which": [True]},
    "FairnessReport.to_csv": {"file": "r.csv"}, "FairnessReport.to_html": {"file": "r.html"},
    "FairnessReport.to_json": {"file": "r.json"}, "FairnessReport.to_parquet": {
        "file": "r.parquet"},
}  # fmt: skip
"""Methods of results that take arguments, and right ones; two more take others' objects."""
OTHERS = {
    "Assessment.over",
    "FairnessReport.state",
    "FairnessReport.per_rule",
    "FairnessReport.with_rules",
    "FairnessReport.read",
}


@pytest.fixture(scope="module")
def results(arguments):
    """One of each."""
    run = fpbench.load(**arguments["load"])
    report = arguments["assess"]["report"]
    objects = (run, run.read(), report, fpbench.assess(**arguments["assess"]),
               fpbench.attack(**arguments["attack"]))  # fmt: skip
    return {type(one).__name__: one for one in objects}


def _is_method(member):
    return inspect.isfunction(member) or inspect.ismethod(member)


def test_methods_of_results_are_listed(results):
    found = set()
    for name, one in results.items():
        for method, function in inspect.getmembers(type(one), _is_method):
            if method[0] != "_" and {*inspect.signature(function).parameters} - {"self"}:
                found.add(f"{name}.{method}")
    assert found == {*METHODS} | OTHERS


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_argument_of_a_method_is_named(results, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cls, _, method = name.partition(".")
    report = results["FairnessReport"]
    report.to_csv("r.csv"), report.to_json("r.json"), report.to_parquet("r.parquet")
    if {"other", "others"} & {*METHODS[name]}:
        fpbench.run(RUN, out="other", seeds=2)
    right = dict(METHODS[name])
    right |= {"frame": report.to_frame()} if "frame" in right else {}
    right |= {"which": np.ones(len(report.to_frame()), bool)} if "which" in right else {}
    call = getattr(results[cls], method)
    unclear = list_unclear(call, right, skip={"width"}, errors=FpbenchError)
    assert not unclear, "\n".join(unclear)
