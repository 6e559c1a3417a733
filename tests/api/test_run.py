"""What the functions for scripts say of data that is not what it should be."""

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
    with pytest.raises(fpbench.InputError, match="tables must be a dictionary"):
        fpbench.run({**AUDIT, "dataset": [{"use": "flock"}]}, tables=tables, out=tmp_path)
