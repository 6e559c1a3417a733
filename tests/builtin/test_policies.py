"""Policies: what each makes of invalid counts, and the laws that hold for all of them."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fpbench import InputError, component
from fpbench.privacy import find_invalid_answers

NEGATIVE = ("0", "1", "uniform", "total-valid")
TOO_LARGE = ("uniform", "total-valid")
PAPER = [f"{negative}/{large}" for negative, large in product(NEGATIVE, TOO_LARGE)]
ALL = [*PAPER, "clip", "project"]


@st.composite
def histograms(draw):
    """Several noisy histograms of K counts, most of them partly invalid, and their totals."""
    rows, k = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    answers = draw(arrays(np.float64, (rows, k), elements=st.floats(-60, 160)))
    return answers, draw(arrays(np.float64, (rows,), elements=st.integers(0, 100)))


def repaired(name, answers, total):
    return component("policy", name).repair(np.asarray(answers), total)


def by_hand(name, row, total):
    """The paper's rule for one histogram, as its notes say it."""
    negative, large = name.split("/")
    valid = [x for x in row if 0 <= x <= total]
    instead = {
        "0": 0,
        "1": min(1, total),
        "uniform": total / len(row),
        "total-valid": max(0, total - sum(valid)) / max(1, len(row) - len(valid)),
    }
    return [instead[negative] if x < 0 else instead[large] if x > total else x for x in row]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", PAPER)
@given(case=histograms())
def test_the_papers_policies_do_what_the_paper_says(name, case):
    answers, totals = case
    expected = [by_hand(name, row, total) for row, total in zip(answers, totals, strict=True)]
    assert repaired(name, answers, totals) == pytest.approx(np.array(expected))


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", ALL)
@given(case=histograms())
def test_laws_of_every_policy(name, case):
    answers, totals = case
    before = answers.copy()
    found = repaired(name, answers, totals)
    assert (answers == before).all()
    assert found.shape == answers.shape
    assert not find_invalid_answers(found, totals).any()
    assert repaired(name, found, totals) == pytest.approx(found, abs=1e-9)
    assert (repaired(name, answers, totals) == found).all()


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", [*PAPER, "clip"])
@given(case=histograms())
def test_valid_counts_are_not_touched(name, case):
    answers, totals = case
    valid = ~find_invalid_answers(answers, totals)
    assert (repaired(name, answers, totals)[valid] == answers[valid]).all()


@given(case=histograms())
def test_policies_that_keep_the_total(case):
    """Projection always; total-valid/total-valid where valid counts leave room for the invalid."""
    answers, totals = case
    assert repaired("project", answers, totals).sum(axis=1) == pytest.approx(totals, abs=1e-6)
    invalid = find_invalid_answers(answers, totals)
    room = invalid.any(axis=1) & (np.where(invalid, 0, answers).sum(axis=1) <= totals)
    sums = repaired("total-valid/total-valid", answers, totals).sum(axis=1)
    assert sums[room] == pytest.approx(totals[room])


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_policies_guarantee_no_sum(name):
    assert repaired(name, [30.0, 20.0], 100).sum() == 50  # both can be true, so both stay


def test_clip_goes_to_the_nearest_bound():
    assert repaired("clip", [-3.0, 4.5, 12.0], 10).tolist() == [0, 4.5, 10]


def test_a_bound_above_the_total_leaves_counts_between_them():
    """The paper calls invalid what exceeds everyone in the data set, whatever the rule."""
    policy = component("policy", "uniform/uniform")
    rows = np.array([[12.0, -1.0], [101.0, 3.0]])
    assert policy.repair(rows, [10, 10], upper=100).tolist() == [[12, 5], [5, 3]]
    assert policy.repair(rows, [10, 10]).tolist() == [[5, 5], [5, 3]]


@pytest.mark.parametrize("name", ALL)
def test_totals_are_broadcast(name):
    answers = np.random.default_rng(0).normal(10, 30, (5, 3, 2, 4))
    found = repaired(name, answers, [20, 60])
    assert found.shape == answers.shape
    assert found[3, 1, 0] == pytest.approx(repaired(name, answers[3, 1, 0], 20))
    assert found[3, 1, 1] == pytest.approx(repaired(name, answers[3, 1, 1], 60))


@pytest.mark.parametrize("name", ALL)
def test_nonsense_is_refused(name):
    for answers, total in (([np.nan, 1.0], 3), ([1.0, 2.0], -1), ([[1.0, 2.0]] * 3, [1, 2])):
        with pytest.raises(InputError):
            repaired(name, answers, total)


MATRIX = """
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
[[auditor]]
use = "counter"
[[mechanism]]
use = "hiss"
[[policy]]
use = "uniform/uniform"
[[policy]]
use = "total-valid/uniform"
label = "mine"
[[policy]]
use = "project"
[leaderboard]
rank_by = "members"
"""


def test_names_with_a_slash_work_everywhere(command, toys, tmp_path):
    (tmp_path / "work" / "audit.toml").write_text(MATRIX)
    done = command("run", "audit.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    exported = command("export", "runs/audit").stdout
    for label in ("uniform/uniform", "mine", "project"):
        assert re.search(rf",{label},", exported)
    listed = command("plugins").stdout
    described = command("describe", "policy", "uniform/uniform")
    assert all(re.search(rf"^  {name}  +\w", listed, re.MULTILINE) for name in ALL)
    assert "policy uniform/uniform  (fpbench" in described.stdout
    wrong = command("describe", "policy", "uniform/unifrom")
    assert wrong.returncode == 2
    assert "did you mean 'uniform/uniform'?" in wrong.stderr
