import pickle
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from scipy import optimize

from fpbench import (
    METRICS,
    Classifier,
    DataError,
    FpbenchError,
    InputError,
    RateConstraint,
    encode,
)
from fpbench.builtin.learners.correlation_remover import CorrelationRemover
from fpbench.builtin.learners.exponentiated_gradient import ExponentiatedGradient
from fpbench.builtin.learners.plain import Plain
from fpbench.builtin.learners.threshold_optimizer import ThresholdOptimizer

ALL = [Plain, ExponentiatedGradient, ThresholdOptimizer, CorrelationRemover]
WITH_METRIC = [ExponentiatedGradient, ThresholdOptimizer]


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


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", WITH_METRIC)
@pytest.mark.parametrize("k", [2, 3])
def test_every_metric_fits_and_predicts(kind, metric, k, make_people):
    learner = kind(metric=metric, max_depth=3)
    assert learner.asked().metric == metric
    check(learner, make_people(300, k))


@pytest.mark.parametrize("base", ["decision-tree", "random-forest", "logistic-regression"])
@pytest.mark.parametrize("kind", ALL)
def test_every_base_model_fits_and_predicts(kind, base, make_people):
    more = {"max_iter": 3} if kind is ExponentiatedGradient else {}
    check(kind(base=base, max_depth=3, **more), make_people(150))


@pytest.mark.parametrize("kind", ALL)
def test_the_seed_decides_and_a_pickled_model_says_the_same(kind, make_people):
    sample, learner = make_people(300), kind(max_depth=3)
    model, again = (learner.fit(sample, np.random.default_rng(5)) for _ in range(2))
    travelled = pickle.loads(pickle.dumps(model))
    expected = predict(learner, model, sample)
    np.testing.assert_array_equal(predict(learner, again, sample), expected)
    np.testing.assert_array_equal(predict(learner, travelled, sample), expected)
    np.testing.assert_array_equal(proba(learner, travelled, sample), proba(learner, model, sample))


@pytest.mark.parametrize("kind", WITH_METRIC)
def test_randomised_predictions_use_the_generator(kind, make_people):
    sample, learner = make_people(300), kind(max_depth=3)
    model = learner.fit(sample, np.random.default_rng(5))
    drawn = np.mean([predict(learner, model, sample, seed) for seed in range(300)], axis=0)
    np.testing.assert_allclose(drawn, proba(learner, model, sample)[:, 1], atol=0.15)
    assert ((drawn > 0) & (drawn < 1)).any()


@pytest.mark.parametrize("kind", ALL)
def test_the_model_keeps_nothing_of_the_people(kind, make_people):
    n = 487
    lengths = []

    class Walk(pickle.Pickler):
        def reducer_override(self, item):
            if isinstance(item, np.ndarray | pd.Series | pd.DataFrame | pd.Index):
                lengths.extend(np.shape(item))
            return NotImplemented

    Walk(BytesIO()).dump(kind(max_depth=3).fit(make_people(n), np.random.default_rng(0)))
    assert lengths
    assert n not in lengths


@pytest.mark.parametrize("kind", [Plain, CorrelationRemover])
def test_probabilities_have_two_columns_when_training_knew_one_label(kind, make_people, rng):
    sample = make_people(50).having(labels=np.ones(50, dtype=np.int8))
    learner = kind()
    model = learner.fit(sample, rng)
    np.testing.assert_array_equal(proba(learner, model, sample), np.tile([0.0, 1.0], (50, 1)))


def test_what_is_asked():
    assert Plain().asked() is None
    assert CorrelationRemover().asked() is None
    assert ExponentiatedGradient().asked() == RateConstraint("statistical-parity", 0.01)
    asked = ExponentiatedGradient(metric="equalized-odds", tolerance=0.2).asked()
    assert asked == RateConstraint("equalized-odds", 0.2)
    asked = ThresholdOptimizer(metric="equal-opportunity").asked()
    assert asked == RateConstraint("equal-opportunity", 0.0)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Plain, {"metric": "statistical-parity"}),
        (Plain, {"base": "tree"}),
        (ExponentiatedGradient, {"tolerance": 1.1}),
        (ExponentiatedGradient, {"tolerance": float("nan")}),
        (ExponentiatedGradient, {"max_iter": 0}),
        (ExponentiatedGradient, {"metric": "parity"}),
        (ThresholdOptimizer, {"tolerance": 0.1}),
        (CorrelationRemover, {"alpha": -0.1}),
    ],
)
def test_wrong_parameters_are_refused(kind, wrong):
    with pytest.raises(ValidationError):
        kind(**wrong)


class TestExponentiatedGradient:
    @pytest.mark.parametrize("metric", METRICS)
    def test_it_is_fairer_than_plain(self, metric, make_people):
        sample = make_people(800)

        def unfairness(learner):
            model = learner.fit(sample, np.random.default_rng(1))
            predictions = predict(learner, model, sample)
            return RateConstraint(metric).unfairness(
                sample.sensitive, predictions, sample.labels, 2
            )

        plain = unfairness(Plain(max_depth=4))
        fair = unfairness(ExponentiatedGradient(metric=metric, tolerance=0.0, max_depth=4))
        assert plain > 0.05
        assert fair < plain / 2

    def test_the_mixture_is_fairlearns(self, make_people):
        from fairlearn.reductions import DemographicParity
        from fairlearn.reductions import ExponentiatedGradient as Theirs
        from sklearn.tree import DecisionTreeClassifier

        from fpbench.builtin.learners.exponentiated_gradient import _without_known_warnings

        sample = make_people(300)
        model = ExponentiatedGradient(max_depth=3).fit(sample, np.random.default_rng(1))
        seed = int(np.random.default_rng(1).integers(2**31 - 1))
        tree = DecisionTreeClassifier(max_depth=3, random_state=seed)
        theirs = Theirs(tree, DemographicParity(difference_bound=0.01))
        with _without_known_warnings():
            theirs.fit(encode(sample.features), sample.labels, sensitive_features=sample.sensitive)
        expected = theirs._pmf_predict(encode(sample.features))
        ours = model.predict_proba(sample.features, np.random.default_rng(0))
        np.testing.assert_allclose(ours, expected, atol=1e-12)

    def test_notes_of_a_fit_that_succeeds(self, make_people, rng):
        model = ExponentiatedGradient(max_depth=2, tolerance=0.05).fit(make_people(200), rng)
        assert model.notes == {"fit_tolerance": 0.05, "fit_retries": 0}

    @pytest.mark.parametrize(
        ("failures", "used"), [(1, 0.0501), (2, 0.0501), (3, 0.0503), (5, 0.0507)]
    )
    def test_the_known_failure_is_retried(self, failures, used, make_people, rng, monkeypatch):
        # Two linear programs are solved at a time; the first fails alone, or both do.
        fail_linprog(monkeypatch, {1: [0], 2: [1], 3: [0, 1], 5: [0, 2, 3]}[failures])
        learner = ExponentiatedGradient(max_depth=2, tolerance=0.05)
        model = learner.fit(make_people(200), rng)
        assert model.notes["fit_tolerance"] == used
        assert model.notes["fit_retries"] == {0.0501: 1, 0.0503: 2, 0.0507: 3}[used]
        assert learner.asked().tolerance == 0.05

    def test_a_tolerance_never_passes_1(self, make_people, rng, monkeypatch):
        fail_linprog(monkeypatch, range(10_000))
        with pytest.raises(FpbenchError, match=r"tolerances tried, 0.9999 to 1$"):
            ExponentiatedGradient(max_depth=2, tolerance=0.9999).fit(make_people(100), rng)

    def test_it_gives_up(self, make_people, rng, monkeypatch):
        fail_linprog(monkeypatch, range(10_000))
        with pytest.raises(FpbenchError, match=r"tolerances tried, 0 to 0.0063$") as caught:
            ExponentiatedGradient(max_depth=2, tolerance=0.0).fit(make_people(100), rng)
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
            ExponentiatedGradient(max_depth=2).fit(make_people(100), rng)
        assert "solve_linprog" in {entry.name for entry in caught.traceback}
        assert len(fits) == 8

    def test_a_failure_in_scipy_is_not_retried(self, make_people, rng, monkeypatch):
        def fail(*args, **kwargs):
            raise TypeError("wrong argument")

        monkeypatch.setattr(optimize, "linprog", fail)
        with pytest.raises(TypeError, match="wrong argument"):
            ExponentiatedGradient(max_depth=2).fit(make_people(100), rng)


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
        sample, learner = make_people(400, 3), ThresholdOptimizer(max_depth=3)
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
        model = ThresholdOptimizer(max_depth=2).fit(here, rng)
        assert model.predict(here.features, rng, here.sensitive).shape == (len(here),)
        with pytest.raises(DataError, match=r"thresholds for group 0, group 2$"):
            model.predict(sample.features, rng, sample.sensitive)


class TestCorrelationRemover:
    @pytest.mark.parametrize("k", [2, 4])
    def test_what_is_left_has_the_same_mean_in_every_group(self, k, make_people, rng):
        sample = make_people(300, k)
        model = CorrelationRemover().fit(sample, rng)
        left = model._residuals(sample.features, sample.sensitive)
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
    model = kind(max_depth=2).fit(sample, rng)
    for method in (model.predict, model.predict_proba):
        with pytest.raises(InputError, match=f"{kind.name}' needs everyone's group"):
            method(sample.features, rng)
