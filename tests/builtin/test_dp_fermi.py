"""The learner `dp-fermi`: its objective, gradients and sensitivity, and what it pays for."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import fpbench
from fpbench import Guarantee
from fpbench.auditing import excessive_risk
from fpbench.builtin.learners.dp_fermi import DPFermi, ErmiTraining
from fpbench.builtin.learners.dp_sgd import DPSGD
from fpbench.privacy.accounting import sampled_gaussian_epsilon

K, D, N = 3, 4, 50


@pytest.fixture(scope="module")
def people():
    return fpbench.dataset("census-synthetic", rows=1500).sample()


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def draw_people(rng, n=N):
    groups = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    x = np.column_stack([rng.random((n, D - 1)) + groups[:, None] / 3, np.ones(n)])
    return x, rng.integers(2, size=n).astype(float), np.eye(K)[groups]


def compute_ermi(chances, member):
    """Sum over labels j and groups r of P(j, r)^2 / (P(j) P(r)), minus 1."""
    both = np.column_stack([1 - chances, chances])
    joint = both.T @ member / len(member)
    return float((joint**2 / np.outer(both.mean(axis=0), member.mean(axis=0))).sum() - 1)


def measure_dual(chances, member, dual, shares):
    """The mean over people, as the docstring of `ErmiTraining` has it, person by person."""
    total = 0.0
    for f, z in zip(chances, member, strict=True):
        for j, share in enumerate((1 - f, f)):
            total += 2 * share * dual[z.argmax(), j] - share * (shares * dual[:, j] ** 2).sum()
    return total / len(chances) - 1


def fit(learner, people, seed=0):
    return learner.fit(people.only(learner.needs), np.random.default_rng(seed))


def test_ermi_is_the_greatest_value_of_the_dual(rng):
    _, _, member = draw_people(rng)
    chances, shares = rng.random(N), member.mean(axis=0)
    greatest, best = compute_ermi(chances, member), np.empty((K, 2))
    for j, of_label in enumerate((1 - chances, chances)):
        for r in range(K):
            joint = (of_label * member[:, r]).sum() / N
            best[r, j] = joint / (of_label.mean() * shares[r])
    assert measure_dual(chances, member, best, shares) == pytest.approx(greatest, abs=1e-12)
    for _ in range(20):
        other = best + 0.1 * rng.normal(size=best.shape)
        assert measure_dual(chances, member, other, shares) < greatest


def test_wrong_shares_still_penalise_what_depends_on_groups(rng):
    _, _, member = draw_people(rng)
    for _ in range(50):
        shares, chances = rng.dirichlet(np.ones(K)), rng.random(N)
        values = []
        for chance in (chances, np.full(N, chances.mean())):
            both = np.column_stack([1 - chance, chance])
            joint = both.T @ member / N
            values.append((joint**2 / np.outer(both.mean(axis=0), shares)).sum())
        assert values[0] > values[1]


@pytest.mark.parametrize("hidden", [None, (3, 2)])
def test_sums_are_gradients_of_loss_plus_penalty_times_the_dual(hidden, rng):
    x, y, member = draw_people(rng)
    training = ErmiTraining(1, 1.0, math.inf, 0.0, 0.1, hidden, penalty=1.7, groups=K)
    labels = np.column_stack([y, member])
    flat = training.begin(D, labels, [np.arange(N)], [rng])
    np.testing.assert_allclose(flat[0, -K:], member.mean(axis=0))
    own = flat.shape[1] - 3 * K
    flat[0, :-K] += 0.3 * rng.normal(size=flat.shape[1] - K)
    sums = np.empty_like(flat)
    training.sum_shortened(x[None], labels[None], np.ones((1, N)), flat, sums)

    def value(moved):
        f = training.proba(moved[None], x)[0]
        loss = -np.log(np.where(y == 1, f, 1 - f)).mean()
        return loss, measure_dual(f, member, moved[own:-K].reshape(K, 2), flat[0, -K:])

    for place in range(flat.shape[1] - K):
        step = np.eye(flat.shape[1])[place] * 1e-6
        up, down = value(flat[0] + step), value(flat[0] - step)
        loss, dual = (N * (u - d) / 2e-6 for u, d in zip(up, down, strict=True))
        # The model goes down, and dual variables up by half their gradient.
        wanted = loss + 1.7 * dual if place < own else -dual / 2
        assert sums[0, place] == pytest.approx(wanted, abs=1e-5)
    assert (sums[0, -K:] == 0).all()


@pytest.mark.parametrize("hidden", [None, (3, 2)])
def test_one_person_more_moves_a_step_s_sum_by_sqrt_2_clips_at_most(hidden, rng):
    clip, greatest = 0.7, 0.0
    training = ErmiTraining(1, 1.0, clip, 1.0, 0.1, hidden, penalty=3.0, groups=K)
    for _ in range(300):
        x, y, member = draw_people(rng, 6)
        x *= rng.choice([0.1, 1, 30])
        labels = np.column_stack([y, member])
        flat = training.begin(D, labels, [np.arange(6)], [rng])
        flat[0, :-K] += rng.choice([0.1, 1, 10]) * rng.normal(size=flat.shape[1] - K)
        sums = np.zeros((2, flat.shape[1]))
        for into, present in zip(sums, ([1] * 6, [1] * 5 + [0]), strict=True):
            weight = np.array([present], float)
            training.sum_shortened(x[None], labels[None], weight, flat, into[None])
        greatest = max(greatest, np.linalg.norm(sums[0] - sums[1]))
    assert 0.99 * math.sqrt(2) * clip < greatest <= math.sqrt(2) * clip * (1 + 1e-9)


def test_the_noise_is_that_of_the_accountant_for_one_step_more(people, rng):
    learner = DPFermi(epsilon=0.7, delta=1e-6, steps=30, share=0.2)
    model = fit(learner, people)
    assert model.guarantee == Guarantee(0.7, 1e-6, "add-remove")
    sigma = model.notes["sgd_sigma"]
    assert sampled_gaussian_epsilon(0.2, sigma / math.sqrt(2), 31, 1e-6) == pytest.approx(0.7)
    assert learner.protects == {"features", "labels", "sensitive"}
    # Of the sizes of groups in a sample, which one person changes by 1.
    training = replace(learner.training(people), clip=5.0)
    labels = learner.make_labels(people).astype(float)
    rows = [np.arange(len(people))] * 4000
    sizes = labels[:, 1:].sum(axis=0) * 0.2
    flat = training.begin(3, labels, rows, rng.spawn(4000))
    spread = np.sqrt(sizes * 0.8 + sigma**2 / 2)
    shares = flat[:, -2:]
    # A share of two sizes varies, to first order, by both.
    expected = np.hypot(sizes[1] * spread[0], sizes[0] * spread[1]) / sizes.sum() ** 2
    assert shares[:, 0].std() == pytest.approx(expected, rel=0.06)
    moved = np.zeros_like(flat[:2])
    training.add_noise(moved, rng.spawn(2))
    assert (moved[:, -2:] == 0).all()
    assert (moved[:, :-2] != 0).all()


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_without_a_penalty_it_is_dp_sgd(epsilon, people):
    settings = {"epsilon": epsilon, "steps": 40, "rate": 0.05}
    fair, plain = fit(DPFermi(penalty=0, **settings), people), fit(DPSGD(**settings), people)
    np.testing.assert_array_equal(fair.parameters, plain.parameters)
    assert fair.guarantee == plain.guarantee


@pytest.mark.parametrize("penalty", [0.5, 3.0])
def test_without_noise_it_is_the_least_of_loss_plus_penalty_times_ermi(penalty, people):
    few = people.take(np.arange(500))
    learner = DPFermi(epsilon=math.inf, penalty=penalty, clip=1e9, share=1.0, steps=3000)
    model = fit(learner, few)
    x, member = model.design(few.features), np.eye(2)[few.sensitive]

    def value(theta):
        f = expit(x @ theta)
        score = x @ theta
        loss = np.logaddexp(0, (1 - 2 * few.labels) * score).mean()
        return loss + penalty * compute_ermi(f, member)

    best = minimize(value, np.zeros(x.shape[1]), method="BFGS")
    ours = model.parameters[0, : x.shape[1]]
    assert value(ours) == pytest.approx(best.fun, abs=2e-4)
    plain = DPFermi(epsilon=math.inf, penalty=0, clip=1e9, share=1.0, steps=3000)
    assert value(fit(plain, few).parameters[0]) > best.fun + 0.002
    f = model.predict_proba(few.features, np.random.default_rng(0))[:, 1]
    np.testing.assert_allclose(f, expit(x @ ours))


@pytest.mark.parametrize("kind", ["logistic", "mlp"])
def test_it_is_fairer_and_can_be_redrawn(kind, people):
    gaps = []
    for penalty in (0, 6):
        learner = DPFermi(epsilon=50.0, penalty=penalty, model=kind, share=0.2)
        model = fit(learner, people)
        f = model.predict_proba(people.features, np.random.default_rng(0))[:, 1]
        gaps.append(compute_ermi(f, np.eye(2)[people.sensitive]))
    assert gaps[1] < gaps[0] / 2
    report = excessive_risk(model, people, people, repetitions=4, rng=2)
    assert report.overall["risk"].notna().all()
