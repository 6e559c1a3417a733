"""The `data` commands, and what `describe` says of data sets, as a user meets them."""

import re
import shutil
from pathlib import Path

import pytest
from commands import bad, fine

import fpbench
from fpbench.cli.screen.data_sets import parse_parameters

TOY_DATASETS = """
from fpbench import Dataset, hookimpl
from fpbench.plugin import DataFile
class Chest(Dataset):
    name = "chest"
    summary = "a file that nobody offers"
    @property
    def files(self):
        return (DataFile("chest.csv"),)
    def load(self, home):
        raise NotImplementedError
@hookimpl
def fpbench_datasets():
    return [Chest]
"""


@pytest.fixture
def places(tmp_path):
    """Environment with an empty data directory and an empty home."""
    (tmp_path / "data").mkdir()
    return {"FPBENCH_DATA": str(tmp_path / "data"), "XDG_DATA_HOME": str(tmp_path / "home")}


def row(shown, name):
    """Words of the first row of a data set."""
    return re.search(rf"^ *{name}  +(.*?) *$", shown, re.MULTILINE)[1]


def test_the_list_says_what_is_known_and_where_it_is(command, places, tmp_path):
    (tmp_path / "data" / "adult.test").touch()
    shown = fine(command("data", "list", **places)).stdout
    assert shown.split("\n")[0].split() == [
        "dataset",
        "rows",
        "x",
        "features",
        "label",
        "1",
        "data",
    ]
    assert re.fullmatch(
        r"45,222 x 13 +24\.8 % +adult\.data missing: fpbench data fetch adult", row(shown, "adult")
    )
    assert re.search(rf"^ +adult +{re.escape(str(tmp_path))}/data/adult\.test$", shown, re.M)
    assert row(shown, "census-synthetic").endswith("needs no files")
    assert row(shown, "csv").endswith("yours: parameters path, label_column, sensitive")
    assert row(shown, "acs-income").endswith("missing: fpbench data fetch acs-income")
    names = {entry.name for entry in fpbench.plugin.discover().of_kind("dataset")}
    assert {line.split()[0] for line in shown.splitlines()[1:]} == names


def test_the_list_is_patient_with_plugins(command, install, toys, places):
    install("chest", "chest_plugin", TOY_DATASETS)
    lazy = (
        "from fpbench import hookimpl\nfrom fpbench.plugin import Lazy\n"
        "@hookimpl\ndef fpbench_datasets():\n"
        "    return [Lazy('gone', 'no_such_module:Gone')]\n"
    )
    install("gone", "gone_plugin", lazy)
    shown = fine(command("data", "list", **places)).stdout
    assert row(shown, "flock").split() == ["-", "-", "needs", "no", "files"]
    assert row(shown, "chest").endswith("chest.csv missing: put it where FPBENCH_DATA points")
    assert "broken: dataset 'gone' of gone 1.0 fails on import" in row(shown, "gone")
    verified = fine(command("data", "verify", **places)).stdout
    assert re.search(r"chest +chest.csv +missing", verified)
    assert "gone" not in verified


def test_files_are_verified(command, places, tmp_path):
    (tmp_path / "data" / "adult.test").write_text("not the original")
    (tmp_path / "data" / "psam_p48.csv").write_text("no checksum of it is known")
    verified = fine(command("data", "verify", **places), code=1).stdout
    (differs,) = [line for line in verified.splitlines() if "DIFFERS from the known" in line]
    assert len(set(re.findall("[0-9a-f]{64}", differs))) == 2
    assert re.search(r"acs-income .*no checksum of an original is known: .*psam_p48.csv", verified)
    fine(command("data", "verify", "acs-income", **places))
    fine(command("data", "verify", "census-synthetic", **places))
    fine(command("data", "verify", "german", **places), code=1)  # is missing
    bad(command("data", "verify", "adlut", **places), "did you mean 'adult'?")
    assert fine(command("data", "path", **places)).stdout.splitlines()[0] == places["FPBENCH_DATA"]


def test_real_data_verifies(command, adult_home):
    assert fine(command("data", "verify", "adult")).stdout.count("as published") == 2


def test_nothing_is_fetched_that_is_here(command, places, adult_home, tmp_path):
    for name in ("adult.data", "adult.test"):
        shutil.copy(adult_home.find(name), tmp_path / "data")
    shown = fine(command("data", "fetch", "adult", "census-synthetic", **places)).stdout
    assert re.search(rf"adult\.data +{re.escape(str(tmp_path))}/data/adult\.data", shown)
    assert re.search(r"census-synthetic +needs no files", shown)


def test_no_network_is_one_error(command, places):
    # A proxy at which nobody listens, so that this test asks nobody, wherever it runs.
    nobody = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9")
    nobody |= dict.fromkeys(("NO_PROXY", "no_proxy"), "")
    done = command("data", "fetch", "german", **places, **nobody)
    bad(done, "data file 'german.data' could not be fetched from https://archive.ics.uci.edu")


def test_parameters_are_set_for_what_is_fetched(command, places, tmp_path):
    there = tmp_path / "data" / "2016" / "5-Year"
    there.mkdir(parents=True)
    (there / "ss16pca.csv").write_text("wrong")
    settings = ("--set", "state=CA", "--set", "year=2016", "--set", "horizon=5-Year")
    bad(command("data", "fetch", "acs-income", *settings, **places), "2016/5-Year", "ss16pca.csv")
    bad(command("data", "fetch", "acs-income", "--set", "state=ZZ", **places), "state: ", "'ZZ'")
    bad(command("data", "fetch", "acs-income", "--set", "stat=CA", **places), "mean 'state'?")
    bad(command("data", "fetch", "acs-income", "--set", "CA", **places), "must be KEY=VALUE")
    bad(
        command("data", "fetch", "adult", "--set", "use=bank", **places), "'use' is not a parameter"
    )
    bad(command("data", "fetch", "csv", **places), "dataset 'csv': needs a value for 'path'")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("k=CA", "CA"), ("k=2016", 2016), ("k=1-Year", "1-Year"), ("k=0.5", 0.5), ("k=true", True),
        ('k="2016"', "2016"), ('k=["a", "b"]', ["a", "b"]), ("k=", ""), ("k = a=b", " a=b"),
        ('k={ column = "age", cuts = [60] }', {"column": "age", "cuts": [60]}),
    ],
)  # fmt: skip
def test_values_are_set_as_a_matrix_has_them(setting, value):
    assert parse_parameters([setting]) == {"k": value}


def test_data_sets_are_described(command, places):
    shown = fine(command("describe", "dataset", "bank", **places)).stdout
    assert re.search(r"sensitive by default\n +age: age < 60 \| age >= 60\n", shown)
    assert re.search(r"rows +45,211\n +features +15\n +label 1 +took up the deposit", shown)
    assert "licence   CC BY 4.0" in shown
    assert "sensitive  = [{ column = 'age', cuts = [60.0] }]  string or table or array." in shown
    adult = fine(command("describe", "dataset", "adult", **places)).stdout
    assert "sex: one group for each value" in adult
    own = fine(command("describe", "dataset", "csv", **places)).stdout
    assert re.search(r"sensitive +required", own)
    assert "sensitive by default" not in own
    acs = fine(command("describe", "dataset", "acs-public-coverage", **places)).stdout
    assert "AGEP: AGEP < 25 | AGEP >= 25" in acs


MATRIX = """
[[dataset]]
use = "csv"
path = "people.csv"
label_column = "paid"
sensitive = {{ column = "age", cuts = [40] }}
{more}
[[learner]]
use = "plain"
[[disclosure]]
use = "hidden"
[[adversary]]
use = "a1"
[[corrector]]
use = "none"
"""


def test_a_matrix_of_ones_own_table_is_run(command, tmp_path):
    lines = [f"{20 + n % 50},{'ab'[n % 2]},{n / 7},{n // 3 % 2}" for n in range(300)]
    file = Path(tmp_path / "work" / "people.csv")
    file.write_text("\n".join(["age,job,height,paid", *lines, ""]))
    matrix = tmp_path / "work" / "own.toml"
    matrix.write_text(MATRIX.format(more=""))
    done = command("run", "own.toml")
    fine(done)
    assert "not the known original" not in done.stderr  # of which none is known
    matrix.write_text(MATRIX.format(more='drop = "heigth"'))
    bad(
        command("run", "own.toml", "--fresh"),
        "own.toml: [[dataset]] no. 1 (csv): data set 'people.csv': drop: no column 'heigth'; "
        "did you mean 'height'?",
    )
    file.unlink()
    bad(command("run", "own.toml", "--fresh"), "csv: no file 'people.csv' in the working directory")
