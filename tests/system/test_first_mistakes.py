"""What newcomers get wrong: each mistake is one error that says how to mend it."""

import pytest
import requests

import fpbench
from fpbench import InputError
from fpbench.api import reproduce
from fpbench.cli.screen.catalog import find_kind
from fpbench.data.data_files import DataFile, DataHome
from fpbench.errors import DataError, MatrixError, NameUnknownError, StoreError
from fpbench.matrix.matrix import read
from fpbench.testing.scaffold import write_package

MATRIX = """
seeds = 1
[[dataset]]
use = "flock"
rows = 30
[[learner]]
use = "parrot"
[[auditor]]
use = "group-fairness"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[learner]]", "[learner]", "[learner]: write [[learner]], with two brackets"),
        ("rows = 30", "rows = [30, 40]", "to try several: rows = { sweep = [30, 40] }"),
        ("use = \"flock\"", "use = flock", 'use = flock; a text needs quotes: "flock"'),
        ("rows = 30", "rows = True", "rows = True; write true, in lower case"),
    ],
)  # fmt: skip
def test_a_slip_in_a_matrix_is_shown_with_its_mend(toys, tmp_path, old, new, message):
    file = tmp_path / "toys.toml"
    file.write_text(MATRIX)
    assert fpbench.plan(file, out=tmp_path / "run").runnable == 1
    file.write_text(MATRIX.replace(old, new))
    with pytest.raises(MatrixError) as error:
        fpbench.plan(file, out=tmp_path / "run")
    assert message in str(error.value)


def test_a_line_that_is_no_toml_is_shown_even_if_it_is_the_last(tmp_path):
    file = tmp_path / "m.toml"
    for text in ("seeds = 1\nx = [1,", "seeds = \n", "x == 3", "x = \xe9"):
        file.write_text(text)
        with pytest.raises(MatrixError, match="not valid TOML"):
            read(file)


def test_a_folder_of_fpbench_data_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("FPBENCH_DATA", f"{tmp_path}:{tmp_path / 'nope'}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    missing = fpbench.component("dataset", "german").absent(DataHome.default())
    assert missing.endswith(f"fetch german (FPBENCH_DATA: no folder '{tmp_path / 'nope'}')")
    (tmp_path / "nope").mkdir()
    assert "FPBENCH_DATA" not in fpbench.component("dataset", "german").absent(DataHome.default())


def test_no_network_is_said_in_a_few_words(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise requests.ConnectionError(
            "HTTPSConnectionPool(host='x', port=443): NameResolutionError(" + "x " * 90
        )

    monkeypatch.setattr("fpbench.data.data_files._get", fail)
    monkeypatch.setattr("fpbench.data.data_files._PAUSE", 0)
    with pytest.raises(DataError) as error:
        DataHome((tmp_path,)).fetch(DataFile("some.data", "https://example.org/some.data"))
    assert "the server cannot be reached (NameResolutionError): is there a network?" in str(
        error.value
    )
    assert "HTTPSConnectionPool" not in str(error.value)


def test_names_that_are_none_lead_to_a_short_list(toys, tmp_path):
    with pytest.raises(
        NameUnknownError,
        match="unknown kind 'attacker'; did you mean 'adversary'[?] kinds: dataset, learner, ",
    ):
        write_package("attacker", "foo", tmp_path)
    with pytest.raises(
        InputError, match="no study 'ferry'; ferry-again, .*, ferry-table5 begin with it"
    ):
        reproduce.find("ferry")
    with pytest.raises(InputError, match="no component 'xyzzy'; `fpbench plugins` lists all"):
        find_kind(fpbench.plugin.discover(), "xyzzy")


def test_a_run_says_what_it_can_rank_and_what_a_view_takes(toys, tmp_path):
    file = tmp_path / "toys.toml"
    file.write_text(MATRIX)
    run = fpbench.run(file, out=tmp_path / "run")
    with pytest.raises(
        InputError, match=r"unknown measure .*'foo'; valid: .* more \(docs/measures"
    ) as e:
        run.leaderboard(by="foo")
    assert len(str(e.value)) < 400
    with pytest.raises(StoreError, match="no results for the view 'audits': it takes audits with"):
        run.leaderboard(view="audits")
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreError, match="choose another"):
        fpbench.run(file, out=tmp_path / "taken" / "run")


def test_a_matrix_of_names_and_one_filter_are_understood_or_refused(toys, tmp_path):
    for learner in ("parrot", ["parrot"]):
        with pytest.raises(MatrixError, match='learner: must be a list of tables, such as .*"use"'):
            fpbench.plan({"dataset": [{"use": "flock"}], "learner": learner})
    file = tmp_path / "toys.toml"
    file.write_text(MATRIX)
    run = fpbench.run(file, out=tmp_path / "run")
    assert len(run.results("learner=parrot")) == 1
