"""The auditor of individual fairness: what a row says, and on whom."""

import warnings

import numpy as np
import pytest

import fpbench
from fpbench import InputError, Sample
from fpbench.builtin.auditors.group_fairness import GroupFairness
from fpbench.builtin.datasets.adult import Adult
from fpbench.builtin.learners.decision_tree import DecisionTree
from fpbench.builtin.learners.plain import Plain
from fpbench.builtin.private_tree.fairness_auditor import IndividualFairness
from fpbench.builtin.private_tree.learners import PrivateFairTree
from fpbench.data import Domain
from fpbench.models import RuleList
from fpbench.plugin import DataHome, Subject

GAPS = {"independence_gap", "separation_gap", "sufficiency_gap"}
SIMILAR = {"pair_consistency", "pair_consistency_of_others", "isolated", "certified_consistency",
           "accuracy_of_certified"}  # fmt: skip
SAID = {"certified_note", "scaled_by_range"}


def trained(make_people, rng, learner=None, domain=None):
    """A model, and its subject."""
    train, test = make_people(300, seed=1), make_people(200, seed=2)
    model = (learner or DecisionTree(depths=3, leaves=6)).fit(train, rng)
    given = [
        Sample(
            s.groups, features=s.features, labels=s.labels, sensitive=s.sensitive,
            predictions=model.predict(s.features, rng), domain=domain,
        )
        for s in (train, test)
    ]  # fmt: skip
    return Subject(*given, model)


def audit(subject, **parameters):
    return IndividualFairness(**parameters).audit(subject, np.random.default_rng(0))


def test_a_row_has_everything(make_people, rng):
    subject = trained(make_people, rng)
    found = audit(subject, tau=0.1)
    assert found.keys() == SIMILAR | SAID | GAPS
    assert found["certified_note"] is None
    assert found["scaled_by_range"] == "skill, income"
    assert 0 < found["certified_consistency"] <= found["pair_consistency"] < 1
    assert 0 < found["isolated"] < found["pair_consistency"]
    report = fpbench.auditing.individual_fairness(
        subject.model, subject.test.features, tau=0.1, reference=subject.train.features
    )
    certified = report.region > 0.1
    right = (subject.test.predictions == subject.test.labels)[certified]
    assert found["accuracy_of_certified"] == right.mean()
    assert found["pair_consistency"] == report.pair_consistency[0]


def test_gaps_are_those_of_group_fairness(make_people, rng):
    subject = trained(make_people, rng)
    expected = GroupFairness(resamples=0).audit(subject, rng)
    found = audit(subject)
    assert {name: found[name] for name in GAPS} == {name: expected[name] for name in GAPS}


def test_free_features_are_measured_beside(make_people, rng):
    subject = trained(make_people, rng)
    plain = audit(subject, tau=0.1)
    found = audit(subject, tau=0.1, free=("job", "skill"))
    assert found.keys() == plain.keys() | {f"{name}_free" for name in SIMILAR}
    assert {name: found[name] for name in plain} == plain
    for name in ("pair_consistency", "certified_consistency", "isolated"):
        assert found[f"{name}_free"] < found[name]
    assert audit(subject, free="job").keys() == found.keys()  # one is a list of one


def test_declared_bounds_scale_before_the_range(make_people, rng):
    wide = {"skill": [-100, 100], "income": [-1e6, 1e6]}
    ranged = audit(trained(make_people, rng), tau=0.1)
    one = audit(trained(make_people, rng, domain=Domain.of({"skill": wide["skill"]})), tau=0.1)
    both = audit(trained(make_people, rng, domain=Domain.of(wide)), tau=0.1)
    assert (one["scaled_by_range"], both["scaled_by_range"]) == ("income", None)
    assert both["isolated"] < one["isolated"] < ranged["isolated"]


def test_the_range_is_that_of_the_training_people(make_people, rng):
    subject = trained(make_people, rng)
    test = subject.test.take(np.arange(5))
    few = audit(Subject(subject.train, test, subject.model), tau=0.1)
    expected = fpbench.auditing.individual_fairness(
        subject.model, test.features, tau=0.1, reference=subject.train.features
    )
    assert few["certified_consistency"] == expected.certified_consistency[0]
    itself = fpbench.auditing.individual_fairness(subject.model, test.features, tau=0.1)
    assert not np.array_equal(itself.anybody, expected.anybody)


def test_it_is_about_the_part_that_is_chosen(make_people, rng):
    subject = trained(make_people, rng)
    swapped = Subject(subject.train, subject.train, subject.model)
    assert audit(subject, part="train") == audit(swapped, part="test")
    assert audit(subject, part="train") != audit(subject, part="test")


def test_models_without_a_tree_are_not_certified(make_people, rng):
    subject = trained(make_people, rng, Plain(base="logistic-regression"))
    found = audit(subject, free="job")
    for name in ("certified_consistency", "accuracy_of_certified"):
        assert found[name] is found[f"{name}_free"] is None
    assert found["certified_note"] == "the model has no rules"
    assert 0 < found["pair_consistency"] <= 1
    rules = RuleList([([("skill", "<", 0.0)], 0)], default=1)
    test = subject.test.having(predictions=rules.predict(subject.test.features))
    listed = audit(Subject(subject.train, test, rules))
    assert listed["certified_note"] == "the rules of the model do not come from a tree"


def test_one_person_alone_has_no_pairs(make_people, rng):
    subject = trained(make_people, rng)
    alone = Subject(subject.train, subject.test.take(np.arange(1)), subject.model)
    found = audit(alone, tau=0.9, free=("job", "skill", "income"))
    assert (found["isolated"], found["pair_consistency"]) == (1, 1)
    assert found["pair_consistency_of_others"] is None
    assert found["certified_consistency_free"] == 0  # there are inputs, if not people
    assert found["accuracy_of_certified_free"] is None


def test_what_is_refused_when_people_are_there(make_people, rng):
    subject = trained(make_people, rng)
    with pytest.raises(InputError, match="no feature 'jobs'; did you mean 'job'"):
        audit(subject, free="jobs")
    flat = subject.train.having(features=subject.train.features.assign(skill=3.0))
    with pytest.raises(InputError, match=r"'skill' is 3 for everybody.*declare its bounds"):
        audit(Subject(flat, subject.test, subject.model))
    wrong = subject.test.having(predictions=1 - subject.test.predictions)
    with pytest.raises(InputError, match="do not predict what it predicts"):
        audit(Subject(subject.train, wrong, subject.model))


@pytest.mark.slow
def test_a_run_has_a_row_of_each_tau(toys, tmp_path):
    matrix = {
        "seeds": 1,
        "dataset": [{"use": "census-synthetic", "rows": 600}],
        "learner": [{"use": "decision-tree", "depths": 3, "leaves": 6}, {"use": "plain"}],
        "auditor": [{"use": "individual-fairness", "tau": {"sweep": [0.01, 0.1]}}],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all()
    assert len(frame) == 4
    known = frame[frame["certified_consistency"].notna()]
    assert (known["certified_consistency"] <= known["pair_consistency"]).all()
    assert frame["isolated"].between(0, 1).all()


@pytest.mark.slow
def test_on_adult_the_answer_is_that_of_everybody_with_everybody(adult_home: DataHome, rng):
    table = Adult().load(adult_home)
    rows = np.sort(rng.choice(len(table.features), 1_500, replace=False))
    features = table.features.iloc[rows].reset_index(drop=True)
    people = Sample(table.groups, features=features, labels=table.labels[rows],
                    sensitive=table.codes[rows], domain=table.domain)  # fmt: skip
    model = DecisionTree(depths=4, leaves=12).fit(people, rng)
    predictions = model.predict(features, rng)
    subject = Subject(people, people.having(predictions=predictions), model)
    kinds = features.select_dtypes("category").columns
    drop = ["fnlwgt", "native-country", "workclass", "education", "occupation"]
    found = audit(subject, tau=0.1, free=drop)
    assert found["scaled_by_range"] is None
    for free, end in (([], ""), (drop, "_free")):
        alike = np.ones((len(rows), len(rows)), bool)
        for name in set(features) - {*free}:
            column = features[name]
            if name in kinds:
                alike &= column.cat.codes.to_numpy()[:, None] == column.cat.codes.to_numpy()
                continue
            low, high = table.domain.bounds[name]
            z = (column.to_numpy(np.float64) - low) / (high - low)
            alike &= np.abs(z[:, None] - z) <= 0.1
        fine = (~alike | (predictions[:, None] == predictions)).all(axis=1)
        assert found[f"pair_consistency{end}"] == fine.mean()
        assert found[f"isolated{end}"] == (alike.sum(axis=1) == 1).mean()
    assert 0 < found["certified_consistency_free"] < found["pair_consistency_free"] < 1


DECLARED = Domain.of(
    {"skill": [-1, 1], "income": [-1000, 3000], "job": ["job 1", "job 0", "nobody has it"]}
)


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["none", "grid", "ball"])
def test_private_trees_are_certified_beyond_their_domain_too(make_people, rng, similarity):
    """Who is outside of the declared bounds is treated as somebody at the bound."""
    learner = PrivateFairTree(
        epsilon=20.0, max_depth=4, similarity=similarity, tau=0.0 if similarity == "none" else 0.1
    )
    for seed in range(5):
        people = make_people(150, seed=seed)
        sample = Sample(
            people.groups, features=people.features, labels=people.labels,
            sensitive=people.sensitive, domain=DECLARED,
        )  # fmt: skip
        model = learner.fit(sample, rng)
        assert isinstance(model.rules, fpbench.models.Rules)
        asked = sample.having(predictions=model.predict(sample.features, rng))
        found = audit(Subject(asked, asked, model), tau=0.2, free=("job", "income"))
        assert found["scaled_by_range"] is None
        for end in ("", "_free"):
            assert found[f"certified_consistency{end}"] <= found[f"pair_consistency{end}"]
        report = fpbench.auditing.individual_fairness(
            model, sample.features, tau=0.9, domain=DECLARED, predictions=asked.predictions
        )
        # Every input of a walk along one feature, as far as somebody's certificate says.
        for row in rng.choice(150, 10, replace=False):
            reach = 2 * min(report.region[row], 0.9)  # of skill, whose bounds are 2 apart
            steps = np.linspace(-reach, reach, 41)[1:-1]
            walk = sample.features.iloc[[row] * len(steps)].reset_index(drop=True)
            walk["skill"] += steps * (1 - 1e-6)
            assert (model.predict(walk, rng) == asked.predictions[row]).all()
