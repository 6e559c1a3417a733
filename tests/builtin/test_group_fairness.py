"""Group fairness with everything in the open: fairlearn's numbers, with intervals."""

import math
import warnings

import numpy as np
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st

import fpbench
from fpbench import Sample
from fpbench.auditing import make_suffixes
from fpbench.builtin.auditors.group_fairness import GroupFairness
from fpbench.plugin import Subject

RATES = {
    "selection_rate": fairlearn.selection_rate,
    "true_positive_rate": fairlearn.true_positive_rate,
    "false_positive_rate": fairlearn.false_positive_rate,
}


def sample(labels, predictions, sensitive, groups=("a", "b")):
    return Sample(
        tuple(groups),
        labels=np.asarray(labels, np.int8),
        predictions=np.asarray(predictions, np.int8),
        sensitive=np.asarray(sensitive, np.int8),
    )


def audit(people, seed=0, *, train=None, **parameters):
    auditor = GroupFairness(**parameters)
    return auditor.audit(Subject(train or people, people), np.random.default_rng(seed))


@st.composite
def crowds(draw, everywhere=False):
    """People of 2 to 4 groups; `everywhere`: with somebody in every slice that has a rate."""
    k = draw(st.integers(2, 4))
    person = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, k - 1))
    people = draw(st.lists(person, min_size=1, max_size=80))
    if everywhere:
        people += [(label, label, group) for label in (0, 1) for group in range(k)]
    return sample(*zip(*people, strict=True), [f"g{code}" for code in range(k)])


@pytest.mark.slow
@settings(max_examples=20)  # fairlearn takes a tenth of a second for each
@given(crowds(everywhere=True))
def test_rates_gaps_and_ratios_are_fairlearns(people):
    found = audit(people, resamples=0)
    y, said, who = people.labels, people.predictions, people.sensitive
    frame = fairlearn.MetricFrame(
        metrics=RATES, y_true=y, y_pred=said, sensitive_features=np.array(people.groups)[who]
    )
    for rate in RATES:
        for group in people.groups:
            assert found[f"{rate}_{group}"] == pytest.approx(frame.by_group.loc[group, rate])
    for rate in ("true_positive_rate", "false_positive_rate"):
        assert found[f"{rate}_gap"] == pytest.approx(frame.difference()[rate])
        if frame.by_group[rate].max() > 0:
            assert found[f"{rate}_ratio"] == pytest.approx(frame.ratio()[rate])
    asked = {"y_true": y, "y_pred": said, "sensitive_features": who}
    gap, ratio = found["independence_gap"], found["independence_ratio"]
    assert gap == pytest.approx(fairlearn.demographic_parity_difference(**asked))
    assert ratio == pytest.approx(fairlearn.demographic_parity_ratio(**asked))
    gap, ratio = found["separation_gap"], found["separation_ratio"]
    assert gap == pytest.approx(fairlearn.equalized_odds_difference(**asked))
    if (frame.by_group.max() > 0).all():  # 0 / 0 is 1 for us, and nothing for fairlearn
        assert ratio == pytest.approx(fairlearn.equalized_odds_ratio(**asked))


def share(chosen, among):
    """Share of people with one property among those with another; None if there are none."""
    return float(chosen[among].mean()) if among.any() else None


def by_hand(people):
    """Every measure from its definition, group by group."""
    y, said = people.labels == 1, people.predictions == 1
    found = {}
    rates = {
        "selection_rate": (said, np.ones(len(y), bool)),
        "true_positive_rate": (said, y),
        "false_positive_rate": (said, ~y),
        "positive_predictive_value": (y, said),
        "negative_predictive_value": (~y, ~said),
        "false_omission_rate": (y, ~said),
    }
    for name, (chosen, among) in rates.items():
        mine = [share(chosen, among & (people.sensitive == k)) for k in range(len(people.groups))]
        found |= {f"{name}_{g}": r for g, r in zip(people.groups, mine, strict=True)}
        have = [rate for rate in mine if rate is not None]
        gap = max(have) - min(have) if have else None
        ratio = (min(have) / max(have) if max(have) else 1.0) if have else None
        found[f"{name}_gap"], found[f"{name}_ratio"] = gap, ratio
    for notion, parts in {
        "independence": ["selection_rate"],
        "separation": ["true_positive_rate", "false_positive_rate"],
        "sufficiency": ["positive_predictive_value", "false_omission_rate"],
    }.items():
        for kind, worst in (("gap", max), ("ratio", min)):
            have = [v for p in parts if (v := found[f"{p}_{kind}"]) is not None]
            found[f"{notion}_{kind}"] = worst(have) if have else None
    del found["selection_rate_gap"], found["selection_rate_ratio"]
    return found


@given(crowds())
def test_every_measure_is_its_definition_and_groups_of_nobody_have_no_rate(people):
    found, expected = audit(people, resamples=0), by_hand(people)
    counted = {name for name in found if name.startswith("people_")}
    assert found.keys() - counted == expected.keys()
    for name, value in expected.items():
        assert found[name] == (None if value is None else pytest.approx(value)), name
    members = [int((people.sensitive == k).sum()) for k in range(len(people.groups))]
    assert [found[f"people_{group}"] for group in people.groups] == members


@given(crowds())
def test_intervals_are_of_every_measure_and_inside_what_it_may_be(people):
    found = audit(people, resamples=50)
    measured = audit(people, resamples=0)
    assert {name: found[name] for name in measured} == measured
    for name, value in measured.items():
        if name.startswith("people_"):
            continue
        low, high = found[f"{name}_interval_low"], found[f"{name}_interval_high"]
        if value is None:
            assert low is high is None
        elif low is None:  # no resample has anyone there
            assert high is None
        else:
            assert 0 <= low <= high <= 1


def crowd(rng, n, rates=(0.5, 0.3), shares=(0.7, 0.3)):
    groups = rng.choice(len(shares), size=n, p=shares)
    labels = rng.random(n) < 0.4 + 0.1 * groups
    return sample(labels, rng.random(n) < np.array(rates)[groups], groups)


@pytest.mark.slow
def test_resampling_counts_is_resampling_people():
    rng = np.random.default_rng(0)
    people = crowd(rng, 300)
    ours = audit(people, resamples=20_000)
    drawn = []
    for _ in range(4_000):
        who = rng.integers(300, size=300)
        again = sample(people.labels[who], people.predictions[who], people.sensitive[who])
        drawn.append(by_hand(again))
    for name in ("independence_gap", "independence_ratio", "separation_ratio", "sufficiency_gap",
                 "false_omission_rate_b"):  # fmt: skip
        values = [one[name] for one in drawn]
        low, high = np.quantile(values, (0.025, 0.975))
        spread = np.std(values)
        assert ours[f"{name}_interval_low"] == pytest.approx(low, abs=0.15 * spread)
        assert ours[f"{name}_interval_high"] == pytest.approx(high, abs=0.15 * spread)


@pytest.mark.slow
def test_intervals_cover_the_population_as_often_as_they_say():
    rng = np.random.default_rng(1)
    truth = {"selection_rate_a": 0.5, "selection_rate_b": 0.3, "independence_gap": 0.2,
             "independence_ratio": 0.6}  # fmt: skip
    inside = dict.fromkeys(truth, 0)
    for _ in range(400):
        found = audit(crowd(rng, 1_000), rng.integers(2**32), resamples=400, confidence=0.9)
        for name, value in truth.items():
            low, high = found[f"{name}_interval_low"], found[f"{name}_interval_high"]
            inside[name] += low <= value <= high
    for name, count in inside.items():
        assert 0.86 <= count / 400 <= 0.94, name


def test_a_greater_confidence_makes_wider_intervals():
    people = crowd(np.random.default_rng(2), 200)
    narrow, wide = audit(people, confidence=0.5), audit(people, confidence=0.99)
    for name in audit(people, resamples=0):
        if not name.startswith("people_"):
            assert wide[f"{name}_interval_low"] <= narrow[f"{name}_interval_low"]
            assert wide[f"{name}_interval_high"] >= narrow[f"{name}_interval_high"]
    assert audit(people, 3) == audit(people, 3)
    assert audit(people, 3) != audit(people, 4)


def test_it_is_about_the_part_that_is_chosen():
    rng = np.random.default_rng(5)
    train, test = crowd(rng, 50), crowd(rng, 60)
    for part, people in (("train", train), ("test", test)):
        found = audit(test, train=train, part=part, resamples=0)
        assert found["people_a"] + found["people_b"] == len(people)
        assert found == audit(people, resamples=0)


names = st.lists(st.text(max_size=12), min_size=2, max_size=6, unique=True)


@given(names)
def test_groups_of_any_name_make_different_names_of_measures(groups):
    people = sample([0] * len(groups), [0] * len(groups), range(len(groups)), groups)
    found = audit(people, resamples=0)
    ends = [name.removeprefix("people_") for name in found if name.startswith("people_")]
    assert len(ends) == len(groups)
    assert all(name.isidentifier() for name in found)
    assert all(f"selection_rate_{end}" in found for end in ends)


@pytest.mark.parametrize(("groups", "ends"), [
    (("Female", "Male"), ["female", "male"]),
    (("Black x Female", "Asian-Pac-Islander x Male"),
     ["black_x_female", "asian_pac_islander_x_male"]),
    (("age < 25", "25 <= age < 45", "age >= 45"),
     ["age_below_25", "25_to_age_below_45", "age_from_45"]),
    (("x < 1.5", "x < 15", "x >= 1.5"), ["x_below_1p5", "x_below_15", "x_from_1p5"]),
    (("+", "-"), ["group_0", "group_1"]),
    (("A", "a", "a_1"), ["a", "a_1", "a_1_2"]),
])  # fmt: skip
def test_group_names_are_words(groups, ends):
    people = sample([0] * len(groups), [0] * len(groups), range(len(groups)), groups)
    found = audit(people, resamples=0)
    assert [n.removeprefix("people_") for n in found if n.startswith("people_")] == ends


def test_a_run_has_a_row_of_it(toys, tmp_path):
    matrix = {
        "seeds": 2,
        "dataset": [{"use": "flock", "groups": 3, "rows": 90}],
        "learner": [{"use": "parrot"}],
        "auditor": [{"use": "group-fairness", "resamples": 100}],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all()
    for name in ("independence_gap", "separation_ratio", "sufficiency_gap", "selection_rate_g2"):
        assert frame[name].between(0, 1).all()
        assert (frame[f"{name}_interval_low"] <= frame[f"{name}_interval_high"]).all()
    assert (frame[[f"people_g{code}" for code in range(3)]].sum(axis=1) == 30).all()
    assert not any(math.isnan(value) for value in frame["test_accuracy"])


def test_groups_in_any_script_have_names_of_their_own_in_ascii():
    groups = ["M\u00e4nner", "\u7537", "\u5973", "> 60", "Manner"]
    names = make_suffixes(groups)
    assert names == ["manner", "group_1", "group_2", "above_60", "manner_4"]
    assert all(name.isascii() and f"people_{name}".isidentifier() for name in names)
