"""Small files that are made to take much time or memory: read quickly, or refused in one line.

Without what keeps them off, each takes minutes or gigabytes, so the limits below leave a busy
machine a lot of room.
"""

import io
import json
import signal
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from fpbench import FairnessReport, InputError
from fpbench.errors import DataError
from fpbench.reports.assessments.input_files import read_files
from fpbench.tabular.table_files import parse_parquet

pa = pytest.importorskip("pyarrow")
MARKS = "a" + "\u0301\u0316" * 60_000
DIGITS = "1" * 120_000
HEAD = "group,metric,value,n"
PEOPLE = "group,prediction,age\n" + "".join(
    f"{'fm'[i % 2]},{i // 2 % 2},{i % 3}\n" for i in range(40)
)


@contextmanager
def limit(seconds):
    def stop(*_):
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def write(rows, column="age"):
    """A report whose slices are cut by the first of the values in each row."""
    return "\n".join([f"{column},{HEAD}", *(",".join(map(str, row)) for row in rows)]) + "\n"


def make_bins(width):
    return write(
        (f'"[{i}, {i + width})"', group, "selection-rate", 0.5, 2)
        for i in range(40_000)
        for group in "fm"
    )


CRAFTED = {
    "columns": (",".join(f"c{i}" for i in range(40_000)) + "\n" + "1," * 39_999 + "1\n", "40,000 columns, more"),
    "bins": (make_bins(1), "none of these people has '"),
    "bins that overlap": (make_bins(2), r"'\[0, 2\)' overlaps others: .{200,400}$"),
    "digits": (write([(f'"[{DIGITS}x, 2)"', "f", "selection-rate", 0.5, 2)]), "column 'age': .* letters"),
    "marks": (write([(MARKS, "f", "selection-rate", 0.5, 2)]), "column 'age': .* has 120,001 letters"),
    "a metric of marks": (write([("a", "f", MARKS, 0.5, 2)]), "column 'metric': .* letters"),
    "groups": (write(("1", f"g{i}", "selection-rate", 0.5, 2) for i in range(50_000)), "50,000 groups are more"),
    "slices without groups": (
        write((f"s{i}", f"g{i % 1000}", "selection-rate", 0.5, 2) for i in range(30_000)),
        "30,000 rows for 1,000 groups",
    ),
    "a metric with a zero byte": (f"{HEAD}\nf,selection-rate\0,0.5,20\nm,selection-rate\0,0.5,20\n", "line 2: holds a zero byte"),
}  # fmt: skip


@pytest.mark.parametrize(("report", "message"), CRAFTED.values(), ids=CRAFTED.keys())
def test_a_crafted_report_is_refused_at_once(report, message, tmp_path):
    (tmp_path / "r.csv").write_text(report)
    (tmp_path / "p.csv").write_text(PEOPLE)
    with limit(30), pytest.raises(InputError, match=rf"r\.csv.*{message}"):
        read_files([tmp_path / "r.csv"], tmp_path / "p.csv").read_reports()


JSON = {
    "a key a row": (json.dumps([{f"k{i}": 1} for i in range(8_000)]), "8,000 columns, more than 1,000"),
    "rows without keys": (json.dumps([{f"k{i}": 1 for i in range(900)}, *[{}] * 50_000]), "most of them empty"),
    "a key given twice": ('{"a": 1,' + ",".join(f'"k{i}": 1' for i in range(100_000)) + ', "a": 2}', "two values of 'a'"),
    "lists in rows": (json.dumps([{"group": ["f"], "metric": {"a": 1}, "value": 1}]), "column 'group' must be a list of texts"),
    "a zero byte": (json.dumps([{"group": g, "metric": "selection-rate\0", "value": 0.5, "n": 20} for g in "fm"]), "column 'metric': .* has a zero byte"),
    "columns": (json.dumps({"rows": {f"k{i}": [1] for i in range(40_000)}}), "more than 1,000|format"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), JSON.values(), ids=JSON.keys())
def test_crafted_json_is_refused_at_once(text, message, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with limit(30), pytest.raises(InputError, match=message):
        FairnessReport.from_file(tmp_path / "r.json")


def pack(table, **options):
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="zstd", row_group_size=2**27, **options)
    return buffer.getvalue()


def repeat(text, rows):
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def test_parquet_is_measured_before_it_is_read(tmp_path):
    """Neither equal nor missing values take space in a file."""
    nulls = pack(pa.table({f"c{i}": pa.nulls(2**23) for i in range(9)}))
    (tmp_path / "r.parquet").write_bytes(nulls)
    before = pa.total_allocated_bytes()
    with limit(30), pytest.raises(InputError, match=r"r\.parquet: 8,388,608 rows of 9 columns"):
        FairnessReport.from_file(tmp_path / "r.parquet")
    assert len(parse_parquet(pack(pa.table({"c": pa.nulls(10)})), "p", 10)) == 10
    with pytest.raises(DataError, match="11 rows of 1 columns are too many"):
        parse_parquet(pack(pa.table({"c": pa.nulls(11)})), "p", 10)
    content = pack(pa.table({"group": repeat("x" * 1_000_000, 5_000)}), store_schema=False)
    assert len(content) < 2_000
    with (
        limit(30),
        pytest.raises(DataError, match="its texts have more than 2,147,483,648 letters"),
    ):
        parse_parquet(content, "p")
    assert pa.total_allocated_bytes() - before < 2**26


@pytest.mark.parametrize(
    "values", [[[1], [2]], [{"a": 1}, None], [b"a", b"b"], pa.array([b"a", b"b"], pa.binary(1))]
)
def test_parquet_holds_texts_and_numbers(values):
    with pytest.raises(DataError, match="p: column 'c' holds .*: not texts or numbers"):
        parse_parquet(pack(pa.table({"c": values})), "p")
    with pytest.raises(DataError, match="p: 2 columns have the name 'c'"):
        parse_parquet(pack(pa.table([[1], [2]], names=["c", "c"])), "p")


@pytest.mark.parametrize("index", [None, "name", "text"])
def test_parquet_is_read_as_pandas_reads_it(index):
    frame = pd.DataFrame({
        "text": ["a", None, "b", "a"], "whole": [1, 2, 3, 4], "real": [0.5, None, 1.5, 2.0],
        "bit": [True, False, True, True], "hole": [True, None, False, True],
        "kind": pd.Categorical(["x", "y", "x", None], categories=["y", "x", "z"], ordered=True),
        "day": pd.date_range("2020-01-01", periods=4), "whole or not": pd.array([1, None, 2, 3], "Int64"),
        "nothing": [None] * 4, "empty": [""] * 4, "name": ["p", "q", "r", "s"], "a.b": ["1", "2", "3", "4"],
    })  # fmt: skip
    if index is not None:
        frame = frame.set_index(index)
    content = frame.to_parquet()
    expected = pd.read_parquet(io.BytesIO(content)).reset_index(drop=index is None)
    pd.testing.assert_frame_equal(parse_parquet(content, "p"), expected)
