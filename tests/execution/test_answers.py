"""Whatever bytes come, reading them gives a valid result or one error: nothing else happens."""

import dataclasses
import io
import json
import pickle
import random
import resource
import struct
import sys
import tracemalloc
import zipfile

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from fpbench.base.errors import PluginError
from fpbench.claims.conditions import Constraint
from fpbench.claims.constraints import ShareBounds
from fpbench.claims.rates import RateConstraint
from fpbench.claims.set_counts import Facts
from fpbench.components.auditor import Release, Shadows
from fpbench.components.guarantee import Guarantee
from fpbench.components.records import (
    Claim,
    Correction,
    Guess,
    Predictions,
    Scores,
    SolverStatus,
    SplitAnswers,
    View,
)
from fpbench.data.domain import Domain
from fpbench.data.sample import ModelAnswers, Sample, Split
from fpbench.data.table import Table
from fpbench.execution.answers import (
    CODECS,
    MOST_HEADER,
    MOST_TEXTS,
    compute_size_limit,
    pack,
    read_result,
    unpack,
    write_result,
)
from fpbench.execution.sealing import seal, unseal
from fpbench.execution.work.actions import MEASURING
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.matrix.step import Corrected, Failure, Result, Sealed, SealedClaim
from fpbench.store.packing import why_not_storable

N, M, K = 40, 20, 2
NOTES = {"a": 1.5, "b": None, "c": "text, [with] {marks} \"x\"", "d": 2**70, "e": True,
         "f": float("inf"), "g": -0.0}  # fmt: skip


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    return Sample(
        ("x", "y"),
        features=pd.DataFrame({"u": rng.random(n), "v": pd.Categorical(rng.choice(["p", "q"], n))}),
        labels=rng.integers(0, 2, n).astype(np.int8),
        sensitive=rng.integers(0, K, n).astype(np.int8),
        group_chances=rng.dirichlet(np.ones(K), n),
        domain=Domain({"u": (0, 1.5)}, {"v": ("p", "q")}),
        measured_cuts={"labels": "column 'z' is cut at its median"},
    )


SPLIT = Split(people(N, 1), people(M, 2), people(M, 3))
VIEW = View(SPLIT.train.only(frozenset({"features"})), SPLIT.attack)


def bits(n):
    return (np.arange(n) % 2).astype(np.int8)


def guess():
    values, held = np.arange(N) % K, np.arange(M) % K
    return Guess(
        values, np.linspace(0, 1, N), np.arange(M), held, np.ones(M, np.float32), NOTES,
        np.full((N, K), 1 / K), np.full((M, K), 1 / K), values == 0,
    )  # fmt: skip


def table():
    sample = SPLIT.train
    sensitive = pd.DataFrame({"s": pd.Categorical.from_codes(sample.sensitive, ["x", "y"])})
    domain, test = sample.domain, np.arange(N) < 9
    cuts = {"sensitive": "column 's' is cut at its median"}
    return Table("tiny", sample.features, sample.labels, sensitive, "yes", test, domain, cuts,
                 sample.group_chances)  # fmt: skip


ASKED = RateConstraint("equalized-odds", 0.1, "ratio")
FACTS = Facts.from_counts(
    np.arange(N)[:, None] % np.array([2, 3, N]) == 0,
    np.where(np.arange(K) == 0, [[1.0], [0.5], [-np.inf]], [[0.0], [-1.0], [-np.inf]]),
    np.where(np.arange(K) == 0, [[2.0], [0.5], [np.inf]], [[N], [-1.0], [np.inf]]),
    sigma=[0, 2.0, 0], scale=[0, 0, 1.5], derived=[True, False, False],
    names=["one\nset", "ürban", ""],
)  # fmt: skip
"""Of a range, of noise, and of nothing."""
ANSWERS = {
    "load": (table(), ()),
    "train": (Sealed(b"a model"), ()),
    "predict": (Predictions(bits(N), bits(M), bits(M), ASKED, NOTES, Guarantee(1.0, 1e-5, "add-remove")), (None, SPLIT)),
    "shadow": (
        Shadows(np.ones((4, N + M), bool), np.full((4, N + M), 0.5), np.linspace(0, 1, N + M), True),
        (None, SPLIT),
    ),
    "disclose": (
        SealedClaim(
            ASKED, "me", (FACTS,), NOTES, None, "secure", 2.5, 0.5, (None, 0),
            np.eye(K, dtype=bool)[np.arange(N) % K], b"facts",
        ),
        (SPLIT,),
    ),
    "reveal": (Scores(np.linspace(0, 1, N), np.linspace(0, 1, M)), (None, SPLIT)),
    "ask": (
        SplitAnswers(
            ModelAnswers(np.stack([bits(N)] * K, 1), np.full((N, K), 0.5)),
            ModelAnswers(np.stack([bits(M)] * K, 1)),
        ),
        (None, SPLIT),
    ),
    "tune": (Sealed(b"an adversary"), ()),
    "guess": (guess(), (VIEW, None)),
    "correct": (
        Corrected(
            Correction(
                bits(N), SolverStatus.OPTIMAL, 3.0, 2.5, np.zeros((2, K, K), np.int64), 0.25,
                {"own": 1}, np.full((N, K), 1 / K),
            ),
            0.125,
            NOTES,
            bits(N),
        ),
        (SPLIT, None, None, None),
    ),
    "score": (NOTES, ()),
    "audit": (
        Release(
            "equalized-odds", np.ones(3), np.zeros(3), np.ones(3), 0.95,
            Guarantee(0.5, 0.0, "attribute", 0.1), "simulation", NOTES,
        ),
        (),
    ),
}  # fmt: skip
"""A result of every action, and what its component was handed."""


def same(one, other):
    """Whether two results are the same to the last bit, and of the same types."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
        return True
    if isinstance(one, Facts):

        def plain(facts):
            names = tuple(" ".join(facts.name(i).split()) for i in range(len(facts)))
            arrays = facts.low, facts.high, *facts.laws, facts.derived
            return facts.membership.toarray(), *arrays, names

        return isinstance(other, Facts) and same(plain(one), plain(other))
    if isinstance(one, Sample):
        return one.seen == other.seen and all(
            same(getattr(one, name), getattr(other, name))
            for name in (*one.seen, "groups", "measured_cuts")
        )
    if isinstance(one, dict | tuple):
        assert type(one) is type(other)
        assert len(one) == len(other)
        pairs = zip(one.items(), other.items(), strict=True) if isinstance(one, dict) else None
        return all(map(same, *zip(*(pairs or zip(one, other, strict=True)), strict=True))) if (
            len(one)) else True  # fmt: skip
    if hasattr(one, "__dataclass_fields__"):
        assert type(one) is type(other)
        return all(same(getattr(one, f), getattr(other, f)) for f in one.__dataclass_fields__)
    return type(one) is type(other) and repr(one) == repr(other)


def test_every_action_of_a_component_has_a_codec():
    from fpbench.execution.work.actions import ACTIONS

    assert set(CODECS) == set(ACTIONS) - {"split"} == set(ANSWERS)


@pytest.mark.parametrize("action", ANSWERS)
def test_an_answer_is_what_it_was(action):
    value, given = ANSWERS[action]
    content = write_result(action, Result(value, 0.5))
    assert len(content) <= compute_size_limit(action, given, NO_LIMITS)
    result = read_result(action, bytearray(content), given)
    assert result.seconds == 0.5
    assert same(result.value, value)


def wide_table():
    """A table of more columns than a header could describe."""
    names = [f"column {i}" for i in range(800)]
    codes, words = np.arange(N) % 2, ["a word", "ürban"]
    features = pd.DataFrame({
        name: pd.Categorical.from_codes(codes, words) if i % 2 else np.arange(N)
        for i, name in enumerate(names)
    })  # fmt: skip
    domain = Domain(
        dict.fromkeys(names[::2], (-1.5, 100)), dict.fromkeys(names[1::2], tuple(words))
    )
    cuts = dict.fromkeys(names, "a column that is cut at its median")
    tiny = table()
    return Table("wide", features, tiny.labels, tiny.sensitive, "yes", domain=domain,
                 measured_cuts=cuts)  # fmt: skip


MANY = {"x" * 193 + f"{i:07}": 0.5 for i in range(9_999)} | {"text": "x" * 2**20}
"""As many measures as a row can hold."""


@pytest.mark.parametrize(("action", "value"), [
    ("load", wide_table()),
    ("score", MANY),
    ("audit", MANY),
    ("guess", dataclasses.replace(guess(), notes=MANY)),
    ("guess", Failure("\U0001f600" * 20_000, "\0" * 20_000, True)),
], ids=lambda each: each if isinstance(each, str) else type(each).__name__)  # fmt: skip
def test_no_honest_answer_is_too_long(action, value):
    assert not isinstance(value, dict) or why_not_storable(value) is None
    given = ANSWERS[action][1]
    content = write_result(action, Result(value, 0.5))
    assert len(content) <= compute_size_limit(action, given, NO_LIMITS)
    there = read_result(action, bytearray(content), given).value
    if action != "load":
        assert there.notes == MANY if isinstance(there, Guess) else there == value
        return
    pd.testing.assert_frame_equal(there.features, value.features)
    assert repr(there.domain) == repr(value.domain)
    assert there.measured_cuts == value.measured_cuts


def test_arrays_of_any_order_come_as_they_are():
    values = np.asfortranarray(np.arange(2 * K * K).reshape(2, K, K))[::-1].astype(">i4")
    correction = Correction(None, None, moves=values)
    content = write_result("correct", Result(Corrected(correction, 0.0, {}, None), 0.0))
    there = read_result("correct", content, ANSWERS["correct"][1]).value.correction
    assert np.array_equal(there.moves, values)
    assert there.moves.dtype == np.dtype("i4")


def test_a_failure_is_a_failure_and_short():
    failure = Failure("why " * 100_000, "\udc80 \x1b", True)
    there = read_result("guess", write_result("guess", Result(failure, 0.0)), (VIEW, None)).value
    assert there.bad_input is True
    assert len(there.reason) <= 20_000
    assert "letters" in there.reason
    assert there.trace == "\udc80 \x1b"


@pytest.mark.parametrize("change", [
    {"values": np.array(["a"] * N)},
    {"values": np.array([None] * N)},
    {"values": [0] * N},
    {"confidence": np.ones(N, np.complex128)},
    {"confidence": np.ones(N, np.longdouble)},
    {"notes": {"gift": object()}},
    {"notes": {3: 1}},
    {"notes": [("a", 1)]},
    {"values": np.zeros((N, 1, 1, 1))},
], ids=lambda change: next(iter(change)))  # fmt: skip
def test_an_answer_of_other_types_is_refused_where_it_is_made(change):
    fields = {name: getattr(guess(), name) for name in Guess.__dataclass_fields__}
    with pytest.raises(PluginError):
        write_result("guess", Result(Guess(**(fields | change)), 0.0))


# What a hostile component may send


class Call:
    """Pickles as a call."""

    def __init__(self, function, *arguments):
        self.pair = function, arguments

    def __reduce__(self):
        return self.pair


def nested(levels=60):
    """800 bytes whose `repr` has no end: each list holds the one before ten times."""
    pieces = [b"\x80\x04", b"]", b"\x94"]
    pieces += [b"]\x94(" + (b"h" + bytes([k])) * 10 + b"e" for k in range(levels)]
    return b"".join([*pieces, b"}b."])


PICKLES = [
    pickle.dumps(Result(1, 1.0)),
    cloudpickle.dumps(Result(guess(), 1.0)),
    pickle.dumps(Call(np.ndarray, (N,), "O", struct.pack("<Q", 0x4141414141414141) * N)),
    pickle.dumps(Call(np.ndarray, (N,), "u1", bytes(8), -(1 << 40))),
    pickle.dumps(Call(np.ndarray, (16,), "u1", bytes(8), -16)),
    pickle.dumps(Call(np.ndarray, (64,), "u1")),
    nested(),
    pickle.dumps(Result(Failure(123, 456, False), 1.0)),
]


def make_npz(compression=zipfile.ZIP_STORED, **members):
    """An archive of members as they are: bytes, or arrays."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            with archive.open(f"{name}.npy", "w") as member:
                if isinstance(content, np.ndarray):
                    np.lib.format.write_array(member, content)
                else:
                    member.write(content)
    return file.getvalue()


def to_array(text):
    """Bytes, or a value as JSON, as an array."""
    content = text if isinstance(text, bytes) else json.dumps(text).encode()
    return np.frombuffer(content, np.uint8)


def failed(texts=("r", "t"), more=None, **change):
    """Bytes of a failure, of which some fields have other values."""
    header = {"answer": "failure", "took": 1.0, "bad_input": False} | change
    return make_npz(header=to_array(header), texts=to_array(texts), **(more or {}))


def describe(header, body=bytes(64)):
    """The bytes of an array whose header may lie."""
    padded = (header + " " * (117 - len(header)) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + body


def lie(descr, shape, order="False"):
    return describe(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}")


HOSTILE = {
    "nothing": b"",
    "a bit of it": failed()[:-1],
    "no header": make_npz(texts=to_array(["r", "t"])),
    "a header that is too long": failed(spare="x" * MOST_HEADER),
    "a header of another type": make_npz(header=np.zeros(8)),
    "a header that is no array": make_npz(header=b"{}"),
    "a header that is a list": make_npz(header=to_array([])),
    "another action": failed(answer="correct"),
    "no action": failed(answer=None),
    "an unknown field": failed(spare=1),
    "no time": failed(took=None),
    "a whole number of seconds": failed(took=1),
    "seconds that are true": failed(took=True),
    "seconds below 0": failed(took=-1e300),
    "seconds without end": failed(took=float("inf")),
    "seconds that are no number": failed(took=float("nan")),
    "digits without end": failed(took=10**400),
    "bad input that is no truth value": failed(bad_input=1),
    "a reason that is a mapping": failed(({"a": 1}, "t")),
    "one text": failed(["r"]),
    "three texts": failed(["r", "s", "t"]),
    "too many texts": failed(["x" * MOST_TEXTS, "t"]),
    "an array more": failed(more={"values": np.zeros(3)}),
    "a part more": failed(more={"values.x": np.zeros(3)}),
    "objects": failed(more={"x": describe("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
                                          pickle.dumps([1]))}),
    "a member that is no array": failed(more={"x": b"text"}),
    "compressed": make_npz(zipfile.ZIP_DEFLATED, header=np.zeros(2**24, np.uint8)),
    "compressed, and short": make_npz(zipfile.ZIP_LZMA, header=to_array({})),
    "shares its bytes": None,
    **{f"an array of {said}": failed(more={"x": lie(*said)}) for said in (
        ("'<U4'", "(4,)"), ("'|V8'", "(8,)"), ("'<c8'", "(8,)"), ("'<M8[s]'", "(8,)"),
        ("'|S8'", "(8,)"), ("'>i8'", "(8,)"), ("'<f2'", "(2**64,)"), ("'|u1'", "(-1,)"),
        ("'<i8'", "(2305843009213693952, 2305843009213693952)"), ("'|u1'", "(65,)"),
        ("'|V0'", "(1000000000000,)"), ("'|u1'", "(70368744177664,)"), ("'<i8'", "(4294967296,)"),
        ("[('a', '|O')]", "(1,)"), ("'<f8, <f8'", "(4,)"), ("('<f8', (2, 2))", "(2,)"),
    )},
    "a header of an array that nests": failed(more={"x": describe("(" * 9_000)}),
    "a header of an array with signs": failed(more={"x": describe("-" * 9_000 + "1")}),
    "a header of an array of digits": failed(more={"x": describe("9" * 9_000)}),
    "a long header of an array": failed(more={"x": describe("1," * 30_000)}),
}  # fmt: skip


def share_bytes():
    """Many members that name the same bytes, which would take a gigabyte."""
    one = make_npz(header=np.zeros(2**20, np.uint8))
    start = one.index(b"PK\x01\x02")
    entry, end = one[start : one.index(b"PK\x05\x06")], one[one.index(b"PK\x05\x06") :]
    counts = struct.pack("<HHII", 1000, 1000, 1000 * len(entry), start)
    return one[:start] + entry * 1000 + end[:8] + counts + end[20:]


HOSTILE["shares its bytes"] = share_bytes()


@pytest.fixture
def opens_nothing(monkeypatch):
    """Fails if anything is unpickled."""
    for name in ("loads", "load", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)


def test_lies_in_an_answer_are_refused(opens_nothing):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for what, content in HOSTILE.items():
        with pytest.raises(PluginError) as error:
            read_result("guess", bytearray(content), (VIEW, None))
        assert len(str(error.value)) < 200, what  # nothing of what came is repeated
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16  # kilobytes


def test_a_failure_that_these_change_is_read():
    result = read_result("guess", bytearray(failed()), (VIEW, None))
    assert result == Result(Failure("r", "t", False), 1.0)


def test_a_header_has_at_most_64_kb():
    spare = MOST_HEADER - len(b'{"x":""}')
    assert unpack(pack({"x": "x" * spare})) == {"x": "x" * spare}
    with pytest.raises(PluginError, match="more than 65,536 bytes"):
        pack({"x": "x" * (spare + 1)})


def test_an_answer_may_be_as_long_as_what_is_asked():
    """A guess as its people, a model as the memory that its step may take."""
    slack = 2**24
    n, m = N, M
    assert compute_size_limit("guess", (VIEW, None), NO_LIMITS) == 8 * (3 + K) * (n + m) + slack
    assert compute_size_limit("score", (), NO_LIMITS) == slack
    assert compute_size_limit("train", (), Limits(memory_limit=2**28)) == 2**28 + slack


ODD = [None, True, False, 0, -1, 2**31, 2**63, 2**70, 10**400, 0.5, -0.5, 1e308, "", "x", "guess",
       "|O8", "<f8", "|u1", [], [[]], {}, {"a": 1}, [1, 2], ["nan"], "\udc80", "\0" * 50,
       [[[[[[[[[]]]]]]]]]]  # fmt: skip


def mutate_value(value, rng):
    """The same, changed at a place of its own choice."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(sorted(value))
        kind = rng.random()
        if kind < 0.15:
            return {name: each for name, each in value.items() if name != key}
        if kind < 0.25:
            return value | {rng.choice(["x", "kind", "values", "\n"]): rng.choice(ODD)}
        return value | {key: mutate_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        kind = rng.random()
        if kind < 0.15:
            return value[:place] + value[place + 1 :]
        if kind < 0.3:
            return [*value, rng.choice(value)]
        return [*value[:place], mutate_value(value[place], rng), *value[place + 1 :]]
    if type(value) is int and rng.random() < 0.7:
        return value + rng.choice([-1, 1, 2**32, -value, value])
    return rng.choice(ODD)


def mutate(content, rng, others):
    """Bytes that a hostile component might send instead."""
    kind = rng.randrange(10)
    if kind == 0:
        for _ in range(rng.choice([1, 2, 8, 64])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        return content
    if kind == 1:
        return content[: rng.randrange(len(content))]
    if kind == 2:
        return content + bytes(rng.choice([1, 8, 16, 4096]))
    if kind == 3:
        return rng.choice(PICKLES) if rng.random() < 0.5 else rng.randbytes(rng.randrange(600))
    members = read_members(content)
    name = rng.choice(sorted(members))
    if kind == 4:  # the header of one, the arrays of another
        return make_npz(**{**read_members(rng.choice(others)), "header": members["header"]})
    if kind == 5:  # a member less, one of another name, or one of another member
        lost = members.pop(name)
        other = rng.choice(["x", "values", "a.b.c", "header", *members])
        return make_npz(**(members if rng.random() < 0.5 else {other: lost, **members}))
    if kind == 6:  # another shape or type
        array = members[name].reshape(-1)
        with np.errstate(invalid="ignore"):
            whole = array.astype("i8")
        odd = [
            array[:-1],
            array.reshape(1, -1),
            array.astype("f4"),
            whole - 1,
            array.astype(bool),
            np.resize(array, array.size + 1),
            array.reshape(-1, 1, 1, 1),
        ]
        return make_npz(**members | {name: rng.choice(odd)})  # fmt: skip
    array = np.copy(members[name])
    raw = array.reshape(-1).view(np.uint8)
    if kind == 7 and raw.size:  # bytes of arrays, which may be JSON
        odd = [0, 1, 2, 127, 128, 255] if name != "header" and rng.random() < 0.7 else (
            b'0123456789"[]{},:-.eE\\untfalsNI \0\xff')  # fmt: skip
        for _ in range(rng.choice([1, 4, 16])):
            raw[rng.randrange(raw.size)] = rng.choice(odd)
        return make_npz(**members | {name: array})
    if kind == 8:
        name = "header"
    try:
        value = json.loads(bytes(members[name]))
    except ValueError:
        return make_npz(**members | {name: to_array(rng.choice(ODD[:-5]))})
    for _ in range(rng.choice([1, 1, 2, 5])):
        value = mutate_value(value, rng)
    return make_npz(**members | {name: to_array(value)})


def read_members(content):
    with np.load(io.BytesIO(content)) as archive:
        return dict(archive)


def check_valid(action, value, given):
    """Raise AssertionError if this is not what the action may give."""
    if isinstance(value, Failure):
        assert (type(value.reason), type(value.trace), type(value.bad_input)) == (str, str, bool)
        return
    template = ANSWERS[action][0]
    kinds = (Claim, type(None)) if action == "disclose" else type(template)
    assert isinstance(value, kinds)
    if action == "guess":
        MEASURING["guess"](value, given, None)
        assert value.values.shape == value.confidence.shape == (N,)
        assert set(np.unique(value.values)) <= set(range(K))
        assert value.held_out.shape == value.held_out_values.shape
        assert np.isfinite(value.confidence).all()
        VIEW.attack.sensitive[value.held_out]
    if action == "predict":
        assert [len(p) for p in (value.train, value.test, value.attack)] == [N, M, M]
        assert set(np.unique(value.train)) <= {0, 1}
    if action == "correct":
        correction = value.correction
        assert correction.values is None or correction.values.shape == (N,)
        assert correction.gap is None or isinstance(correction.gap, float)
    if action == "load":
        assert len(value.features) == len(value.labels) == len(value.codes)
        value.digest()
    for measures in (value if isinstance(value, dict) else getattr(value, "notes", {}),):
        assert all(type(v) in (str, int, float, bool, type(None)) for v in measures.values())


def attempted(action, content, given):
    """The result, or why there is none."""
    try:
        result = read_result(action, content, given)
        if action == "guess" and isinstance(result.value, Guess):
            MEASURING["guess"](result.value, given, None)
    except PluginError as error:
        return str(error)
    return result


@pytest.mark.parametrize("number", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_answers_are_read_or_refused(number, opens_nothing):
    """Seeded; with the peak of memory, which bounds what any of them can make the reader take."""
    rng = random.Random(18)
    actions = list(ANSWERS)
    weights = [1 if action == "load" else 4 for action in actions]
    bases = {action: write_result(action, Result(ANSWERS[action][0], 0.5)) for action in actions}
    failed = write_result("guess", Result(Failure("why", "trace", False), 0.5))
    refused = read = 0
    tracemalloc.start()
    try:
        for _ in range(number):
            (action,) = rng.choices(actions, weights)
            given = ANSWERS[action][1]
            base = failed if rng.random() < 0.1 else bases[action]
            content = mutate(bytearray(base), rng, list(bases.values()))
            result = attempted(action, content, given)
            if isinstance(result, str):
                refused += 1
                assert len(result) < 300
                continue
            read += 1
            assert type(result) is Result
            assert type(result.seconds) is float
            assert 0 <= result.seconds < float("inf")
            check_valid(action, result.value, given)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused > number / 2
    assert read > number / 20  # or the mutations would only ever meet the first check
    assert peak < 2**23


# What is sealed


class _Own(Constraint):
    """A constraint of a plugin."""

    @property
    def word(self):
        return "own"

    @property
    def labels(self):
        return ()


def test_what_a_disclosure_knows_besides_rates_stays_sealed():
    claim = Claim(ASKED, "me", (ShareBounds(0, 0.1, 0.9), _Own()), {"a": 1})
    content = write_result("disclose", Result(seal("disclose", claim), 0.0))
    there = read_result("disclose", content, (SPLIT,)).value
    assert isinstance(there, SealedClaim)
    assert (there.constraint, there.source, there.also, there.notes) == (ASKED, "me", (), {"a": 1})
    open_claim = unseal(there)
    assert type(open_claim) is Claim
    assert [c.word for c in open_claim.constraints] == ["ratio", "share", "own"]
    assert seal("disclose", Claim(ASKED, "me")) == Claim(ASKED, "me")
    assert seal("disclose", None) is None


@pytest.mark.parametrize("action", ["train", "tune"])
def test_models_and_adversaries_stay_sealed(action, monkeypatch):
    model = _Own()
    content = write_result(action, Result(seal(action, model), 0.0))
    with monkeypatch.context() as patched:
        patched.setattr(pickle, "loads", None)
        there = read_result(action, content).value
    assert type(there) is Sealed
    assert type(unseal(there)) is _Own


def test_what_is_written_is_read():
    content = pack({"a": [1, -0.0, "\udc80"], "b": np.zeros((0, 3)), "c": {"d": np.float32(0.5)},
                    "e": None, "f": True, "g": b"bytes"})  # fmt: skip
    there = unpack(content)
    assert there.pop("b").shape == (0, 3)
    texts = {name: array.tobytes() for name, array in there.items() if name != "f"}
    assert texts == {"a": b'[1,-0.0,"\\udc80"]', "c": b'{"d":0.5}', "g": b"bytes"}
    assert there["f"] is True


def test_the_reader_imports_nothing_that_unpickles():
    module = sys.modules["fpbench.execution.answers"]
    assert not {"pickle", "cloudpickle"} & set(vars(module))
