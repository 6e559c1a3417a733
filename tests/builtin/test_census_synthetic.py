from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fpbench import Table
from fpbench.builtin.datasets import census_synthetic
from fpbench.builtin.datasets.census_synthetic import CensusSynthetic
from fpbench.errors import DataError
from fpbench.models import encode

LAWS = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
PARAMETERS = {
    "groups": st.integers(2, 10),
    "dependence": st.floats(0, 1),
    "seed": st.integers(0, 2**63 - 1),
}


def _equal(one: Table, other: Table) -> None:
    pd.testing.assert_frame_equal(one.features, other.features)
    pd.testing.assert_frame_equal(one.sensitive, other.sensitive)
    np.testing.assert_array_equal(one.labels, other.labels)


def _head(table: Table, rows: int) -> Table:
    return Table(
        table.name,
        table.features.head(rows),
        table.labels[:rows],
        table.sensitive.head(rows),
        table.positive,
    )


@pytest.mark.slow
@LAWS
@given(**PARAMETERS)
def test_a_seed_makes_one_table(groups: int, dependence: float, seed: int) -> None:
    dataset = CensusSynthetic(rows=1000, groups=groups, dependence=dependence, seed=seed)
    _equal(dataset.load(), dataset.load())


@pytest.mark.slow
@LAWS
@given(rows=st.integers(200, 1500), more=st.integers(0, 1500), **PARAMETERS)
def test_a_larger_table_begins_with_the_smaller(
    rows: int, more: int, groups: int, dependence: float, seed: int
) -> None:
    rest = {"groups": groups, "dependence": dependence, "seed": seed}
    with patch.object(census_synthetic, "_CHUNK", 512):
        small = CensusSynthetic(rows=rows, **rest).load()
        _equal(small, _head(CensusSynthetic(rows=rows + more, **rest).load(), rows))


def test_chunks_differ() -> None:
    hours = CensusSynthetic(rows=32_768).load().features["hours"].to_numpy()
    assert (hours[:16_384] != hours[16_384:]).mean() > 0.5


@LAWS
@given(**PARAMETERS)
def test_a_table_is_what_it_says(groups: int, dependence: float, seed: int) -> None:
    dataset = CensusSynthetic(rows=1000, groups=groups, dependence=dependence, seed=seed)
    table = dataset.load()
    assert len(table) == 1000
    assert table.groups == tuple("ABCDEFGHIJ"[:groups])
    assert dataset.n_groups == groups
    assert table.features["age"].between(17, 90).all()
    assert table.features["hours"].between(1, 99).all()
    assert table.features["capital_gain"].between(0, 99_999).all()
    assert table.features["education"].cat.ordered
    posterior = dataset.posterior(table)
    assert posterior.shape == (1000, groups)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("groups", range(2, 11))
def test_shares_are_as_documented(groups: int) -> None:
    rows = 100_000
    table = CensusSynthetic(rows=rows, groups=groups, seed=3).load()
    shares = 1 / np.arange(1, groups + 1)
    shares /= shares.sum()
    errors = np.sqrt(shares * (1 - shares) / rows)
    assert (np.abs(np.bincount(table.codes) / rows - shares) < 4.5 * errors).all()


@pytest.mark.parametrize("groups", [2, 5, 10])
def test_without_dependence_the_posterior_is_the_prior(groups: int) -> None:
    dataset = CensusSynthetic(groups=groups, dependence=0)
    table = dataset.load()
    shares = 1 / np.arange(1, groups + 1)
    np.testing.assert_allclose(
        dataset.posterior(table), np.tile(shares / shares.sum(), (len(table), 1))
    )


@pytest.mark.slow
def test_without_dependence_nothing_differs_between_groups() -> None:
    table = CensusSynthetic(rows=200_000, dependence=0).load()
    columns = np.column_stack([encode(table.features), table.labels]).astype(float)
    one, other = (columns[table.codes == group] for group in (0, 1))
    spread = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other))
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4.5 * spread).all()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("groups", [2, 3, 10])
@pytest.mark.parametrize("dependence", [0.25, 0.5, 1.0])
def test_the_posterior_is_calibrated(groups: int, dependence: float) -> None:
    rows = 100_000
    dataset = CensusSynthetic(rows=rows, groups=groups, dependence=dependence, seed=7)
    table = dataset.load()
    posterior = dataset.posterior(table)
    right = posterior.argmax(axis=1) == table.codes
    assert abs(right.mean() - posterior.max(axis=1).mean()) < 4.5 * 0.5 / np.sqrt(rows)
    # Not only on average: among people to whom a group is given about equally, as many are in it.
    for group in range(groups):
        given_, is_in = posterior[:, group], table.codes == group
        bins = np.minimum((given_ * 10).astype(int), 9)
        for b in np.unique(bins):
            here = bins == b
            expected, variance = given_[here].sum(), (given_[here] * (1 - given_[here])).sum()
            assert abs(is_in[here].sum() - expected) < 5 * np.sqrt(variance) + 1


def test_label_says_something_of_the_group_beyond_the_features() -> None:
    dataset = CensusSynthetic(dependence=1)
    table = dataset.load()
    flipped = Table(table.name, table.features, 1 - table.labels, table.sensitive)
    moved = dataset.posterior(table)[:, 0] - dataset.posterior(flipped)[:, 0]
    assert (moved[table.labels == 1] > 0).all()
    assert (moved[table.labels == 0] < 0).all()


def test_the_default_looks_like_adult() -> None:
    table = CensusSynthetic().load()
    rates = [table.labels[table.codes == group].mean() for group in (0, 1)]
    assert rates == pytest.approx([0.34, 0.09], abs=0.02)
    posterior = CensusSynthetic().posterior(table)
    assert posterior.max(axis=1).mean() == pytest.approx(0.793, abs=0.01)
    assert np.bincount(table.codes).max() / len(table) == pytest.approx(2 / 3, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [2, 10])
def test_no_classifier_beats_the_posterior(groups: int) -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    dataset = CensusSynthetic(rows=40_000, groups=groups)
    table = dataset.load()
    X = np.column_stack([encode(table.features), table.labels])
    train, test = slice(0, 20_000), slice(20_000, None)
    best = (dataset.posterior(table).argmax(axis=1) == table.codes)[test]
    majority = np.bincount(table.codes[test]).max() / 20_000
    for model in (
        RandomForestClassifier(50, max_depth=10, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    ):
        model.fit(X[train], table.codes[train])
        right = model.predict(X[test]) == table.codes[test]
        noise = np.std(right.astype(float) - best) / np.sqrt(20_000)
        assert right.mean() - best.mean() < 4 * noise
        assert right.mean() > majority + 0.02


def test_the_posterior_of_a_part() -> None:
    dataset = CensusSynthetic()
    table = dataset.load()
    rows = np.array([5, 11_999, 3])
    part = table.sample().take(rows).only(frozenset({"features", "labels"}))
    np.testing.assert_array_equal(dataset.posterior(part), dataset.posterior(table)[rows])


def test_strange_people_have_no_posterior() -> None:
    dataset = CensusSynthetic(rows=100)
    table = dataset.load()
    for features, says in (
        (table.features.drop(columns="age"), "no feature 'age'"),
        (table.features.assign(age=16), "'age' of census-synthetic is never .*16"),
        (table.features.assign(age=95), "'age' of census-synthetic is never .*95"),
        (table.features.assign(occupation="Pirate"), "'occupation' .* is never 'Pirate'"),
    ):
        with pytest.raises(DataError, match=says):
            dataset.posterior(table.sample().having(features=features))


def test_a_group_of_nobody_is_one_error() -> None:
    # Seed 27 is the first that leaves one of ten groups without a member.
    with pytest.raises(DataError, match=r"rows = 100 and seed = 27 group '.' has no member; ask"):
        CensusSynthetic(rows=100, groups=10, seed=27).load()


def test_a_table_carries_the_posterior_unless_it_is_very_large(monkeypatch) -> None:
    dataset = CensusSynthetic(rows=700, groups=4)
    table = dataset.load()
    np.testing.assert_array_equal(table.group_chances, dataset.posterior(table))
    assert table.group_chances.shape == (700, 4)
    monkeypatch.setattr("fpbench.builtin.datasets.census_synthetic._MOST_CHANCES", 699)
    assert dataset.load().group_chances is None
