"""Tables of which no size is public: their guarantee, by enumeration of neighbours, and the fit."""

from collections import Counter
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from reports import make_people

import fpbench
from fpbench import InputError, Mechanism
from fpbench.privacy import Ledger
from fpbench.privacy.marginal_release import Marginals, NoisyMarginals, fit_sizes
from fpbench.reports.assessments.releasing import check_release
from fpbench.reports.defences.fitted_counts import release_secret_sizes
from fpbench.reports.rows import ReportedPeople
from fpbench.reports.slices import SliceColumn

COLUMNS = [SliceColumn("a", ("0", "1")), SliceColumn("b", ("0", "1"))]
SEEN: list = []


class Watching(Mechanism):
    """Adds nothing, and keeps what it was given."""

    name = "watching"

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        assert upper is None
        SEEN.append((np.array(counts), sensitivity))
        return counts.astype(float)

    def find_noise_law(self, sensitivity, epsilon, upper):
        return np.ones(upper.shape), np.zeros(upper.shape)


def watch(world, k, metrics):
    """Weighted counts of the people of a world, as the mechanism gets them, and the sensitivity."""
    codes = np.array(list(world), np.int64).reshape(-1, 5)
    X = pd.DataFrame(codes[:, :2].astype(str), columns=["a", "b"], dtype="object")
    people = ReportedPeople(X, codes[:, 2], codes[:, 3], codes[:, 4])
    groups = [f"g{number}" for number in range(k)]
    release_secret_sizes(
        COLUMNS, groups, people, Watching(), 1.0, np.random.default_rng(0), order=2,
        metrics=metrics, min_cell=0,
    )  # fmt: skip
    return SEEN.pop()


@pytest.mark.parametrize(
    ("k", "metrics"), [(2, ["selection-rate"]), (3, ["selection-rate", "true-positive-rate"])]
)
def test_the_greatest_privacy_loss_of_neighbours_is_epsilon(k, metrics):
    """Of all worlds of up to two people, one of whom is added, removed or replaced."""
    kinds = [
        (0, 0, 0, 0, 0),
        (1, 1, 1, 1, 1),
        (0, 1, 1, 0, 1),
        (1, 0, 0, 1, 0),
        (0, 0, 1, 1, k - 1),
    ]
    worlds = [w for many in range(3) for w in combinations_with_replacement(kinds, many)]
    counts = {world: watch(world, k, metrics) for world in worlds}
    farthest = [0, 0]
    for one, two in product(worlds, repeat=2):
        gone, new = Counter(one) - Counter(two), Counter(two) - Counter(one)
        if max(gone.total(), new.total()) != 1:
            continue
        (own, reach), (other, same) = counts[one], counts[two]
        assert same == reach  # noise does not depend on how many there are
        moved = np.abs(own - other)
        replaced = gone.total() == new.total()
        farthest[replaced] = max(farthest[replaced], moved.sum())
        assert (moved**2).sum() <= reach.l2**2 + 1e-9
    assert farthest == [reach.l1 / 2, reach.l1]


def test_fitted_sizes_are_near_to_cells_without_noise():
    rng = np.random.default_rng(0)
    kinds = np.array(list(product(range(4), range(3), range(2))))
    sizes = rng.poisson(40, len(kinds)) * (kinds[:, 0] != 2)
    plan = Marginals(kinds, np.ones_like(sizes), ((0, 2), (1, 2)), (1, 1), secret=True)
    cells = np.asarray(plan.cells @ sizes)
    noisy = NoisyMarginals(
        np.tile(cells[:, None] / 2, 2), "laplace", np.full(len(cells), 0.1), None
    )
    fitted = fit_sizes(plan, noisy)
    assert fitted.dtype == np.int64
    assert (fitted >= 0).all()
    assert np.abs(plan.cells @ fitted - cells).max() <= 3


@pytest.fixture(scope="module")
def made():
    X, predictions, groups = make_people(300)
    X = X[list(X)[:3]]
    options = {"by": list(X), "order": 2, "seed": 0, "epsilon": 20.0, "max_leak": 0.5}
    return (
        X,
        predictions,
        groups,
        fpbench.release(X, predictions, groups, public="nothing", **options),
    )


def test_a_release_says_what_is_public(made):
    *people, release = made
    told = release.to_json()
    assert told["guarantee"]["neighbours"] == "one person added, removed or replaced"
    assert told["guarantee"]["public"].startswith("columns, their values")
    assert release.nothing is None
    assert "Public: names of columns, values and groups alone." in str(release)
    assert all(check_release(told, release.report, *people).values())
    assert release.report.stated.changes % 2 == 0


def test_fitted_rows_are_those_of_one_table_and_tell_what_was_measured_of_all_groups(made):
    report = made[-1].report
    parts = report.to_frame().query("metric == 'selection-rate'")
    whole = report.cells.max(axis=1) < 0
    for column in range(3):
        alone = (report.cells >= 0).sum(axis=1) == (report.cells[:, column] >= 0)
        of_column = alone & (report.cells[:, column] >= 0)
        assert parts.n[of_column].sum() == parts.n[whole].sum()
    assert made[-1].utility.rate_error < 0.1
    pairs = (report.cells >= 0).sum(axis=1) == 2
    assert np.isfinite(report.measured[pairs]).all()
    assert set(report.group[pairs]) == {0, 1}


def test_what_would_follow_from_people_is_refused():
    X, predictions, groups = make_people(300)
    X = X.assign(age=np.arange(300) / 10)
    options = {"by": ["age"], "epsilon": 1.0, "seed": 0, "public": "nothing"}
    for bins in (5, {"age": 3}):
        with pytest.raises(InputError, match="column 'age': its bins follow the people"):
            fpbench.release(X, predictions, groups, bins=bins, **options)
    fpbench.release(X, predictions, groups, bins={"age": [10.0]}, **options)
    with pytest.raises(InputError, match="upper"):
        fpbench.release(
            X, predictions, groups, bins={"age": [10.0]}, noise="exponential", **options
        )
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (300, 7)).astype(str)).add_prefix(
        "c"
    )
    with pytest.raises(InputError, match="156,250 combinations"):
        fpbench.release(wide, predictions, groups, **options | {"by": list(wide)})
    with pytest.raises(InputError, match="public"):
        fpbench.release(X, predictions, groups, by=["a"], public="size")


def test_a_ledger_of_groups_pays(tmp_path):
    X, predictions, groups = make_people(300)
    ledger = Ledger(2.0, path=tmp_path / "sex.db")
    fpbench.release(
        X, predictions, groups, by=list(X)[:2], epsilon=1.0, seed=0, public="nothing", ledger=ledger
    )
    assert ledger.spent.epsilon == 1.0
