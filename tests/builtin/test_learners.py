import pickle
import re
from io import BytesIO
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from scipy import optimize
from sklearn.ensemble import HistGradientBoostingClassifier

import fpbench
from fpbench import Classifier, Dataset, FpbenchError, InputError
from fpbench.builtin.learners.correlation_remover import CorrelationRemover
from fpbench.builtin.learners.exponentiated_gradient import ExponentiatedGradient
from fpbench.builtin.learners.grid_search import GridSearch
from fpbench.builtin.learners.plain import Plain
from fpbench.builtin.learners.threshold_optimizer import ThresholdOptimizer
from fpbench.claims import METRICS, RateConstraint
from fpbench.errors import DataError
from fpbench.models import encode

pytestmark = pytest.mark.numeric

RANDOMISED = [ExponentiatedGradient, ThresholdOptimizer]
WITH_METRIC = [*RANDOMISED, GridSearch]
ALL = [Plain, CorrelationRemover, *WITH_METRIC]
REDUCTIONS = [ExponentiatedGradient, GridSearch]
FAST = {
    "decision-tree": {"max_depth": 3},
    "random-forest": {"n_estimators": 5, "max_depth": 3},
    "hist-gradient-boosting": {"max_iter": 5},
    "logistic-regression": {},
    "sklearn.ensemble:ExtraTreesClassifier": {"n_estimators": 5, "max_depth": 4},
    "sklearn.naive_bayes:GaussianNB": {},
}


def groups_for(learner, sample):
    return sample.sensitive if learner.predicts_with_sensitive else None


def predict(learner, model, sample, seed=3):
    rng = np.random.default_rng(seed)
    return model.predict(sample.features, rng, groups_for(learner, sample))


def proba(learner, model, sample):
    rng = np.random.default_rng(3)
    return model.predict_proba(sample.features, rng, groups_for(learner, sample))


def check(learner, sample):
    """Fit, predict, and check that probabilities and predictions are what they should be."""
    model = learner.fit(sample, np.random.default_rng(1))
    assert isinstance(model, Classifier)
    predictions = predict(learner, model, sample)
    assert predictions.shape == (len(sample),)
    assert predictions.dtype == np.int8
    assert np.isin(predictions, (0, 1)).all()
    probabilities = proba(learner, model, sample)
    assert probabilities.shape == (len(sample), 2)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    # Whoever is sure to get a label gets it.
    for label in (0, 1):
        assert (predictions[probabilities[:, label] == 1] == label).all()
    assert np.mean(predictions == sample.labels) > 0.55
    return model


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", WITH_METRIC)
@pytest.mark.parametrize("k", [2, 3])
def test_every_metric_fits_and_predicts(kind, metric, k, make_people):
    learner = kind(metric=metric, base_parameters={"max_depth": 3})
    assert learner.asked().metric == metric
    check(learner, make_people(300, k))


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("encoding", ["one-hot", "ordinal"])
@pytest.mark.parametrize("base", FAST)
@pytest.mark.parametrize("kind", ALL)
def test_every_base_model_fits_and_predicts(kind, base, encoding, make_people):
    more = {ExponentiatedGradient: {"max_iter": 3}, GridSearch: {"grid_size": 5}}.get(kind, {})
    learner = kind(base=base, base_parameters=FAST[base], encoding=encoding, **more)
    check(learner, make_people(150))


@pytest.mark.parametrize("kind", ALL)
def test_parameters_and_encoding_reach_the_base(kind, make_people, rng):
    given = {"max_depth": 2, "min_samples_leaf": 7}
    tree = kind(base_parameters=given).estimator(rng).get_params()
    assert (tree["max_depth"], tree["min_samples_leaf"]) == (2, 7)
    assert kind().estimator(rng).get_params()["max_depth"] == 8
    boosted = kind(base="hist-gradient-boosting").estimator(rng)
    assert isinstance(boosted, HistGradientBoostingClassifier)
    endless = kind(base_parameters={"max_depth": "none"}).estimator(rng)
    assert endless.get_params()["max_depth"] is None
    one_hot, ordinal = (kind(encoding=e) for e in ("one-hot", "ordinal"))
    sample = make_people(50, 3)
    assert one_hot.encode(sample.features).shape == (50, 5)
    assert ordinal.encode(sample.features).shape == (50, 3)


@pytest.mark.slow
def test_a_base_without_probabilities(make_people, rng):
    """It trains where labels are enough, and is refused where they are not."""
    base, sample = "sklearn.linear_model:Perceptron", make_people(200)
    scores, labels = (fpbench.component("adversary", name, trials=0) for name in ("a2-proba", "a2"))
    for kind in (Plain, CorrelationRemover, GridSearch, ExponentiatedGradient):
        learner = kind(base=base)
        model = learner.fit(sample, rng)
        assert set(predict(learner, model, sample)) == {0, 1}
        assert labels.incompatible(learner) is None
        if kind is ExponentiatedGradient:  # whose probabilities are those of its mixture
            assert proba(learner, model, sample).shape == (200, 2)
            assert scores.incompatible(learner) is None
        else:
            with pytest.raises(InputError, match="Perceptron gives no probabilities"):
                proba(learner, model, sample)
            assert "gives no probabilities" in scores.incompatible(learner)
    for kind in ALL:
        assert scores.incompatible(kind()) is None
    with pytest.raises(ValidationError, match="Perceptron gives no probabilities"):
        ThresholdOptimizer(base=base)


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_a_reduction_needs_weights_of_people(kind):
    base = "sklearn.neighbors:KNeighborsClassifier"
    with pytest.raises(ValidationError, match="cannot use weights"):
        kind(base=base)
    assert Plain(base=base).base == base


@pytest.mark.slow
@pytest.mark.parametrize("kind", RANDOMISED)
def test_randomised_predictions_use_the_generator(kind, make_people):
    sample, learner = make_people(300), kind(base_parameters={"max_depth": 3})
    model = learner.fit(sample, np.random.default_rng(5))
    drawn = np.mean([predict(learner, model, sample, seed) for seed in range(300)], axis=0)
    np.testing.assert_allclose(drawn, proba(learner, model, sample)[:, 1], atol=0.15)
    assert ((drawn > 0) & (drawn < 1)).any()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ALL)
def test_the_model_keeps_nothing_of_the_people(kind, make_people):
    n = 487
    lengths = []

    class Walk(pickle.Pickler):
        def reducer_override(self, item):
            if isinstance(item, np.ndarray | pd.Series | pd.DataFrame | pd.Index):
                lengths.extend(np.shape(item))
            return NotImplemented

    Walk(BytesIO()).dump(
        kind(base_parameters={"max_depth": 3}).fit(make_people(n), np.random.default_rng(0))
    )
    assert lengths
    assert n not in lengths


@pytest.mark.parametrize("kind", [Plain, CorrelationRemover])
def test_probabilities_have_two_columns_when_training_knew_one_label(kind, make_people, rng):
    sample = make_people(50).having(labels=np.ones(50, dtype=np.int8))
    learner = kind()
    model = learner.fit(sample, rng)
    np.testing.assert_array_equal(proba(learner, model, sample), np.tile([0.0, 1.0], (50, 1)))


def test_constraints_that_learners_are_trained_for():
    assert Plain().asked() is None
    assert CorrelationRemover().asked() is None
    assert ExponentiatedGradient().asked() == RateConstraint("statistical-parity", 0.01)
    asked = ExponentiatedGradient(metric="equalized-odds", tolerance=0.2).asked()
    assert asked == RateConstraint("equalized-odds", 0.2)
    for kind in (ThresholdOptimizer, GridSearch):
        asked = kind(metric="equal-opportunity").asked()
        assert asked == RateConstraint("equal-opportunity", 0.0)


@pytest.mark.parametrize(("kind", "wrong"), [
    (Plain, {"metric": "statistical-parity"}),
    (Plain, {"base": "tree"}),
    (Plain, {"base": "sklearn.tree:DecisionTreeRegressor"}),
    (Plain, {"base_parameters": {"depth": 3}}),
    (Plain, {"base_parameters": {"max_depth": -3}}),
    (Plain, {"base_parameters": {"random_state": 1}}),
])  # fmt: skip
def test_wrong_parameters_are_refused(kind, wrong):
    with pytest.raises(ValidationError):
        kind(**wrong)


class TestExponentiatedGradient:
    @pytest.mark.slow
    @pytest.mark.parametrize("metric", METRICS)
    def test_it_is_fairer_than_plain(self, metric, make_people):
        sample = make_people(800)

        def unfairness(learner):
            model = learner.fit(sample, np.random.default_rng(1))
            predictions = predict(learner, model, sample)
            return RateConstraint(metric).unfairness(
                sample.sensitive, predictions, sample.labels, 2
            )

        plain = unfairness(Plain(base_parameters={"max_depth": 4}))
        fair = unfairness(
            ExponentiatedGradient(metric=metric, tolerance=0.0, base_parameters={"max_depth": 4})
        )
        assert plain > 0.05
        assert fair < plain / 2

    @pytest.mark.slow
    def test_the_mixture_is_fairlearns(self, make_people):
        from fairlearn.reductions import DemographicParity
        from fairlearn.reductions import ExponentiatedGradient as Theirs
        from sklearn.tree import DecisionTreeClassifier

        from fpbench.builtin.learners._fitted import hide_known_warnings

        sample = make_people(300)
        model = ExponentiatedGradient(base_parameters={"max_depth": 3}).fit(
            sample, np.random.default_rng(1)
        )
        seed = int(np.random.default_rng(1).integers(2**31 - 1))
        tree = DecisionTreeClassifier(max_depth=3, random_state=seed)
        theirs = Theirs(tree, DemographicParity(difference_bound=0.01))
        with hide_known_warnings():
            theirs.fit(encode(sample.features), sample.labels, sensitive_features=sample.sensitive)
        expected = theirs._pmf_predict(encode(sample.features))
        ours = model.predict_proba(sample.features, np.random.default_rng(0))
        np.testing.assert_allclose(ours, expected, atol=1e-12)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("failures", "used"), [(1, 0.0501), (2, 0.0501), (3, 0.0503), (5, 0.0507)]
    )
    def test_the_known_failure_is_retried(self, failures, used, make_people, rng, monkeypatch):
        # Two linear programs are solved at a time; the first fails alone, or both do.
        fail_linprog(monkeypatch, {1: [0], 2: [1], 3: [0, 1], 5: [0, 2, 3]}[failures])
        learner = ExponentiatedGradient(base_parameters={"max_depth": 2}, tolerance=0.05)
        model = learner.fit(make_people(200), rng)
        assert model.notes["fit_tolerance"] == used
        assert model.notes["fit_retries"] == {0.0501: 1, 0.0503: 2, 0.0507: 3}[used]
        assert learner.asked().tolerance == 0.05

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("tolerance", "tried"), [(0.0, "0 to 0.0063"), (0.9999, "0.9999 to 1")]
    )
    def test_it_gives_up(self, tolerance, tried, make_people, rng, monkeypatch):
        fail_linprog(monkeypatch, range(10_000))
        learner = ExponentiatedGradient(base_parameters={"max_depth": 2}, tolerance=tolerance)
        with pytest.raises(FpbenchError, match=f"tolerances tried, {tried}$") as caught:
            learner.fit(make_people(100), rng)
        assert isinstance(caught.value.__cause__, TypeError)

    @pytest.mark.parametrize("error", [TypeError, RuntimeError, ValueError])
    def test_another_failure_is_not_retried(self, error, make_people, rng, monkeypatch):
        from sklearn.tree import DecisionTreeClassifier

        fits = []
        fit = DecisionTreeClassifier.fit

        def fail_later(tree, *args, **kwargs):
            fits.append(tree)
            if len(fits) == 8:  # in fairlearn's check of a linear program's solution
                raise error("something else")
            return fit(tree, *args, **kwargs)

        monkeypatch.setattr(DecisionTreeClassifier, "fit", fail_later)
        with pytest.raises(error, match="something else") as caught:
            ExponentiatedGradient(base_parameters={"max_depth": 2}).fit(make_people(100), rng)
        assert "solve_linprog" in {entry.name for entry in caught.traceback}
        assert len(fits) == 8


def fail_linprog(monkeypatch, failing):
    """Let the linear programs of these numbers end without a solution."""
    solve, calls = optimize.linprog, []

    def linprog(*args, **kwargs):
        calls.append(args)
        result = solve(*args, **kwargs)
        if len(calls) - 1 in failing:
            result.x = None
        return result

    monkeypatch.setattr(optimize, "linprog", linprog)


class TestThresholdOptimizer:
    def test_rates_are_equal_in_expectation(self, make_people, rng):
        sample, learner = make_people(400, 3), ThresholdOptimizer(base_parameters={"max_depth": 3})
        positive = proba(learner, learner.fit(sample, rng), sample)[:, 1]
        rates = [positive[sample.sensitive == group].mean() for group in range(3)]
        np.testing.assert_allclose(rates, rates[0], atol=1e-9)

    def test_a_group_with_one_label(self, make_people, rng):
        sample = make_people(100)
        labels = np.where(sample.sensitive == 1, 1, sample.labels).astype(np.int8)
        with pytest.raises(DataError, match="everyone of group 'group 1' has label 1"):
            ThresholdOptimizer().fit(sample.having(labels=labels), rng)

    def test_a_group_that_was_not_there(self, make_people, rng):
        sample = make_people(200, 3)
        here = sample.take(np.flatnonzero(sample.sensitive != 1))
        model = ThresholdOptimizer(base_parameters={"max_depth": 2}).fit(here, rng)
        assert model.predict(here.features, rng, here.sensitive).shape == (len(here),)
        with pytest.raises(DataError, match=r"thresholds for group 0, group 2$"):
            model.predict(sample.features, rng, sample.sensitive)


class TestCorrelationRemover:
    @pytest.mark.parametrize("k", [2, 4])
    def test_what_is_left_has_the_same_mean_in_every_group(self, k, make_people, rng):
        sample = make_people(300, k)
        model = CorrelationRemover().fit(sample, rng)
        left = model._remove_correlation(sample.features, sample.sensitive)
        means = np.array([left[sample.sensitive == group].mean(axis=0) for group in range(k)])
        np.testing.assert_allclose(means, np.tile(means[0], (k, 1)), atol=1e-9)

    def test_without_removal_it_is_plain(self, make_people):
        sample, learner = make_people(300), CorrelationRemover(alpha=0)
        plain = Plain().fit(sample, np.random.default_rng(2))
        model = learner.fit(sample, np.random.default_rng(2))
        np.testing.assert_array_equal(
            predict(learner, model, sample), predict(Plain(), plain, sample)
        )

    def test_a_linear_model_is_fairer_than_plain(self, make_people, rng):
        sample = make_people(600)

        def gap(learner):
            predictions = predict(learner, learner.fit(sample, rng), sample)
            return RateConstraint().unfairness(sample.sensitive, predictions, None, 2)

        base = "logistic-regression"
        assert gap(CorrelationRemover(base=base)) < gap(Plain(base=base)) / 2


@pytest.mark.parametrize("kind", [ThresholdOptimizer, CorrelationRemover])
def test_groups_are_needed_to_predict(kind, make_people, rng):
    sample = make_people(100)
    model = kind(base_parameters={"max_depth": 2}).fit(sample, rng)
    for method in (model.predict, model.predict_proba):
        with pytest.raises(InputError, match=f"{kind.name}' needs everyone's group"):
            method(sample.features, rng)


class TestGridSearch:
    @pytest.mark.slow
    @pytest.mark.parametrize("metric", METRICS)
    def test_it_is_fairer_than_plain(self, metric, make_people):
        sample = make_people(800)

        def unfairness(learner):
            predictions = predict(learner, learner.fit(sample, np.random.default_rng(1)), sample)
            return RateConstraint(metric).unfairness(
                sample.sensitive, predictions, sample.labels, 2
            )

        small = {"base_parameters": {"max_depth": 4}}
        plain = unfairness(Plain(**small))
        fair = unfairness(GridSearch(metric=metric, grid_size=61, **small))
        assert fair < 0.7 * plain

    @pytest.mark.slow
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize(("k", "size"), [(2, 4), (2, 20), (3, 16)])
    def test_a_whole_grid_has_the_opposite_of_every_point(
        self, metric, k, size, make_people, rng, monkeypatch
    ):
        from fairlearn import reductions

        searches = []
        fit = reductions.GridSearch.fit
        monkeypatch.setattr(
            reductions.GridSearch,
            "fit",
            lambda search, *a, **k: searches.append(search) or fit(search, *a, **k),
        )
        GridSearch(metric=metric, grid_size=size, base_parameters={"max_depth": 1}).fit(
            make_people(300, k), rng
        )
        (search,) = searches
        grid = search.lambda_vecs_.to_numpy()
        assert grid.shape[1] >= size
        up, down = np.vsplit(grid, 2)  # prices of rates that are too high, and too low
        points, opposite = (
            {tuple(point) for point in np.round(np.vstack(halves).T, 9)}
            for halves in ((up, down), (down, up))
        )
        assert points == opposite
        assert len(points) == grid.shape[1]

    @pytest.mark.slow
    def test_it_is_fairlearns_and_draws_nothing(self, make_people):
        from fairlearn.reductions import DemographicParity
        from fairlearn.reductions import GridSearch as Theirs

        from fpbench.builtin.learners._fitted import hide_known_warnings

        sample, learner = make_people(300, 3), GridSearch(grid_size=13, constraint_weight=0.8)
        model = learner.fit(sample, np.random.default_rng(1))
        tree = learner.estimator(np.random.default_rng(1))
        theirs = Theirs(tree, DemographicParity(), grid_size=13, constraint_weight=0.8)
        with hide_known_warnings():
            theirs.fit(encode(sample.features), sample.labels, sensitive_features=sample.sensitive)
        expected = theirs.predict(encode(sample.features))
        for seed in (0, 1):
            np.testing.assert_array_equal(predict(learner, model, sample, seed), expected)

    @pytest.mark.parametrize(("given", "k", "said"), [
        ({"grid_size": 15}, 5, "5 groups .* 4 dimensions, which needs at least 16 points, not"),
        ({}, 6, "6 groups and statistical-parity make a grid of 5 dimensions, and more than 4"),
        ({"metric": "equalized-odds"}, 4, "equalized-odds make a grid of 6 dimensions"),
        ({}, 5, None),
        ({"metric": "equalized-odds"}, 3, None),
    ])  # fmt: skip
    def test_too_many_groups(self, given, k, said, make_people, rng):
        class People(Dataset):
            name = "people"
            summary = "people of k groups"
            n_groups: ClassVar = k

            def load(self, home):
                raise NotImplementedError

        learner = GridSearch(base_parameters={"max_depth": 3}, **given)
        if said is None:
            assert learner.incompatible(People()) is None
            check(learner, make_people(400, k))
        else:
            assert re.search(said, learner.incompatible(People()))
            with pytest.raises(InputError, match=said):
                learner.fit(make_people(400, k), rng)
