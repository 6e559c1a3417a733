"""What is measured of beliefs: the leak, its limits, and whom the beliefs find out."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import log_loss, roc_auc_score

import fpbench
from fpbench import Claim, Correction, Guarantee, Problem, Sample
from fpbench.claims import RateConstraint, limit_claim_nats
from fpbench.components.beliefs import spread_confidence
from fpbench.components.records import CalibratedGuess, Predictions
from fpbench.correction import compute_count_leak, limit_leak, limit_leak_by_error
from fpbench.execution.work import scores as belief_scores
from fpbench.execution.work.scores import measure_beliefs, measure_leak
from fpbench.plugin import SolverStatus, Split
from fpbench.privacy import limit_private_leak

pytestmark = pytest.mark.numeric

NONE = np.array([], dtype=int)
UNSOLVED = Correction(None, None)


def make_split(truth, features=None, predictions=None, held_out=False, k=2):
    n = len(truth)
    features = pd.DataFrame({"x": np.zeros(n)}) if features is None else features
    said = np.zeros(n, int) if predictions is None else predictions
    sample = Sample(tuple("abcde"[:k]), features=features, labels=np.zeros(n, int), sensitive=truth)
    return Split(sample, sample, sample, held_out), Predictions(said, said, said, None)


def make_guess(beliefs, values=None, abstains=None):
    values = beliefs.argmax(axis=1) if values is None else values
    return CalibratedGuess(
        values, beliefs.max(axis=1), NONE, NONE, NONE.astype(float), {}, beliefs, None, abstains,
        "scaled", ("features",),
    )  # fmt: skip


def stack(p):
    return np.stack([1 - p, p], axis=1)


@given(st.integers(2, 4), st.integers(0, 10**6))
def test_the_leak_is_the_difference_that_the_disclosure_makes(k, seed):
    rng = np.random.default_rng(seed)
    n = 30
    truth = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    before, after = rng.dirichlet(np.ones(k), (2, n))
    split, predictions = make_split(truth, k=k)
    correction = Correction(after.argmax(axis=1), None, posterior=after)
    row = measure_leak(split, predictions, make_guess(before), None, correction)
    assert row["without_accuracy"] == np.mean(before.argmax(axis=1) == truth)
    assert row["with_accuracy"] == np.mean(after.argmax(axis=1) == truth)
    assert row["leak"] == row["with_accuracy"] - row["without_accuracy"]
    # By its own beliefs, it wins where it changes its mind, and cannot lose.
    drawn = (after.cumsum(axis=1) > rng.random((2000, n, 1))).argmax(axis=2)
    difference = (drawn == after.argmax(axis=1)).mean() - (drawn == before.argmax(axis=1)).mean()
    assert row["leak_expected"] == pytest.approx(difference, abs=0.02)
    assert row["leak_expected"] >= 0


def test_the_correction_is_measured_against_calibrated_beliefs():
    truth = np.array([0, 0, 0, 1])
    split, predictions = make_split(truth)
    guess = make_guess(stack(np.array([0.1, 0.2, 0.3, 0.4])), values=np.array([1, 1, 1, 1]))
    solved = Correction(np.array([0, 0, 1, 1]), SolverStatus.OPTIMAL)
    row = measure_leak(split, predictions, guess, None, solved)
    assert (row["without_accuracy"], row["with_accuracy"], row["leak"]) == (0.75, 1 - 0.25, 0)
    assert row["leak_expected"] is None
    for nothing in (UNSOLVED, Correction(guess.values, None)):
        row = measure_leak(split, predictions, guess, None, nothing)
        assert row["with_accuracy"] is row["leak"] is None
    other = Correction(np.array([0, 0, 0, 1]), None)
    assert measure_leak(split, predictions, guess, None, other)["with_accuracy"] == 1


def test_even_beliefs_keep_the_name():
    truth = np.array([1, 0])
    split, predictions = make_split(truth)
    even = Correction(truth, None, posterior=np.full((2, 2), 0.5))
    row = measure_leak(split, predictions, make_guess(stack(np.array([0.9, 0.1]))), None, even)
    assert row["leak"] == 0


def test_limits_are_those_of_the_formulas():
    rng = np.random.default_rng(0)
    n, p = 400, rng.beta(2, 4, 400)
    truth, said = (rng.random(n) < p).astype(int), rng.integers(0, 2, n)
    split, predictions = make_split(truth, predictions=said)
    guarantee = Guarantee(0.3, neighbours="attribute")
    possible = np.ones((n, 2), bool)
    possible[: n // 4, 0] = False
    claim = Claim(
        RateConstraint(), "x", nats=5.0, fact_nats=1.0, counted_labels=(None,), possible=possible,
        guarantee=guarantee,
    )  # fmt: skip
    row = measure_leak(split, predictions, make_guess(stack(p)), claim, UNSOLVED)
    assert row["disclosure_bits"] == pytest.approx(6 / math.log(2))
    assert row["limit_beliefs"] == limit_leak(stack(p), 6.0)
    assert row["limit_exact"] == compute_count_leak(p, said) < row["limit_beliefs"]
    assert row["people_proven"] == 0.25
    unsure = (p[: n // 4] > 0.05) & (p[: n // 4] < 0.95)
    assert row["proven_unsure"] == unsure.sum() / n
    assert 0 < row["proven_unsure"] < 0.25
    by_label = replace(claim, counted_labels=(0, 1))
    labels = rng.integers(0, 2, n)
    people = split.train.having(labels=labels)
    exact = measure_leak(
        Split(people, people, people), predictions, make_guess(stack(p)), by_label, UNSOLVED
    )["limit_exact"]
    assert exact == compute_count_leak(p, 2 * labels + said) != row["limit_exact"]
    assert "dp_limit" not in row  # the facts are not private
    private = Claim(RateConstraint(), "x", guarantee=guarantee)
    row = measure_leak(split, predictions, make_guess(stack(p)), private, UNSOLVED)
    assert row["dp_limit"] == limit_private_leak(stack(p), guarantee)
    assert not row.keys() & {"disclosure_bits", "limit_beliefs", "limit_exact"}  # nobody knows them
    nothing = measure_leak(split, predictions, make_guess(stack(p)), None, UNSOLVED)
    assert nothing["disclosure_bits"] == nothing["limit_beliefs"] == 0


def test_limits_of_people_who_live_together_are_wider():
    rng = np.random.default_rng(0)
    n, p = 300, rng.beta(2, 2, 300)
    truth, home = (rng.random(n) < p).astype(int), rng.permutation(n) // 3
    home[home == 0] = n + np.arange(3)  # three of them live alone
    split, predictions = make_split(truth)
    together = split.train.having(households=home)
    guarantee = Guarantee(0.3, neighbours="attribute")
    claim = Claim(RateConstraint(), "x", nats=2.0, counted_labels=(None,), guarantee=guarantee)
    row = measure_leak(
        Split(together, together, together), predictions, make_guess(stack(p)), claim, UNSOLVED
    )
    sizes = np.where(home >= n, 1, 3)
    assert row["household_size"] == 3
    assert row["limit_beliefs"] == limit_leak(stack(p), 2.0, household_sizes=sizes)
    assert row["limit_beliefs"] > limit_leak(stack(p), 2.0)
    assert row["dp_limit"] == limit_private_leak(stack(p), guarantee, household_size=3)
    assert "limit_exact" not in row  # it is proven for people alone
    assert not together.only(frozenset(together.seen)).seen & {"households", "group_chances"}


@pytest.mark.parametrize(
    ("held_out", "with_groups", "covers"),
    [(True, True, "disclosure"), (False, False, "disclosure"),
     (False, True, "disclosure, not model")],
)  # fmt: skip
def test_a_limit_says_what_it_covers(held_out, with_groups, covers):
    truth = np.array([0, 1])
    split, _ = make_split(truth, held_out=held_out)
    said = np.zeros(2, int)
    predictions = Predictions(said, said, said, None, trained_with_groups=with_groups)
    row = measure_leak(split, predictions, make_guess(stack(np.array([0.1, 0.9]))), None, UNSOLVED)
    assert row["limit_covers"] == covers


def test_the_best_possible_guess_is_known_where_the_law_is():
    truth, said = np.array([0, 1]), np.zeros(2, int)
    chances = stack(np.array([0.2, 0.6]))
    plain, _ = make_split(truth)
    sample = plain.train.having(group_chances=chances)
    guess, cases = make_guess(chances), (
        (("features", "labels"), {}, False, 0.7),
        (("labels",), {}, False, None),
        (("features", "labels", "predictions"), {}, False, None),  # which tell groups
        (("features", "labels", "predictions"), {"trained_with_groups": False}, False, 0.7),
        (("features", "labels", "scores"), {}, True, 0.7),
        (("features", "labels", "scores"), {"made_with_groups": True}, True, None),
    )  # fmt: skip
    for sees, knows, held_out, best in cases:
        split = Split(sample, sample, sample, held_out)
        predictions = Predictions(said, said, said, None, **{"made_with_groups": False, **knows})
        row = measure_leak(split, predictions, replace(guess, sees=sees), None, UNSOLVED)
        assert row.get("bayes_accuracy") == (best and pytest.approx(best))
    row = measure_leak(plain, predictions, replace(guess, sees=cases[0][0]), None, UNSOLVED)
    assert "bayes_accuracy" not in row


@given(
    arrays(float, 60, elements=st.sampled_from(np.linspace(0, 1, 21).round(2).tolist())),
    st.integers(0, 10**6),
)
def test_quality_and_ranking_are_those_of_scikit_learn(p, seed):
    truth = np.random.default_rng(seed).integers(0, 2, 60)
    truth[:2] = 0, 1
    split, _ = make_split(truth)
    row = measure_beliefs(split, make_guess(stack(p)), UNSOLVED)
    assert row["auc"] == pytest.approx(roc_auc_score(truth, p))
    clipped = np.clip(p, 1e-12, 1 - 1e-12)
    assert row["log_loss"] == pytest.approx(log_loss(truth, stack(clipped)), rel=1e-5)


def test_last_digits_rank_nobody():
    """On another processor they are others."""
    rng = np.random.default_rng(0)
    p, truth = rng.choice([0.3, 0.5, 0.8], 400), rng.integers(0, 2, 400)
    split, _ = make_split(truth)
    row = measure_beliefs(split, make_guess(stack(p)), UNSOLVED)
    other = stack(p + rng.choice([-1, 0, 1], 400) * 1e-15)
    again = measure_beliefs(split, replace(make_guess(stack(p)), beliefs=other), UNSOLVED)
    assert row == pytest.approx(again, abs=1e-12)


def test_few_are_found_out_at_few_false_alarms():
    """Of 1,000 members 30 stand out; 1 of 2,000 others stands further out."""
    truth = np.r_[np.ones(1000, int), np.zeros(2000, int)]
    p = np.r_[np.full(30, 0.99), np.full(970, 0.4), [0.999], np.full(1999, 0.4)]
    split, _ = make_split(truth)
    row = measure_beliefs(split, make_guess(stack(p)), UNSOLVED)
    chance = (0.001 - 1 / 2000) / (1999 / 2000)
    assert row["tpr_at_tenth_percent"] == pytest.approx(0.03 + 0.97 * chance)
    assert row["tpr_at_one_percent"] > row["tpr_at_tenth_percent"]
    assert row["surest_one_percent"] == pytest.approx(29 / 30)  # the outsider is surest of all
    assert row["surest_ten_percent"] < row["surest_one_percent"]
    assert (row["worst_group"], row["worst_group_accuracy"]) == ("a", 1999 / 2000)
    assert row["safest_group_accuracy"] == 0.03


def test_perfect_and_useless_beliefs_have_their_calibration_error():
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    truth = (rng.random(50_000) < p).astype(int)
    split, _ = make_split(truth)
    assert measure_beliefs(split, make_guess(stack(p)), UNSOLVED)["calibration_error"] < 0.02
    sure = np.where(p > 0.5, 1.0, 0.0)
    overdone = measure_beliefs(split, make_guess(stack(sure)), UNSOLVED)["calibration_error"]
    assert overdone == pytest.approx(0.25, abs=0.01)


def test_the_worst_slice_is_chosen_on_one_half_and_measured_on_the_other():
    rng = np.random.default_rng(0)
    n = 20_000
    slices = rng.integers(0, 40, n)
    truth = rng.integers(0, 2, n)
    right = rng.random(n) < np.where(slices == 7, 0.9, 0.6)
    features = pd.DataFrame(
        {"town": pd.Categorical.from_codes(slices, [f"town {i}" for i in range(40)]),
         "age": rng.integers(18, 90, n), "few": np.where(np.arange(n) < 40, 1, 0)}
    )  # fmt: skip
    split, _ = make_split(truth, features)
    named = np.where(right | (np.arange(n) < 40), truth, 1 - truth)
    row = measure_beliefs(split, make_guess(spread_confidence(named, np.full(n, 0.8), 2)), UNSOLVED)
    assert row["worst_slice"] == "town = town 7"  # not the 40 people who are all right
    assert row["worst_slice_accuracy"] == pytest.approx(0.9, abs=0.05)
    noise = make_guess(spread_confidence(rng.integers(0, 2, n), np.full(n, 0.8), 2))
    chance = measure_beliefs(split, noise, UNSOLVED)["worst_slice_accuracy"]
    assert chance == pytest.approx(0.5, abs=0.06)  # the greatest of 40 would be above .56


@pytest.mark.parametrize("kind", ["int16", "float64"])
def test_slices_of_numbers_are_fifths_of_the_people(kind):
    values = np.random.default_rng(0).integers(-30_000, 30_000, 2_000).astype(kind)
    ends = np.quantile(values, [0.2, 0.4, 0.6, 0.8])
    inside = (values > ends[1]) & (values <= ends[2])
    truth = np.arange(2_000) // 2 % 2
    split, _ = make_split(truth, pd.DataFrame({"x": values}))
    named = np.where(inside, truth, 1 - truth)
    row = measure_beliefs(
        split, make_guess(spread_confidence(named, np.full(2_000, 0.8), 2)), UNSOLVED
    )
    assert row["worst_slice"] == f"x = {ends[1]:g} to {ends[2]:g}"
    assert row["worst_slice_accuracy"] == 1


def test_who_abstains_is_not_counted_among_the_answered():
    truth = np.array([0, 1, 1, 0])
    split, _ = make_split(truth)
    p = np.array([0.1, 0.9, 0.2, 0.8])
    guess = make_guess(stack(p), abstains=np.array([False, False, True, False]))
    row = measure_beliefs(split, guess, UNSOLVED)
    assert row["answered"] == 0.75
    assert row["answered_accuracy"] == pytest.approx(2 / 3)
    silent = measure_beliefs(split, make_guess(stack(p), abstains=np.ones(4, bool)), UNSOLVED)
    assert silent["answered"] == 0
    assert silent["answered_accuracy"] is None


@pytest.mark.slow
@pytest.mark.parametrize("dependence", [0.2, 0.6])
def test_no_adversary_gains_more_than_the_limits_on_average(dependence):
    """A known law: exact beliefs, a published claim, the exact posterior; 400 draws of people."""
    rng = np.random.default_rng(int(dependence * 10))
    n, draws = 120, 400
    p = np.clip(rng.beta(2, 3, n) * (1 - dependence) + dependence * rng.integers(0, 2, n), 0, 1)
    said = rng.integers(0, 2, n)
    gains, limits = [], {}
    for _ in range(draws):
        truth = (rng.random(n) < p).astype(int)
        split, predictions = make_split(truth, predictions=said)
        people = split.train.having(predictions=said)
        least = RateConstraint().unfairness(truth, said, people.labels, 2)
        constraint = RateConstraint("statistical-parity", math.ceil(least * 1000) / 1000)
        claim = Claim(
            constraint, "published", counted_labels=(None,),
            nats=min(math.log(1001), limit_claim_nats("statistical-parity", people)),
        )  # fmt: skip
        problem = Problem(
            (p > 0.5).astype(int), 2, said, people.labels, (constraint,), None, stack(p)
        )
        answer = fpbench.plugin.discover().component("corrector", "posterior")().correct(problem)
        limits = measure_leak(split, predictions, make_guess(stack(p)), claim, answer)
        gains.append(limits["leak"])
    mean, slack = np.mean(gains), 3 * np.std(gains) / math.sqrt(draws)
    error = 1 - np.maximum(p, 1 - p).mean()
    by_error = limit_leak_by_error(error, limits["disclosure_bits"] * math.log(2), n)
    assert limits["limit_exact"] < limits["limit_beliefs"] < by_error
    assert mean <= limits["limit_exact"] + slack
    assert slack < limits["limit_beliefs"]  # or the test could not fail


def test_the_dearest_limit_is_computed_once_for_all_correctors(monkeypatch):
    monkeypatch.setattr(belief_scores, "_MOST_RECALLED", 2)
    monkeypatch.setattr(belief_scores, "_COUNT_LEAKS", {})
    computed = []

    def count(chances, cells):
        computed.append((chances, cells))
        return compute_count_leak(chances, cells)

    monkeypatch.setattr(belief_scores, "compute_count_leak", count)
    p, said = np.linspace(0.1, 0.9, 9), np.arange(9) % 2
    split, predictions = make_split(said, predictions=said)
    claim = Claim(RateConstraint(), "x", nats=1.0, counted_labels=(None,))

    def limit(chances):
        guess = make_guess(stack(chances))
        return measure_leak(split, predictions, guess, claim, UNSOLVED)["limit_exact"]

    assert limit(p) == limit(p.copy()) == compute_count_leak(p, said)
    assert len(computed) == 1
    assert limit(p / 2) == compute_count_leak(p / 2, said) != limit(p)
    assert limit(p / 3) == compute_count_leak(p / 3, said)  # no more than two are kept
    assert len(belief_scores._COUNT_LEAKS) == 1
