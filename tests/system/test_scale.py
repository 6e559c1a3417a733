"""What the measurements of docs/running.md do, at the size of a toy."""

import runpy
import tomllib
from pathlib import Path

import pytest

import fpbench

PERF = Path(__file__).parents[2] / "benchmarks" / "perf"


def script(name):
    return runpy.run_path(str(PERF / f"{name}.py"))


@pytest.mark.slow
def test_every_job_of_many_people_is_measured():
    many = script("many_people")
    costs = many["run_jobs"](2000)
    assert [cost.job for cost in costs] == [
        "draw", "table", "audit", "private audit", "posterior of the claim", "report", "assessment",
    ]  # fmt: skip
    assert all(cost.seconds >= 0 for cost in costs)
    memory = [cost.memory for cost in costs]
    assert memory == sorted(memory)
    assert memory[0] > 0.05


def test_what_takes_too_much_is_a_fault():
    many = script("many_people")
    cost, find = many["Cost"], many["find_faults"]
    linear = {10: [cost("a", 1.0, 1.0)], 100: [cost("a", 12.0, 9.0)]}
    assert find(linear, 16.0) == []
    assert find(linear, 8.0) == ["a of 100 people: 9.0 GiB"]
    quadratic = {10: [cost("a", 1.0, 1.0)], 100: [cost("a", 100.0, 1.0)]}
    assert find(quadratic, 16.0) == ["a: 10 times the people take 100 times as long"]
    short = {10: [cost("a", 0.001, 1.0)], 100: [cost("a", 0.1, 1.0)]}
    assert find(short, 16.0) == []


def test_two_machines_have_a_thousand_cells_and_compare_them_but_for_times():
    two = script("two_machines")
    matrix = two["make_matrix"](two["SEEDS"])
    assert tomllib.loads(two["write_toml"](matrix)) == matrix
    assert fpbench.plan(matrix).runnable == 1000
    row = {"cell": "a", "gain": 1, "seconds": 2.0}
    near = {"a": row, "b": row}
    assert two["find_differences"](near, near) == []
    far = {"a": row | {"seconds": 3.0, "gain": 0}}
    assert two["find_differences"](far, near) == ["b: only in one run", "a: gain"]
