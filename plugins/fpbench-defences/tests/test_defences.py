"""The package as it is used: installed, found by name, in matrices, beside what fpbench has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import fpbench
from fpbench import InputError, Table, component, testing
from fpbench.plugin import DataHome

ROOT = Path(__file__).parents[3]
MATRICES = ("audit-leak", "everything", "fair-pate", "pate-pafer", "pflr", "private-fair-tree")
PAGES = ("private-audits", "certified-encoder", "synthetic")
PAFER = {"use": "pafer", "epsilon": 1.0, "resamples": 40, "mechanism": {"use": "laplace"}}


@pytest.mark.parametrize("check", testing.checks("fpbench-defences"), ids=str)
def test_it_keeps_the_laws_of_its_kind(check):
    verdict = check()
    if verdict.outcome is testing.Outcome.SKIPPED:
        pytest.skip(verdict.reason)
    assert verdict.outcome is testing.Outcome.KEPT, verdict.reason


def test_the_matrix_of_the_readme_runs(tmp_path):
    text = (ROOT / "plugins/fpbench-defences/README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    frame = fpbench.run({**tomllib.loads(block), "seeds": 1}, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Files of Adult, as far as a plan looks at them."""
    for name in ("adult.data", "adult.test"):
        (tmp_path / name).touch()
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", MATRICES)
def test_the_benchmarks_that_need_the_package_are_planned(name):
    path = ROOT / "benchmarks" / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    for profile in (None, *tomllib.loads(text).get("profile", {})):
        plan = fpbench.plan(path, profile=profile, seeds=1)
        assert plan.cells
        there = "adult" in text or "census-synthetic" in text
        assert bool(plan.runnable) == there
    assert f"`{name}.toml`" in (ROOT / "plugins/fpbench-defences/README.md").read_text()


def test_no_other_benchmark_needs_the_package():
    mine = {entry.name for entry in fpbench.plugin.discover()
            if entry.source.distribution == "fpbench-defences"}  # fmt: skip
    assert len(mine) == 7
    for path in (ROOT / "benchmarks").glob("*.toml"):
        named = set(re.findall(r'\buse = "([^"]*)"', path.read_text(encoding="utf-8")))
        assert bool(named & mine) == (path.stem in MATRICES), path.name


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("page", PAGES)
def test_the_matrices_of_the_pages_are_planned(page):
    base = {
        "dataset": [{"use": "census-synthetic"}],
        "learner": [{"use": "decision-tree"}],
        "disclosure": [{"use": "published", "metric": "statistical-parity"}],
        "adversary": [{"use": "a2"}],
        "corrector": [{"use": "posterior"}],
    }
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    blocks = [
        tomllib.loads(block) for block in re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    ]
    mine = [block for block in blocks if not block.keys().isdisjoint({"learner", "disclosure"})]
    assert mine
    for block in mine:
        plan = fpbench.plan({**base, **block})
        assert plan.runnable, [cell.reason for cell in plan.cells]


def cut_at_a_median(what="labels", n=400):
    """A table that says that its labels or groups are cut at a statistic of everybody."""
    table = fpbench.dataset("census-synthetic", rows=n)
    return Table(
        table.name, table.features, table.labels, table.sensitive, domain=table.domain,
        measured_cuts={what: "column 'pay' is cut at its median"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        ("learner", "pflr", {}),
        ("learner", "synthetic", {"base": {"use": "plain"}}),
        ("learner", "distilled", {"teacher": {"use": "pflr"}}),
        ("disclosure", "dp-release", {"auditor": PAFER}),
    ],
)
def test_private_components_refuse_what_is_cut_at_a_statistic_of_everybody(
    kind, name, options, tmp_path
):
    matrix = {
        "dataset": [{"use": "table", "table": "people"}],
        "learner": [{"use": "plain"}],
        "disclosure": [{"use": "hidden"}],
        "adversary": [{"use": "majority"}],
        "corrector": [{"use": "none"}],
        kind: [{"use": name, **options}],
    }
    what = "labels"
    if kind == "disclosure":  # of groups
        matrix["corrector"], what = [{"use": "exact", "on_infeasible": "relax"}], "sensitive"
    tables = {"people": cut_at_a_median(what)}
    (row,) = fpbench.run(matrix, tables=tables, out=tmp_path / "run").rows()
    assert row["status"] == "failed"
    assert "'pay' is cut at its median of the people themselves" in row["reason"]


def test_without_noise_nothing_is_guaranteed_and_nothing_refused():
    sample = cut_at_a_median().sample()
    exact = component("learner", "pflr", epsilon=float("inf"))
    assert exact.fit(sample.only(exact.needs), np.random.default_rng(0)).guarantee is None
    noisy = component("learner", "pflr")
    with pytest.raises(InputError, match="'pay' is cut at its median"):
        noisy.fit(sample.only(noisy.needs), np.random.default_rng(0))


def test_twins_are_the_same_learner_without_fairness():
    twin = component("learner", "pflr", variant="pflr*", fairness=0.5, epsilon=2.0).twin()
    assert (twin.fairness, twin.epsilon, twin.variant) == (0.0, 2.0, "pflr")
    assert twin.twin() is None
    fair = component("learner", "distilled", teacher={"use": "exponentiated-gradient"})
    assert fair.twin().teacher == fair.teacher.twin()
    assert component("learner", "distilled", teacher={"use": "plain"}).twin() is None


@pytest.mark.slow
def test_with_one_feature_a_canary_shows_behind_the_noise_of_a_regression():
    """Of all features the same audits prove next to nothing at epsilon 8."""
    if ("auditor", "epsilon-lower-bound") not in fpbench.plugin.discover().entries:
        pytest.skip("fpbench-membership is not installed")
    people = fpbench.dataset("census-synthetic", rows=300).sample()

    def audit(epsilon, seed, runs):
        learner = component("learner", "pflr", epsilon=epsilon)
        model = learner.fit(people.only(learner.needs), np.random.default_rng(9))
        subject = fpbench.plugin.Subject(people, people, model=model, learner=learner)
        auditor = component("auditor", "epsilon-lower-bound", runs=runs, features=1)
        return auditor.audit(subject, np.random.default_rng(seed))

    few = [audit(8.0, seed, 200)["epsilon_bound"] for seed in range(3)]
    assert 0.4 < np.median(few) < 8
    honest = [audit(1.0, seed, 100)["epsilon_claim_holds"] for seed in range(10)]
    assert honest.count(0) <= 3  # of 10, each with a chance of 5 %
    assert audit(1.0, 0, 40)["epsilon_neighbours"] == "add-remove"


def test_each_audit_of_pate_runs_on_one_data_set(tmp_path):
    home = DataHome.default()
    try:
        home.find("parkinsons_updrs.data")
    except ValueError as missing:
        pytest.skip(str(missing))
    matrix = {
        "split": {"train": 0.76, "test": 0.24, "attack": 0.0},
        "dataset": [{"use": "parkinsons"}],
        "learner": [
            {"use": "pate", "teachers": 20},
            {"use": "distilled", "teacher": {"use": "pate", "teachers": 20}, "artificial": 500},
        ],
        "auditor": [{"use": "excessive-risk", "repetitions": 20},
                    {"use": "pafer", "epsilon": 1.0, "repetitions": 50, "resamples": 50,
                     "mechanism": {"use": "laplace"}, "policy": {"use": "project"}}],
        "exclude": [{"learner": "pate", "auditor": "pafer"}],
    }  # fmt: skip
    rows = fpbench.run(matrix, out=tmp_path / "run").rows()
    assert [row["status"] for row in rows] == ["done"] * 3
    student, risk, audit = rows
    # The tree is as private as the student, and a row says so; its audit has its own epsilon.
    assert student["pate_epsilon"] == risk["pate_epsilon"] == audit["pate_epsilon"]
    assert audit["epsilon"] == 1.0
    assert audit["distilled_people"] == 700
    assert audit["fidelity"] > 0.7
    assert student["holds_corollary1"] == student["risk_bound_holds_train"] == 1
    assert student["holds_corollary1_literal"] == 0
    assert "sensitivity" not in risk  # a tree has no parameters to be far from
    assert risk["risk_repetitions"] == 1
