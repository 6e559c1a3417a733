"""Whatever bytes come, reading them gives a valid result or one error: nothing else happens."""

import contextlib
import dataclasses
import json
import pickle
import random
import struct
import sys
import time
import tracemalloc

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
from fpbench.execution.isolation.processes import receive
from fpbench.execution.wire import message
from fpbench.execution.wire.answers import CODECS, compute_size_limit, read_result, write_result
from fpbench.execution.wire.message import MOST_HEADER, _read_header, pack, unpack
from fpbench.execution.wire.sealing import seal, unseal
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
    "split": (SPLIT, ()),
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


def test_every_action_has_its_words():
    from fpbench.execution.work.actions import ACTIONS

    assert set(CODECS) == set(ACTIONS) == set(ANSWERS)


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


MANY = {"\U0001f600" * 193 + f"{i:07}": 0.5 for i in range(9_999)} | {"text": "\U0001f600" * 2**20}
"""As many measures as a row can hold, and of as many bytes."""


@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("load", wide_table()),
        ("score", MANY),
        ("audit", MANY),
        ("guess", dataclasses.replace(guess(), notes=MANY)),
        ("guess", Failure("\U0001f600" * 20_000, "\0" * 20_000, True)),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
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


@pytest.mark.parametrize(
    "change",
    [
        {"values": np.array(["a"] * N)},
        {"values": np.array([None] * N)},
        {"values": [0] * N},
        {"confidence": np.ones(N, np.complex128)},
        {"confidence": np.ones(N, np.longdouble)},
        {"notes": {"gift": object()}},
        {"notes": {3: 1}},
        {"notes": [("a", 1)]},
        {"values": np.zeros((N, 1, 1, 1))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_not_plain_is_refused_where_it_is_made(change):
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


def raw(header, body=b""):
    """Bytes of a header that is written as it is."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("!I", len(head)) + head + bytes(-(4 + len(head)) % 16) + body


def failed(body=b"", **change):
    """Bytes of a failure, of which some fields have other values."""
    fields = {"kind": "failure", "seconds": 1.0, "bad_input": False} | change
    return raw(fields, WHY + body)


def describe(kind, dimensions, *sides):
    """The bytes before an array, which may lie."""
    return struct.pack("<3sB3Q4x", kind, dimensions, *[*sides, 0, 0, 0][:3])


WHY = pack({}, [np.array([1, 1]), np.frombuffer(b"rt", np.uint8)])[16:]
"""The arrays of a failure: the texts of its reason and its trace."""
LONGEST = {
    "a text without an end": lambda size: b'{"a":"' + b"x" * (size - 6),
    "escaped quotes": lambda size: b'{"a":"' + b'\\"' * ((size - 6) // 2),
    "escaped quotes, far apart": lambda size: b'{"a":"' + (b'\\"' + b"x" * 18) * ((size - 6) // 20),
    "quotes": lambda size: b'"' * size,
    "a quote after each text": lambda size: b'{"a":' + b'""' * ((size - 5) // 2),
    "backslashes": lambda size: b'"' + b"\\" * (size - 1),
    "half an escape": lambda size: b'{"a":"' + b"\\u12" * ((size - 6) // 4),
    "lists in lists": lambda size: b"[" * size,
    "lists in lists, closed": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "mappings in mappings": lambda size: b'{"a":' * (size // 5),
    "many lists": lambda size: b'{"a":[' + b"[]," * (size // 3 - 4) + b"[]]}",
    "many keys": lambda size: (
        b"{" + b",".join(b'"%06d":0' % i for i in range((size - 2) // 11)) + b"}"
    ),
    "one key": lambda size: b"{" + b",".join([b'"a":0'] * ((size - 2) // 6)) + b"}",
    "digits": lambda size: b'{"seconds":' + b"9" * (size - 12) + b"}",
    "decimals": lambda size: b'{"seconds":0.' + b"9" * (size - 14) + b"}",
    "zeros of an exponent": lambda size: b'{"seconds":1e' + b"0" * (size - 14) + b"}",
    "spaces": lambda size: b" " * size,
    "lines": lambda size: b"\n" * size,
    "zero bytes": bytes,
    "zero bytes in a text": lambda size: b'{"a":"' + bytes(size - 8) + b'"}',
    "no UTF-8": lambda size: b'{"a":"' + b"\xff" * (size - 8) + b'"}',
    "UTF-8 cut off": lambda size: b'{"a":"' + b"\xf0\x9f" * ((size - 8) // 2) + b'"}',
    "surrogates": lambda size: b'{"a":"' + b"\xed\xa0\x80" * ((size - 8) // 3) + b'"}',
    "commas": lambda size: b"[" + b"," * (size - 1),
    "NaN": lambda size: b"[" + b"NaN," * (size // 4 - 1) + b"0]",
}
"""Headers of any size that may cost whoever reads them."""
HOSTILE = {
    "nothing": b"",
    "a bit of it": b"\0\0\0",
    "a header that is not there": struct.pack("!I", 2**32 - 1),
    "a header that is too long": raw(b" " * (MOST_HEADER + 1)),
    "a header that is cut off": raw(b"{}")[:6],
    "a header that is not padded": raw(b"{}")[:15],
    "no JSON": raw(b"\xff\xfe{}"),
    "no mapping": raw(b"[]"),
    **{f"a header of {what}": raw(make(MOST_HEADER)) for what, make in LONGEST.items()},
    "a key twice": raw(b'{"kind":"failure","seconds":1,"bad_input":true,"seconds":1}', WHY),
    "seconds are no number": failed(seconds="long"),
    "seconds are a truth value": failed(seconds=True),
    "seconds are NaN": failed(seconds=float("nan")),
    "seconds are infinite": raw(b'{"kind":"failure","seconds":1e999,"bad_input":true}', WHY),
    "seconds are too many": failed(seconds=10**400),
    "seconds are below 0": failed(seconds=-1e300),
    "no reason": raw({"kind": "failure", "seconds": 1.0, "bad_input": False}),
    "a reason that is a mapping": failed(bad_input={"a": 1}),
    "bad input that is no truth value": failed(bad_input=1),
    "more arrays than it should have": failed(describe(b"|u1", 1)),
    "bytes after the end": failed(bytes(16)),
    "a bit of an array": failed(describe(b"|u1", 1, 16) + bytes(15)),
    **{
        f"texts of the lengths {sizes}": raw(
            {"kind": "failure", "seconds": 1.0, "bad_input": False},
            pack({}, [np.array(sizes), np.frombuffer(b"rt", np.uint8)])[16:],
        )
        for sizes in ([], [2], [1, 2], [-1, 3], [2**62, 2**62], [1, 1, 0], [[1, 1]], [1.0, 1.0])
    },
    **{
        f"an array of {said}": failed(describe(*said) + bytes(64))
        for said in (
            (b"|O8", 1, 8), (b"O\0\0", 1, 8), (b"<U4", 1, 4), (b"|V8", 1, 8), (b"<c8", 1, 8),
            (b"<M8", 1, 8), (b"|S8", 1, 8), (b"<fg", 1, 4), (b"\0\0\0", 1, 8), (b"\xff\xff\xff", 1),
            (b"|u1", 4, 64), (b"|u1", 255, 64), (b"|u1", 1, 2**64 - 64), (b"<i8", 2, 2**61, 2**61),
            (b"|u1", 1, 65), (b"|u1", 2, 65, 1), (b"|u1", 3, 0, 2**48, 2**48), (b"|u1", 1, 2**45),
            (b"<i8", 3, 2**63, 2**63, 0), (b"|u1", 0), (b"<f8", 2, 2**32, 2**32),
        )
    },
}  # fmt: skip


@pytest.fixture
def opens_nothing(monkeypatch):
    """Fails if anything is unpickled."""
    for name in ("loads", "load", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_announced_is_checked_before_it_is_believed(what, opens_nothing):
    tracemalloc.start()
    try:
        with pytest.raises(PluginError) as error:
            read_result("guess", bytearray(HOSTILE[what]), (VIEW, None))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**26
    assert len(str(error.value)) < 200  # nothing of what came is repeated


def test_there_are_no_more_arrays_than_anybody_needs(monkeypatch):
    monkeypatch.setattr(message, "_MOST_ARRAYS", 100)
    assert len(list(unpack(failed(describe(b"|u1", 1) * 98))._arrays)) == 100
    with pytest.raises(PluginError, match="too many arrays"):
        unpack(failed(describe(b"|u1", 1) * 99))


@pytest.mark.parametrize("kind", ["failure", "guess"])
@pytest.mark.parametrize("texts", [2**24 - 2**10, 2**16])
def test_an_answer_of_the_greatest_size_takes_no_more_memory_than_its_size(kind, texts):
    """Of empty texts without number, each of which costs more in memory than the byte of its size."""
    arrays = [] if kind == "failure" else guess_arrays()
    sizes = [np.zeros(texts, np.int8), np.zeros(0, np.uint8)]
    header = {"kind": kind, "seconds": 1.0, "bad_input": False, "more": []}
    content = bytearray(pack(header, [*arrays, *sizes * 2, np.zeros(9 * 2**16, np.uint8)]))
    tracemalloc.start()
    try:
        with contextlib.suppress(PluginError):
            read_result("guess", content, (VIEW, None))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(content) + 2**25


def guess_arrays():
    """The arrays of a guess, without its notes."""
    return [bits(N), np.ones(N), np.arange(M), bits(M), np.ones(M)]


def test_a_failure_that_these_change_is_read():
    result = read_result("guess", bytearray(failed()), (VIEW, None))
    assert result == Result(Failure("r", "t", False), 1.0)


def test_a_header_has_at_most_64_kib():
    spare = MOST_HEADER - len(json.dumps({"x": ""}))
    assert unpack(raw({"x": "x" * spare})).field("x", str) == "x" * spare
    with pytest.raises(PluginError, match="a header that is not there"):
        unpack(raw({"x": "x" * (spare + 1)}))
    with pytest.raises(PluginError, match="more than 65,536 bytes"):
        pack({"x": "x" * MOST_HEADER}, [])


@pytest.mark.parametrize("what", LONGEST)
def test_reading_a_header_takes_time_in_proportion_to_its_size(what):
    """Whatever is in it."""

    def measure(size):
        text, best = LONGEST[what](size), float("inf")
        for _ in range(3):
            started = time.process_time()
            with contextlib.suppress(PluginError):
                _read_header(text)
            best = min(best, time.process_time() - started)
        return best

    small, large = measure(MOST_HEADER // 8), measure(MOST_HEADER)
    assert large < 24 * small + 0.02  # 8 times as much; the square would be 64 times as much


@pytest.mark.parametrize("number", range(len(PICKLES)))
@pytest.mark.parametrize("action", ANSWERS)
def test_no_pickle_is_an_answer(number, action, opens_nothing):
    with pytest.raises(PluginError):
        read_result(action, bytearray(PICKLES[number]), ANSWERS[action][1])


class Channel:
    """Gives bytes without end; counts them."""

    def __init__(self, size):
        self.first, self.count = struct.pack("!Q", size), 0

    def recv(self, size):
        piece, self.first = (self.first or bytes(min(size, 5_000)))[:size], b""
        self.count += len(piece)
        assert self.count < 10_000, "more was read than may come"
        return piece


@pytest.mark.parametrize("size", [2**62, 2**64 - 1, 1001])
def test_nothing_is_read_of_what_is_longer_than_it_may_be(size):
    channel = Channel(size)
    with pytest.raises(PluginError, match="longer than the 1,000 bytes"):
        receive(channel, 1000)
    assert channel.count == 8
    assert receive(Channel(1000), 1000) == bytes(1000)


def test_an_answer_may_be_as_long_as_what_is_asked():
    """A guess as its people, a model as the memory that its step may take."""
    slack = 2**24 + 2**17
    assert (
        compute_size_limit("guess", (VIEW, None), NO_LIMITS)
        < 8 * ((3 + K) * N + (3 + K) * M) + slack
    )
    assert compute_size_limit("score", (), NO_LIMITS) < slack
    assert compute_size_limit("train", (), Limits(memory_limit=2**28)) < 2**28 + slack


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
    (size,) = struct.unpack_from("!I", content)
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
        lie = rng.choice([0, 1, size - 1, size + 1, size + 16, 2**31, 2**32 - 1])
        return struct.pack("!I", lie) + content[4:]
    if kind == 4:
        return bytearray(rng.choice(PICKLES)) if rng.random() < 0.5 else content[:4] + rng.randbytes(
            rng.randrange(600))  # fmt: skip
    if kind == 5:  # the header of one, the arrays of another
        other = rng.choice(others)
        (there,) = struct.unpack_from("!I", other)
        return content[: -(-(4 + size) // 16) * 16] + other[-(-(4 + there) // 16) * 16 :]
    if kind == 6:  # a byte of the header
        content[4 + rng.randrange(size)] = rng.choice(b'0123456789"[]{},:-.eE\\untfalsNI \0\xff')
        return content
    if kind == 7:  # values of arrays
        start = min(-(-(4 + size) // 16) * 16, len(content) - 1)
        for _ in range(rng.choice([1, 4, 16])):
            content[rng.randrange(start, len(content))] = rng.choice([0, 1, 2, 127, 128, 255])
        return content
    header = json.loads(bytes(content[4 : 4 + size]).decode())
    for _ in range(rng.choice([1, 1, 2, 5])):
        header = mutate_value(header, rng)
    text = json.dumps(header).encode()
    return bytearray(raw(text, bytes(content[-(-(4 + size) // 16) * 16 :])))


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
        assert value[0].values is None or value[0].values.shape == (N,)
        assert value[0].gap is None or isinstance(value[0].gap, float)
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


@pytest.mark.slow
def test_ten_thousand_mutated_answers_are_read_or_refused(opens_nothing):
    """Seeded; with the peak of memory, which bounds what any of them can make the reader take."""
    rng = random.Random(18)
    actions = list(ANSWERS)
    weights = [1 if action in ("load", "split") else 4 for action in actions]
    bases = {action: write_result(action, Result(ANSWERS[action][0], 0.5)) for action in actions}
    failed = write_result("guess", Result(Failure("why", "trace", False), 0.5))
    refused = read = 0
    tracemalloc.start()
    try:
        for _ in range(10_000):
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
    assert refused > 5_000
    assert read > 500  # or the mutations would only ever meet the first check
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


def test_a_wire_reads_what_a_wire_writes():
    content = pack({"a": [1, -0.0, "\udc80"]}, [np.zeros((0, 3)), np.array([True, False])])
    there = unpack(content)
    assert there.field("a", list) == [1, -0.0, "\udc80"]
    assert there.array("one", "f", None, 3).shape == (0, 3)
    assert there.array("two", "b", 2).tolist() == [True, False]
    there.end()


def test_truth_values_are_true_or_false():
    content = bytearray(pack({}, [np.array([True, False])]))
    content[-16] = 7
    with pytest.raises(PluginError, match="truth values"):
        unpack(content)


def test_the_reader_imports_nothing_that_unpickles():
    """Modules that read answers where the truth is."""
    for name in ("message", "values", "frames", "answers"):
        module = sys.modules[f"fpbench.execution.wire.{name}"]
        assert not {"pickle", "cloudpickle"} & set(vars(module))
