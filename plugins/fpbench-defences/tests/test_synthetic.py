"""The learner `synthetic`: noisy marginals of a tree, made-up people, and the guarantee."""

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from fpbench_defences.tree_marginals import (
    MarginalTree,
    NoisyTables,
    _choose_tree,
    _infer,
    count_pair,
    fit_tree,
    measure_tables,
)
from pydantic import ValidationError

import fpbench
from fpbench import InputError, Sample
from fpbench.data import Domain
from fpbench.errors import DataError
from fpbench.privacy import epsilon_to_rho

SIZES = (3, 2, 4, 2)
CHAIN = [(0, 1), (1, 2), (2, 3)]


def draw_chain(n, seed=0):
    """Records whose columns depend on each other along a chain."""
    rng = np.random.default_rng(seed)
    codes = np.empty((n, 4), np.intp)
    codes[:, 0] = rng.integers(0, 3, n)
    for j in range(1, 4):
        follows = rng.random(n) < 0.8
        codes[:, j] = np.where(follows, codes[:, j - 1] % SIZES[j], rng.integers(0, SIZES[j], n))
    return codes


def make_people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n).astype(np.int8)
    job = np.where(rng.random(n) < 0.8, group, rng.integers(0, 3, n))
    features = pd.DataFrame({
        "age": rng.integers(18, 80, n), "pay": rng.normal(size=n) + group,
        "job": pd.Categorical.from_codes(job, ["a", "b", "c"]),
    })  # fmt: skip
    labels = (features["pay"] > 0.5).to_numpy().astype(np.int8)
    domain = Domain.of({"age": [18, 80], "pay": [-4, 5], "job": ["a", "b", "c", "d"]})
    return Sample(("f", "m"), features=features, labels=labels, sensitive=group, domain=domain)


def make(base=None, **options):
    return fpbench.component("learner", "synthetic", base=base or {"use": "plain"}, **options)


def test_inference_is_that_of_all_records():
    rng = np.random.default_rng(0)
    own = [rng.normal(size=size) for size in SIZES]
    parents = (-1, 0, 0, 2)
    edges = [np.zeros((0, 0))] + [rng.normal(size=(SIZES[p], SIZES[j])) for j, p in
                                  [(1, 0), (2, 0), (3, 2)]]  # fmt: skip
    model = _infer((0, 1, 2, 3), parents, own, edges)
    chances = {
        record: math.exp(sum(own[j][x] for j, x in enumerate(record))
                         + sum(edges[j][record[parents[j]], record[j]] for j in (1, 2, 3)))
        for record in itertools.product(*map(range, SIZES))
    }  # fmt: skip
    total = sum(chances.values())
    for child in (1, 2, 3):
        table = np.zeros((SIZES[parents[child]], SIZES[child]))
        for record, chance in chances.items():
            table[record[parents[child]], record[child]] += chance / total
        assert model.share_pair(child) == pytest.approx(table)
        assert model.shares[child] == pytest.approx(table.sum(axis=0))


def test_without_noise_it_finds_the_chain_and_its_counts():
    codes = draw_chain(5000)
    tables = measure_tables(codes, SIZES, 1e9, np.random.default_rng(0))
    assert sorted(tables.pairs) == CHAIN
    model = fit_tree(tables)
    drawn = model.draw(50_000, np.random.default_rng(1))
    for pair in itertools.combinations(range(4), 2):
        ours = count_pair(drawn, SIZES, pair) / 50_000
        truth = count_pair(codes, SIZES, pair) / 5000
        assert np.abs(ours - truth).sum() < 0.05


@pytest.mark.slow
def test_the_fit_is_at_least_as_likely_as_the_truth():
    # The true marginals are those of a tree, so the best fit is no worse.
    codes = draw_chain(500)
    for seed in range(4):
        tables = measure_tables(codes, SIZES, 0.05, np.random.default_rng(seed))

        def find_loss(shares, pair_shares, tables=tables):
            singles = sum(((tables.total * a - b) ** 2).sum()
                          for a, b in zip(shares, tables.singles, strict=True))  # fmt: skip
            pairs = sum(((tables.total * pair_shares[p] - b) ** 2).sum()
                        for p, b in tables.pairs.items())  # fmt: skip
            return singles / tables.sigmas[0] ** 2 + pairs / tables.sigmas[1] ** 2

        model = fit_tree(tables)
        assert isinstance(model, MarginalTree)
        own = {}
        for child in model.order[1:]:
            pair = (model.parents[child], child)
            own[pair], own[pair[::-1]] = model.share_pair(child), model.share_pair(child).T
        true = [np.bincount(codes[:, j], minlength=s) / 500 for j, s in enumerate(SIZES)]
        true_pairs = {p: count_pair(codes, SIZES, p) / 500 for p in tables.pairs}
        assert find_loss(model.shares, own) <= find_loss(true, true_pairs) * (1 + 1e-6)


def test_the_budget_is_spent_once():
    rho, d = 0.3, len(SIZES)
    tables = measure_tables(draw_chain(50), SIZES, rho, np.random.default_rng(0))
    epsilon = math.sqrt(8 * rho / 3 / (d - 1))
    spent = d / (2 * tables.sigmas[0] ** 2) + (d - 1) / (2 * tables.sigmas[1] ** 2)
    assert spent + (d - 1) * epsilon**2 / 8 == pytest.approx(rho)


def test_choices_of_pairs_have_their_epsilon():
    # The exponential mechanism at epsilon 2: of two pairs, scores 1 apart have odds of e.
    rng, scores = np.random.default_rng(0), {(0, 1): 3.0, (0, 2): 2.0, (1, 2): -1e9}
    first = Counter(_choose_tree(scores, 3, 2.0, rng)[0] for _ in range(8000))
    assert first[0, 1] / first[0, 2] == pytest.approx(math.e, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("real", "caught"), [(1.0, False), (64.0, True)])
def test_an_attack_does_not_refute_the_guarantee(real, caught):
    """Counts of the canary's cells, with it and without it; 64 times the rho is caught."""
    rho, draws = epsilon_to_rho(1.0, 1e-5), 1500
    people = draw_chain(40)
    people[:, 3] = 0
    canary = np.vstack([people, [[2, 1, 3, 1]]])

    record = (2, 1, 3, 1)

    def release(repeated, rng):
        """The statistic that tells both apart best, of each release."""
        statistics = []
        for which in repeated:
            tables = measure_tables(canary if which else people, SIZES, real * rho, rng)
            single = sum(c[v] for c, v in zip(tables.singles, record, strict=True))
            pair = sum(counts[record[i], record[j]] for (i, j), counts in tables.pairs.items())
            statistics.append(single / tables.sigmas[0] ** 2 + pair / tables.sigmas[1] ** 2)
        return np.array(statistics)

    bound = fpbench.testing.epsilon_lower_bound(
        release, 0.0, 1.0, delta=1e-5, draws=draws, rng=np.random.default_rng(7)
    )
    assert (bound > 1.0) == caught


def test_made_up_people_stand_for_the_real_ones(rng):
    people, others = make_people(3000), make_people(3000, seed=1)
    plain = fpbench.component("learner", "plain").fit(people, rng)
    accuracies = []
    for epsilon in (0.001, 1.0, 1000.0):
        model = make(epsilon=epsilon, bins=16).fit(people, np.random.default_rng(0))
        predictions = model.predict(others.features, rng)
        accuracies.append((predictions == others.labels).mean())
        assert (model.guarantee.epsilon, model.guarantee.neighbours) == (epsilon, "add-remove")
        assert model.guarantee.delta == 1e-6
    assert accuracies[0] < 0.8 < accuracies[1] <= accuracies[2] + 0.05
    assert accuracies[2] > (plain.predict(others.features, rng) == others.labels).mean() - 0.1


def test_what_holds_it_and_what_it_holds(rng):
    people = make_people()
    model = make({"use": "pflr", "epsilon": 5.0}).fit(people, rng)
    # The base's own guarantee is about made-up people: it is left out.
    assert [name for name in model.notes if name.endswith("epsilon")] == ["synthetic_epsilon"]
    grouped = make({"use": "threshold-optimizer"})
    assert grouped.predicts_with_sensitive
    fitted = grouped.fit(people, rng)
    assert set(fitted.predict(people.features, rng, people.sensitive)) <= {0, 1}
    assert make({"use": "threshold-optimizer"}).twin().base.name == "plain"
    assert make().twin() is None


def test_nothing_private_is_read_off_the_data(rng):
    """Values beyond the domain, categories that are not declared, and nobody at all."""
    people = make_people(300)
    strange = people.features.assign(
        age=5000, job=pd.Categorical(["nobody's"] * 300, categories=["nobody's"])
    )
    model = make().fit(people.having(features=strange), rng)
    assert set(model.predict(people.features, rng)) <= {0, 1}
    tables = NoisyTables([np.full(2, -5.0)] * 2, {(0, 1): np.full((2, 2), -3.0)}, (1.0, 1.0))
    assert tables.total == 1.0
    assert np.isfinite(fit_tree(tables).shares[1]).all()


def test_bad_input_is_refused(rng):
    people = make_people(50)
    with pytest.raises(InputError, match="domain"):
        make().fit(Sample(people.groups, features=people.features, labels=people.labels,
                          sensitive=people.sensitive), rng)  # fmt: skip
    with pytest.raises(DataError, match="'pay' has missing values"):
        make().fit(people.having(features=people.features.assign(pay=np.nan)), rng)
    with pytest.raises((ValidationError, fpbench.FpbenchError), match="delta"):
        make(delta=0.0)


def test_it_runs_in_a_matrix(tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 1500}],
        "learner": [{"use": "synthetic", "base": {"use": "plain"}}],
        "auditor": [{"use": "group-fairness", "resamples": 0}],
    }
    (row,) = fpbench.run(matrix, out=tmp_path / "run").frame().to_dict("records")
    assert row["status"] == "done"
    assert row["synthetic_epsilon"] == 1.0
