"""The learner `lipschitz`: the least loss, and the condition for everybody, also for new people."""

import numpy as np
import pandas as pd
import pytest
from fpbench_defences.lipschitz import find_fair_chances, measure_distances
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fpbench import FpbenchError, InputError, Sample, component
from fpbench.data import Domain
from fpbench.models import BoundedFeatures

pytestmark = pytest.mark.numeric

DOMAIN = Domain.of({"age": [0, 10], "pay": [0, 1000], "job": ["clerk", "farmer", "none"]})
DISTANCES = ("mean", "greatest")


def draw(n, seed):
    rng = np.random.default_rng(seed)
    age, pay = rng.integers(0, 11, n), rng.integers(0, 1001, n)
    job = pd.Categorical.from_codes(rng.integers(0, 3, n), ["clerk", "farmer", "none"])
    labels = (age / 10 + pay / 1000 + rng.normal(0, 0.3, n) > 1).astype(np.int8)
    features = pd.DataFrame({"age": age, "pay": pay, "job": job})
    return Sample((), features=features, labels=labels, domain=DOMAIN)


def fit(sample, **parameters):
    learner = component("learner", "lipschitz", **parameters)
    return learner.fit(sample, np.random.default_rng(0))


def measure_by_hand(distance, one, other):
    """The distance of two people, feature by feature."""
    apart = [abs(one["age"] - other["age"]) / 10, abs(one["pay"] - other["pay"]) / 1000,
             float(one["job"] != other["job"])]  # fmt: skip
    return np.mean(apart) if distance == "mean" else max(apart)


def solve_in_full(apart, labels):
    """The least loss of the program with a condition for every two people, as printed."""
    n = len(labels)
    cost = np.where(labels == 1, -1.0, 1.0)
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    matrix = np.zeros((len(i), n))
    matrix[np.arange(len(i)), i], matrix[np.arange(len(i)), j] = 1, -1
    answer = linprog(cost, matrix, apart[i, j], bounds=(0, 1)) if n > 1 else None
    return ((cost < 0).sum() + (answer.fun if answer else min(cost.sum(), 0))) / n


@pytest.mark.parametrize("distance", DISTANCES)
def test_distances_are_those_of_features(distance):
    people = draw(12, 0).features
    design = BoundedFeatures.of(people, DOMAIN, "test")
    found = measure_distances(design, distance, design(people), design(people))
    rows = people.to_dict("records")
    want = [[measure_by_hand(distance, one, other) for other in rows] for one in rows]
    np.testing.assert_allclose(found, want, atol=1e-12)


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 14), lipschitz=st.sampled_from([0.3, 1.0, 3.0]),
    distance=st.sampled_from(DISTANCES),
)  # fmt: skip
def test_no_chances_that_keep_the_condition_have_less_loss(seed, n, lipschitz, distance):
    people = draw(n, seed)
    model = fit(people, lipschitz=lipschitz, distance=distance)
    rows = people.features.to_dict("records")
    apart = np.array([[lipschitz * measure_by_hand(distance, a, b) for b in rows] for a in rows])
    least = solve_in_full(apart, people.labels)
    assert model.notes["lipschitz_loss"] == pytest.approx(least, abs=1e-6)
    chances = model.predict_proba(people.features, np.random.default_rng())[:, 1]
    np.testing.assert_allclose(chances, model.chances, atol=1e-9)
    assert np.abs(people.labels - chances).mean() == pytest.approx(least, abs=1e-6)


@given(seed=st.integers(0, 10**6), lipschitz=st.sampled_from([0.5, 2.0]),
       distance=st.sampled_from(DISTANCES))  # fmt: skip
def test_the_condition_holds_for_every_two_known_and_new_people(seed, lipschitz, distance):
    known, new = draw(40, seed), draw(60, seed + 1)
    model = fit(known, lipschitz=lipschitz, distance=distance, people=30)
    assert model.notes["lipschitz_people"] == 30
    everybody = pd.concat([known.features, new.features], ignore_index=True)
    everybody["job"] = pd.Categorical(everybody["job"], ["clerk", "farmer", "none"])
    chances = model.predict_proba(everybody, np.random.default_rng())
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert ((chances >= 0) & (chances <= 1)).all()
    rows = everybody.to_dict("records")
    for i in range(0, len(rows), 7):
        most = [lipschitz * measure_by_hand(distance, rows[i], other) for other in rows]
        assert (np.abs(chances[i, 1] - chances[:, 1]) <= np.array(most) + 1e-9).all()


def test_new_people_get_the_middle_of_what_the_condition_leaves():
    people = draw(20, 3)
    model = fit(people, distance="greatest")
    new = draw(30, 4).features
    chances = model.predict_proba(new, np.random.default_rng())[:, 1]
    for person, chance in zip(new.to_dict("records"), chances, strict=True):
        apart = [
            measure_by_hand("greatest", person, other)
            for other in people.features.to_dict("records")
        ]
        least = max(0, np.max(model.chances - apart))
        assert chance == pytest.approx((least + min(1, np.min(model.chances + apart))) / 2)


def test_labels_are_drawn_with_the_chances():
    people = draw(50, 1)
    model = fit(people, lipschitz=2.0)
    rng = np.random.default_rng(0)
    drawn = np.mean([model.predict(people.features, rng) for _ in range(4_000)], axis=0)
    assert ((drawn > 0.05) & (drawn < 0.95)).any()
    np.testing.assert_allclose(drawn, model.chances, atol=0.04)


def test_people_who_are_alike_have_one_chance_and_the_majority_of_them_decides():
    ones, zeros = find_fair_chances(np.zeros((3, 2)))
    assert ones.tolist() == [1.0] * 3
    assert zeros.tolist() == [1.0] * 2
    ones, zeros = find_fair_chances(np.zeros((1, 2)))
    assert (ones.tolist(), zeros.tolist()) == ([0.0], [0.0] * 2)
    for shape in ((0, 3), (3, 0)):
        ones, zeros = find_fair_chances(np.zeros(shape))
        assert ones.all()
        assert not zeros.any()


def test_a_feature_must_be_declared_and_a_failure_is_said(monkeypatch):
    people = draw(20, 0)
    undeclared = Sample((), features=people.features, labels=people.labels)
    with pytest.raises(InputError, match="learner 'lipschitz'"):
        fit(undeclared)

    class Failure:
        x, message = None, "time limit"

    monkeypatch.setattr("scipy.optimize.linprog", lambda *args, **more: Failure)
    with pytest.raises(FpbenchError, match="HiGHS gives no solution: time limit"):
        find_fair_chances(np.zeros((2, 2)))
