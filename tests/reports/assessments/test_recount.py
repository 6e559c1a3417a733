"""Worlds and proofs of records, recounted: right records are, and no wrong one is."""

import ast
import json
import time
from base64 import b64decode, b64encode
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from zlib import compress, decompress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_worlds import MODES, draw_tables, publish_world
from reports import make_people, make_report

from fpbench import InputError, assess
from fpbench.claims import Facts
from fpbench.correction import propagate
from fpbench.correction.facts import worlds as found_worlds
from fpbench.correction.facts.interior_point import LinearSolver
from fpbench.correction.facts.linear_programs import prove_and_log
from fpbench.correction.facts.worlds import find_worlds
from fpbench.reports.assessments import recount
from fpbench.reports.assessments.attack import Reader, attack
from fpbench.reports.assessments.evidence import check_evidence, list_published, pack_evidence
from fpbench.reports.assessments.report_series import ReportSeries


def record_of(facts, worlds):
    """A record of what is decided, as it is read."""
    measures = {
        "proven": int((worlds.possible.sum(axis=1) == 1).sum()),
        "proven_by_solver": worlds.by_solver, "undecided": int(worlds.undecided.sum()),
    }  # fmt: skip
    return json.loads(json.dumps({"measures": measures, "evidence": pack_evidence(worlds, facts)}))


def edit(record, name, kind, change):
    """The record with another array of the evidence."""
    record = deepcopy(record)
    packed = record["evidence"][name]
    array = np.frombuffer(decompress(b64decode(packed["data"])), kind).reshape(packed["shape"])
    array = np.array(change(array.copy()))
    packed["shape"] = list(array.shape)
    packed["data"] = b64encode(compress(array.astype(kind).tobytes())).decode()
    return record


def recount_reports(seeds, mode):
    """Records of small reports of a mode are recounted; how many, and how many proofs."""
    tried = proofs = 0
    with LinearSolver() as solver:
        for seed in seeds:
            try:
                reports, X, shown, labels, groups, possible = publish_world(seed, mode)
                alone = shown[:, 0] if len(reports) == 1 else shown
                series = ReportSeries.of(reports, alone, len(X))
            except InputError:  # parameters that exclude each other
                continue
            facts = series.read(X, labels).facts
            n, k = possible.shape
            reader = Reader(np.full((n, k), 1 / k), groups if seed % 2 else None, 0.1)
            worlds = attack(facts, reader, 600, None, solver, decide=True).worlds
            told = check_evidence(record_of(facts, worlds), facts)
            assert told.passes, (seed, told.differences)
            assert told.proven + told.by_solver == (possible.sum(axis=1) == 1).sum(), seed
            assert told.not_provable == (possible.sum(axis=1) > 1).sum(), seed
            assert not told.undecided, seed
            tried, proofs = tried + 1, proofs + told.proofs
    return tried, proofs


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("mode", MODES)
def test_a_record_of_a_small_report_is_recounted(mode):
    assert recount_reports(range(4), mode)[0] == 4


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_records_of_many_small_reports_are_recounted(mode):
    tried, proofs = recount_reports(range(2000, 2120), mode)
    assert tried > 100
    assert proofs or mode == "complementary"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{}, {"decimals": 2}, {"round_to": 3, "rng": 0}, {"min_group": 4}, {"sizes": False}],
)
def test_a_record_of_many_people_is_recounted(changes):
    X, predictions, groups = make_people(240)
    report = make_report(X, predictions, groups, order=2, **changes)
    result = assess(report, X, predictions, groups=groups, beliefs="shares")
    told = check_evidence(json.loads(json.dumps(result.to_json(witnesses=True))), result.facts)
    assert told.passes
    assert told.proven + told.by_solver == result.proven.sum()
    assert told.undecided == result.undecided.sum()
    assert "evidence" not in result.to_json()


def test_a_record_says_how_many_are_in_worlds_that_it_has_no_room_for(monkeypatch):
    monkeypatch.setattr(found_worlds, "_MOST", 2)
    facts, group = draw_tables(5, 300, np.array([4, 5, 6]), 1)
    n = len(group)
    worlds = find_worlds(facts, propagate(facts), group, time.perf_counter() + 60)
    told = check_evidence(record_of(facts, worlds), facts)
    assert told.passes and told.worlds <= 2 and told.unlisted > 0
    assert told.not_provable + told.unlisted == (worlds.seen.sum(axis=1) > 1).sum()
    assert f"{told.unlisted} more in worlds that it has no room for" in str(told)
    record = record_of(facts, worlds)
    for other in (0, told.unlisted + 1):
        record["evidence"]["unlisted"] = other
        assert not check_evidence(record, facts).passes
    for bad in (-1, n + 1, "some", None):
        record["evidence"]["unlisted"] = bad
        with pytest.raises(InputError, match="damaged: unlisted"):
            check_evidence(record, facts)


def test_a_record_without_time_is_right():
    X, predictions, groups = make_people(60)
    report = make_report(X, predictions, groups, order=1)
    result = assess(report, X, predictions, groups=groups, beliefs="shares", seconds=1e-9)
    assert result.undecided.any()
    told = check_evidence(json.loads(json.dumps(result.to_json(witnesses=True))), result.facts)
    assert told.passes
    assert told.not_provable > 0


@st.composite
def drawn_facts(draw):
    """Facts that are true of some groups of few people, these, and all that facts allow."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(2, 4))
    n = draw(st.integers(3, 8 if k == 2 else 6))
    members = rng.random((n, draw(st.integers(1, 7)))) < draw(st.sampled_from([0.3, 0.5, 0.8]))
    members[:, 0] = True
    truth = rng.integers(0, k, n)
    counts = np.stack([members[truth == g].sum(axis=0) for g in range(k)], axis=1)
    slack = rng.integers(0, 3, (2, *counts.shape)) * (rng.random((len(counts), 1)) < 0.4)
    facts = Facts.from_counts(members, counts - slack[0], counts + slack[1])
    vectors = np.array(list(product(range(k), repeat=n)))
    allowed = vectors[[facts.allows(vector) for vector in vectors]]
    return facts, truth, (allowed[:, :, None] == np.arange(k)).any(axis=0), rng


@given(drawn_facts())
def test_no_multipliers_prove_what_is_wrong(drawn):
    """Whatever stands in a proof, no group is ruled out that somebody has in a world."""
    facts, truth, possible, rng = drawn
    published = list_published(facts)
    known = published.propagate(np.ones(possible.shape, np.bool_))
    assert (known | ~possible).all()
    assert published.allows(truth)
    for _ in range(8):
        size = int(rng.integers(1, len(facts) + 1))
        sets = rng.choice(len(facts), size, replace=False)
        multipliers = rng.integers(-2, 3, size) * recount.UNIT
        people, group = rng.integers(0, facts.people, 2), rng.integers(0, facts.groups, 2)
        if published.proves(
            known, int(rng.integers(facts.groups)), sets, multipliers, people, group
        ):
            assert not possible[people, group].any()


@given(drawn_facts())
def test_a_recount_accepts_valid_worlds_only(drawn):
    """Of another world, and of another published number, too."""
    facts, truth, possible, rng = drawn
    start = np.ones(possible.shape, np.bool_)
    record = record_of(facts, find_worlds(facts, start, truth, time.perf_counter() + 600))
    record["measures"]["proven_by_solver"] = record["measures"]["proven"]

    def change(worlds):
        worlds[rng.integers(len(worlds)), rng.integers(facts.people)] = rng.integers(facts.groups)
        return worlds

    def read(record):
        packed = record["evidence"]["worlds"]
        content = np.frombuffer(decompress(b64decode(packed["data"])), "<i2")
        return content.reshape(packed["shape"])

    assert check_evidence(record, facts).passes
    other = edit(record, "worlds", "<i2", change)
    if not all(map(facts.allows, read(other))):
        assert not check_evidence(other, facts).passes
    low, high = facts.low.copy(), facts.high.copy()
    place = rng.integers(len(facts)), rng.integers(facts.groups)
    low[place] += rng.integers(0, 2)
    high[place] = max(high[place] - rng.integers(0, 2), low[place])
    changed = replace(facts, low=low, high=high)
    if not all(map(changed.allows, read(record))):
        assert not check_evidence(record, changed).passes


def find_proof():
    """Facts, and what is decided: a linear program proves some groups, and others have two."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        members, truth = rng.random((10, 7)) < 0.5, rng.integers(0, 2, 10)
        members[:, 0] = True
        counts = np.stack([members[truth == g].sum(axis=0) for g in range(2)], axis=1)
        facts = Facts.from_counts(members, counts)
        possible, log = prove_and_log(facts, None, time.perf_counter() + 60)
        if (
            any(len(proof.people) for proof in log.certificates)
            and not (possible.sum(axis=1) == 1).all()
        ):
            found = find_worlds(facts, possible, truth, time.perf_counter() + 60)
            return facts, found._replace(proofs=tuple(log.certificates))
    raise AssertionError


@pytest.fixture(scope="module")
def proven():
    """Facts, and a record of their proof by a linear program."""
    facts, worlds = find_proof()
    return facts, record_of(facts, worlds)


@pytest.mark.parametrize(("name", "kind", "change"), [
    ("multipliers", "<i8", lambda terms: terms * [1, 0]),
    ("multipliers", "<i8", lambda terms: terms * [1, -1]),
    ("multipliers", "<i8", lambda terms: terms * [1, 2**32]),
    ("proofs", "<i4", lambda proofs: proofs * 0),
    ("worlds", "<i2", lambda worlds: worlds[:0]),
    ("worlds", "<i2", lambda worlds: 1 - worlds),
])  # fmt: skip
def test_wrong_evidence_is_noticed(proven, name, kind, change):
    facts, record = proven
    assert check_evidence(record, facts).passes
    other = edit(record, name, kind, change)
    if name == "proofs":
        for also, width in (("multipliers", "<i8"), ("ruled_out", "<i4")):
            other = edit(other, also, width, lambda array: array[:0])
    told = check_evidence(other, facts)
    assert not told.passes
    assert str(told).startswith("The record is not right:\n  ")


@pytest.mark.parametrize("measure", ["proven", "undecided", "proven_by_solver"])
@pytest.mark.parametrize("more", [-1, 1])
def test_numbers_that_the_evidence_does_not_show_are_noticed(proven, measure, more):
    facts, record = proven
    other = deepcopy(record)
    other["measures"][measure] += more
    # More that a solver may have proven leaves nothing to notice but their number.
    assert check_evidence(other, facts).passes == ((measure, more) == ("proven_by_solver", 1))


@pytest.mark.parametrize(("change", "words"), [
    (lambda r: r.pop("evidence"), "holds no worlds and proofs"),
    (lambda r: r["evidence"].update(version=2), "has version 2"),
    (lambda r: r["evidence"].pop("proofs"), "damaged: proofs"),
    (lambda r: r["evidence"]["worlds"].update(data="AAAA"), "damaged: worlds"),
    (lambda r: r["evidence"]["worlds"].update(shape=[1, 1]), "damaged: worlds"),
])  # fmt: skip
def test_damaged_evidence_is_one_clear_error(proven, change, words):
    facts, record = proven
    other = deepcopy(record)
    change(other)
    with pytest.raises(InputError, match=words):
        check_evidence(other, facts)


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [("multipliers", "<i8", -1), ("multipliers", "<i8", 99), ("ruled_out", "<i4", 10),
     ("proofs", "<i4", 2), ("worlds", "<i2", 2), ("worlds", "<i2", -1)],
)  # fmt: skip
def test_numbers_of_nothing_are_one_clear_error(proven, name, kind, value):
    facts, record = proven

    def change(array):
        array[0, 0] = value
        return array

    with pytest.raises(InputError, match=f"damaged: {name}: a number that does not occur"):
        check_evidence(edit(record, name, kind, change), facts)


def test_the_recount_shares_nothing_with_the_attack():
    tree = ast.parse(Path(recount.__file__).read_text())
    names = [
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert {name.split(".")[0] for name in names} == {"itertools", "typing", "numpy"}
