"""What differs between two runs."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fpbench.errors import StoreError
from fpbench.matrix.plan import Cell
from fpbench.plugin import Status
from fpbench.store.differences import diff, is_time, list_environment_changes, name_cell
from fpbench.store.packing import is_identical
from fpbench.store.store import Store

KERNEL = {
    "machine": "x86_64", "blas": ["openblas 0.3 Haswell"], "simd": ["X86_V3"],
    "solvers": {"scipy": "1.17"}, "packages": {"numpy": "2.4"},
}  # fmt: skip
OTHER_KERNEL = KERNEL | {"blas": ["openblas 0.3 SkylakeX"]}
ABOUT = {"matrix": "[]", "title": "toy", "rank_by": "gain"}


def made(directory, rows, key="k", environment=None, matrix="[]"):
    """A run: measures by seed; None for a cell that failed."""
    with Store(directory, create=True) as store:
        cells = [Cell(f"{key}{seed}", {"dataset": "d", "learner": "l"}, seed) for seed in rows]
        session = store.begin({**ABOUT, "matrix": matrix}, environment or KERNEL, cells)
        for seed, measures in rows.items():
            status = Status.FAILED if measures is None else Status.DONE
            reason = "broke" if measures is None else None
            store.add(session, f"{key}{seed}", status, 1.0, measures or {}, reason)
    return directory


VALUES = st.none() | st.integers(-3, 3) | st.sampled_from([0.5, -0.0, 0.0, math.nan, math.inf, "a"])
RUNS = st.dictionaries(
    st.integers(0, 5),
    st.none() | st.fixed_dictionaries({"gain": VALUES, "solver": VALUES, "fit_seconds": VALUES}),
    max_size=6,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RUNS, RUNS, st.integers(0, 10**9))
def test_a_difference_is_told_if_and_only_if_there_is_one(tmp_path, one, other, number):
    place = tmp_path / str(number)
    found = diff(made(place / "a", one), made(place / "b", other))
    assert len(found.only_one) == len(one.keys() - other.keys())
    assert len(found.only_other) == len(other.keys() - one.keys())
    both = [seed for seed in one if seed in other]
    fell = [seed for seed in both if (one[seed] is None) != (other[seed] is None)]
    assert {change.cell for change in found.statuses} == {f"d, l, seed {s}" for s in fell}
    done = [seed for seed in both if one[seed] is not None and other[seed] is not None]
    assert found.compared == len(done)
    expected = {
        (f"d, l, seed {seed}", name)
        for seed in done for name in ("gain", "solver")
        if not is_identical(one[seed][name], other[seed][name])
    }  # fmt: skip
    assert {(change.cell, change.name) for change in found.changes} == expected
    assert sum(spread.cells for spread in found.spreads) == len(expected)
    for change in found.changes:
        seed = int(change.cell.rpartition(" ")[2])
        assert is_identical(change.one, one[seed][change.name])
        assert is_identical(change.other, other[seed][change.name])
    assert bool(diff(place / "a", place / "a")) is False
    assert bool(found) == bool(
        expected or fell or one.keys() ^ other.keys()
        or found.measures_only_one or found.measures_only_other
    )  # fmt: skip


def test_how_much_measures_differ(tmp_path):
    one = {seed: {"gain": seed / 10, "same": 1.0} for seed in range(10)}
    other = {seed: {"gain": seed / 10 + (seed > 4) * (0.5 - seed / 10), "same": 1.0}
             for seed in range(10)}  # fmt: skip
    found = diff(made(tmp_path / "a", one), made(tmp_path / "b", other), most=2)
    (spread,) = found.spreads
    apart = [other[s]["gain"] - one[s]["gain"] for s in range(5, 10)]
    changed = [value for value in apart if value]
    assert (spread.name, spread.cells) == ("gain", len(changed))
    assert spread.largest == max(map(abs, changed))
    assert spread.mean == pytest.approx(np.mean(changed))
    assert len(found.changes) == 2


def test_versions_and_code_that_differ(tmp_path):
    a = {"python": "3.11", "packages": {"numpy": "2.0", "pandas": "2.2"}, "blas": ["x"], "data": {}}
    b = {"python": "3.11", "packages": {"numpy": "2.1", "optuna": "4"}, "blas": ["x", "y"]}
    changes = (
        ("blas", "x", "x, y"),
        ("packages numpy", "2.0", "2.1"),
        ("packages optuna", "-", "4"),
        ("packages pandas", "2.2", "-"),
    )
    assert list_environment_changes(a, b) == changes
    assert list_environment_changes(a, a) == ()
    rows = {0: {"gain": 0.5}, 1: {"gain": 0.5}}
    found = diff(
        made(tmp_path / "a", rows, environment=a, matrix="[1]"),
        made(tmp_path / "b", rows, key="other", environment=b),
    )
    assert not found
    assert found.environment == changes
    assert found.other_code == 2
    assert not found.same_matrix


def test_runs_of_other_kernels_are_compared_within_a_tolerance(tmp_path):
    one = {0: {"gain": 0.5, "cost": 1e9}, 1: {"gain": 0.5}, 2: {"gain": 0.5, "portable": False}}
    close = {0: {"gain": 0.5 + 9e-7, "cost": 1e9 + 900}, 1: {"gain": 0.5}, 2: {"gain": 0.75}}
    a = made(tmp_path / "a", one)
    for name, environment in (("b", OTHER_KERNEL), ("c", {"python": "3.11"})):
        found = diff(a, made(tmp_path / name, close, environment=environment))
        assert (found.exact, found.incomparable, found.changes) == (False, 1, ())
        ((measure, cells, largest, _),) = map(astuple, found.apart)
        assert (measure, cells, largest) == ("gain", 1, 0.25)
        assert not found.spreads
    exact = diff(a, made(tmp_path / "d", close))
    assert (exact.exact, exact.incomparable, exact.apart) == (True, 0, ())
    assert {spread.name: spread.cells for spread in exact.spreads} == {"gain": 2, "cost": 1}
    far = {seed: {**measures, "gain": measures["gain"] + 2e-6} for seed, measures in close.items()}
    found = diff(a, made(tmp_path / "e", far, environment=OTHER_KERNEL))
    assert found
    assert [change.cell for change in found.changes] == ["d, l, seed 0", "d, l, seed 1"]


def test_measures_that_only_one_has(tmp_path):
    found = diff(
        made(tmp_path / "a", {0: {"gain": 0.5, "old": 1}}),
        made(tmp_path / "b", {0: {"gain": 0.5, "new": 1}}),
    )
    assert (found.measures_only_one, found.measures_only_other) == (("old",), ("new",))
    assert found


def test_names():
    assert name_cell({"learner": "l", "dataset": "d", "policy": ""}, 3) == "d, l, seed 3"
    assert [is_time(n) for n in ("seconds", "fit_seconds", "secondsafter", "gain")] == [
        True, True, False, False
    ]  # fmt: skip


def test_a_directory_that_is_no_run(tmp_path):
    made(tmp_path / "a", {})
    with pytest.raises(StoreError, match="not a run directory"):
        diff(tmp_path / "a", tmp_path)
    assert not diff(tmp_path / "a", tmp_path / "a")


@pytest.mark.slow
def test_the_command(command, tmp_path):
    work = tmp_path / "work"
    made(work / "a", {0: {"gain": 0.5}, 1: {"gain": 0.25}, 2: {"gain": 1.0}, 3: None},
         environment=KERNEL | {"python": "3.11.7"})  # fmt: skip
    made(work / "b", {0: {"gain": 0.5}, 1: {"gain": 0.75}, 2: None, 4: {"gain": 1.0}},
         environment=KERNEL | {"python": "3.12.1"})  # fmt: skip
    done = command("compare", "--cells", "a", "b")
    assert done.returncode == 1
    assert done.stderr == ""
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        "environment",
        "       a      b",
        "─" * 20,
        "python 3.11.7 3.12.1",
        "1 cell only in a:",
        "  d, l, seed 3",
        "1 cell only in b:",
        "  d, l, seed 4",
        "status",
        "cell         a    b",
        "─" * 31,
        "d, l, seed 2 done failed: broke",
        "measures",
        "measure cells largest difference mean difference",
        "─" * 48,
        "gain        1                0.5             0.5",
        "cells",
        "cell         measure    a    b",
        "─" * 30,
        "d, l, seed 1 gain    0.25 0.75",
        "2 cells compared to the last bit: they differ",
    ]
    same_run = command("compare", "--cells", "a", "a")
    assert same_run.returncode == 0
    assert same_run.stdout == "3 cells compared to the last bit: the results are the same\n"
    none = command("compare", "--cells", "a", "nowhere")
    assert none.returncode == 2
    assert "nowhere: not a run directory" in none.stderr
