"""What a component is handed: never more than it declares."""

import gc
import types
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from toy_runs import ATTACK, COUNTER

import fpbench
from fpbench import PluginError, Sample
from fpbench.components.records import Predictions
from fpbench.errors import HiddenError
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING, make_view
from fpbench.execution.work.execute import execute
from fpbench.matrix.matrix import read
from fpbench.matrix.plan import make_plan
from fpbench.matrix.step import Step
from fpbench.plugin import DataHome, discover

SECRET = 23  # rows of the training part, where the truth is a pattern that is nowhere else


@pytest.fixture
def split(toys):
    matrix = read(AUDIT | {"dataset": [{"use": "flock", "rows": 3 * SECRET}]})
    plan = make_plan(matrix, discover(), DataHome.default())
    load, cut = list(plan.steps.values())[:2]
    table = execute(load, (DataHome.default(),)).value
    return execute(cut, (table,)).value


def predictions_of(split):
    rng = np.random.default_rng(0)
    parts = (split.train, split.test, split.attack)
    return Predictions(*(rng.integers(0, 2, len(p)).astype(np.int8) for p in parts), asked=None)


def reachable(root):
    """Every object that can be reached from one, through containers, attributes and memory."""
    seen, waiting = {}, [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | types.FunctionType):
            continue
        seen[id(thing)] = thing
        waiting += gc.get_referents(thing)
        for name in ("base", "_mgr", "blocks", "values", "array", "_values", "__dict__"):
            try:
                waiting.append(getattr(thing, name))
            except Exception:  # anything may refuse to be looked at
                continue
        for name in getattr(type(thing), "__slots__", ()):
            waiting.append(getattr(thing, name, None))
    return list(seen.values())


def secrets_in(view, truth):
    """Arrays in reach of a view that say who belongs to which group."""
    found = []
    for thing in reachable(view):
        try:
            values = (
                np.asarray(thing).ravel() if isinstance(thing, np.ndarray | pd.Series) else None
            )
        except (TypeError, ValueError):
            continue
        if values is None or values.dtype.kind not in "iufb" or len(values) < len(truth):
            continue
        for start in range(len(values) - len(truth) + 1):
            piece = values[start : start + len(truth)]
            if np.array_equal(piece, truth) or np.array_equal(piece, 1 - truth):
                found.append(thing)
    return found


@pytest.mark.parametrize("name", ["a1", "a2", "coin", "peek"])
def test_adversaries_cannot_reach_the_groups_of_the_training_part(split, name):
    adversary = fpbench.component("adversary", name)
    view = make_view(adversary, split, {"predictions": predictions_of(split)})
    truth = split.train.sensitive.astype(int)
    assert not secrets_in(view, truth)
    with pytest.raises(HiddenError, match="'sensitive' is not visible here"):
        _ = view.target.sensitive
    assert len(view.attack.sensitive) == len(split.attack)


def test_the_walk_finds_a_leak(split):
    """The test above can fail: it finds the truth wherever a careless view would leave it."""
    truth = split.train.sensitive.astype(int)
    whole = np.concatenate([truth, truth])
    leaky = [
        split.train,
        split.train.only(frozenset({"features"})).having(labels=whole[: len(truth)]),
        types.SimpleNamespace(hidden={"deep": [pd.Series(truth)]}),
        1 - truth,
    ]
    for view in leaky:
        assert secrets_in(view, truth)


def test_an_adversary_that_declares_the_secret_is_still_not_shown_it(split):
    class Greedy(fpbench.Adversary):
        name, summary = "greedy", "wants it all"
        sees = frozenset({"features", "labels", "predictions", "sensitive"})

        def guess(self, view, rng):
            raise AssertionError

    view = make_view(Greedy(), split, {"predictions": predictions_of(split)})
    assert view.target.seen == {"features", "labels", "predictions"}
    assert not secrets_in(view, split.train.sensitive.astype(int))


def test_an_adversary_sees_what_it_declares_and_no_more(split):
    for name, seen in (
        ("a1", {"features", "labels"}),
        ("a2", {"features", "labels", "predictions"}),
        ("coin", {"features"}),
    ):
        view = make_view(
            fpbench.component("adversary", name), split, {"predictions": predictions_of(split)}
        )
        assert view.target.seen == seen
        assert view.attack.seen == seen | {"sensitive"}


def test_parts_share_nobody_and_no_memory(split):
    parts = [split.train, split.test, split.attack]
    people = np.concatenate([part.features["x"] for part in parts])
    assert len(set(people)) == len(people) == 3 * SECRET
    for one in parts:
        for other in parts:
            if one is not other:
                assert not np.shares_memory(one.sensitive, other.sensitive)


AUDIT = {
    "dataset": [{"use": "flock", "rows": 40}],
    "learner": [{"use": "parrot"}],
    "auditor": COUNTER,
}


def cut(table, shares, seed=0):
    matrix = read({**AUDIT, "split": shares, "seeds": [seed]})
    step = list(make_plan(matrix, discover(), DataHome.default()).steps.values())[1]
    return execute(step, (table,)).value


def rows_of(part):
    return part.features["x"].astype(int).tolist()


def flock(test=None):
    groups = pd.Categorical.from_codes(np.arange(40) % 2, ["a", "b"])
    return fpbench.Table(
        "flock", pd.DataFrame({"x": np.arange(40.0)}), np.arange(40) // 2 % 2,
        pd.DataFrame({"group": groups}), test=test,
    )  # fmt: skip


def test_the_test_set_of_the_authors_is_the_test_part(toys):
    published = np.isin(np.arange(40), [3, 4, 5, 39])
    split = cut(flock(published), {"train": 1.0, "test": "original", "attack": 0.0})
    assert rows_of(split.test) == [3, 4, 5, 39]
    assert rows_of(split.train) == [r for r in range(40) if not published[r]]  # in their order
    assert len(split.attack) == 0
    split = cut(flock(published), {"train": 0.5, "test": "original", "attack": 0.5})
    assert rows_of(split.test) == [3, 4, 5, 39]
    train, attack = rows_of(split.train), rows_of(split.attack)
    assert len(train) == len(attack) == 18
    assert sorted(train + attack + [3, 4, 5, 39]) == list(range(40))
    other = cut(flock(published), {"train": 0.5, "test": "original", "attack": 0.5}, seed=1)
    assert rows_of(other.train) != train


def test_a_table_without_a_test_set_says_so(toys):
    failure = cut(flock(), {"train": 1.0, "test": "original", "attack": 0.0})
    assert failure.bad_input
    assert "'flock' comes without a test set of its own" in failure.reason
    with pytest.raises(fpbench.errors.DataError, match="rows"):
        flock(np.zeros(3, bool))
    assert flock().digest() != flock(np.arange(40) < 4).digest()


@pytest.mark.slow
def test_audits_need_no_attack_set(toys, tmp_path):
    matrix = {**AUDIT, "split": {"train": 0.5, "test": 0.5, "attack": 0.0}}
    (row,) = fpbench.run(matrix, out=tmp_path).rows()
    assert row["status"] == "done"


def test_a_private_auditor_meets_a_curator_and_never_the_groups(toys):
    split = cut(flock(), {"train": 0.5, "test": 0.5, "attack": 0.0})
    predictions = predictions_of(split)

    class Snoop(fpbench.Auditor):
        name, summary = "snoop", "looks around"
        sees = frozenset({"features", "predictions", "curator"})
        subjects: ClassVar[list] = []

        @property
        def relation(self):
            return "add-remove"

        def audit(self, subject, rng):
            self.subjects.append(subject)
            cells = subject.test.predictions
            mechanism = fpbench.component("mechanism", "laplace")
            counts = subject.curator.histogram(cells, 2, epsilon=1e9, mechanism=mechanism)
            rates = counts[0, 1] / counts[0].sum(axis=0)
            values = np.array([rates.min() / rates.max()])
            return fpbench.Release(
                "statistical-parity", values, values - 0.1, values + 0.1, 0.95,
                fpbench.Guarantee(1.0, 0.0, subject.curator.neighbours), "simulation",
            )  # fmt: skip

    step = Step("k", "s", "audit", None, ())
    answer = ACTIONS["audit"](Snoop(), (split, predictions), step)
    measured = MEASURING["audit"](answer, (split, predictions), step)
    (subject,) = Snoop.subjects
    assert subject.train.seen == subject.test.seen == {"features", "predictions"}
    assert subject.curator.groups == ("a", "b")
    assert subject.curator.people == len(split.test)
    truth = 1 - float(
        fpbench.claims.RateConstraint(form="ratio").unfairness(
            split.test.sensitive, predictions.test, None, 2
        )
    )
    assert measured["true_ratio"] == pytest.approx(truth)
    assert measured["error"] == pytest.approx(0, abs=1e-6)
    assert measured["epsilon"] == 1
    assert measured["neighbours"] == subject.curator.neighbours == "add-remove"


def test_a_sample_is_only_what_it_was_given():
    sample = Sample(("a", "b"), labels=np.array([0, 1]))
    assert len(sample) == 2
    assert sample.having(sensitive=np.array([1, 0])).only(frozenset({"labels"})).seen == {"labels"}
    assert len(Sample(("a",))) == 0
    assert repr(sample) == "Sample(2 people; labels)"
    with pytest.raises(HiddenError, match="'features' is not visible here; visible: labels"):
        _ = sample.features


class Spy(fpbench.Corrector):
    name, summary = "spy", "remembers what it was handed"
    expresses = fpbench.claims.COUNT_CONSTRAINTS
    seen: ClassVar[list] = []
    weights: float = 2.0

    def weigh(self, guess, held_out, truth):
        self.seen[:] = [held_out, truth]
        n = len(guess.values)
        return fpbench.plugin.Weighing(
            np.full(n, self.weights), {"said": 1, "twice": 1}, np.ones(n, int)
        )

    def correct(self, problem):
        self.seen.append(problem)
        return fpbench.Correction(problem.guess, None, measures={"twice": 2})


CLAIM = fpbench.Claim(
    fpbench.claims.RateConstraint("equal-opportunity", 0.1),
    "somebody",
    also=(fpbench.claims.ShareBounds(1, 0.25), fpbench.claims.KnownPeople([3], [0])),
)


def guessed(split):
    rows = np.array([5, 2, 9])
    n = len(split.train)
    return fpbench.Guess(np.zeros(n, int), np.ones(n), rows, np.array([0, 1, 1]), np.ones(3))


def corrected(split, claim, corrector):
    parents = (split, predictions_of(split), guessed(split), claim)
    answer = ACTIONS["correct"](corrector, parents, None)
    return parents, MEASURING["correct"](answer, parents, None)


def test_a_corrector_is_handed_all_that_is_known_of_the_training_people(split):
    parents, (correction, measures, weighed) = corrected(split, CLAIM, Spy())
    _, predictions, guess, _ = parents
    held_out, truth, problem = Spy.seen
    assert problem.constraints == CLAIM.constraints == (CLAIM.constraint, *CLAIM.also)
    np.testing.assert_array_equal(problem.predictions, predictions.train)
    np.testing.assert_array_equal(problem.labels, split.train.labels)
    assert (problem.weights == 2).all()
    assert (problem.guess == 1).all()  # what the weighing says instead of the guess
    # Of the held-out people only the claim about rates is known.
    assert held_out.constraints == (CLAIM.constraint,)
    assert held_out.weights is None
    np.testing.assert_array_equal(held_out.guess, guess.held_out_values)
    np.testing.assert_array_equal(held_out.predictions, predictions.attack[guess.held_out])
    np.testing.assert_array_equal(held_out.labels, split.attack.labels[guess.held_out])
    np.testing.assert_array_equal(truth, split.attack.sensitive[guess.held_out])
    assert measures.pop("correct_seconds") >= 0
    # Everybody is said to be of group 1, before anything is corrected.
    assert measures.pop("reconsidered_accuracy") == (split.train.sensitive == 1).mean()
    assert measures == {}
    assert (weighed, correction.measures) == ({"said": 1, "twice": 1}, {"twice": 2})
    assert correction.values is problem.guess


def test_without_a_claim_about_rates_the_held_out_people_satisfy_anything(split):
    for claim, known in ((None, ()), (fpbench.Claim(None, "x", CLAIM.also), CLAIM.also)):
        corrected(split, claim, Spy())
        held_out, _, problem = Spy.seen
        assert held_out.constraints == ()
        assert problem.constraints == known


def test_a_corrector_that_weighs_nothing_changes_the_guess_itself(split):
    class Plain(Spy):
        name = "plain-spy"

        def weigh(self, guess, held_out, truth):
            return fpbench.Corrector.weigh(self, guess, held_out, truth)

    Spy.seen.clear()
    parents, (_, measures, weighed) = corrected(split, CLAIM, Plain())
    (problem,) = Spy.seen
    assert problem.weights is None
    np.testing.assert_array_equal(problem.guess, parents[2].values)
    assert (measures.keys(), weighed) == ({"correct_seconds"}, {})


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_weights_that_a_plugin_gets_wrong_are_its_error(split, wrong):
    with pytest.raises(fpbench.PluginError, match="weights must be finite and positive"):
        corrected(split, CLAIM, Spy(weights=wrong))


class Flatterer(np.ndarray):
    """Numbers that say of themselves that they equal whatever they are compared with."""

    def __eq__(self, _):
        return np.ones(len(self), bool)

    def __ne__(self, _):
        return np.zeros(len(self), bool)

    __hash__ = None


def test_an_array_does_not_decide_whether_it_is_right(split):
    """It runs where it is measured, on engines without processes of their own; what it says, not."""
    n = len(split.train)

    class Flattering(Spy):
        name = "flattering"

        def correct(self, problem):
            return fpbench.Correction(np.zeros(n, int).view(Flatterer), None)

    parents, measured = corrected(split, CLAIM, Flattering())
    assert type(measured[0].values) is np.ndarray
    m = len(split.attack)
    guess = fpbench.Guess(
        np.zeros(n, int).view(Flatterer), np.ones(n), np.arange(m), np.zeros(m, int), np.ones(m)
    )
    step, view = Step("key", "stream", "guess", None, ()), make_view(Believer(), split)
    guess = MEASURING["guess"](guess, (view, Believer()), step)
    assert type(guess.values) is np.ndarray
    row = ACTIONS["score"](None, (*parents[:2], guess, parents[3], measured), step)
    right = (split.train.sensitive == 0).mean()
    assert (row["initial_accuracy"], row["corrected_accuracy"]) == (right, right)


@pytest.mark.parametrize(("wrong", "says"), [
    ({"values": [0]}, "the corrected groups must be an array of whole numbers"),
    ({"values": (None, bool)}, "the corrected groups must be an array of whole numbers"),
    ({"values": (None, float)}, "the corrected groups must be an array of whole numbers"),
    ({"values": (1, int)}, r"the corrected groups must be \d+ group codes in 0..1"),
    ({"values": (None, int), "shift": 2}, r"the corrected groups must be \d+ group codes"),
    ({"values": (None, int), "shift": -1}, r"the corrected groups must be \d+ group codes"),
    ({"posterior": np.ones((1, 2))}, "the posterior must be .* probabilities"),
    ({"posterior": np.ones(3)}, "the posterior must be .* probabilities"),
    ({"status": "optimal"}, "the status of a correction must be one of optimal, feasible"),
    ({"objective": "little"}, "the objective of a correction must be a number, not 'little'"),
    ({"bound": [1.0]}, "the bound of a correction must be a number"),
])  # fmt: skip
def test_a_correction_is_one_before_it_is_measured(split, wrong, says):
    """Without limits as with them; a column of codes would be compared with everybody's truth."""
    n = len(split.train)
    values, shift = wrong.pop("values", (None, int)), wrong.pop("shift", 0)
    if isinstance(values, tuple):
        more, kind = values
        values = np.full((n, 1) if more else n, shift, kind)

    class Wrong(Spy):
        name = "wrong"

        def correct(self, problem):
            return fpbench.Correction(**{"values": values, "status": None, **wrong})

    with pytest.raises(fpbench.PluginError, match=says):
        corrected(split, CLAIM, Wrong())


def test_truth_values_are_no_groups(split):
    """They would choose rows of a table of groups instead of columns."""
    step, view = Step("key", "stream", "guess", None, ()), make_view(Believer(), split)
    for name in ("values", "held_out_values"):
        guess = replace(guessed(split), **{name: getattr(guessed(split), name).astype(bool)})
        with pytest.raises(fpbench.PluginError, match="guess must be whole numbers"):
            MEASURING["guess"](guess, (view, Believer()), step)


def test_facts_add_to_what_a_disclosure_says_itself(split):
    class Talkative(fpbench.Disclosure):
        name, summary = "talkative", "says more than a rate"

        def claim(self, context, rng):
            return CLAIM

    (known,) = (c for c in CLAIM.also if isinstance(c, fpbench.claims.KnownPeople))
    fact = fpbench.component(
        "disclosure", "hidden", also=[{"use": "share", "group": "g1", "margin": 0.1}]
    ).also
    step = Step("key", "stream", "disclose", None, ())
    claim = ACTIONS["disclose"](Talkative(also=fact), (split, predictions_of(split)), step)
    assert [c.word for c in claim.also] == ["share", "known", "share"]
    assert known in claim.also


@pytest.mark.parametrize("name", ["hidden", "published"])
def test_facts_are_disclosed_besides_whatever_is_claimed(split, name):
    share = {"use": "share", "group": "g1", "margin": 0.1}
    facts = [share, {"use": "known", "share": 0.5}]
    metric = {"metric": "equal-opportunity"} if name == "published" else {}

    def disclosed(also):
        disclosure = fpbench.component("disclosure", name, also=also, **metric)
        step = Step("key", "stream", "disclose", None, ())
        return ACTIONS["disclose"](disclosure, (split, predictions_of(split)), step)

    alone, claim = disclosed([]), disclosed(facts)
    assert (alone is None) == (name == "hidden")
    assert (claim.constraint is None) == (name == "hidden")
    assert alone is None or (alone.constraint == claim.constraint and alone.also == ())
    assert claim.source == name
    bounds, people = claim.also
    assert [c.word for c in claim.also] == ["share", "known"]
    assert bounds.low < split.train.sensitive.mean() < bounds.high
    rows, groups = people.pairs()
    np.testing.assert_array_equal(split.train.sensitive[rows], groups)
    again = disclosed(facts).also[1].pairs()  # the same people: the stream of the step is seeded
    np.testing.assert_array_equal(rows, again[0])


KEEN = ATTACK | {"adversary": [{"use": "keen"}], "corrector": [{"use": "none"}]}


@pytest.mark.slow
def test_an_adversary_that_is_tuned_once_guesses_as_it_was_tuned(tmp_path, toys, monkeypatch):
    monkeypatch.setenv("TOY_TRACE", str(tmp_path / "trace"))
    run = fpbench.run(KEEN | {"seeds": [3, 4]}, out=tmp_path / "run")
    assert run.frame()["tuned_on"].tolist() == [20, 20]  # a third of 60
    done = (tmp_path / "trace").read_text().split("\n")
    assert (done.count("tune keen"), done.count("guess keen")) == (1, 2)


def test_what_tuning_gave_guesses_also_if_it_is_of_a_subclass(split):
    plain = discover().component("adversary", "coin")

    class Loaded(plain):
        def guess(self, view, rng):
            return guessed(split)

    step = Step("", "", "guess", None, ())
    handed = HANDED["guess"](plain(), (split, Loaded()), step)
    guess = ACTIONS["guess"](plain(), handed, step)
    np.testing.assert_array_equal(guess.values, guessed(split).values)


@pytest.mark.slow
def test_rows_say_what_the_learner_was_asked_and_what_floors_reach(tmp_path, toys):
    (row,) = fpbench.run(KEEN, out=tmp_path / "run").rows()
    assert (row["asked_metric"], row["asked_tolerance"]) == ("statistical-parity", 0.1)
    assert 0.45 < row["prior_accuracy"] <= row["majority_accuracy"] < 0.6
    assert row["best_initial_accuracy"] == row["initial_accuracy"]


def test_tuning_must_give_an_adversary_of_the_same_kind(split):
    adversary = discover().component("adversary", "keen")

    class Odd(adversary):
        def tune(self, known, rng):
            return fpbench.component("adversary", "coin")

    step = Step("", "", "tune", None, ())
    with pytest.raises(PluginError, match="tuning must give a Odd"):
        ACTIONS["tune"](Odd(), HANDED["tune"](Odd(), (split,), step), step)


@pytest.mark.parametrize("wrong", [np.zeros(23), np.full((23, 2), 1.5), np.full((23, 2), np.nan)])
def test_scores_that_are_no_probabilities_are_the_learners_error(split, wrong):
    class Model:
        def predict_proba(self, features, rng, sensitive=None):
            return wrong

    step = Step("", "", "reveal", None, ())
    with pytest.raises(PluginError, match=r"must be \(23, 2\) values in \[0, 1\]"):
        ACTIONS["reveal"](fpbench.component("learner", "parrot"), (Model(), split), step)


def _release(**change):
    ends = {"values": np.array([0.5, 1.0]), "low": np.array([0.0, np.nan]),
            "high": np.array([0.5, np.nan]), "noise": "secure", "guarantee": fpbench.Guarantee(1.0)}  # fmt: skip
    ends |= change
    return fpbench.Release("statistical-parity", confidence=0.9, **ends)


@pytest.mark.parametrize(("change", "words"), [
    ({"values": np.zeros(0), "low": np.zeros(0), "high": np.zeros(0)}, "one or more"),
    ({"values": np.array([0.5, np.nan])}, "the estimates of a release must be ratios"),
    ({"values": np.array([-0.5, 1.0])}, "the estimates of a release must be ratios"),
    ({"values": np.array([np.inf, 1.0])}, "the estimates of a release must be ratios"),
    ({"values": [0.5, 1.0]}, "the estimates of a release must be an array of numbers"),
    ({"values": np.array([0.5, 1.0], object)}, "must be an array of numbers"),
    ({"values": np.array([[0.5, 1.0]])}, r"the estimates of a release must be \(R,\) numbers"),
    ({"low": np.zeros(1)}, r"the lower ends of a release must be \(R,\) numbers"),
    ({"high": np.zeros((2, 1))}, r"the upper ends of a release must be \(R,\) numbers"),
    ({"low": np.full(2, -np.inf), "high": np.full(2, np.inf)}, "must be finite"),
    ({"low": np.array([0.6, np.nan])}, "the lower end first"),
    ({"low": np.array([np.nan, np.nan])}, "the lower end first, or NaN"),
    ({"noise": "s\u0435cure"}, "must be one of simulation, secure"),
    ({"guarantee": 1.0}, "the guarantee of a release must be an fpbench.Guarantee, not float"),
])  # fmt: skip
def test_a_release_is_one_before_it_is_measured(toys, change, words):
    split = cut(flock(), {"train": 0.5, "test": 0.5, "attack": 0.0})
    predictions = predictions_of(split)
    step = Step("k", "s", "audit", None, ())
    row = MEASURING["audit"](_release(), (split, predictions), step)
    assert row["repetitions"] == 2
    assert row["noise"] == "secure"
    with pytest.raises(fpbench.PluginError, match=words):
        MEASURING["audit"](_release(**change), (split, predictions), step)


@pytest.mark.parametrize("nats", [-1.0, np.inf, np.nan])
def test_a_claim_cannot_tell_less_than_nothing_or_endlessly_much(split, nats):
    class Boaster(fpbench.Disclosure):
        name, summary = "boaster", "does not know what it says"

        def claim(self, context, rng):
            return fpbench.Claim(None, "me", nats=nats)

    with pytest.raises(fpbench.PluginError, match="nats of a claim must be at least 0 and finite"):
        ACTIONS["disclose"](
            Boaster(), (split, predictions_of(split)), Step("key", "stream", "disclose", None, ())
        )


def test_facts_tell_what_they_tell_and_prove_who_is_known(split):
    facts = [{"use": "known", "share": 0.5}]
    disclosure = fpbench.component("disclosure", "hidden", also=facts)
    step = Step("key", "stream", "disclose", None, ())
    claim = ACTIONS["disclose"](disclosure, (split, predictions_of(split)), step)
    people, groups = len(split.train), len(split.train.groups)
    assert claim.nats == 0
    assert claim.fact_nats == round(people / 2) * np.log(groups)
    assert (claim.possible.sum(axis=1) == 1).sum() == round(people / 2)
    assert claim.possible[np.arange(people), split.train.sensitive].all()
    assert claim.counted_labels is None  # people are no counts
    claim = ACTIONS["disclose"](
        fpbench.component("disclosure", "published", metric="equal-opportunity"),
        (split, predictions_of(split)), step,
    )  # fmt: skip
    assert claim.counted_labels == (1,)
    assert 0 < claim.nats <= np.log(1001)


class Believer(fpbench.Adversary):
    name, summary = "believer", "believes what it is told to"
    sees = frozenset({"features"})
    told: ClassVar[dict] = {}

    def guess(self, view, rng):
        n, m, k = len(view.target), len(view.attack), len(view.target.groups)
        given = {"beliefs": np.full((n, k), 1 / k), "held": np.full((m, k), 1 / k), **self.told}
        guess = fpbench.Guess.from_beliefs(
            np.full((n, k), 1 / k), np.arange(m), np.full((m, k), 1 / k)
        )
        return replace(
            guess, beliefs=given["beliefs"], held_out_beliefs=given["held"],
            abstains=given.get("abstains"),
        )  # fmt: skip


def believed(split, **told):
    Believer.told = told
    step = Step("key", "stream", "guess", None, ())
    view = make_view(Believer(), split)
    guess = ACTIONS["guess"](Believer(), (view, Believer()), step)
    return MEASURING["guess"](guess, (view, Believer()), step)


def test_beliefs_are_calibrated_on_who_is_held_out(split):
    n, k = len(split.train), len(split.train.groups)
    shares = np.bincount(split.attack.sensitive, minlength=k) / len(split.attack)
    guess = believed(split)
    assert (guess.calibration, guess.sees) == ("scaled", ("features",))
    np.testing.assert_allclose(guess.beliefs, np.tile(shares, (n, 1)), atol=0.05)
    only_confidence = believed(split, beliefs=None, held=None)
    np.testing.assert_allclose(only_confidence.beliefs, guess.beliefs, atol=1e-9)


@pytest.mark.parametrize(("told", "says"), [
    ({"beliefs": np.full((3, 3), 1 / 3)}, "the beliefs of the guess must be .* probabilities"),
    ({"held": np.full((3, 3), 1 / 3)}, "the beliefs of the held-out guess must be"),
    ({"held": None}, "both beliefs and held-out beliefs, or neither"),
    ({"beliefs": 0.9}, "a person's beliefs must sum to 1"),
    ({"beliefs": np.nan}, "must be probabilities; that of person 0 in group 0 is nan"),
    ({"abstains": np.zeros(2, bool)}, "abstains must be .* true or false"),
    ({"abstains": 7}, "abstains must be .* true or false, not"),
])  # fmt: skip
def test_wrong_beliefs_are_the_adversarys_error(split, told, says):
    n, k = len(split.train), len(split.train.groups)
    if isinstance(told.get("beliefs"), float):
        told = {"beliefs": np.full((n, k), told["beliefs"])}
    if isinstance(told.get("abstains"), int):
        told = {"abstains": np.full(n, 7)}
    with pytest.raises(fpbench.PluginError, match=says):
        believed(split, **told)


def test_held_out_people_of_one_group_are_the_users_error(split):
    few = np.flatnonzero(split.attack.sensitive == 0)
    one_group = fpbench.plugin.Split(split.train, split.test, split.attack.take(few))
    with pytest.raises(fpbench.InputError, match=r"make known more of them \(\[split\] attack"):
        believed(one_group)
