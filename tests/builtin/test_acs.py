"""The loaders of the American Community Survey, on small files of the same columns."""

import csv
import importlib.machinery
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fpbench.builtin.datasets.acs import ACSIncome, ACSPublicCoverage
from fpbench.errors import DataError
from fpbench.plugin import DataHome

BOTH = pytest.mark.parametrize("cls", [ACSIncome, ACSPublicCoverage], ids=lambda cls: cls.name)

CODES = {
    "COW": 9, "MAR": 5, "OCCP": 9830, "POBP": 554, "RELP": 17, "SEX": 2, "RAC1P": 9, "DIS": 2,
    "ESP": 8, "CIT": 5, "MIG": 3, "MIL": 4, "ANC": 4, "NATIVITY": 2, "DEAR": 2, "DEYE": 2,
    "DREM": 2, "ESR": 6, "FER": 2, "PUBCOV": 2,
}  # fmt: skip
OPTIONAL = ("COW", "OCCP", "ESP", "MIG", "MIL", "DREM", "ESR", "FER")


def people(n: int = 400, seed: int = 0, year: int = 2018, state: int = 48) -> pd.DataFrame:
    """Rows as the Census Bureau writes them: all of it text, empty where it does not apply."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 96, n)
    child = age < 15
    frame = pd.DataFrame({"RT": ["P"] * n})
    frame["SERIALNO"] = [f"{year}HU{number:07d}" for number in range(n)]
    frame["ST"] = f"{state:02d}"
    frame["PWGTP"] = rng.integers(0, 30, n)
    frame["AGEP"] = age
    for name, codes in CODES.items():
        frame[name] = rng.integers(1, codes + 1, n)
        if name in OPTIONAL:
            frame[name] = frame[name].astype(object).where(rng.random(n) < 0.8, "")
    for name, top in (("PINCP", 90_000), ("WKHP", 99), ("SCHL", 24)):
        values = rng.integers(-200 if name == "PINCP" else 1, top + 1, n)
        hidden = child if name == "PINCP" else (age < 3) if name == "SCHL" else rng.random(n) < 0.3
        frame[name] = pd.Series(values).astype(object).where(~hidden, "")
    frame["OCCP"] = [f"{code:04d}" if code != "" else "" for code in frame["OCCP"]]
    # A few of the columns that nobody wants, between those that are wanted.
    for place in range(0, 40, 4):
        frame.insert(place // 2, f"PWGTP{place}", rng.integers(0, 99, n))
    return frame


def write(frame: pd.DataFrame, path: Path) -> DataHome:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False)
    return DataHome((next(p for p in path.parents if p.name.startswith("home")),))


@pytest.fixture
def home(tmp_path: Path) -> DataHome:
    return write(people(), tmp_path / "home/2018/1-Year/psam_p48.csv")


def by_hand(path: Path, cls: type) -> tuple[list[list[str]], list[int]]:
    """Features and labels by the definitions of folktables, once more and row by row."""
    rows, labels = [], []
    with path.open() as file:
        for row in csv.DictReader(file):
            age, income = int(row["AGEP"]), float(row["PINCP"] or "nan")
            if cls is ACSIncome:
                hours = float(row["WKHP"] or "nan")
                if not (age > 16 and income > 100 and hours > 0 and int(row["PWGTP"]) >= 1):
                    continue
                labels.append(int(income > 50_000))
            else:
                if not (age < 65 and income <= 30_000):
                    continue
                labels.append(int(row["PUBCOV"] == "1"))
            rows.append([str(int(row[name] or -1)) for name in cls.task_columns])
    return rows, labels


def coded(cls: type, home: DataHome, **parameters: Any) -> tuple[list[list[str]], list[int]]:
    """The same as the loader has it, words turned back into codes."""
    from fpbench.builtin.datasets.acs import _RACE, _SEX

    people = cls(**parameters).read(home)
    columns = people.columns
    for name, words in (("SEX", _SEX), ("RAC1P", _RACE)):
        back = {word: code for code, word in words.items()}
        columns[name] = [back[word] for word in columns[name]]
    return columns.astype(str).to_numpy().tolist(), people.labels.tolist()


@pytest.mark.quick_cases(1)
@BOTH
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_features_and_labels_are_those_of_the_definitions(
    tmp_path: Path, cls: type, seed: int
) -> None:
    path = tmp_path / "home/2018/1-Year/psam_p48.csv"
    home = write(people(200, seed), path)
    assert coded(cls, home) == by_hand(path, cls)


@BOTH
def test_features_and_labels_are_those_of_folktables(home: DataHome, cls: type) -> None:
    folktables = pytest.importorskip("folktables", reason="pip install 'fpbench-toolkit[acs]'")
    source = folktables.ACSDataSource("2018", "1-Year", "person", root_dir=str(home))
    problem = getattr(folktables, cls.__name__)
    features, labels, _ = problem.df_to_numpy(source.get_data(states=["TX"]))
    rows, ours = coded(cls, home)
    assert ours == labels.astype(int).tolist()
    # What folktables means to be -1 it makes 0, by numpy.nan_to_num(x, -1).
    theirs = np.where(features == 0, -1, features).astype(int).astype(str).tolist()
    assert rows == theirs


def test_groups_are_those_of_ferry_et_al(home: DataHome) -> None:
    race = ACSIncome().load(home)
    assert race.groups == ("White", "others")
    assert "RAC1P" not in race.features
    quartile = {"column": "AGEP", "quantile": 0.25}  # benchmarks/ferry-*.toml say it
    age = ACSPublicCoverage(sensitive=quartile).load(home)
    assert age.groups == ("first quartile", "others")
    assert "AGEP" not in age.features
    ages = ACSPublicCoverage(sensitive="SEX").load(home).features["AGEP"]
    assert ((age.codes == 0) == (ages <= np.quantile(ages, 0.25))).all()
    young = ACSPublicCoverage().load(home)
    assert young.groups == ("AGEP < 25", "AGEP >= 25")
    assert ((young.codes == 0) == (ages < 25)).all()
    assert not young.measured_cuts


@pytest.mark.parametrize(("place", "parameters", "change"), [
    ("2018/1-Year/psam_p48.csv", {}, {}),
    ("psam_p48.csv", {}, {}),
    ("2016/1-Year/ss16ptx.csv", {"year": 2016}, {"SERIALNO": "0000123"}),
    ("ss14pca.csv", {"year": 2014, "state": "CA"}, {"ST": "6", "SERIALNO": "0000123"}),
    ("2018/5-Year/psam_p48.csv", {"horizon": "5-Year"}, {"SERIALNO": "2014000000123"}),
    ("psam_p48.csv", {"year": 2019}, {"SERIALNO": "2019HU0000001", "RELP": "RELSHIPP"}),
    ("psam_p48.csv", {"year": 2023},
     {"SERIALNO": "2023HU0000001", "RELP": "RELSHIPP", "ST": "STATE"}),
])  # fmt: skip
def test_files_of_every_year_are_read(
    tmp_path: Path, place: str, parameters: dict[str, Any], change: dict[str, str]
) -> None:
    frame = people()
    for name, new in change.items():
        if new.isupper() and not new[0].isdigit():
            frame = frame.rename(columns={name: new})
        else:
            frame[name] = new
    home = write(frame, tmp_path / "home" / place)
    table = ACSIncome(**parameters).load(home)
    expected = len(by_hand(write_2018(tmp_path), ACSIncome)[1])
    assert len(table) == expected
    assert ("RELSHIPP" in table.features) is (parameters.get("year", 0) >= 2019)


def write_2018(tmp_path: Path) -> Path:
    path = tmp_path / "home-2018" / "psam_p48.csv"
    write(people(), path)
    return path


@pytest.mark.parametrize(("change", "says"), [
    ({"ST": "06"}, "psam_p48.csv, line 2: ST is '06', not 48, the number of TX; is it the 1-Y"),
    ({"SERIALNO": "2017HU0000001"}, "SERIALNO is '2017HU0000001', not a serial number of 2018"),
    ({"SEX": "3"}, "line 2: SEX is '3', not '1' or '2'"),
    ({"AGEP": "old"}, "line 2: AGEP is 'old', not a whole number"),
    ({"COW": "b"}, "line 2: COW is 'b', not a code"),
    ({"AGEP": "3"}, "no rows are left after the filter of 'acs-income'"),
])  # fmt: skip
def test_what_was_not_asked_for_is_one_error(
    tmp_path: Path, change: dict[str, str], says: str
) -> None:
    home = write(people().assign(**change), tmp_path / "home/psam_p48.csv")
    with pytest.raises(DataError) as error:
        ACSIncome().load(home)
    assert says in str(error.value)


@BOTH
def test_a_missing_file_says_how_to_get_it(tmp_path: Path, cls: type) -> None:
    home = DataHome((tmp_path,))
    assert f"fpbench data fetch {cls.name}" in str(cls().absent(home))
    said = str(cls(state="CA", year=2016).absent(home))
    assert f"fpbench data fetch {cls.name} --set state=CA --set year=2016" in said
    with pytest.raises(DataError, match="2016/1-Year/ss16pca.csv"):
        cls(state="CA", year=2016).load(home)


# What folktables downloads

Downloader = Callable[..., str]


@pytest.fixture
def folktables(monkeypatch: pytest.MonkeyPatch) -> Callable[[Downloader], None]:
    """A folktables that downloads as it is told to."""

    def install(download: Downloader) -> None:
        package = types.ModuleType("folktables")
        package.__spec__ = importlib.machinery.ModuleSpec("folktables", None)
        loader = types.ModuleType("folktables.load_acs")
        loader.initialize_and_download = download  # type: ignore[attr-defined]
        package.load_acs = loader  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "folktables", package)
        monkeypatch.setitem(sys.modules, "folktables.load_acs", loader)

    return install


def _writes(frame: pd.DataFrame, said: str = "") -> Downloader:
    def download(place: str, state: str, year: str, horizon: str, survey: str, **_: Any) -> str:
        assert (state, year, horizon, survey) == ("TX", "2018", "1-Year", "person")
        print("Downloading data for 2018 1-Year person survey for TX...")
        frame.to_csv(Path(place) / "psam_p48.csv", index=False)
        if said:
            print(f"\nmay be corrupted.\n\nException:  {said}")
        return str(Path(place) / "psam_p48.csv")

    return download


def test_what_folktables_downloads_is_checked_and_kept(
    tmp_path: Path,
    folktables: Callable[[Downloader], None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    home = DataHome((tmp_path,))
    folktables(_writes(people()))
    (path,) = ACSIncome().fetch(home)
    assert path == tmp_path / "2018/1-Year/psam_p48.csv"
    assert [file.name for file in path.parent.iterdir()] == ["psam_p48.csv"]
    assert ACSIncome().load(home).groups == ("White", "others")
    folktables(lambda *_, **__: pytest.fail("is here already"))
    assert ACSPublicCoverage().fetch(home) == [path]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("download", "says"), [
    (_writes(people(), "Connection refused"), "Connection refused"),
    (_writes(people(state=6)), "ST is '6', not 48|ST is '06', not 48"),
    (_writes(people(year=2017)), "not a serial number of 2018"),
    (lambda place, *_, **__: str(Path(place) / "psam_p48.csv"), "downloaded nothing"),
])  # fmt: skip
def test_hidden_errors_of_folktables_are_one_error(
    tmp_path: Path,
    folktables: Callable[[Downloader], None],
    capfd: pytest.CaptureFixture[str],
    download: Downloader,
    says: str,
) -> None:
    folktables(download)
    with pytest.raises(DataError, match=says) as error:
        ACSIncome().fetch(DataHome((tmp_path,)))
    assert "\n" not in str(error.value)
    assert "could not be fetched from https://www2.census.gov/programs-surveys" in str(error.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert capfd.readouterr() == ("", "")


def test_without_folktables_the_command_that_installs_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "folktables", None)
    monkeypatch.setitem(sys.modules, "folktables.load_acs", None)
    monkeypatch.setattr("fpbench.builtin.datasets.acs.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install 'fpbench-toolkit\[acs\]'"):
        ACSIncome().fetch(DataHome((tmp_path,)))
    assert "pip install 'fpbench-toolkit[acs]'" in str(ACSIncome().absent(DataHome((tmp_path,))))
