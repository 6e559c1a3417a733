"""Defences of a report that exists: what they publish is true, and nothing that was not there."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_fairness_report import NUMBERS, RATES, count_true, make_people, make_report

from fpbench import FairnessReport, InputError
from fpbench.claims import ContradictionError
from fpbench.correction import propagate
from fpbench.reports import REPORT_METRICS
from fpbench.reports.defences.counts_with_noise import Counts
from fpbench.reports.defences.group_swaps import GroupSwaps
from fpbench.reports.defences.sums_of_counts import Sums
from fpbench.reports.exact_blocks import ExactBlocks

DEFENCES = st.fixed_dictionaries(
    {},
    optional={
        "by": st.sampled_from([["age"], ["job", "hours"], []]),
        "order": st.integers(0, 2),
        "bins": st.sampled_from([{"age": 2}, {"hours": 3}, {"age": 3, "hours": 2}]),
        "min_cell": st.integers(1, 40),
        "min_group": st.integers(1, 12),
        "complementary": st.just(True),
        "sizes": st.booleans(),
        "decimals": st.integers(0, 3),
        "round_to": st.sampled_from([2, 5, 10]),
        "rounding": st.sampled_from(["random", "nearest", "midpoint", "controlled"]),
        "cell_keys": st.just({"bound": 3, "variance": 2.0}),
    },
)


def make_exact(n=120, seed=0, k=2, **options):
    return make_report(n, seed, k, **({"min_cell": 0} | options))


def assert_true_of(report, people, groups):
    facts = report.facts(*people)
    counts = count_true(facts, report, groups)
    exact = ~facts.noisy
    assert (facts.low <= counts)[exact].all()
    assert (counts <= facts.high)[exact].all()
    possible = propagate(facts)
    codes = [report.groups.index(group) for group in groups]
    assert possible[np.arange(len(groups)), codes].all()
    return facts


@pytest.mark.slow
@given(
    seed=st.integers(0, 99),
    k=st.integers(2, 4),
    metrics=st.lists(st.sampled_from(list(REPORT_METRICS)), min_size=1, max_size=4, unique=True),
    defences=DEFENCES,
)
def test_facts_of_a_protected_report_are_true_of_its_people(seed, k, metrics, defences):
    if not set(metrics) & set(RATES):
        defences.pop("decimals", None)
    if not {"min_cell", "min_group"} & set(defences):
        defences.pop("complementary", None)
    if "round_to" not in defences or "cell_keys" in defences:
        defences.pop("rounding", None)
    if "cell_keys" in defences:
        defences.pop("round_to", None)
    if "by" in defences:
        defences.pop("bins", None)
        defences.pop("order", None)
    if {"complementary", "round_to", "noise", "cell_keys"} & set(defences):
        own = [name for name in metrics if REPORT_METRICS[name].view == "prediction"]
        metrics = own or ["selection-rate"]
        if not set(metrics) & set(RATES):
            defences.pop("decimals", None)
    report, people, groups = make_exact(seed=seed, k=k, metrics=metrics)
    assert_true_of(report.protect(**defences, rng=seed), people, groups)


@pytest.mark.parametrize(
    "defences",
    [
        {"min_cell": 30}, {"min_group": 5}, {"decimals": 2}, {"round_to": 5, "rng": 3},
        {"round_to": 6, "rounding": "midpoint"}, {"cell_keys": {"bound": 2}, "rng": 3},
        {"sizes": False}, {"noise": "discrete-laplace", "epsilon": 1.0, "rng": 3},
    ],
)  # fmt: skip
def test_there_is_one_way_to_protect(defences):
    """From predictions at once, or an exact report afterwards."""
    options = {"k": 3, "metrics": ("selection-rate", "true-positives")}
    report, _, _ = make_exact(**options)
    at_once, _, _ = make_exact(**options, **defences)
    pd.testing.assert_frame_equal(report.protect(**defences).to_frame(), at_once.to_frame())
    assert report.protect(**defences).defences == at_once.defences
    assert set(defences) - {"rng"} <= set(at_once.defences)


def test_fewer_tables_and_metrics():
    report, _, _ = make_exact(metrics=RATES)
    frame = report.to_frame()
    age = report.protect(by=["age"])
    kept = frame[(frame["job"] == "") & (frame["hours"] == "")]
    pd.testing.assert_frame_equal(
        age.to_frame(), kept.drop(columns=["job", "hours"]).reset_index(drop=True)
    )
    assert [column.name for column in age.columns] == ["age"]
    chosen = report.protect(tables=[[], ["job", "age"]], metrics=["true-positive-rate"])
    used = chosen.cells >= 0
    assert {tuple(row) for row in used} == {(False, False), (True, True)}
    assert set(chosen.metric) == {"true-positive-rate"}
    assert (report.protect(order=1).cells >= 0).sum(axis=1).max() == 1
    people = make_people(120)
    same = FairnessReport.from_predictions(
        people[0], people[1], people[3], by=["age", "job"], order=2, labels=people[2], min_cell=0,
        metrics=["true-positive-rate"], tables=[[], ["job", "age"]],
    )  # fmt: skip
    pd.testing.assert_frame_equal(same.to_frame(), chosen.to_frame())


@pytest.mark.parametrize("k", [2, 3])
def test_merged_bins_are_those_of_the_people(k):
    report, (X, predictions, labels), groups = make_exact(k=k, metrics=RATES)
    merged = report.protect(bins={"age": 2, "hours": 3})
    by_name = {column.name: column for column in merged.columns}
    assert [len(by_name[name].values) for name in ("age", "hours")] == [2, 3]
    again = FairnessReport.from_predictions(
        X, predictions, groups, by=list(X), order=2, labels=labels, metrics=RATES, min_cell=0,
        bins={name: by_name[name].edges for name in ("age", "hours")},
    )  # fmt: skip
    columns = list(again.to_frame().columns)
    one, other = (
        frame.sort_values(columns).reset_index(drop=True)
        for frame in (merged.to_frame(), again.to_frame())
    )
    pd.testing.assert_frame_equal(one, other)
    # About as many in each: of two bins of the former five, two and three.
    alone = merged.to_frame().query("metric == 'selection-rate' and job == '' and hours == ''")
    assert alone[alone["age"] != ""].groupby("age")["n"].sum().min() > 30
    edges = report.columns[0].edges
    chosen = report.protect(bins={"age": [edges[1]]})
    assert chosen.columns[0].edges == (edges[1],)


def test_what_is_not_published_is_not_merged():
    report, people, groups = make_exact(metrics=["selection-rate"], min_cell=12)
    merged = report.protect(bins={"age": 2})
    assert_true_of(merged, people, groups)
    frame, exact = merged.to_frame(), make_exact(metrics=["selection-rate"])[0]
    all_ = exact.protect(bins={"age": 2}).to_frame()
    assert 0 < len(frame) < len(all_)
    assert len(frame.merge(all_)) == len(frame)


def test_a_suppressed_group_is_said_to_be_small():
    report, people, groups = make_exact(k=3, metrics=["selection-rate", "true-positives"])
    hidden = report.protect(min_group=6)
    frame = hidden.to_frame()
    assert frame.loc[frame["below"].notna(), ["value", "n"]].isna().all().all()
    assert set(frame["below"].dropna()) == {6}
    exact = report.to_frame()
    counted = exact["value"].where(exact["metric"] == "true-positives", exact["n"])
    smallest = counted.groupby(np.arange(len(exact)) // 3).transform("min")
    assert (hidden.suppressed == (smallest < 6).to_numpy()).all()
    assert_true_of(hidden, people, groups)


def test_the_margin_tells_which_group_is_small():
    """Two slices are suppressed, and more of one group are among both than either has people."""
    jobs = ["a"] * 40 + ["b"] * 40 + ["c"] * 40
    groups = np.array((["f"] * 4 + ["m"] * 36) * 2 + ["f", "m"] * 20)
    X, predictions = pd.DataFrame({"job": jobs}), np.tile([0, 1], 60)
    report = FairnessReport.from_predictions(X, predictions, groups, by=["job"], min_group=10)
    facts = report.facts(X, predictions)
    ranges = {
        facts.name(number): (facts.low[number].tolist(), facts.high[number].tolist())
        for number in range(len(facts))
    }
    # 8 are "f" and 72 are "m" among the 80 in both: at least 32 of the 40 in each.
    for job, row in (("a", 2), ("b", 4)):
        assert ranges[f"job {job} (row {row})"] == ([0, 32], [8, 40])
    hidden = report.protect(tables=[["job"]])
    assert (~hidden.facts(X, predictions).derived).sum() == 2  # of c: nothing tells who is small
    few = report.to_frame().assign(below=lambda frame: frame["below"].map({10: 20}))
    below = FairnessReport.from_frame(few).facts(X, predictions)
    assert below.high.min(axis=0).tolist() == facts.high.min(axis=0).tolist()


def test_a_false_reason_of_suppression_is_a_contradiction():
    X = pd.DataFrame({"job": ["a"] * 40 + ["b"] * 40 + ["c"] * 40})
    groups, predictions = np.array(["f", "m"] * 60), np.tile([0, 0, 1, 1], 30)
    report = FairnessReport.from_predictions(X, predictions, groups, by=["job"])
    frame = report.to_frame().assign(below=None).astype({"n": object, "below": object})
    frame.loc[frame["job"].isin(["a"]), ["value", "n", "below"]] = [np.nan, None, 5]
    with pytest.raises(ContradictionError, match="job a is suppressed because a group has fewer"):
        FairnessReport.from_frame(frame).facts(X, predictions)


def list_sets(report, X, predictions, labels, which):
    """Who is in each set whose numbers rows tell, by column."""
    sets = []
    for row in which:
        inside = np.ones(len(X), bool)
        for column, code in zip(report.columns, report.cells[row], strict=True):
            inside &= (code < 0) | (column.code(X) == code)
        if report.label[row] >= 0:
            inside &= labels == report.label[row]
        counted = [0, 1] if report.is_rate[row] else [report.prediction[row]]
        sets += [inside & (predictions == prediction) for prediction in counted]
    return np.array(sets, float).reshape(-1, len(X)).T


def tabulate(counts, **options):
    """An exact report of numbers of people in a grid, all of prediction 1, and who they are."""
    places = np.repeat(np.indices(counts.shape).reshape(2, -1), counts.ravel(), axis=1)
    X = pd.DataFrame({name: codes.astype(str) for name, codes in zip("uv", places, strict=True)})
    predictions, groups = np.ones(len(X), int), np.array(["f", "m"])[np.arange(len(X)) % 2]
    return FairnessReport.from_predictions(
        X, predictions, groups, metrics=["selected"], **options
    ), (X, predictions, None)


def follows(report, people, secret):
    """Whether the size of a set is a sum of published ones."""
    told = list_sets(report, *people, np.flatnonzero(~report.suppressed))
    return np.abs(told @ np.linalg.lstsq(told, secret.astype(float))[0] - secret).max() < 1e-6


def test_an_empty_cell_hides_no_other_cell():
    """Of those selected in job c, job b hides nothing: whoever knows it sees that none is there."""
    X = pd.DataFrame({"job": ["a"] * 40 + ["b"] * 6 + ["c"] * 5 + ["d"] * 30})
    predictions = np.r_[np.arange(40) % 2, np.zeros(6), 1, 1, 1, 0, 0, np.arange(30) % 2].astype(
        int
    )
    groups = np.array(["f", "m"])[np.arange(81) % 3 % 2]
    exact = FairnessReport.from_predictions(X, predictions, groups, by=["job"], min_cell=0)
    hidden = exact.protect(min_cell=10, complementary=True)
    secret, people = ((X["job"] == "c") & (predictions == 1)).to_numpy(), (X, predictions, None)
    assert follows(exact.protect(min_cell=10), people, secret)
    assert not follows(hidden, people, secret)


def test_a_cell_between_two_loops_of_suppressed_ones_does_not_follow_either():
    """No sum lacks that cell alone: it is the first two rows less the first two columns."""
    counts = np.full((4, 4), 40)
    counts[:2, :2] = counts[2:, 2:] = counts[1, 2] = 6
    report, people = tabulate(counts, by=["u", "v"], order=2, min_cell=0)
    bridge = (people[0]["u"] == "1") & (people[0]["v"] == "2")
    assert follows(report.protect(min_cell=10), people, bridge)
    hidden = report.protect(min_cell=10, complementary=True)
    assert not follows(hidden, people, bridge)
    assert (~hidden.suppressed).sum() > 20


def test_people_whom_an_earlier_defence_left_out_do_not_follow_either():
    report, people = tabulate(np.array([[40], [40], [6]]), by=["u"], min_cell=10)
    left_out = people[0]["u"] == "2"
    assert follows(report, people, left_out)
    hidden = report.protect(complementary=True)
    assert not follows(hidden, people, left_out)
    assert not hidden.suppressed.all()


@pytest.mark.parametrize("order", [2, 3])
def test_numbers_of_a_swap_can_change_together(order):
    """Each of them, with no other, in a vector that all sums map to 0."""
    X, predictions, _, groups = make_people(200)
    X = X.assign(kind=X["job"].map({"clerk": "in", "smith": "in", "farmer": "out"}))
    report = FairnessReport.from_predictions(
        X, predictions, groups, by=["age", "job", "kind", "hours"], order=order, bins=3, min_cell=0
    )
    sums = Sums.of(Counts.of(ExactBlocks.of(report, "this")))
    swaps, known = GroupSwaps(sums), 0
    costs = np.append(np.where(sums.total > 0, 1.0, np.inf), np.inf)
    for number in range(0, len(sums.total), 7):
        swap = swaps.find_cheapest(number, costs)
        assert not len(swap) or number in swap
        assert (sums.total[swap] > 0).all()
        if len(swap):
            _, sizes, axes = np.linalg.svd(sums.matrix[:, swap].toarray())
            free = axes[(sizes > 1e-9).sum() :]
            assert (np.abs(free).max(axis=0) > 1e-9).all()
            known += 1
    assert known > 8


def test_complements_are_few_and_keep_what_they_need_not_hide():
    exact, _, _ = make_exact(400, metrics=["selection-rate"], bins={"age": 3, "hours": 2})
    plain = exact.protect(min_cell=50)
    more = exact.protect(min_cell=50, complementary=True)
    assert len(plain) // 2 < (~more.suppressed).sum() < len(plain)
    assert more.defences == {"min_cell": 50, "complementary": True}
    assert not more.below.any()
    assert not exact.protect(min_cell=1, complementary=True).suppressed.any()
    with pytest.raises(InputError, match="needs cells to suppress: give min_cell or min_group"):
        exact.protect(complementary=True)


def test_noise_is_in_the_numbers_behind_rates():
    options = {"metrics": ["selection-rate", "selected"], "order": 1, "n": 3000}
    report, people, groups = make_exact(**options)
    noisy = report.protect(
        noise="discrete-gaussian", epsilon=3.0, delta=1e-5, consistent=False, rng=0
    )
    assert noisy.defences["noise"]["use"] == "discrete-gaussian"
    assert (noisy.defences["epsilon"], noisy.defences["delta"]) == (3.0, 1e-5)
    rates, numbers = noisy.is_rate, ~noisy.is_rate
    # The same number has the same noise in every metric.
    own = {
        tuple(noisy.cells[r]): noisy.value[r] for r in np.flatnonzero(numbers & (noisy.group == 0))
    }
    for row in np.flatnonzero(rates & (noisy.group == 0)):
        if tuple(noisy.cells[row]) in own and noisy.n[row]:
            assert round(noisy.value[row] * noisy.n[row], 6) == own[tuple(noisy.cells[row])]
    facts = noisy.facts(*people)
    assert facts.noisy.all()
    off = facts.low - count_true(facts, noisy, groups)
    assert np.sqrt((off**2).mean()) == pytest.approx(noisy.sigma[0], rel=0.2)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "mechanism",
    [
        "laplace", "discrete-laplace", "gaussian", "discrete-gaussian", "exponential",
        {"use": "exponential", "utility": "squared"},
    ],
)  # fmt: skip
def test_the_law_of_noise_is_that_of_the_mechanism(mechanism):
    report, people, groups = make_exact(n=2000, metrics=["selected"], order=2)
    relative = []
    for seed in range(20):
        noisy = report.protect(
            min_cell=60, noise=mechanism, epsilon=8.0, consistent=False, rng=seed
        )
        facts = noisy.facts(*people).soften()
        assert facts.noisy.all()
        off = facts.low - count_true(facts, noisy, groups)
        relative.append(off / (facts.sigma + facts.scale)[:, None])
    size = np.sqrt(np.mean(np.square(relative))) if facts.sigma.any() else np.mean(np.abs(relative))
    assert size == pytest.approx(1, rel=0.2)


@pytest.mark.parametrize(("defences", "message"), [
    ({"order": 3}, "order: slices of the report cross at most 2 columns, not 3"),
    ({"by": ["jobs"]}, "unknown column of by 'jobs'; did you mean 'job'"),
    ({"tables": [["age", "job", "hours"]]}, "the report has no slices by age and job and ho"),
    ({"metrics": ["selected"]}, "unknown metric of the report 'selected'"),
    ({"metrics": "selected"}, "metrics must be a list"),
    ({"bins": {"job": 2}}, "column 'job' of the report has no bins of numbers"),
    ({"bins": {"age": 9}}, "the report has 5, of which 2 or more can be made, not 9"),
    ({"bins": {"age": [1]}}, "bins of 'age' can only keep edges of"),
    ({"decimals": 16}, "decimals must be a whole number from 0 to 15"),
    ({"round_to": 5, "noise": "laplace", "epsilon": 1.0}, "not be together with noise"),
    ({"cell_keys": {}, "noise": "laplace", "epsilon": 1.0}, "not be together with noise"),
    ({"cell_keys": {}, "round_to": 5}, "round_to must not be together with cell_keys"),
    ({"cell_keys": {"d": 5}}, "unknown parameter of cell_keys 'd'"),
    ({"cell_keys": 5}, "cell_keys must be a mapping or None, not 5"),
    ({"cell_keys": {"bound": 11}}, "bound must be a whole number from 1 to 10, not 11"),
    ({"cell_keys": {"variance": 0}}, "variance must be above 0, not 0"),
    ({"round_to": 5, "rounding": "midpiont"}, "unknown rounding 'midpiont'; did you mean 'midp"),
    ({"rounding": "nearest"}, "rounding 'nearest' needs its multiple: round_to"),
    ({"noise": "laplace"}, "epsilon must be a number, not None"),
    ({"noise": "laplace", "epsilon": 1.0, "delta": 1e-6}, "unknown key 'delta'"),
    ({"epsilon": 1.0}, "epsilon and delta need noise"),
    ({"noise": "laplace", "epsilon": 1.0, "min_group": 3}, "which noise hides"),
    ({"noise": "laplace", "epsilon": 1.0, "sizes": False}, "noisy rates without sizes give aw"),
])  # fmt: skip
def test_impossible_defences_are_refused(defences, message):
    report, _, _ = make_exact()
    with pytest.raises(InputError) as raised:
        report.protect(**defences)
    assert message in str(raised.value)


DONE = [
    {"min_cell": 30}, {"min_group": 5}, {"decimals": 2}, {"round_to": 5}, {"sizes": False},
    {"noise": "laplace", "epsilon": 1.0}, {"cell_keys": {"bound": 2}},
]  # fmt: skip


@pytest.mark.parametrize(("first", "then"), [(a, b) for a, b in combinations(DONE, 2)])
def test_defences_go_together_or_say_why_not(first, then):
    report, people, groups = make_exact()
    for pair in ((first, then), (then, first)):
        try:
            both = report.protect(**pair[0], rng=0).protect(**pair[1], rng=1)
        except InputError as error:
            refused = str(error)
        else:
            refused = ""
            assert_true_of(both, people, groups)
            assert set(first) | set(then) <= set(both.defences)
        why = ("exact", "noise hides", "cannot be measured")
        assert not refused or any(words in refused for words in why)


def test_suppression_is_not_undone():
    for what in ("min_cell", "min_group"):
        with pytest.raises(
            InputError, match=f"{what}: the report was made with 20, and lacks what"
        ):
            make_exact()[0].protect(**{what: 20}).protect(**{what: 5})
    with pytest.raises(InputError, match="rounded to 1 already"):
        make_exact()[0].protect(decimals=1).protect(decimals=2)
    frame = make_exact()[0].to_frame()
    with pytest.raises(InputError, match=r"row 0: min_group needs the .* of 'ann' for everybody"):
        FairnessReport.from_frame(frame[1:]).protect(min_group=3)
    assert NUMBERS
