"""The matrices of the paper and the attack on every data set, on the real files."""

from dataclasses import replace
from pathlib import Path

import pytest

import fpbench
from fpbench.api import reproduce
from fpbench.matrix.matrix import read
from fpbench.plugin import DataHome

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

ROWS = {"compas": 6172, "german": 1000, "bank": 45211, "credit-card": 30000, "parkinsons": 5875}


@pytest.mark.slow
def test_the_authors_output_is_reproduced_and_a_strong_adversary_needs_no_claim(
    adult_home, tmp_path
):
    made = reproduce.reproduce(reproduce.find("ferry-example", seeds=3), out=tmp_path / "run")
    outcomes = {v.expectation.says: str(v.outcome) for v in made.verdicts}
    assert len(outcomes) == 5
    assert "deviates" not in outcomes.values()
    (gain,) = (v.ours for v in made.verdicts if "improvement" in v.expectation.says)
    assert gain.low > 0.03
    beside = {v.expectation.says: v for v in made.verdicts_on_strongest}
    assert {str(v.outcome) for v in beside.values()} == {"deviates"}
    (gain,) = (v.ours for says, v in beside.items() if "improvement" in says)
    assert gain.high < 0.01
    (strongest,) = made.tables_of_strongest
    assert "adversary a2 " in strongest.about


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_every_data_set_is_attacked(name, tmp_path):
    home = DataHome.default()
    if reason := fpbench.component("dataset", name).absent(home):
        pytest.skip(reason)
    matrix = read(BENCHMARKS / "attack-datasets.toml", seeds=1)
    mine = tuple(choice for choice in matrix.axes["dataset"] if choice.use == name)
    one = replace(matrix, axes={**matrix.axes, "dataset": mine})
    rows = fpbench.run(one, out=tmp_path / "run").rows()
    assert len(rows) == 4 * 3
    assert {row["status"] for row in rows} == {"done"}
    assert {row["people"] for row in rows} == {round(ROWS[name] / 3)}
    guesses = {row["adversary"]: row["initial_accuracy"] for row in rows}
    assert guesses["majority"] == pytest.approx(rows[0]["majority_accuracy"])
    assert guesses["prior"] == pytest.approx(rows[0]["prior_accuracy"], abs=0.08)
    best = max(guesses.values())
    for row in rows:
        assert row["best_initial_accuracy"] == best
        assert row["gain_over_best"] == row["corrected_accuracy"] - best
