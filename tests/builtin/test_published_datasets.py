"""What is said of every data set that is published, and what is refused of its files."""

import csv
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

import fpbench
from fpbench import Dataset, Table
from fpbench.builtin.datasets import credit_card
from fpbench.builtin.datasets.bank import Bank
from fpbench.builtin.datasets.compas import Compas
from fpbench.builtin.datasets.credit_card import CreditCard
from fpbench.builtin.datasets.german import German
from fpbench.builtin.datasets.parkinsons import Parkinsons
from fpbench.data.data_files import compute_sha256
from fpbench.errors import DataError
from fpbench.plugin import DataHome
from fpbench.tabular import TabularDataset


def _classes() -> list[type[Dataset]]:
    catalog = fpbench.plugin.discover()
    found = [catalog.component("dataset", entry.name) for entry in catalog.of_kind("dataset")]
    return [cls for cls in found if issubclass(cls, Dataset) and cls.about is not None]


PUBLISHED = pytest.mark.parametrize("cls", _classes(), ids=lambda cls: cls.name)


@cache
def _load(dataset: Dataset) -> Table:
    return dataset.load(DataHome.default())


def _real(dataset: Dataset) -> Table:
    try:
        for file in dataset.files:
            DataHome.default().find(file)
    except DataError as missing:
        pytest.skip(f"{missing}; set FPBENCH_DATA")
    return _load(dataset)


def test_data_sets_with_an_original_are_found() -> None:
    assert {cls.name for cls in _classes()} >= {
        *("adult", "bank", "compas", "credit-card", "german", "parkinsons"),
    }


@pytest.mark.slow
@PUBLISHED
def test_what_is_said_of_the_original_is_true(cls: type[Dataset]) -> None:
    table, about = _real(cls()), cls.about
    assert about is not None
    assert len(table) == about.rows
    assert table.features.shape[1] == about.features
    assert table.labels.mean() == pytest.approx(about.label_rate, abs=5e-5)
    assert table.groups == about.groups
    assert table.positive == about.label
    assert f"{about.rows:,}" in str(cls.__doc__)
    assert f"{about.rows:,}" in cls.summary


@pytest.mark.slow
@PUBLISHED
def test_files_are_the_known_originals(cls: type[Dataset]) -> None:
    _real(cls())
    for file in cls().files:
        assert compute_sha256(DataHome.default().find(file)) == file.sha256
        assert file.url.startswith("https://")


@pytest.mark.slow
@PUBLISHED
def test_what_is_known_of_columns_is_true(cls: type[TabularDataset]) -> None:
    table = _real(cls())
    assert {*table.features, *table.sensitive} == set(cls.columns)
    for name, count in cls.n_values.items():
        if name not in table.sensitive:
            assert table.features[name].nunique() == count
    assert cls().n_groups == len(table.groups)
    for name, column in table.features.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            assert set(column.cat.categories) == set(column), name
        else:
            assert column.dtype in (np.int32, np.float64)
    with pytest.raises(ValueError, match="no column 'agee'; "):
        cls(sensitive="agee")


def test_compas_has_the_rows_that_propublica_counted() -> None:
    _real(Compas())
    table = _load(Compas(sensitive=["race", "sex"]))
    # https://github.com/propublica/compas-analysis, Compas Analysis.ipynb, cells 3 to 13
    race = table.sensitive["race"].value_counts()
    assert race.to_dict() == {
        "African-American": 3175, "Caucasian": 2103, "Hispanic": 509, "Other": 343, "Asian": 31,
        "Native American": 11,
    }  # fmt: skip
    assert table.sensitive["sex"].value_counts().to_dict() == {"Male": 4997, "Female": 1175}
    assert int((table.labels == 0).sum()) == 2809
    assert table.features["days_in_jail"].min() == 0


def test_compas_may_know_the_years_of_jail_instead_of_its_days() -> None:
    days, years = _real(Compas()), _load(Compas(jail="years"))
    with DataHome.default().find("compas-scores-two-years.csv").open(newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["days_b_screening_arrest"]
            and abs(int(row["days_b_screening_arrest"])) <= 30
            and row["is_recid"] != "-1"
            and row["c_charge_degree"] != "O"
            and row["score_text"] != "N/A"
        ]
    for way in ("in", "out"):
        assert years.features[f"jail_{way}_year"].tolist() == [
            int(row[f"c_jail_{way}"][:4]) for row in rows
        ]
    shared = [name for name in days.features if name != "days_in_jail"]
    assert [*years.features] == [*shared, "jail_in_year", "jail_out_year"]
    assert years.features[shared].equals(days.features[shared])
    assert (years.labels == days.labels).all()
    with pytest.raises(ValidationError, match="jail"):
        Compas(jail="months")  # type: ignore[arg-type]


def test_compas_knows_nothing_of_scores_and_the_future() -> None:
    features = " ".join(_real(Compas()).features)
    assert "score" not in features
    assert "recid" not in features


def test_german_sex_is_made_of_personal_status_and_leaves_no_other_trace() -> None:
    table = _real(German())
    path = DataHome.default().find("german.data")
    status = [line.split()[8] for line in path.read_text().splitlines()]
    women = np.isin(status, ("A92", "A95"))
    assert (table.codes == women).all()
    for name, column in table.features.items():
        split = pd.crosstab(column, women)
        assert not ((split > 0).sum(axis=1) == 1).all(), f"{name} tells sex"


# Files that are not as they should be

ROWS = {
    Bank: (
        "bank-full.csv",
        '"age";"job";"marital";"education";"default";"balance";"housing";"loan";"contact";"day";'
        '"month";"duration";"campaign";"pdays";"previous";"poutcome";"y"\n'
        '58;"management";"married";"tertiary";"no";2143;"yes";"no";"unknown";5;"may";261;1;-1;0;'
        '"unknown";"no"\n'
        '60;"retired";"single";"unknown";"no";-3;"no";"no";"cellular";5;"jun";261;1;-1;0;"other";'
        '"yes"\n',
    ),
    German: (
        "german.data",
        "A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1\n"
        "A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2\n",
    ),
    Parkinsons: (
        "parkinsons_updrs.data",
        "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,Jitter(%),Jitter(Abs),Jitter:RAP,"
        "Jitter:PPQ5,Jitter:DDP,Shimmer,Shimmer(dB),Shimmer:APQ3,Shimmer:APQ5,Shimmer:APQ11,"
        "Shimmer:DDA,NHR,HNR,RPDE,DFA,PPE\n"
        + "1,72,0,5.6431,28.199,24.398,0.00662,3.38e-005,0.00401,0.00317,0.01204,0.02565,0.23,"
        "0.01438,0.01309,0.01662,0.04314,0.01429,21.64,0.41888,0.54842,0.16006\n"
        + "2,58,1,12.666,28.447,35.894,0.003,1.68e-005,0.00132,0.0015,0.00395,0.02024,0.179,"
        "0.00994,0.01072,0.01689,0.02982,0.011112,27.183,0.43493,0.56477,0.1081\n",
    ),
    CreditCard: (
        "UCI_Credit_Card.csv",
        "ID,LIMIT_BAL,SEX,EDUCATION,MARRIAGE,AGE,PAY_0,PAY_2,PAY_3,PAY_4,PAY_5,PAY_6,BILL_AMT1,"
        "BILL_AMT2,BILL_AMT3,BILL_AMT4,BILL_AMT5,BILL_AMT6,PAY_AMT1,PAY_AMT2,PAY_AMT3,PAY_AMT4,"
        "PAY_AMT5,PAY_AMT6,Default\n"
        "1,20000,2,2,1,24,2,2,-1,-1,-2,-2,3913,3102,689,0,0,0,0,689,0,0,0,0,1\n"
        "2,5.00E+05,1,1,0,29,0,0,0,0,0,0,367965,412023,445007,542653,483003,473944,55000,40000,"
        "38000,20239,13750,13770,0\n",
    ),
}
SMALL = pytest.mark.parametrize("cls", ROWS, ids=lambda cls: cls.name)


def _home(tmp_path: Path, name: str, content: str) -> DataHome:
    (tmp_path / name).write_text(content)
    return DataHome((tmp_path,))


@SMALL
def test_two_rows_are_a_table(tmp_path: Path, cls: type[Dataset]) -> None:
    table = cls().load(_home(tmp_path, *ROWS[cls]))
    assert len(table) == len(table.groups) == 2
    assert sorted(table.labels) == [0, 1]


@pytest.mark.parametrize(("cls", "old", "new", "says"), [
    (Bank, "2143", "much", "bank-full.csv, line 2: balance is 'much', not a whole number"),
    (Bank, ';"no"\n', ';"maybe"\n', "line 2: y is 'maybe', not 'no' or 'yes'"),
    (Bank, '"retired"', '"pilot"', "line 3: job is 'pilot', not 'admin.' or"),
    (Bank, "58;", "", "line 2: 16 columns, but Bank marketing has 17"),
    (German, "A34", "A39", "line 1: credit-history is 'A39', not 'A30' or"),
    (German, " 2\n", " 3\n", "line 2: credit is '3', not '1' or '2'"),
    (Parkinsons, "24.398", "", "line 2: total_UPDRS is '', not a number"),
    (Parkinsons, "24.398", "1e999", "total_UPDRS is '1e999', not a number"),
    (CreditCard, "1,20000,2,", "1,20000,3,", "line 2: SEX is '3', not '1' or '2'"),
    (CreditCard, "3913", "9.9E+12", "BILL_AMT1 is '9.9E+12', not a whole number"),
    (CreditCard, "Default", "Label", "no column 'Default'"),
])  # fmt: skip
def test_what_is_not_as_expected_is_one_error(
    tmp_path: Path, cls: type[Dataset], old: str, new: str, says: str
) -> None:
    name, content = ROWS[cls]
    assert old in content
    with pytest.raises(DataError) as error:
        cls().load(_home(tmp_path, name, content.replace(old, new, 1)))
    assert says in str(error.value)
    assert f"{name}" in str(error.value)
    assert f"`fpbench data verify {cls.name}`" in str(error.value)


@SMALL
def test_an_empty_or_missing_file_is_one_error(tmp_path: Path, cls: type[Dataset]) -> None:
    name, content = ROWS[cls]
    with pytest.raises(DataError, match=f"fpbench data fetch {cls.name}"):
        cls().load(DataHome((tmp_path,)))
    for nothing in ("", "\n\n", content.splitlines()[0] + "\n" if cls is not German else ""):
        with pytest.raises(DataError, match=f"{name}.*(holds no|has no column)"):
            cls().load(_home(tmp_path, name, nothing))


def test_the_label_of_the_credit_cards_has_several_names(tmp_path: Path) -> None:
    name, content = ROWS[CreditCard]
    home = _home(tmp_path, name, content.replace("Default", "default.payment.next.month"))
    assert CreditCard().load(home).labels.tolist() == [1, 0]
    assert CreditCard().load(home).features["LIMIT_BAL"].tolist() == [20_000, 500_000]


# What is fetched


def _openml(
    change: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
) -> pd.DataFrame:
    """What OpenML would give."""
    _real(CreditCard())
    frame = pd.read_csv(DataHome.default().find("UCI_Credit_Card.csv")).drop(columns="ID")
    frame.columns = [*(f"x{number}" for number in range(1, 24)), "y"]
    for name in ("x2", "y"):
        frame[name] = frame[name].astype(str).astype("category")
    return change(frame)


def test_openml_makes_the_known_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credit_card, "_fetch_openml", _openml)
    (path,) = CreditCard().fetch(DataHome((tmp_path,)))
    assert path.read_bytes() == DataHome.default().find(path.name).read_bytes()
    monkeypatch.setattr(credit_card, "_fetch_openml", lambda: pytest.fail("is here already"))
    assert CreditCard().fetch(DataHome((tmp_path,))) == [path]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "says"), [
    (lambda frame: frame.drop(columns="x7"), "no column 'x7'"),
    (lambda frame: frame.assign(x1="a few"), "not whole numbers in 'x1'"),
    (lambda frame: frame.drop(index=0), "not the known original"),
])  # fmt: skip
def test_anything_else_from_openml_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Any], says: str
) -> None:
    monkeypatch.setattr(credit_card, "_fetch_openml", lambda: _openml(change))
    with pytest.raises(DataError, match=says):
        CreditCard().fetch(DataHome((tmp_path,)))
    assert list(tmp_path.iterdir()) == []


def test_openml_out_of_reach_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(**_: Any) -> None:
        raise OSError("no\nnetwork")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(DataError, match="OpenML gave no data set 42477: no network"):
        CreditCard().fetch(DataHome((tmp_path,)))


NAMES = ("name", "first", "last", "dob", "c_case_number", "r_case_number", "vr_case_number")


@cache
def _named() -> bytes:
    """A file as ProPublica's, with names of nobody and all fields in quotes."""
    _real(Compas())
    with DataHome.default().find("compas-scores-two-years.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    places = [header.index(name) for name in NAMES]
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(header)
    for number, row in enumerate(rows):
        for place in places:
            row[place] = f"Jane {number}, née Doe"
        writer.writerow(row)
    return text.getvalue().encode()


@pytest.mark.slow
def test_what_names_people_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = _named()
    monkeypatch.setattr("fpbench.data.data_files._get", lambda url: content)
    (path,) = Compas().fetch(DataHome((tmp_path,)))
    assert "Jane" not in path.read_text()
    assert compute_sha256(path) == Compas().files[0].sha256
    monkeypatch.setattr("fpbench.data.data_files._get", lambda url: pytest.fail("is here already"))
    # Other bytes are as good, if they hold what they should.
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert Compas().fetch(DataHome((tmp_path,))) == [path]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "says"), [
    (lambda content: content[: len(content) // 2], "columns, but|rows"),
    (lambda content: content.rpartition(b'\r\n"')[0], "7,213 rows"),
    (lambda content: b"<html>", "no column 'name'"),
    (lambda content: b"\xff\xfe", "not ProPublica's"),
    (lambda content: content.replace(b'"F"', b'"X"', 1), "c_charge_degree is 'X'"),
    (lambda content: content.replace(b'"dob"', b'"born"'), "no column 'dob'"),
])  # fmt: skip
def test_what_is_not_propublicas_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[bytes], bytes], says: str
) -> None:
    content = change(_named())
    monkeypatch.setattr("fpbench.data.data_files._get", lambda url: content)
    monkeypatch.setattr("fpbench.data.data_files._PAUSE", 0)
    with pytest.raises(DataError, match=says):
        Compas().fetch(DataHome((tmp_path,)))
    assert list(tmp_path.iterdir()) == []
