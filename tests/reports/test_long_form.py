"""Tables as others write them: read as they are meant, or refused with row, column and mend."""

import json
import unicodedata
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from fpbench import FairnessReport, InputError
from fpbench.reports.slices import code_groups

TABLE = """job,group,metric,value,n
,f,selection-rate,0.5,20
,m,selection-rate,0.25,40
a,f,selection-rate,0.5,12
a,m,selection-rate,0.25,16
"""
FRAME = pd.read_csv(StringIO(TABLE))
INDEXED = "".join(f"{number},{line}\n" for number, line in enumerate(TABLE.splitlines(), -1))

FILES = [
    (b"\xef\xbb\xbf" + TABLE.encode(), None),
    (TABLE.replace("\n", "\r\n"), None),
    (TABLE.replace("group", " group ").replace("a,f", " a ,f "), None),
    (TABLE.replace("a,f", "a\u00a0,f"), None),
    (TABLE.replace("16", "16.0"), None),
    (TABLE.replace("\na,m", "\n\na,m"), None),
    (TABLE.encode("utf-16"), "is not UTF-8 text"),
    (TABLE.replace("a,", "\u00e9,").encode("latin-1"), "is not UTF-8 text .* save it as UTF-8"),
    (TABLE.replace(",", ";"), "line 1: found one column, .* Save it with commas"),
    (TABLE.replace("0.25", '"0,25"'), "row 1, column 'value': '0,25' .* write a decimal point"),
    (TABLE.replace("0.25", "25%"), "row 1, column 'value': '25%' .* divide percentages by 100"),
    (TABLE.replace("0.25", "25"), "row 1, column 'value': 25 is not a rate .* divide percentages"),
    (TABLE.replace("0.25", "quarter"), "row 1, column 'value': 'quarter' is not a number$"),
    (TABLE.replace("0.25", "NaN"), "row 1, column 'value': 'NaN' is not a number: leave blank"),
    (TABLE.replace("16", "NA"), "row 3, column 'n': 'NA' is not a number: leave blank"),
    (TABLE.replace("0.25", "inf"), "row 1, column 'value': inf is not a number"),
    (TABLE.replace("16", "-16"), "row 3, column 'n': -16 must be a whole number of at least 0"),
    (TABLE.replace("16", "1_6"), "row 3, column 'n': '1_6' is not a number: write digits without"),
    (TABLE.replace(",16", ",1'600"), "row 3, column 'n': \"1'600\" is not a number: write digits"),
    (TABLE.replace(",16", ",1 600"), "row 3, column 'n': '1 600' is not a number: write digits"),
    (TABLE.replace("selection-rate", "Selection Rate"), None),
    (TABLE.replace("selection-rate", "selection_rate"), None),
    (TABLE.replace("a,f,selection-rate", "a,f,selection-rte"), "did you mean 'selection-rate'"),
    (TABLE.replace("selection-rate", "AUC"), "unknown metric 'AUC'; valid: selection"),
    (TABLE + "a,m,selection_rate,0.25,16\n", "rows 3 and 4 .* 'selection_rate'"),
    (TABLE + "a,m,rejection rate,0.75,16\n", "rows 3 and 4 .* 'rejection rate'"),
    (b"PK\x03\x04\x00\xff", "is a spreadsheet, or another zip archive: save it as CSV"),
    (b"\x1f\x8b\x08\xff", "is compressed by gzip: unpack it"),
    (TABLE.replace("16", "0x10"), "row 3, column 'n': '0x10' is not a number"),
    (TABLE.replace("12", "12.5"), "row 2, column 'n': 12.5 must be a whole number"),
    (TABLE.replace("16", "1" + 18 * "0"), r"row 3, column 'n': 1e\+18 is too large"),
    (TABLE.replace("job", "group", 1), "line 1: 2 columns have the name 'group'"),
    (TABLE.replace("group", "sex"), "the report has no column 'group' .it needs group, metric"),
    (TABLE.replace("group", "Group"), "the report has no column 'group'; did you mean 'Group'"),
    (TABLE.splitlines()[0] + "\n", "holds no row"),
    ("", "is empty"),
    (TABLE.replace("0.25,16", "0.25,16,9"), "line 5: 6 columns, but the first line has 5"),
    (INDEXED.replace("-1", "", 1), "line 1: column 1 has no name"),
    (INDEXED.replace("-1", "Unnamed: 0", 1), "column 'Unnamed: 0' numbers the rows"),
]


@pytest.mark.parametrize(("content", "message"), FILES)
def test_csv_is_read_or_refused(content, message, tmp_path):
    file = tmp_path / "report.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    if message is not None:
        with pytest.raises(InputError, match=message):
            FairnessReport.from_file(file)
        return
    report = FairnessReport.from_file(file)
    pd.testing.assert_frame_equal(report.to_frame(), FairnessReport.from_frame(FRAME).to_frame())


@pytest.mark.parametrize("change", [
    lambda frame: frame.convert_dtypes(),
    lambda frame: frame.astype(dict.fromkeys(["job", "group", "metric"], "category")),
    lambda frame: frame.assign(value=frame["value"].map(str), n=frame["n"].map(float)),
    lambda frame: frame.assign(value=frame["value"].astype(object)),
])  # fmt: skip
def test_frames_of_any_dtypes_are_the_same_report(change):
    report = FairnessReport.from_frame(change(FRAME))
    pd.testing.assert_frame_equal(report.to_frame(), FairnessReport.from_frame(FRAME).to_frame())


@pytest.mark.parametrize(("change", "message"), [
    ({"value": [True, False, True, False]}, "row 0, column 'value': 'True' is not a number"),
    ({"n": pd.Series([20, 40, 12, 10**30], dtype=object)}, r"row 3, column 'n': 1e\+30"),
    ({"group": ["f", np.nan, "f", np.nan]}, "row 1, column 'group': is blank"),
    ({"index": [1, 2, 3, 4]}, "column 'index' numbers the rows and cuts no slices"),
])  # fmt: skip
def test_wrong_values_of_frames_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        FairnessReport.from_frame(FRAME.assign(**change))


@pytest.mark.parametrize(("content", "message"), [
    ("[]", "the report has no rows"),
    ('[{"group": "f", "n": 3, "n": 4}]', "an object has two values of 'n'"),
])  # fmt: skip
def test_wrong_json_is_refused(content, message, tmp_path):
    (tmp_path / "report.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        FairnessReport.from_file(tmp_path / "report.json")


def test_accents_are_the_same_in_either_form(tmp_path):
    """Of values and of groups; in the table, in JSON, and of people."""
    one, two = (unicodedata.normalize(form, "\u00e9") for form in ("NFC", "NFD"))
    assert one != two
    frame = FRAME.assign(job=[None, None, one, two], group=["f", one, "f", two])
    report = FairnessReport.from_frame(frame)
    assert report.columns[0].values == (one,)
    assert report.groups == ("f", one)
    X = pd.DataFrame({"job": [one, two, "x"]})
    assert report.columns[0].code(X).tolist() == [0, 0, -1]
    assert code_groups(np.array(["f", two, one]), report.groups, "people").tolist() == [0, 1, 1]
    rows = json.loads(frame.astype(object).where(frame.notna(), None).to_json(orient="records"))
    (tmp_path / "report.json").write_text(json.dumps(rows), encoding="utf-8")
    assert FairnessReport.from_file(tmp_path / "report.json").groups == ("f", one)
