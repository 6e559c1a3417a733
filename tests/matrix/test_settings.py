"""Choosing from a matrix and overriding its values without another file."""

import json
import shlex
from pathlib import Path

import pytest

import fpbench
from fpbench.base.errors import InputError
from fpbench.execution.verification import read_stored_matrix
from fpbench.matrix.matrix import read
from fpbench.store.store import Store

TOY = """
seeds = 2
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
number = { sweep = [1, 2] }
[[disclosure]]
use = "oracle"
[[adversary]]
use = "peek"
[[adversary]]
use = "coin"
label = "a coin"
[[corrector]]
use = "none"
[[auditor]]
use = "counter"
mechanism = { use = "hiss" }
"""


@pytest.fixture
def matrix(toys, tmp_path):
    file = tmp_path / "toy.toml"
    file.write_text(TOY)
    return file


def choose(matrix, *settings):
    """Labels of the cells that are chosen, less those that all cells have."""
    cells = fpbench.plan(matrix, out=matrix.parent / "run", settings=settings).cells
    return {
        (c.labels["learner"], c.labels.get("adversary", c.labels.get("auditor"))) for c in cells
    }


@pytest.mark.parametrize(
    ("settings", "learners", "others"),
    [
        (["learner=parrot"], {1, 2}, {"peek", "a coin", "counter"}),
        (["learner=parrot number=1"], {1}, {"peek", "a coin", "counter"}),
        (["learner=* number=2", "adversary=coin"], {2}, {"a coin", "counter"}),
        (["adversary=peek,a coin", "auditor="], {1, 2}, {"peek", "a coin"}),
        (["adversary=peek", "adversary=a*"], {1, 2}, {"peek", "a coin", "counter"}),
        (["adversary="], {1, 2}, {"counter"}),
    ],
)
def test_components_are_chosen_by_name_label_and_pattern(matrix, settings, learners, others):
    expected = {(f"parrot number={n}", other) for n in learners for other in others}
    assert choose(matrix, *settings) == expected


@pytest.mark.parametrize("label", ["coin, biased", 'a "coin", biased', "coin, it's", " coin,"])
def test_a_name_with_a_comma_is_chosen_in_quotes(matrix, label):
    """The message about a part of it is a setting that can be typed as it is."""
    matrix.write_text(TOY.replace('"a coin"', json.dumps(label)))
    with pytest.raises(InputError, match="a name with a comma needs quotes: -s ") as error:
        choose(matrix, f"adversary=peek,{label}")
    (setting,) = shlex.split(str(error.value).rpartition("-s ")[2])
    assert {other for _, other in choose(matrix, setting, "auditor=")} == {label}
    assert {other for _, other in choose(matrix, f"{setting}, peek", "auditor=")} == {label, "peek"}


def test_values_are_overridden_as_if_the_file_said_so(matrix):
    settings = ["seeds=3,7", "split.train=0.25", "dataset.rows=40", "learner.number=5, 6"]
    settings += ["leaderboard.rank_by=gain", "title=A title"]
    changed = read(matrix, settings=settings)
    written = TOY.replace("seeds = 2", 'title = "A title"\nseeds = [3, 7]').replace(
        "[1, 2]", "[5, 6]"
    )
    written = written.replace('"flock"', '"flock"\nrows = 40')
    matrix.write_text(f'{written}[split]\ntrain = 0.25\n[leaderboard]\nrank_by = "gain"\n')
    same = read(matrix)
    assert changed.canonical() == same.canonical()
    for name in ("seeds", "rank_by", "title"):
        assert getattr(changed, name) == getattr(same, name)


def test_a_text_needs_no_quotes_and_a_table_is_a_value(matrix):
    mechanism = 'auditor.mechanism={ use = "hiss", epsilon = 2.0 }'
    (auditor,) = read(matrix, settings=[mechanism]).axes["auditor"]
    assert auditor.parameters["mechanism"] == {"use": "hiss", "epsilon": 2.0}
    (auditor,) = read(matrix, settings=["auditor.mechanism=hiss"]).axes["auditor"]
    assert auditor.parameters["mechanism"] == "hiss"


@pytest.mark.parametrize(("setting", "message"), [
    ("learner=parot", "learner=parot: there is no learner 'parot' to choose; did you mean"),
    ("learners=parrot", "no key 'learners' to set; did you mean 'learner'?"),
    ("tolerance=3", "a parameter is KIND.PARAMETER"),
    ("parrot", "'parrot' is not a setting: write KEY=VALUE"),
    ("dataset.=1", "there is no key 'dataset.' to set"),
    ("learner.number=" + "[" * 30 + "]" * 30, "learner.number: is nested more than 24 deep"),
    ("learner.numbr=3", "no learner of the matrix has the parameter 'numbr'; did you mean"),
    ("leaner.number=3", "did you mean 'learner.number'?"),
    ("split=3", "split is a table: set a key of it, split.KEY=VALUE"),
    ("split.trian=0.4", "unknown key 'split.trian'; did you mean 'train'?"),
    ("dataset.rows=", "'dataset.rows=': has no value"),
    ("seeds=many", "seeds: input should be a valid integer, not 'many'"),
    ("seeds=1]\nmore = [2", "seeds: input should be a valid integer"),
    ("seeds=[" + "[" * 90, "seeds"),
    ("title=" + "[" * 5000 + "]" * 5000, "nested"),
])  # fmt: skip
def test_a_wrong_setting_is_one_error_with_the_nearest_name(matrix, setting, message):
    with pytest.raises(InputError) as error:
        read(matrix, settings=[setting])
    assert message in str(error.value)


def test_a_table_that_is_none_is_named():
    with pytest.raises(InputError, match=r"matrix: split: must be a table, \[split\]"):
        read({"split": 3}, settings=["split.train=0.5"])


def test_a_label_with_brackets_is_chosen_and_what_some_take_is_overridden(toys):
    tables = {"dataset": [{"use": "flock"}], "disclosure": [{"use": "oracle"}],
              "adversary": [{"use": "coin"}], "corrector": [{"use": "none"}],
              "learner": [{"use": "parrot", "label": "EG [1]"}, {"use": "plain"}]}  # fmt: skip
    matrix = read(tables, settings=["learner=EG [1]", "learner.number=5"])
    assert matrix.chosen == {"learner": frozenset(["EG [1]"])}
    assert [each.parameters for each in matrix.axes["learner"]] == [{"number": 5}, {}]


def test_settings_that_contradict_each_other_are_refused(matrix):
    with pytest.raises(InputError, match="seeds is set twice"):
        read(matrix, settings=["seeds=3", "seeds=4"])
    with pytest.raises(InputError, match="say the same"):
        read(matrix, seeds=3, settings=["seeds=4"])
    with pytest.raises(
        InputError, match=r"settings must be a text or a list \(each a text\), not \[3\]"
    ):
        fpbench.plan(matrix, settings=[3])


def test_no_cell_that_is_chosen_is_an_error(matrix):
    with pytest.raises(InputError, match="no cell of the matrix has all that is chosen"):
        fpbench.plan(matrix, settings=["adversary=", "auditor="])


@pytest.mark.slow
def test_a_run_goes_on_with_other_choices_in_any_order(matrix, tmp_path):
    out = tmp_path / "run"
    first = fpbench.run(matrix, out=out, settings=["adversary=peek", "auditor="])
    assert len(first.finished) == 4
    assert "8 of 12 cells not run yet" in first.leaderboard().notes
    assert len(fpbench.run(matrix, out=out, settings=["adversary=coin"]).finished) == 8
    assert fpbench.run(matrix, out=out).finished == ()
    more = fpbench.run(matrix, out=out, settings=["seeds=3", "auditor=counter", "adversary="])
    assert [one.cell.seed for one in more.finished] == [2, 2]
    # What another value makes are other cells.
    with pytest.raises(fpbench.errors.StoreError, match="made by another matrix"):
        fpbench.run(matrix, out=out, settings=["dataset.rows=50"])


@pytest.mark.slow
def test_a_run_keeps_the_matrix_that_was_run(matrix, tmp_path):
    out = tmp_path / "run"
    fpbench.run(matrix, out=out, settings=["dataset.rows=40", "learner.number=1"])
    with Store(out) as store:
        stored = read_stored_matrix(store)
    assert stored.axes["dataset"][0].parameters == {"rows": 40}
    assert fpbench.load(out).verify(2).same
    fpbench.run(matrix, out=out, fresh=True, settings=["learner=parrot number=1", "seeds=1"])
    assert not Path(out, "matrix.json").exists()
    assert Path(out, "matrix.toml").read_text() == TOY
    assert fpbench.load(out).verify(2).same


def test_a_run_of_which_all_is_skipped_is_an_error(matrix, tmp_path, monkeypatch):
    corrector = fpbench.plugin.discover().component("corrector", "none")
    monkeypatch.setattr(corrector, "unavailable", classmethod(lambda _: "needs what is not here"))
    with pytest.raises(
        InputError, match="nothing to run, all cells are skipped: needs what is not here"
    ):
        fpbench.run(matrix, out=tmp_path / "run", settings=["auditor="])
    assert len(fpbench.run(matrix, out=tmp_path / "run").finished) == 4
