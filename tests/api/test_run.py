"""Planning and running from scripts: what is planned, and data that is not what it should be."""

from pathlib import Path

import pytest

import fpbench

AUDIT = {
    "learner": [{"use": "parrot"}],
    "auditor": [{"use": "counter", "mechanism": {"use": "hiss"}}],
}
SMALL = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, {}, 2174, 0, 40, United-States, {}\n"


@pytest.fixture
def other_adult(tmp_path, monkeypatch):
    """Twelve people who are not UCI's."""
    for name, end in (("adult.data", ""), ("adult.test", ".")):
        rows = [("Male", "<=50K" + end), ("Female", ">50K" + end)] * 3
        (tmp_path / name).write_text("".join(SMALL.format(*row) for row in rows))
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))


def test_data_that_is_not_the_original_is_loaded_with_a_warning(other_adult, toys, tmp_path):
    with pytest.warns(UserWarning, match="not the known original") as caught:
        table = fpbench.dataset("adult")
    for warning, name in zip(caught, ("adult.data", "adult.test"), strict=True):
        assert f"{name} is not the known original: its sha256 is" in str(warning.message)
        assert warning.filename == __file__
    assert len(table) == 12
    assert table.test.sum() == 6
    matrix = {**AUDIT, "dataset": [{"use": "adult"}]}
    with pytest.warns(UserWarning, match="is not the known original") as caught:
        fpbench.run(matrix, out=tmp_path / "run")
    assert len(caught) == 2
    plans = []  # whoever asks for the plan is told there
    fpbench.run(matrix, out=tmp_path / "run", on_plan=lambda plan, done: plans.append(plan))
    assert len(plans[0].warnings) == 2


def test_data_in_memory_warns_of_nothing(toys):
    assert len(fpbench.dataset("flock", rows=9)) == 9


@pytest.mark.parametrize("tables", [[1], "people"])
def test_tables_have_names(tables, toys, tmp_path):
    with pytest.raises(fpbench.InputError, match="tables must be a mapping"):
        fpbench.run({**AUDIT, "dataset": [{"use": "flock"}]}, tables=tables, out=tmp_path)


def test_a_plan_from_a_script_is_what_the_command_line_prints(toys, tmp_path):
    matrix = {
        **AUDIT,
        "seeds": 4,
        "dataset": [{"use": "flock"}],
        "learner": [{"use": "parrot", "number": {"sweep": [0, 1]}}],
        "profile": {"quick": {"seeds": 2}},
    }
    out = tmp_path / "run"
    before = fpbench.plan(matrix, out=out)
    assert not out.exists()
    assert (len(before.cells), before.runnable, before.skipped) == (8, 8, {})
    assert (before.done, before.seconds, before.directory) == (frozenset(), None, out)
    assert before.steps["train", "parrot"] == 8
    assert (before.steps["split", ""], before.steps_alone["split", ""]) == (4, 8)
    assert fpbench.plan(matrix, profile="quick").directory == Path("runs/matrix-quick")
    run = fpbench.run(matrix, profile="quick", out=out)
    after = fpbench.plan(matrix, seeds=3, out=out)
    assert after.runnable == 6
    assert after.done == set(run.frame()["cell"])
    assert after.seconds is not None and after.seconds > 0
    assert fpbench.plan(matrix, profile="quick", out=out).seconds == 0
    with pytest.raises(fpbench.errors.MatrixError, match="8 combinations, more than 7"):
        fpbench.plan(matrix, max_cells=7)


def test_a_plan_has_the_reasons_of_skips_and_refuses_a_matrix_without_data(
    toys, monkeypatch, tmp_path
):
    attack = {
        "learner": [{"use": "parrot"}],
        "disclosure": [{"use": "oracle"}],
        "adversary": [{"use": "coin"}],
        "corrector": [{"use": "flip"}, {"use": "none"}],
    }
    three = fpbench.plan({**attack, "dataset": [{"use": "flock", "groups": 3}]})
    assert three.runnable == 1
    ((reason, count),) = three.skipped.items()
    assert (count, [cell.reason for cell in three.cells]) == (1, [reason, None])
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))
    with pytest.raises(fpbench.errors.DataError, match="nothing to run"):
        fpbench.plan({**attack, "dataset": [{"use": "adult"}]})


def matrix_of(*adversaries, rows=200):
    return {
        "seeds": 1,
        "dataset": [{"use": "census-synthetic", "rows": rows}],
        "learner": [{"use": "plain"}],
        "disclosure": [{"use": "published", "metric": "statistical-parity"}],
        "adversary": [{"use": name} for name in adversaries],
        "corrector": [{"use": "none"}],
    }


def test_a_matrix_with_more_components_goes_on_with_the_same_run(tmp_path):
    first = fpbench.run(matrix_of("prior"), out=tmp_path / "run")
    second = fpbench.run(matrix_of("prior", "a1"), out=tmp_path / "run")
    assert len(first.finished) == len(second.finished) == 1
    assert list(second.frame()["adversary"]) == ["prior", "a1"]
    with pytest.raises(fpbench.errors.StoreError, match="was made by another matrix"):
        fpbench.run(matrix_of("a1"), out=tmp_path / "run")  # it would lose what is done


def test_a_run_in_which_nothing_is_done_is_used_again(tmp_path):
    stopped = iter([False, True])
    with pytest.raises(KeyboardInterrupt):
        fpbench.run(matrix_of("prior"), out=tmp_path / "run", stop=lambda: next(stopped, True))
    again = fpbench.run(matrix_of("a1", rows=300), out=tmp_path / "run")
    assert list(again.frame()["adversary"]) == ["a1"]
    assert list(again.frame()["status"]) == ["done"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label_column": "Paid"}, "no column 'Paid'; did you mean 'paid'?"),
        ({"separator": ";"}, "is the separator not ';'"),
        ({"positive": 2}, "positive"),
        ({"sensitive": "gender"}, "no column 'gender'"),
    ],
)
def test_a_file_is_looked_at_before_anything_is_run(tmp_path, change, message):
    rows = "".join(f"{20 + i},{'fm'[i % 2]},{i // 2 % 2}\n" for i in range(40))
    (tmp_path / "people.csv").write_text("age,sex,paid\n" + rows)
    own = {"use": "csv", "path": str(tmp_path / "people.csv"), "label_column": "paid",
           "sensitive": "sex"}  # fmt: skip
    matrix = matrix_of("prior") | {"dataset": [own | change]}
    for act in (fpbench.plan, fpbench.run):
        with pytest.raises(fpbench.InputError, match=message) as refused:
            act(matrix, out=tmp_path / "run")
        assert "[[dataset]] no. 1 (csv)" in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_large_file_is_left_to_the_run(tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text("age,sex,paid\n")
    own = {"use": "csv", "path": str(tmp_path / "people.csv"), "label_column": "paid",
           "sensitive": "sex"}  # fmt: skip
    matrix = matrix_of("prior") | {"dataset": [own]}
    with pytest.raises(fpbench.InputError):
        fpbench.plan(matrix, out=tmp_path / "run")
    monkeypatch.setattr("fpbench.builtin.datasets.own_tables._READ_AT_ONCE", 5)
    assert fpbench.plan(matrix, out=tmp_path / "run").runnable == 1
