"""Excessive risk of any private model, and of students of votes: definitions, laws, bounds."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm, spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from fpbench import InputError, Sample
from fpbench.auditing import excessive_risk
from fpbench.builtin.batched.logistic import fit_logistic, logistic_proba
from fpbench.builtin.pate.excessive_risk.draws import People
from fpbench.builtin.pate.excessive_risk.report import (
    EvaluationRisks,
    make_report,
    rank_correlation,
)
from fpbench.builtin.pate.excessive_risk.votes import _measure_deviation
from fpbench.builtin.pate.noisy_votes import flip_probabilities, vote_labels

GROUPS = ("old", "young", "rest")


def crowd(n, seed=0, k=2, width=3):
    rng = np.random.default_rng(seed)
    features = pd.DataFrame(rng.normal(size=(n, width)), columns=[f"x{i}" for i in range(width)])
    sensitive = (np.arange(n) % k).astype(np.int8)
    labels = (features["x0"] + 0.5 * sensitive + rng.normal(size=n) > 0).to_numpy().astype(np.int8)
    return Sample(GROUPS[:k], features=features, labels=labels, sensitive=sensitive)


@dataclass(frozen=True)
class Constant:
    """Says the same of everybody: an exact stand-in for any model with a baseline."""

    chance: float
    baseline: "Constant | None" = None

    def predict_proba(self, features, rng, sensitive=None):
        return np.tile([1 - self.chance, self.chance], (len(features), 1))


class Redrawing(Constant):
    """Draws its probability anew."""

    def redraw(self, repetitions, rng):
        drawn = rng.choice([0.2, 0.4], size=repetitions)

        class RedrawnModels:
            def proba(self, features):
                return np.tile(drawn[:, None], (1, len(features)))

        return RedrawnModels()


@dataclass(frozen=True)
class Student:
    """A student of votes, solved by fpbench's own solver: instant and exact."""

    train: Sample
    public_rows: np.ndarray
    votes: np.ndarray
    sigma: float = 50.0
    labels: str = "hard"
    penalty: float = 0.1
    student: str = "logistic"

    def design(self, features):
        return np.column_stack([features.to_numpy(np.float64), np.ones(len(features))])

    @property
    def public(self):
        return self.design(self.train.features.iloc[self.public_rows])

    @property
    def teachers(self):
        return int(self.votes[0].sum())

    @property
    def theta_star(self):
        clean = vote_labels(self.votes * 1.0, self.labels, self.teachers)
        return fit_logistic(self.public, clean[None], self.penalty)[0]

    @property
    def baseline(self):
        return Logistic(self.theta_star)

    def draw_noise(self, repetitions, rng, antithetic=False):
        drawn = rng.normal(0, self.sigma, (repetitions // (1 + antithetic), len(self.votes), 2))
        return np.concatenate([drawn, -drawn]) if antithetic else drawn

    def targets(self, noise):
        return vote_labels(self.votes + noise, self.labels, self.teachers), None

    def fit_students(self, targets, weights=None):
        return fit_logistic(self.public, targets, self.penalty, weights)

    def student_proba(self, parameters, design):
        return logistic_proba(parameters, design)

    def predict_proba(self, features, rng, sensitive=None):
        raise AssertionError("students are fitted together")


@dataclass(frozen=True)
class Logistic:
    theta: np.ndarray

    def predict_proba(self, features, rng, sensitive=None):
        p = logistic_proba(self.theta[None], Student.design(None, features))[0]
        return np.column_stack([1 - p, p])


class Doubtful(Student):
    """Leaves out labels that few teachers agree on."""

    def targets(self, noise):
        sure = abs((self.votes + noise)[..., 1] - self.teachers / 2) > self.teachers / 4
        return super().targets(noise)[0], sure * 1.0


class Network(Student):
    """Says nothing of its parameters."""

    theta_star = None

    @property
    def baseline(self):
        return Logistic(Student.theta_star.fget(self))


def student(m=60, k=60, seed=0, groups=2, cls=Student, **more):
    rng = np.random.default_rng(seed)
    train = crowd(4 * m, seed, groups)
    rows = np.sort(rng.permutation(4 * m)[:m])
    lean = train.features["x0"].to_numpy()[rows] + 0.3 * rng.normal(size=m)
    ones = rng.binomial(k, 1 / (1 + np.exp(-lean)))
    return cls(train, rows, np.column_stack([k - ones, ones]), **more)


def risks(model, test=None, **more):
    return excessive_risk(model, model.train, test or crowd(90, 9, len(model.train.groups)),
                          **{"rng": 0, **more})  # fmt: skip


# Any learner with a baseline


def test_the_general_definition_is_the_difference_of_expected_losses():
    train, test = crowd(40, 1), crowd(30, 2)
    model = Constant(0.3, Constant(0.8))
    report = excessive_risk(model, train, test)
    for on, sample in (("train", train), ("test", test)):
        people = report.people[report.people["on"] == on]
        for code, group in enumerate(sample.groups):
            mine = sample.labels[sample.sensitive == code]
            loss, base = (log_loss(mine, np.full(len(mine), p), labels=[0, 1]) for p in (0.3, 0.8))
            row = report.groups[report.groups["on"] == on].set_index("group").loc[group]
            assert row["risk"] == pytest.approx(loss - base)
            assert (row["loss"], row["baseline_loss"]) == pytest.approx((loss, base))
            assert row["people"] == len(mine)
            assert row["accuracy_lost"] == pytest.approx(2 * mine.mean() - 1)
        assert people["row"].tolist() == list(range(len(sample)))
        assert people["label"].tolist() == sample.labels.tolist()
        means = report.groups.query("on == @on")["risk"]
        overall = report.overall.query("on == @on").iloc[0]
        assert overall["risk_gap"] == pytest.approx(means.max() - means.min())
        assert overall["accuracy"] == pytest.approx((sample.labels == 0).mean())
        assert overall["baseline_accuracy"] == pytest.approx((sample.labels == 1).mean())
    # One draw says nothing of its error, and nothing is known of norms and bounds.
    assert (
        report.people[["risk_error", "input_norm", "risk_bound", "flip_drawn"]]
        .isna()
        .all(axis=None)
    )
    assert report.bounds.empty
    assert report.model["repetitions"] == 1
    assert report.private is False
    assert str(report).startswith("excessive risk on train: old ")
    assert str(report).endswith("(not private)")


def test_models_that_can_be_redrawn_are():
    train, test = crowd(40, 1), crowd(30, 2)
    report = excessive_risk(Redrawing(0.3, Constant(0.3)), train, test, repetitions=4001, rng=0)
    assert report.model["repetitions"] == 4001
    for _, row in report.people.iterrows():
        of_two = [-np.log(p if row["label"] else 1 - p) for p in (0.2, 0.4)]
        base = -np.log(0.3 if row["label"] else 0.7)
        assert abs(row["risk"] - (np.mean(of_two) - base)) < 4.5 * row["risk_error"]
        assert row["risk_error"] == pytest.approx(np.std(of_two) / np.sqrt(4001), rel=0.02)


# Students of votes


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["hard", "soft", "soft-clipped"])
def test_risks_are_those_of_students_fitted_one_by_one(labels):
    model = student(sigma=20.0, labels=labels, groups=3)
    test = crowd(90, 9, 3)
    report = risks(model, test, repetitions=10, antithetic=False, rng=3)
    noise = model.draw_noise(10, np.random.default_rng(3))
    clean = (model.votes[:, 1] > model.votes[:, 0]).astype(int)
    parts = {
        "train": (model.public, clean, model.train.sensitive[model.public_rows]),
        "test": (model.design(test.features), test.labels, test.sensitive),
    }
    thetas = [
        fit_logistic(model.public, target[None], 0.1)[0] for target in model.targets(noise)[0]
    ]
    for on, (design, truth, groups) in parts.items():
        said = [1 / (1 + np.exp(-design @ theta)) for theta in (model.theta_star, *thetas)]
        losses = [-np.where(truth == 1, np.log(p), np.log(1 - p)) for p in said]
        excess = np.array(losses[1:]) - losses[0]
        people = report.people[report.people["on"] == on]
        np.testing.assert_allclose(people["risk"], excess.mean(axis=0), atol=1e-9)
        error = excess.std(axis=0, ddof=1) / np.sqrt(10)
        np.testing.assert_allclose(people["risk_error"], error, rtol=1e-6, atol=1e-9)
        by_group = np.array([excess[:, groups == g].mean(axis=1) for g in range(3)])
        rows = report.groups[report.groups["on"] == on]
        np.testing.assert_allclose(rows["risk"], by_group.mean(axis=1), atol=1e-9)
        np.testing.assert_allclose(
            rows["risk_error"], by_group.std(axis=1, ddof=1) / np.sqrt(10), rtol=1e-6
        )
        overall = report.overall.query("on == @on").iloc[0]
        most, least = by_group.mean(axis=1).argmax(), by_group.mean(axis=1).argmin()
        gap = by_group[most] - by_group[least]
        assert overall["risk_gap"] == pytest.approx(gap.mean())
        assert overall["risk_gap_error"] == pytest.approx(gap.std(ddof=1) / np.sqrt(10))
        right = [((p > 0.5) == truth).mean() for p in said]
        assert overall["accuracy"] == pytest.approx(np.mean(right[1:]))
        assert overall["baseline_accuracy"] == pytest.approx(right[0])
        lost = ((said[0] > 0.5) == truth) - np.mean([(p > 0.5) == truth for p in said[1:]], axis=0)
        lost_by_group = [lost[groups == g].mean() for g in range(3)]
        np.testing.assert_allclose(rows["accuracy_lost"], lost_by_group, atol=1e-12)
        assert overall["accuracy_gap"] == pytest.approx(np.ptp(lost_by_group))
        f, lengths = said[0], np.linalg.norm(design, axis=1)
        np.testing.assert_allclose(people["closeness"], 1 - f**2 - (1 - f) ** 2)
        np.testing.assert_allclose(people["input_norm"], lengths)
        np.testing.assert_allclose(people["gradient_norm"], abs(f - truth) * lengths)
        for name, a, b in (("norm_risk", "input_norm", "risk"),
                           ("closeness_risk", "closeness", "risk")):  # fmt: skip
            assert overall[f"rank_{name}"] == pytest.approx(spearmanr(people[a], people[b])[0])
    away = [np.linalg.norm(theta - model.theta_star) for theta in thetas]
    assert report.model["sensitivity"] == pytest.approx(np.mean(away))
    assert report.model["sensitivity_squared"] == pytest.approx(np.mean(np.square(away)))
    train = report.people.query("on == 'train'")
    assert train["row"].tolist() == model.public_rows.tolist()
    flips = ((model.votes + noise)[..., 1] > (model.votes + noise)[..., 0]) != clean
    np.testing.assert_allclose(train["flip_drawn"], flips.mean(axis=0))
    np.testing.assert_allclose(train["flip_probability"], flip_probabilities(model.votes, 20.0))


def test_the_baseline_is_scikit_learns():
    model = student()
    clean = model.votes[:, 1] > model.votes[:, 0]
    theirs = LogisticRegression(
        C=1 / (2 * 60 * 0.1), fit_intercept=False, solver="newton-cholesky", tol=1e-12
    ).fit(model.public, clean)
    people = risks(model, repetitions=2).people.query("on == 'train'")
    chances = theirs.predict_proba(model.public)[:, 1]
    ours = -np.log(np.where(clean, chances, 1 - chances))
    np.testing.assert_allclose(people["baseline_loss"], ours, atol=1e-6)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1), m=st.integers(6, 60), k=st.integers(1, 200),
    sigma=st.just(0.0) | st.floats(0.01, 300), penalty=st.floats(1e-3, 10), antithetic=st.booleans(),
    labels=st.sampled_from(["hard", "soft", "soft-clipped"]), sure=st.booleans(),
)  # fmt: skip
def test_bounds_hold(seed, m, k, sigma, penalty, antithetic, labels, sure):
    cls = Doubtful if sure else Student
    model = student(m, k, seed, 1, cls, sigma=sigma, penalty=penalty, labels=labels)
    report = risks(model, crowd(40, seed, 1), repetitions=40, antithetic=antithetic, rng=seed)
    # These are true of every draw, so of every mean: the data does not matter, nor does luck.
    assert (report.overall["risk_bound_holds"] == 1).all()
    exact = report.bounds.set_index("bound").loc[["gradient", "gradient_squared"]]
    if not sure:
        assert (exact["measured"] <= exact["value"] * (1 + 1e-9) + 1e-9).all()
    holds = report.bounds.set_index("bound")["holds"]
    true = holds.index[~holds.index.str.contains("paper|literal")]
    assert set(true) == {"gradient", "gradient_squared"} | (
        set() if sure else {"corollary1", "corollary2", "second_moment"}
    )
    assert (holds[["corollary1_paper"]] == 1).all() if not sure else True


@pytest.mark.slow
def test_bounds_of_expectations_hold_and_the_papers_do_not():
    for seed in range(8):
        model = student(60, 60, seed, sigma=30.0)
        bounds = risks(model, repetitions=400).bounds.set_index("bound")
        right = bounds.loc[["gradient", "corollary1", "corollary1_paper", "gradient_squared",
                            "corollary2", "second_moment"]]  # fmt: skip
        assert (right["holds"] == 1).all()
        assert (right["measured"] <= right["value"]).all()
        assert bounds.loc["corollary1_paper", "value"] == pytest.approx(
            2 * bounds.loc["corollary1", "value"]
        )
        assert bounds.loc["second_moment", "value"] < bounds.loc["corollary2", "value"]
        assert bounds.loc["corollary1_literal", "holds"] == 0
        assert bounds.loc["corollary2_literal", "holds"] == 0


def test_corollary_2_as_printed_is_false():
    """Two alike people with p = 0.1 each: the printed bound sums p^2, which is too little."""
    features = pd.DataFrame({"x": np.ones(2)})
    train = Sample(("all",), features=features, labels=np.ones(2, int), sensitive=np.zeros(2, int))
    model = Student(train, np.arange(2), np.array([[0, 40], [0, 40]]), 22.07, penalty=20.0)
    bounds = excessive_risk(model, train, train, repetitions=20_000, rng=0).bounds
    bounds = bounds.set_index("bound")
    assert risks(model, train, rng=0).model["flip_probability"] == pytest.approx(0.1, abs=1e-3)
    assert bounds.loc["second_moment", "holds"] == 1
    assert bounds.loc["corollary2", "holds"] == 1
    assert bounds.loc["second_moment", "measured"] > bounds.loc["corollary2_paper", "value"]
    assert bounds.loc["corollary2_paper", "holds"] == 0


@pytest.mark.slow
def test_drawn_flips_are_as_likely_as_the_closed_form_says():
    for antithetic in (False, True):
        model = student(200, 60, 5, sigma=40.0)
        report = risks(model, repetitions=4_000, antithetic=antithetic)
        people = report.people.query("on == 'train'")
        p, drawn = people["flip_probability"], people["flip_drawn"]
        assert (abs(drawn - p) <= 5 * np.sqrt(p * (1 - p) / 4_000)).all()
        assert report.model["flip_deviation"] < 5
        off = report.model["flip_drawn"] - report.model["flip_probability"]
        assert abs(off) < 4 * report.model["flip_drawn_error"]


@pytest.mark.slow
def test_the_deviation_of_flips_is_that_of_chance_and_of_nothing_else():
    # Rare flips among many people: one of them is many standard errors from what is expected.
    model = student(200, 400, 1, sigma=28.0)
    found = [risks(model, repetitions=100, antithetic=anti, rng=seed).model["flip_deviation"]
             for seed in range(20) for anti in (False, True)]  # fmt: skip
    assert min(found) > 1
    assert max(found) < 4.5

    class Lying(Student):
        def draw_noise(self, repetitions, rng, antithetic=False):
            return 1.5 * super().draw_noise(repetitions, rng, antithetic)

    for antithetic in (False, True):
        lying = student(200, 60, 1, cls=Lying, sigma=20.0)
        assert risks(lying, repetitions=400, antithetic=antithetic).model["flip_deviation"] > 5


@given(st.integers(1, 200), st.floats(1e-6, 0.499), st.data())
def test_the_deviation_is_the_tail_of_independent_flips(half, p, data):
    """Of antithetic pairs at most one draw flips: a pair flips with probability 2 p."""
    for antithetic, trials, chance in ((False, 2 * half, p), (True, half, 2 * p)):
        count = data.draw(st.integers(0, trials))
        found = _measure_deviation(
            np.array([p]), np.array([count / (2 * half)]), 2 * half, antithetic
        )
        tail = min(binom.cdf(count, trials, chance), binom.sf(count - 1, trials, chance))
        assert norm.sf(found) == pytest.approx(min(tail, 0.5), rel=1e-6, abs=1e-290)


@pytest.mark.slow
def test_standard_errors_are_honest_and_antithetic_noise_lessens_that_of_the_gap():
    model, found, said = student(sigma=15.0, seed=2), {}, {}
    for antithetic in (False, True):
        runs = [risks(model, repetitions=40, antithetic=antithetic, rng=seed).overall
                for seed in range(100)]  # fmt: skip
        found[antithetic] = np.std([run["risk_gap"] for run in runs], axis=0)
        said[antithetic] = np.sqrt(np.mean([run["risk_gap_error"] ** 2 for run in runs], axis=0))
        np.testing.assert_allclose(said[antithetic], found[antithetic], rtol=0.2)
    assert (found[True] < 0.9 * found[False]).all()


def test_means_do_not_depend_on_how_many_students_fit_into_memory(monkeypatch):
    model = student()
    whole = risks(model, repetitions=30, antithetic=False)
    monkeypatch.setattr("fpbench.builtin.pate.excessive_risk.draws._AT_ONCE", 500)
    parts = risks(model, repetitions=30, antithetic=False)
    pd.testing.assert_frame_equal(whole.people, parts.people)
    pd.testing.assert_frame_equal(whole.bounds, parts.bounds)
    paired = risks(model, repetitions=30)
    assert paired.people["risk_error"].notna().all()


@pytest.mark.parametrize("labels", ["hard", "soft", "soft-clipped"])
def test_the_closed_form_agrees_with_many_students(labels):
    model = student(200, 150, 1, labels=labels, sigma=50.0)
    drawn = risks(model, repetitions=4_000)
    exact = risks(model, method="closed-form")
    for name in ("sensitivity", "sensitivity_squared"):
        assert exact.model[name] == pytest.approx(drawn.model[name], rel=0.04)
    a, b = exact.groups, drawn.groups
    assert (abs(a["risk"] - b["risk"]) <= 0.05 * abs(b["risk"]) + 3 * b["risk_error"]).all()
    np.testing.assert_allclose(exact.overall["accuracy"], drawn.overall["accuracy"], atol=0.01)
    doubt = 3 * b["risk_error"] + 2 * a["risk_error"] + 1e-5
    assert (abs(a["risk"] - b["risk"]) <= doubt).all()
    assert (exact.overall["risk_bound_holds"] == 1).all()
    columns = ["baseline_loss", "closeness", "input_norm", "gradient_norm", "flip_probability"]
    pd.testing.assert_frame_equal(exact.people[columns], drawn.people[columns])
    assert risks(model, method="closed-form", rng=1).people.equals(exact.people)


def test_without_noise_there_is_no_risk():
    for labels in ("hard", "soft", "soft-clipped"):
        model = student(sigma=0.0, labels=labels)
        for method in ("monte-carlo", "closed-form"):
            report = risks(model, method=method, repetitions=4)
            assert abs(report.people["risk"]).max() < 1e-6
            assert report.model["sensitivity"] < 1e-6
            assert (report.bounds["holds"] == 1).all()


def test_networks_have_no_bounds():
    class Measured(Network):
        def distances(self, parameters):
            return np.arange(len(parameters)) * 1.0

        def gradient_norms(self, design, labels):
            return np.full(len(labels), 7.0)

    logistic = risks(student(), repetitions=20)
    silent = risks(student(cls=Network), repetitions=20)
    np.testing.assert_allclose(silent.people["risk"], logistic.people["risk"], atol=1e-9)
    assert silent.bounds.empty
    assert silent.people[["risk_bound", "gradient_norm"]].isna().all(axis=None)
    assert silent.people["input_norm"].notna().all()
    assert "sensitivity" not in silent.model
    report = risks(student(cls=Measured), repetitions=20, antithetic=False)
    assert report.model["sensitivity"] == pytest.approx(9.5)
    assert (report.people["gradient_norm"] == 7).all()


# What is refused


@pytest.mark.parametrize(("change", "message"), [
    ({"repetitions": 0}, "repetitions must be at least 1"),
    ({"repetitions": 4.0}, "repetitions must be a whole number, not 4.0"),
    ({"repetitions": 7}, "even for antithetic noise, not 7"),
    ({"method": "montecarlo"}, "did you mean 'monte-carlo'"),
    ({"train": crowd(20)}, "the model learnt from its row"),
    ({"model": student(cls=Doubtful), "method": "closed-form"}, "learns from all its labels"),
    ({"model": student(cls=Network), "method": "closed-form"}, "needs a logistic student"),
    ({"model": Constant(0.5)}, "this Constant has none"),
    ({"model": Constant(0.5, Constant(0.5)), "method": "closed-form"}, "a student of votes"),
    ({"model": Constant(1.5, Constant(0.5))}, r"predict_proba of Constant must give prob"),
])  # fmt: skip
def test_what_is_refused(change, message):
    model = student()
    given = {"model": model, "train": model.train, "test": crowd(30), **change}
    with pytest.raises(InputError, match=message):
        excessive_risk(**given)


def test_a_group_missing_from_the_public_part_is_named():
    model = student()
    old = np.flatnonzero(model.train.sensitive == 0)[: len(model.votes)]
    with pytest.raises(InputError, match=r"nobody of group 'young' is among the 60 public people"):
        risks(replace(model, public_rows=old))
    one_sided = crowd(30).take(np.arange(0, 30, 2))
    with pytest.raises(InputError, match=r"nobody of group 'young' is among the 15 test people"):
        risks(model, one_sided)


def test_an_unpenalised_student_has_no_bounds():
    class Free(Student):
        theta_star = np.ones(4)

        def fit_students(self, targets, weights=None):
            return np.ones((len(targets), 4)) * targets.mean(axis=1, keepdims=True)

    model = replace(student(cls=Free), penalty=0.0)
    assert risks(model).bounds.empty
    assert risks(model).ranges.empty
    with pytest.raises(InputError, match="with a penalty above 0"):
        risks(model, method="closed-form")


def test_the_last_bits_of_equal_losses_have_no_rank():
    rng = np.random.default_rng(0)
    base, chance, codes = rng.uniform(0, 3, 50), rng.uniform(size=50), np.arange(50) % 2
    people = People("train", pd.DataFrame(index=range(50)), codes * 1.0, codes, np.arange(50))
    rounding = (base + 1e-16 * rng.normal(size=50)) - base
    assert np.ptp(rounding) > 0
    for risk, known in ((rounding, False), (rng.normal(size=50) / 1000, True)):
        exact = EvaluationRisks.exact(people, base, chance, risk, np.full(50, 0.5))
        (overall,) = make_report([exact], ("a", "b"), [], {}, []).overall.to_dict("records")
        assert np.isfinite(overall["rank_closeness_risk"]) == known


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=30))
def test_rank_correlations_are_scipys(pairs):
    one, other = np.transpose(pairs).astype(float)
    found = rank_correlation(one, other)
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(one, other)[0])


def test_ranges_of_the_norm_are_students_of_their_people_alone():
    model = student(labels="soft")
    report = excessive_risk(model, model.train, crowd(30), repetitions=40, rng=3)
    ranges = report.ranges
    design = model.public
    norms = np.linalg.norm(design, axis=1)
    assert ranges["people"].sum() == len(design)
    assert ranges["people"].max() - ranges["people"].min() <= 1
    assert ranges["input_norm"].is_monotonic_increasing
    first = np.argsort(norms, kind="stable")[: ranges["people"][0]]
    assert ranges["input_norm"][0] == pytest.approx(norms[first].mean())
    flips = flip_probabilities(model.votes, model.sigma)
    assert ranges["flip_probability"][0] == pytest.approx(flips[first].mean())
    # The same noise again: weights of 0 leave the other people out.
    noise = model.draw_noise(40, np.random.default_rng(3), antithetic=True)
    inside = np.isin(np.arange(len(design)), first) * 1.0
    both = [model.targets(n)[0] for n in (np.zeros_like(noise[:1]), noise)]
    clean, noisy = (model.fit_students(t, np.tile(inside, (len(t), 1))) for t in both)
    moved = np.linalg.norm(noisy - clean, axis=1)
    assert ranges["sensitivity"][0] == pytest.approx(moved.mean(), rel=1e-6)
    assert ranges["sensitivity_error"][0] > 0


@pytest.mark.parametrize("model", [student(cls=Doubtful), student(cls=Network), student(m=5)])
def test_ranges_of_the_norm_are_of_logistic_students_of_all_labels(model):
    assert not len(excessive_risk(model, model.train, crowd(30), repetitions=4, rng=3).ranges)
