"""Verdicts about reports."""

import json
import time
from dataclasses import replace
from html.parser import HTMLParser
from itertools import count

import numpy as np
import pandas as pd
import pytest
from reports import make_people, make_report

import fpbench
from fpbench import FairnessReport, InputError, assess
from fpbench.claims import Facts
from fpbench.plugin import DataHome
from fpbench.reports.assessments.prior_beliefs import find_shares


@pytest.mark.slow
def test_a_report_that_tells_much_is_not_to_be_published():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups)
    result = assess(report, X, predictions, groups=groups, beliefs="shares")
    truth = (groups == "m").astype(int)
    assert result.proven.sum() > 100
    assert (result.posterior.argmax(axis=1) == truth)[result.proven].all()
    assert result.without == max(truth.mean(), 1 - truth.mean())
    assert result.with_ == (result.posterior.argmax(axis=1) == truth).mean()
    assert result.leak == result.with_ - result.without > 0.2
    assert (result.proven_unsure == result.proven).all()
    assert not result.passes
    told = " ".join(str(result).split())
    first = result.verdict
    assert told.startswith(first)
    assert first.startswith(f"Do not publish: the group of {result.proven.sum()} of 400 people is")
    assert f"guesses get {100 * result.with_:.1f} % of all people right" in first
    assert "points, measured on the true groups" in told


def test_a_report_that_tells_little_is_within_the_limits():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=0)
    result = assess(report, X, predictions)
    assert result.passes
    assert not result.proven.any()
    assert result.verdict.startswith(
        "May be published within these limits: nobody's group is proven"
    )
    assert "as the beliefs expect, since the true groups are unknown" in str(result)
    assert result.leak == pytest.approx(result.leak_expected)
    # The shares of the groups are in the report.
    assert result.posterior.mean(axis=0)[1] == pytest.approx((groups == "m").mean(), abs=0.001)


@pytest.mark.parametrize("metric", ["selection-rate", "selected"])
def test_a_report_of_no_cells_tells_nothing(metric):
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, min_cell=401, metrics=[metric])
    assert len(report) == 0
    beliefs = np.tile([0.3, 0.7], (400, 1))
    result = assess(report, X, predictions, groups=groups, beliefs=beliefs)
    assert result.leak == 0
    assert result.passes
    assert np.allclose(result.posterior, beliefs)


@pytest.mark.slow
def test_beliefs_whose_columns_name_groups_in_another_order_are_refused():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=0)
    beliefs = pd.DataFrame(np.tile([0.3, 0.7], (len(X), 1)), columns=list(report.groups))
    assert assess(report, X, predictions, beliefs=beliefs).prior[0].tolist() == [0.3, 0.7]
    with pytest.raises(InputError, match="beliefs: their columns are m, f, .* groups f, m: put"):
        assess(report, X, predictions, beliefs=beliefs[["m", "f"]])


def test_better_beliefs_leave_less_to_leak():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1, min_cell=10)
    share = np.where(X["likely"] == "1", 0.96, 0.04)
    beliefs = np.stack([1 - share, share], axis=1)
    blind = assess(report, X, predictions, groups=groups, beliefs="shares")
    knowing = assess(report, X, predictions, groups=groups, beliefs=beliefs)
    assert knowing.without > blind.without + 0.2
    assert knowing.leak < blind.leak


def test_people_with_sure_beliefs_do_not_count_as_unsure():
    X, groups = pd.DataFrame({"a": list("xxyy")}), np.array(list("mmff"))
    report = make_report(X, [1, 1, 1, 1], groups, order=1)
    for share, unsure in ((0.9, 4), (0.96, 0)):
        beliefs = [[share, 1 - share], [1 - share, share]] * 2  # right and wrong of each group
        result = assess(report, X, [1, 1, 1, 1], groups=groups, beliefs=beliefs)
        assert result.proven.all()
        assert result.proven_unsure.sum() == unsure


def test_shares_are_learnt_from_published_cells_that_share_nobody():
    members = np.array([[1] * 10, [1] * 5 + [0] * 5], bool).T
    facts = Facts.from_counts(members, [[8, 2], [3, 2]])
    assert find_shares(facts, None) == pytest.approx([9 / 12, 3 / 12])


def test_a_cell_tells_as_much_as_its_widest_range_leaves():
    """Of all ten, two groups may be anything to 8; the exact cell of five tells more."""
    members = np.array([[1] * 10, [1] * 5 + [0] * 5], bool).T
    facts = Facts.from_counts(members, [[1, 0, 0], [1, 3, 1]], [[1, 8, 8], [1, 3, 1]])
    assert find_shares(facts, None) == pytest.approx([2 / 8, 4 / 8, 2 / 8])


@pytest.mark.parametrize("defence", [{"round_to": 5}, {"round_to": 20}, {"sizes": False}])
def test_shares_are_learnt_from_rounded_numbers_and_sizes_that_rates_leave(defence):
    X, predictions, _ = make_people(1000)
    groups = np.where(np.arange(1000) % 10 == 0, "f", "m")
    report = make_report(X, predictions, groups, order=0).protect(**defence, rng=0)
    shares = find_shares(report.facts(X, predictions), None)
    assert shares == pytest.approx([0.1, 0.9], abs=0.02)


@pytest.mark.slow
def test_noise_is_assessed_too():
    X, predictions, groups = make_people()
    metrics = ("selected", "rejected")
    leaks = []
    for epsilon in (0.5, 1000.0):
        options = {"noise": "laplace", "epsilon": epsilon, "rng": 0, "min_cell": 5, "order": 2}
        report = make_report(X, predictions, groups, metrics=metrics, **options)
        result = assess(report, X, predictions, groups=groups, beliefs="shares")
        assert not result.proven.any()
        assert "noisy counts" in str(result)
        leaks.append(result.leak)
    assert leaks[0] < leaks[1] - 0.05


def test_known_people_of_one_group_teach_nothing():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1)
    known = X.assign(group=groups, prediction=predictions)
    women = known[known["group"] == "f"]
    alone = pd.concat([women, known[known["group"] == "m"].head(1)])
    for few, message in (
        (women, "the .* known people are all of one group; beliefs need people of two or more"),
        (known.head(1), "the 1 known people are all of one group"),
        (alone, "known people on whom beliefs are calibrated are all of one group"),
    ):
        with pytest.raises(InputError, match=message):
            assess(report, X, predictions, known_people=few)


@pytest.mark.parametrize(("wrong", "message"), [
    ({"report": "report.csv"}, "report.csv: cannot be read"),
    ({"X": None}, "X must be a data frame, one row a person, not NoneType"),
    ({"known_people": "known.csv"}, "known people must be a data frame, not str"),
    ({"seconds": "5"}, "seconds must be above 0 and at most 1e[+]06, not '5'"),
    ({"seconds": np.nan}, "seconds must be above 0"),
    ({"error": np.nan}, "error must be above 0 and at most 1, not nan"),
    ({"error": 0}, "error must be above 0 and at most 1, not 0"),
    ({"max_proven": -1}, "max_proven must be a number of people, not -1"),
    ({"max_proven": 0.5}, "max_proven must be a number of people, not 0.5"),
])  # fmt: skip
def test_things_of_another_kind_are_refused(wrong, message):
    X, predictions, groups = make_people()
    fine = {"report": make_report(X, predictions, groups, order=1), "X": X}
    with pytest.raises(InputError, match=message):
        assess(**(fine | {"predictions": predictions} | wrong))


@pytest.mark.slow
def test_a_column_without_values_teaches_nothing():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1)
    X, empty = X.assign(more=1.0), X.assign(more=np.nan)
    known = empty.assign(group=groups, prediction=predictions)
    with_it = assess(report, X, predictions, known_people=known)
    without = assess(report, X, predictions, known_people=known.drop(columns="more"))
    assert (with_it.prior == without.prior).all()


def test_groups_of_others_are_refused():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1)
    with pytest.raises(
        InputError, match=r"groups, row 7: 'x' is not a group of the report; valid: f, m"
    ):
        assess(report, X, predictions, groups=np.where(np.arange(400) == 7, "x", groups))
    with pytest.raises(
        InputError, match="the report does not match these groups: .* people are 'f'"
    ):
        assess(report, X, predictions, groups=groups[::-1])
    with pytest.raises(InputError, match="groups must be 400 names"):
        assess(report, X, predictions, groups=groups[:9])
    with pytest.raises(InputError, match=r"a probability of each of f, m for each person of X"):
        assess(report, X, predictions, beliefs=np.full((400, 3), 1 / 3))


@pytest.mark.slow
def test_husbands_and_wives_of_adult_are_proven_by_one_way_slices(adult_home: DataHome):
    """The numbers of a prototype: 6,853 of another third were proven by the same slices."""
    table = fpbench.dataset("adult", sensitive="sex")
    third = np.random.default_rng(0).permutation(len(table))[: len(table) // 3]
    X = table.features.iloc[third].reset_index(drop=True)
    truth = table.codes[third]
    groups = np.array(table.groups)[truth]
    labels = table.labels[third]
    metrics = ("selected", "rejected")
    report = FairnessReport.from_predictions(X, labels, groups, by=list(X), metrics=metrics)
    husbands = X["relationship"].isin(["Husband", "Wife"]).to_numpy()
    result = assess(report, X, labels, groups=groups, beliefs="shares", error=0.1, seconds=600)
    assert 6500 < result.proven.sum() < 7500
    assert husbands[result.proven].mean() > 0.95
    assert (result.posterior.argmax(axis=1) == truth)[result.proven].all()
    assert result.leak > 0.1
    assert "Do not publish" in str(result)


@pytest.mark.slow
def test_adult_by_two_columns_must_not_be_published(adult_home: DataHome):
    table = fpbench.dataset("adult", sensitive="sex")
    rows = np.random.default_rng(0).permutation(len(table))
    third, other = rows[:15_074], rows[15_074 : 2 * 15_074]
    names = np.array(table.groups)
    X = table.features.iloc[third].reset_index(drop=True)
    known = table.features.iloc[other].reset_index(drop=True)
    known = known.assign(group=names[table.codes[other]], prediction=table.labels[other])
    labels, groups = table.labels[third], names[table.codes[third]]
    report = FairnessReport.from_predictions(X, labels, groups, by=list(X), order=2)
    result = assess(report, X, labels, groups=groups, known_people=known, seconds=600)
    assert result.verdict.startswith("Do not publish: ")
    assert result.proven.sum() > 8000
    assert (result.posterior.argmax(axis=1) == table.codes[third])[result.proven].all()
    assert 0.84 < result.without < 0.86
    assert result.with_ > 0.9
    assert result.alone[0] >= sum(cell.settled for cell in result.riskiest)


@pytest.mark.slow
def test_known_people_make_the_adversary_stronger():
    X, predictions, groups = make_people()
    others, theirs, names = make_people(600, seed=1)
    report = make_report(X, predictions, groups, order=1, min_cell=10)
    blind = assess(report, X, predictions, groups=groups, beliefs="shares")
    known = others.assign(group=names, prediction=theirs)
    learnt = assess(report, X, predictions, groups=groups, known_people=known)
    assert learnt.without > blind.without + 0.2
    assert "learnt from 5 columns of 600 people" in str(learnt)
    # Beliefs are calibrated: as often right as they expect, but for chance.
    assert learnt.prior.max(axis=1).mean() == pytest.approx(learnt.without, abs=0.08)
    part = assess(report, X, predictions, groups=groups, known_people=known.drop(columns="likely"))
    assert part.without < learnt.without
    with pytest.raises(InputError, match="give beliefs, or known people to learn them from"):
        assess(report, X, predictions, beliefs=learnt.prior, known_people=known)


@pytest.mark.slow
def test_predictions_and_labels_may_be_of_any_two_values():
    """Of one report and of two, where a person may be missing in one, and of known people."""
    X, predictions, groups = make_people()
    labels = 1 - predictions
    names = np.array(["no", "yes"], object)
    report = make_report(X, predictions, groups)
    known = X.assign(group=groups, prediction=predictions, label=labels)
    named = known.assign(prediction=names[predictions], label=names[labels])
    right = assess(report, X, predictions, labels, groups, known_people=known)
    told = assess(
        report, X, names[predictions], names[labels], groups, known_people=named, positive="yes"
    )
    assert (told.posterior == right.posterior).all() and told.leak == right.leak
    two = pd.DataFrame({"a": names[predictions], "b": names[predictions]})
    several = assess([report, report], X, two, positive="yes")
    assert (several.posterior == assess([report, report], X, predictions).posterior).all()
    with pytest.raises(InputError, match="which counts as 1, positive='no' or positive='yes'"):
        assess(report, X, names[predictions])
    with pytest.raises(InputError, match="known people: label: must have two values"):
        assess(report, X, predictions, labels, groups, positive=1,
               known_people=known.assign(label=range(len(known))))  # fmt: skip


def test_labels_are_seen_if_they_are_given():
    X, predictions, groups = make_people()
    others, theirs, names = make_people(600, seed=1)
    X, others = X[["a"]], others[["a"]]
    labels, told = (groups == "m").astype(int), (names == "m").astype(int)
    report = make_report(X, predictions, groups, order=0)
    known = others.assign(group=names, prediction=theirs)
    blind = assess(report, X, predictions, groups=groups, known_people=known)
    assert blind.without < 0.65
    seeing = assess(
        report, X, predictions, labels, groups=groups, known_people=known.assign(label=told)
    )
    assert seeing.without == 1
    with pytest.raises(InputError, match="the known people have no column 'label'"):
        assess(report, X, predictions, labels, groups=groups, known_people=known)


def test_known_people_are_checked():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=0)
    known = X.assign(group=groups, prediction=predictions)

    def learn(changed, people=X):
        return assess(report, people, predictions, known_people=changed)

    with pytest.raises(InputError, match="no column 'prediction'; did you mean 'predictions'"):
        learn(known.rename(columns={"prediction": "predictions"}))
    odd = known.assign(group=np.where(np.arange(400) == 3, "x", groups))
    with pytest.raises(
        InputError, match="the known people, row 3: 'x' is not a group of the report"
    ):
        learn(odd)
    with pytest.raises(InputError, match="column 'prediction' of the known people: must be 0 or 1"):
        learn(known.assign(prediction=2))
    with pytest.raises(InputError, match="none of the columns of X"):
        learn(known[["group", "prediction"]])
    with pytest.raises(InputError, match="column 'a' holds .* and int64 for the known people"):
        learn(known.assign(a=1))
    with pytest.raises(InputError, match="a column of people cannot be called 'label'"):
        learn(known, X.assign(label=1))
    with pytest.raises(InputError, match="the known people have more than one column 'a'"):
        learn(pd.concat([known, known[["a"]]], axis=1))
    with pytest.raises(InputError, match="X has more than one column 'likely'"):
        learn(known, pd.concat([X, X[["likely"]]], axis=1))


@pytest.mark.slow
def test_a_leak_above_the_limit_names_what_would_tell_the_two_apart():
    rng = np.random.default_rng(0)
    groups = rng.choice(["f", "m"], 4000)
    jobs = np.where((rng.random(4000) < 0.8) == (groups == "f"), "nurse", "smith")
    X, predictions = pd.DataFrame({"job": jobs}), rng.integers(0, 2, 4000)
    report = make_report(X, predictions, groups, by=["job"], order=1)
    alone = assess(report, X, predictions, groups=groups, beliefs="shares")
    assert alone.leak > alone.limit
    hint = "what columns tell of people like these is charged to the table"
    assert hint in " ".join(str(alone).split())
    beliefs = np.tile([0.6, 0.4], (4000, 1))
    given = assess(report, X, predictions, groups=groups, beliefs=beliefs)
    assert given.leak > given.limit
    assert "charged to the table" not in " ".join(str(given).split())


def test_an_assessment_is_plain_data_too():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=2)
    result = assess(report, X, predictions, groups=groups)
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert told["verdict"] == result.verdict
    limits = {
        "max_leak": 0.01, "max_proven": 0, "max_undecided": 0, "sure": 0.999, "protect_hidden": None
    }  # fmt: skip
    assert told["criteria"] == limits
    measures = told["measures"]
    assert measures["with"] - measures["without"] == pytest.approx(measures["leak"])
    assert measures["proven"] == result.proven.sum()
    assert 0 < measures["limit"] <= 1 - measures["without"]
    assert told["change"] is None
    assert [cell["name"] for cell in told["riskiest"]] == [c.name for c in result.riskiest]
    frame = result.to_frame()
    assert len(frame) == 400
    assert frame["proven"].sum() == measures["proven"]
    assert np.allclose(frame[["after f", "after m"]].sum(axis=1), 1)
    assert (frame["likeliest"] == groups)[result.proven].all()


class Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.words = set(), ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.words += data


def test_names_are_shown_and_not_obeyed():
    X, predictions, groups = make_people()
    X["likely"] = X["likely"].replace("0", "<script>\x1b[2J")
    report = make_report(X, predictions, groups, order=1, by=["a", "likely"], min_cell=0)
    result = assess(report, X, predictions, groups=groups, beliefs="shares")
    html = Text()
    html.feed(result._repr_html_())
    assert html.tags == {
        *("p", "b", "ul", "li", "div", "span", "strong"),
        *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    }
    assert "<script>" in html.words
    assert "\x1b" not in result._repr_html_() + str(result)


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 100, 140])
def test_lines_fit_the_width(width):
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=2)
    result = assess(report, X, predictions, groups=groups)
    lines = result.to_text(width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) > 15


@pytest.mark.slow
def test_a_guarantee_limits_the_leak():
    X, predictions, groups = make_people()
    limits = []
    for epsilon in (0.1, 1.0, 10.0):
        options = {"noise": "discrete-laplace", "epsilon": epsilon, "rng": 0, "order": 1}
        result = assess(make_report(X, predictions, groups, **options), X, predictions)
        limits.append(result.private_limit)
        assert f"(epsilon {epsilon:g}, as the report states)" in " ".join(str(result).split())
    assert limits == sorted(limits)
    # Of two groups: at most e^eps / (1 + e^eps), and one half is known before.
    share = result.prior[0].max()
    assert limits[0] == pytest.approx(max(1 / (1 + np.exp(-0.1)) - share, 0), abs=1e-9)
    assert assess(make_report(X, predictions, groups), X, predictions).private_limit is None


def test_no_time_is_plain_data_as_well():
    """Whatever was reached then is what is told."""
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=2)
    result = assess(report, X, predictions, groups=groups, seconds=1e-6, search=True)
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert not told["measures"]["proofs_finished"]
    left = result.undecided.sum()  # of others, people with the same sets may exchange their groups
    assert result.verdict.startswith(
        f"Not decided, because the group of {left} more may be provable"
    )
    assert "no time the attack" in " ".join(str(result).split())


@pytest.mark.parametrize("seconds", [3, 30, 100])
def test_the_limit_of_time_holds_and_what_it_cuts_passes_nothing(monkeypatch, seconds):
    """By a clock on which every look takes a second."""
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=2)
    looks = count(1.0)
    now = [0.0]

    def look():
        now[0] = next(looks)
        return now[0]

    monkeypatch.setattr(time, "perf_counter", look)
    result = assess(
        report,
        X,
        predictions,
        groups=groups,
        beliefs="shares",
        seconds=seconds,
        max_leak="100%",
        max_proven=400,
    )
    assert now[0] <= 1.1 * seconds + 25
    assert result.passes == result.finished
    assert not result.finished
    assert result.verdict.startswith("Not decided")
    assert "the attack" in result.unfinished
    assert {check["outcome"] for check in result.to_json()["checks"]} == {"not decided"}
    assert "the attack" in result.to_json()["measures"]["unfinished"]


FIVE = pd.DataFrame({"job": list("pqqpq")}), np.array([1, 1, 0, 1, 0]), np.array(list("fmfmm"))
"""Columns, predictions and groups.

Rates without sizes, to no decimal, prove that the second is a man. There are women and men of each
job, so that one woman of job p is predicted 1. If the second were a woman, too, both others of job
q would have to be women for at most half of all women to be predicted 1, and no man would be left.
"""


def publish_five(**options):
    X, predictions, groups = FIVE
    return FairnessReport.from_predictions(
        X, predictions, groups, by=["job"], min_cell=1, sizes=False, **options
    )


def test_sizes_and_counts_prove_together():
    X, predictions, groups = FIVE
    report = publish_five(decimals=0)
    for known in (None, groups):
        result = assess(report, X, predictions, groups=known, max_leak="100%")
        assert result.proven.tolist() == [False, True, False, False, False]
        assert not result.undecided.any()
        assert result.verdict.startswith("Do not publish: the group of 1 of 5 people is proven")
        told = " ".join(str(result).split())
        assert "4 not provable, as what is published allows them another group; 0 undec" in told
    # A toolkit may print the rate of nobody as 0 or 1: all may be women, or all men.
    foreign = FairnessReport.from_frame(report.to_frame())
    assert not assess(foreign, X, predictions, max_leak="100%").proven.any()


@pytest.mark.parametrize("search", [False, True])
def test_a_report_with_undecided_people_does_not_pass(monkeypatch, search):
    X, predictions, groups = FIVE
    report = publish_five(decimals=0)
    limits = {"max_leak": "100%", "sure": "100%", "search": search, "rng": 0}
    monkeypatch.setattr("fpbench.reports.assessments.attack._SHARE", 0.0)
    result = assess(report, X, predictions, groups=groups, **limits)
    told = result.to_json()
    assert result.verdict.startswith("Not decided, because the group of 1 more may be provable; ")
    assert str(result).startswith("Not decided, because the group of 1 more may be provable")
    assert not result.passes and not told["passes"]
    assert told["measures"]["undecided"] == 1
    assert {check["outcome"] for check in told["checks"]} == {"not decided"}
    assert "not for" not in str(result)
    enough = assess(report, X, predictions, groups=groups, max_undecided=1, **limits)
    assert enough.passes
    assert enough.verdict.startswith("May be published within these limits: of 1 people it is open")


def test_what_exact_methods_do_not_cover_is_not_decided():
    """Both numbers behind a rate without size are multiples, which no fact says."""
    X, predictions, groups = FIVE
    result = assess(publish_five(round_to=2, rng=0), X, predictions, groups=groups, max_leak="100%")
    assert result.proven.any() or result.verdict.startswith("Not decided, because ")
    assert not result.passes


def test_groups_that_suppression_or_rates_exclude_do_not_match():
    X, predictions, groups = FIVE
    swapped = groups.copy()
    swapped[[1, 2]] = "f"  # of all women, two of three are predicted 1 now
    with pytest.raises(InputError, match="the report does not match these groups: "):
        assess(publish_five(decimals=0), X, predictions, groups=swapped)
    X = pd.DataFrame({"job": list("qqqqpp")})
    predictions, groups = np.array([1, 0, 1, 0, 1, 0]), np.array(list("fffmfm"))
    hidden = FairnessReport.from_predictions(
        X, predictions, groups, by=["job"], min_cell=1, min_group=2, tables=[["job"]]
    )
    assert hidden.suppressed.all()
    with pytest.raises(InputError, match="says that a group is smaller, or another rate"):
        assess(hidden, X, predictions, groups=np.array(list("ffmmfm")))


def test_of_exact_tables_of_many_people_everybody_is_decided():
    """Linear programs prove; worlds show of all others that they are not provable."""
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1)
    result = assess(report, X, predictions, groups=groups, max_leak=0.9, max_proven=400)
    assert not result.undecided.any()
    assert not result.proven.all()
    told, few = " ".join(str(result).split()), (~result.proven).sum()
    assert f"{few} not provable, as what is published allows them another group; 0 und" in told
    assert "holds for a reader who knows everybody's columns" in told
    assert "not for readers who know more, or other tables of these people" in told
    assert not replace(result, undecided=~result.proven).passes
    result = replace(result, allowed=replace(result.allowed, undecided=int(few)))
    open_ = replace(result, undecided=~result.proven)
    start, number = "May be published within these limits: of ", (~result.proven).sum()
    assert open_.verdict.startswith(f"{start}{number} people it is open whether")
    assert result.verdict.removeprefix(start[:-3]) in open_.verdict


def test_an_assessment_is_an_entry_of_a_model_card_and_evidence_for_frameworks():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1)
    found = assess(report, X, predictions, groups=groups, beliefs="shares")
    (entry,) = found.to_model_index("ours", "people")["model-index"]
    (result,) = entry["results"]
    assert (entry["name"], result["dataset"]["name"]) == ("ours", "people")
    values = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert values["attribute-inference-leak"] == found.leak
    assert values["attribute-inference-proven"] == found.proven.sum()
    assert json.loads(json.dumps(entry)) == entry  # which is YAML, too
    assert any("NIST" in name for name in found.to_json()["evidence_for"])
