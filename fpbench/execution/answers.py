"""Results of steps as bytes and back: arrays in NumPy's `.npz`, the rest as JSON, read as data.

A hostile component may have chosen every byte of an answer, and the process that holds the truth
reads it. So nothing is unpickled, nothing is decompressed, the header has at most 64 kB, texts have
at most 4 MiB, and a record's annotations say what each of its fields may be. Sizes follow from the
step's inputs: a guess of n people has n numbers. Errors repeat nothing that was sent.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache, partial
from typing import Annotated, Any, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from fpbench.base.errors import PluginError
from fpbench.claims.count_laws import CountLaws
from fpbench.claims.rates import RateConstraint
from fpbench.claims.set_counts import Facts
from fpbench.components.auditor import Release, Shadows
from fpbench.components.guarantee import Guarantee
from fpbench.components.records import (
    Claim,
    Correction,
    Guess,
    MeasureValues,
    Predictions,
    Scores,
    SolverStatus,
    SplitAnswers,
)
from fpbench.data.domain import Domain
from fpbench.data.sample import ModelAnswers
from fpbench.data.table import Table
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Corrected, Failure, Result, Sealed, SealedClaim, shorten
from fpbench.store.packing import why_not_storable

ROW = "score"
"""The action whose answer is a row."""
MOST_HEADER = 2**16
"""Greatest size in bytes of a header of numbers and short texts."""
MOST_TEXTS = 2**22
"""Greatest size in bytes of the texts or measures of a field."""
_SLACK = 2**24
"""Bytes of an answer besides its arrays: texts, and what the format takes."""
_MOST_BYTES = 2**32
"""Greatest size of an answer of unknown size, such as a model, if memory has no limit."""
_MOST_AUDITS, _MOST_SHADOWS = 2**20, 2**16
"""Greatest numbers of repeated audits in a release, and of shadow models."""
_MOST_CROSSED, _MOST_CATEGORIES = 100, 2**17
"""Greatest number of sensitive columns, and size of their categories: crossings are groups."""
_WORDS = ("object", "str", "string")
"""Names of the dtype of texts in different versions of pandas."""

Fields: TypeAlias = dict[str, Any]
Shape: TypeAlias = tuple[int, ...]
"""Sides of an array; -n stands for at most n."""


class Unreadable(PluginError):  # noqa: N818 (users see it as a plugin's error)
    """An invalid answer; the message says what is wrong, and repeats nothing of its content."""


class _Part(dict[str, Any]):
    """Fields of a part of an answer."""


# Fields as bytes


def pack(fields: Mapping[str, Any]) -> bytes:
    """The bytes of fields: scalars, arrays, measures, lists of plain values, records.

    Raises PluginError if a field holds anything else, or texts or the header are too long.
    """
    header: Fields = {}
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in _flatten(fields):
        if isinstance(value, np.ndarray):
            arrays[name] = _to_plain(value)
        elif isinstance(value, bytes):
            arrays[name] = np.frombuffer(value, np.uint8)
        elif isinstance(value, Mapping | list | tuple):
            if isinstance(value, Mapping) and (why := why_not_storable(value)):
                raise PluginError(why)
            arrays[name] = _write_json(value, MOST_TEXTS)
        else:
            header[name] = value
    file = io.BytesIO()
    arrays["header"] = _write_json(header, MOST_HEADER)
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _flatten(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values; the names of the fields of a part begin with its name and a dot."""
    for name, whole in fields.items():
        value = _split(whole)
        if isinstance(value, _Part):
            yield from ((f"{name}.{key}", each) for key, each in _flatten(value))
        elif value is not None:
            yield name, value


def _split(value: Any) -> Any:
    """A value of a field, or the part that it is written as."""
    import pandas as pd

    match value:
        case Domain():
            return [dict(value.bounds), dict(value.categories)]
        case pd.DataFrame():
            return _write_frame(value)
        case Facts():
            return _write_facts(value)
        case Correction() | ModelAnswers():
            return _Part(_take(type(value), value))
        case [_Part() | Facts(), *_]:
            return _Part((str(place), part) for place, part in enumerate(value))
    return value


def _to_plain(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "biuf" or array.itemsize > 8 or array.ndim > 3:
        raise PluginError(
            "what it gives must be plain arrays of numbers of at most 8 bytes in at most 3 "
            f"dimensions, not of {array.dtype} in {array.ndim}"
        )
    return np.asarray(array, array.dtype.newbyteorder("="))


def _write_json(value: Any, most: int) -> NDArray[np.uint8]:
    try:
        content = json.dumps(value, separators=(",", ":"), default=_to_json).encode("ascii")
    except (TypeError, ValueError) as error:
        raise PluginError(f"its answer has a field that is not plain: {error}") from None
    if len(content) > most:
        raise PluginError(f"the texts of its answer take more than {most:,} bytes")
    return np.frombuffer(content, np.uint8)


def _to_json(value: Any) -> Any:
    match value:
        case np.generic():
            return value.item()
        case RateConstraint():
            exact = isinstance(value.tolerance, Fraction)
            numbers = value.tolerance.as_integer_ratio() if exact else [value.tolerance]
            return [value.metric, value.form, value.every_slice, *numbers]
        case Guarantee():
            return vars(value)
    raise TypeError(f"{type(value).__name__} is neither an array nor a number or text")


def unpack(content: bytes | bytearray) -> Fields:
    """The fields of bytes; Unreadable if the bytes are anything else."""
    flat: Fields = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            if size > len(content) or any(member.compress_type for member in members):
                raise Unreadable("its answer is larger than its bytes")
            for member in members:
                with archive.open(member) as stream:
                    array = np.lib.format.read_array(stream, allow_pickle=False)
                if array.dtype.kind not in "biuf" or array.itemsize > 8 or not array.dtype.isnative:
                    raise Unreadable("its answer has an array that is none of plain numbers")
                flat[member.filename.removesuffix(".npy")] = array
        return {**_read_json(MOST_HEADER, flat.pop("header")), **flat}
    except PluginError:
        raise
    except Exception as error:  # its message may repeat the content
        raise Unreadable(f"its answer is not one: {type(error).__name__}") from None


def _read_json(most: int, content: Any) -> Any:
    """The JSON in an array of bytes."""
    if not isinstance(content, np.ndarray) or content.dtype != np.uint8 or content.size > most:
        raise Unreadable("its answer has texts that are none, or too many")
    return json.loads(content.tobytes().decode("ascii"))


def _unflatten(flat: Fields) -> Fields:
    """The fields whose names `_flatten` made."""
    fields: Fields = {}
    parts: dict[str, Fields] = {}
    for name, value in flat.items():
        first, dot, rest = name.partition(".")
        if dot:
            parts.setdefault(first, {})[rest] = value
        else:
            fields[first] = value
    return fields | {name: _unflatten(part) for name, part in parts.items()}


# Types of fields


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


def _accept_array(kinds: str, greatest: int | None = None) -> Any:
    """The type of an array of some kinds of numbers, which may have to be in 0..greatest."""

    def check(array: NDArray[Any]) -> NDArray[Any]:
        if array.dtype.kind not in kinds:
            raise ValueError("an array of other numbers")
        if greatest is not None and not ((array >= 0) & (array <= greatest)).all():
            raise ValueError(f"numbers outside of 0 to {greatest}")
        return array

    return Annotated[np.ndarray, AfterValidator(check)]


def _parse(kind: Any, read: Callable[[Any], Any] = lambda value: value) -> Any:
    """The type of a field that is JSON in an array."""
    return Annotated[kind, AfterValidator(read), BeforeValidator(partial(_read_json, MOST_TEXTS))]


def _accept_parts(model: Any) -> Any:
    """The type of a field of several parts."""
    return dict[str, model]


def _read_rates(value: Any) -> RateConstraint:
    metric, form, every_slice, *numbers = value
    tolerance = Fraction(*numbers) if numbers[1:] else numbers[0]
    return RateConstraint(metric, tolerance, form, every_slice)


def _read_domain(parts: list[dict[str, Any]]) -> Domain:
    return Domain(*({name: tuple(value) for name, value in part.items()} for part in parts))


def _make_model(name: str, /, **types: Any) -> Any:
    """A model of these fields."""
    fields: Any = {
        key: (kind, None if type(None) in get_args(kind) else ...) for key, kind in types.items()
    }
    return create_model(name, __base__=_Model, **fields)


_TEXTS, _MEASURES = _parse(list[str]), _parse(dict[str, bool | int | float | str | None])
_NUMBERS, _REALS, _WHOLES, _TRUTHS = map(_accept_array, ("biuf", "f", "iu", "b"))
_ROW = _make_model("Row", measures=_MEASURES)
_FAILURE = _make_model("Failure", texts=_TEXTS, bad_input=bool)
_COLUMN = _make_model("Column", values=_NUMBERS, words=_TEXTS | None, numbers=_NUMBERS | None)
_FRAME = _make_model(
    "Frame", names=str, rows=int, layout=_parse(list[list[str | bool]]),
    columns=_accept_parts(_COLUMN) | None,
)  # fmt: skip
_FACTS = _make_model(
    "Facts", members=_WHOLES, ends=_WHOLES, low=_REALS, high=_REALS, kind=_WHOLES, width=_REALS,
    rounded=_REALS, derived=_TRUTHS, names=_TEXTS,
)  # fmt: skip


def _write_frame(frame: Any) -> _Part:
    import pandas as pd

    layout: list[Any] = []
    columns: list[_Part] = []
    for name, column in frame.items():
        dtype = column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            codes, kept = column.cat.codes.to_numpy(), dtype.categories
            words = all(type(word) is str for word in kept)
            layout.append([name, str(kept.dtype) if words else "", bool(dtype.ordered)])
            columns.append(
                _Part(values=codes, words=[*kept])
                if words
                else _Part(values=codes, numbers=kept.to_numpy())
            )
        elif isinstance(dtype, np.dtype):
            layout.append([name, "", False])
            columns.append(_Part(values=column.to_numpy()))
        else:
            raise PluginError(
                f"its column {name!r} must be plain numbers or a categorical, not {dtype}"
            )
    return _Part(names=str(frame.columns.dtype), rows=len(frame), layout=layout, columns=columns)


def _read_frame(fields: Fields) -> Any:
    import pandas as pd

    frame = _FRAME(**fields)
    content: list[Any] = []
    columns = (frame.columns or {}).values()
    for (_, kind, ordered), column in zip(frame.layout, columns, strict=True):
        if column.values.shape != (frame.rows,) or not {kind, frame.names} <= {"", *_WORDS}:
            raise Unreadable("its table has a column that is none")
        words = column.numbers if column.words is None else column.words
        if words is None:
            content.append(column.values)
        else:
            categories: Any = pd.Index(words, dtype=kind or None)
            content.append(pd.Categorical.from_codes(column.values, categories, ordered=ordered))
    table = pd.DataFrame(dict(enumerate(content)), index=range(frame.rows))
    table.columns = pd.Index([name for name, *_ in frame.layout], dtype=frame.names)
    return table


def _write_facts(facts: Facts) -> _Part:
    names = [" ".join(facts.name(number).split()) for number in range(len(facts))]
    return _Part(
        members=facts.sets.indices, ends=facts.sets.indptr, low=facts.low, high=facts.high,
        **facts.laws._asdict(), derived=facts.derived, names=names,
    )  # fmt: skip


def _read_facts(facts: Any, people: int, groups: int) -> Facts:
    from scipy.sparse import csr_array

    m, ones = len(facts.ends) - 1, np.ones(len(facts.members), np.int8)
    sets = csr_array((ones, facts.members, facts.ends), shape=(m, people))
    sets.check_format(full_check=True)
    if not (sets.has_canonical_format and facts.ends[-1] == len(facts.members)):
        raise Unreadable("the members of its facts must ascend in each set")
    if facts.low.shape != (m, groups) or np.isnan(facts.low).any() or np.isnan(facts.high).any():
        raise Unreadable(f"the counts of its facts must be ({m}, {groups}) numbers")
    if len(facts.names) != m or facts.derived.shape != (m,):
        raise Unreadable(f"its facts must have {m} names")
    return Facts.from_counts(
        sets.T.tocsr(), facts.low, facts.high, derived=facts.derived, names=facts.names,
        laws=CountLaws(facts.kind, facts.width, facts.rounded),
    )  # fmt: skip


# Records


_TYPES: dict[str, Any] = {
    "str": str,
    "bool": bool,
    "float": Annotated[float, Field(ge=0, allow_inf_nan=False)],
    "float | None": float | int | None,
    "bytes": Annotated[np.ndarray, AfterValidator(lambda array: array.tobytes())],
    "Metric": str,
    "SolverStatus": Annotated[SolverStatus, Field(strict=False)],
    "RateConstraint": Annotated[RateConstraint, BeforeValidator(_read_rates)],
    "Guarantee": Annotated[Guarantee, BeforeValidator(lambda fields: Guarantee(**fields))],
    "MeasureValues": _MEASURES,
    "Mapping[str, str]": _parse(dict[str, str]),
    "tuple[int | None, ...]": _parse(list[int | None], tuple),
    "tuple[Constraint, ...]": _accept_parts(_FACTS),
    "Domain": _parse(list[dict[str, Any]], _read_domain),
    "DataFrame": Annotated[Any, BeforeValidator(_read_frame)],
    "Codes": _WHOLES,
    "Labels": _accept_array("iu", 1),
    "Shares": _accept_array("biuf", 1),
    "NDArray[np.bool_]": _TRUTHS,
    "NDArray[np.float64]": _NUMBERS,
    "NDArray[np.int64]": _WHOLES,
    "NDArray[np.intp]": _WHOLES,
    "ModelAnswers": Annotated[ModelAnswers, BeforeValidator(lambda f: _read(ModelAnswers, f))],
    "Correction": Annotated[Correction, BeforeValidator(lambda f: _read(Correction, f))],
}
"""Types of fields by their annotation; fields of other types are not transferred."""


@cache
def _make_record_model(kind: type) -> Any:
    """A model of the fields of a record, by their annotations."""
    types: Fields = {}
    for field in dataclasses.fields(kind):
        word = str(field.type).removesuffix(" | None")
        if field.init and word in _TYPES:
            optional = _TYPES[word] | None if word != field.type else _TYPES[word]
            types[field.name] = _TYPES.get(str(field.type), optional)
    return _make_model(kind.__name__, **types)


def _take(kind: type, record: Any) -> Fields:
    """The fields of a record."""
    if not isinstance(record, kind):
        raise PluginError(f"what it gives must be a {kind.__name__}, not a {type(record).__name__}")
    fields = {name: getattr(record, name) for name in _make_record_model(kind).model_fields}
    if any(isinstance(value, list) for value in fields.values()):
        raise PluginError("what it gives must be plain arrays and measures, not lists")
    return fields


def _read(kind: type, fields: Fields) -> Any:
    """The record of fields, which the record itself checks, too."""
    return kind(**vars(_make_record_model(kind)(**fields)))


def _read_table(fields: Fields, inputs: tuple[Any, ...]) -> Table:
    columns = fields["sensitive"]["columns"].values()
    if len(columns) > _MOST_CROSSED or any(
        len(column.get("numbers", column.get("words", ()))) > _MOST_CATEGORIES for column in columns
    ):
        raise Unreadable("its table has too many sensitive columns or categories")
    table: Table = _read(Table, fields)
    return table


def _write_claim(claim: Claim | None) -> Fields:
    if claim is None:
        return {}
    for facts in claim.also:
        if not isinstance(facts, Facts):
            raise PluginError(f"a claim besides rates must be Facts, not {type(facts).__name__}")
    kind = SealedClaim if isinstance(claim, SealedClaim) else Claim
    return {**_take(kind, claim), "also": [*claim.also] or None}


def _read_claim(fields: Fields, inputs: tuple[Any, ...]) -> Claim | None:
    if not fields:
        return None
    kind = SealedClaim if "content" in fields else Claim
    target = inputs[0].target
    shape = len(target), len(target.groups)
    model: Any = _make_record_model(kind)(**{"also": {}, **fields})
    if model.possible is not None and model.possible.shape != shape:
        raise Unreadable(f"the possible groups must be an array of the sizes {list(shape)}")
    if not set(model.counted_labels or ()) <= {None, 0, 1} or not 0 <= (model.nats or 0) < math.inf:
        raise Unreadable("the labels of a claim must be 0, 1 or nothing, its nats 0 or more")
    also = tuple(_read_facts(facts, *shape) for facts in model.also.values())
    return kind(**{**vars(model), "also": also})


def _read_answers(fields: Fields, inputs: tuple[Any, ...]) -> SplitAnswers:
    answers: SplitAnswers = _read(SplitAnswers, fields)
    for people, part in ((inputs[1].target, answers.target), (inputs[1].attack, answers.attack)):
        shape = (len(people), len(people.groups))[: answers.target.predictions.ndim]
        if any(array is not None and array.shape != shape for array in vars(part).values()):
            raise Unreadable(f"its answers must be arrays of the sizes {list(shape)}")
    return answers


def _write_audit(answer: MeasureValues | Release) -> Fields:
    if not isinstance(answer, Release):
        return {"measures": answer}
    return _take(Release, dataclasses.replace(answer, rules=None))


def _read_audit(fields: Fields, inputs: tuple[Any, ...]) -> MeasureValues | Release:
    """Measures or a release, whose table of rules is not transferred."""
    return _read_row(fields, ()) if len(fields) == 1 else _read(Release, fields)


def _read_row(fields: Fields, inputs: tuple[Any, ...]) -> MeasureValues:
    measures: MeasureValues = _ROW(**fields).measures
    return measures


# Codecs


class _Codec(NamedTuple):
    write: Callable[[Any], Fields]
    read: Callable[[Fields, tuple[Any, ...]], Any]
    shapes: Callable[[tuple[Any, ...]], dict[str, Shape]] | None = None
    """Shapes of arrays by field, from the step's inputs; None: an answer of unknown size."""


def _make_codec(kind: type, shapes: Any = None) -> _Codec:
    return _Codec(partial(_take, kind), lambda fields, _: _read(kind, fields), shapes)


def _list_shadow_shapes(inputs: tuple[Any, ...]) -> dict[str, Shape]:
    n = len(inputs[1].train) + len(inputs[1].test)
    return {"members": (-_MOST_SHADOWS, n), "scores": (-_MOST_SHADOWS, n), "target": (n,)}


def _list_guess_shapes(inputs: tuple[Any, ...]) -> dict[str, Shape]:
    n, m, k = len(inputs[0].target), len(inputs[0].attack), len(inputs[0].target.groups)
    return {
        "values": (n,), "confidence": (n,), "beliefs": (n, k), "abstains": (n,),
        "held_out": (-m,), "held_out_values": (-m,), "held_out_confidence": (-m,),
        "held_out_beliefs": (-m, k),
    }  # fmt: skip


def _list_correction_shapes(inputs: tuple[Any, ...]) -> dict[str, Shape]:
    n, k = len(inputs[0].target), len(inputs[0].target.groups)
    return {
        "reconsidered": (n,), "correction.values": (n,), "correction.moves": (2, k, k),
        "correction.posterior": (n, k),
    }  # fmt: skip


CODECS: dict[str, _Codec] = {
    "load": _Codec(partial(_take, Table), _read_table),
    "train": _make_codec(Sealed),
    "predict": _make_codec(
        Predictions,
        lambda inputs: {p: (len(getattr(inputs[1], p)),) for p in ("train", "test", "attack")},
    ),
    "shadow": _make_codec(Shadows, _list_shadow_shapes),
    "disclose": _Codec(_write_claim, _read_claim),
    "reveal": _make_codec(
        Scores, lambda inputs: {p: (len(getattr(inputs[1], p)),) for p in ("target", "attack")}
    ),
    "ask": _Codec(partial(_take, SplitAnswers), _read_answers),
    "tune": _make_codec(Sealed),
    "guess": _make_codec(Guess, _list_guess_shapes),
    "correct": _make_codec(Corrected, _list_correction_shapes),
    ROW: _Codec(lambda row: {"measures": row}, _read_row, lambda _: {}),
    "audit": _Codec(
        _write_audit, _read_audit,
        lambda _: dict.fromkeys(("values", "low", "high"), (-_MOST_AUDITS,)),
    ),
}  # fmt: skip
"""The codec of every action of a component, and of rows."""


def write_result(action: str, result: Result) -> bytes:
    """The result of a step as bytes; PluginError if its action may not give it."""
    value, kind = result.value, action
    if isinstance(value, Failure):
        kind, texts = "failure", [shorten(value.reason), shorten(value.trace)]
        fields: Fields = {"texts": texts, "bad_input": value.bad_input}
    else:
        fields = CODECS[action].write(value)
    return pack({"answer": kind, "took": result.seconds, **fields})


def read_result(action: str, content: bytes | bytearray, inputs: tuple[Any, ...] = ()) -> Result:
    """The result of a step, read from untrusted bytes.

    `inputs`: the inputs of its component, from which sizes follow.

    Raises PluginError if the bytes are not a result that the action may give.
    """
    fields = unpack(content)
    answer, seconds = fields.pop("answer", None), fields.pop("took", None)
    if answer not in ("failure", action):
        raise Unreadable("its answer is that of another action")
    if type(seconds) is not float or not 0 <= seconds < math.inf:
        raise Unreadable("its answer took a time that is none")
    try:
        if answer == "failure":
            failure = _FAILURE(**fields)
            reason, trace = map(shorten, failure.texts)
            return Result(Failure(" ".join(reason.split()), trace, failure.bad_input), seconds)
        codec = CODECS[action]
        for name, shape in (codec.shapes(inputs) if codec.shapes else {}).items():
            if name in fields and not _fits(np.shape(fields[name]), shape):
                raise Unreadable(f"{name} must be an array of the sizes {list(shape)}")
        return Result(codec.read(_unflatten(fields), inputs), seconds)
    except PluginError:
        raise
    except Exception as error:  # a record refused the content, which its message would repeat
        raise Unreadable(f"its answer is not one: {type(error).__name__}") from None


def _fits(shape: tuple[int, ...], expected: Shape) -> bool:
    return len(shape) == len(expected) and all(
        size == side or size <= -side for size, side in zip(shape, expected, strict=True)
    )


def compute_size_limit(action: str, inputs: tuple[Any, ...], limits: Limits) -> int:
    """The greatest size in bytes of an accepted answer."""
    shapes = CODECS[action].shapes
    if shapes is None:
        return (limits.memory_limit or _MOST_BYTES) + _SLACK
    sizes = [math.prod(abs(side) for side in shape) for shape in shapes(inputs).values()]
    return 8 * sum(sizes) + _SLACK
