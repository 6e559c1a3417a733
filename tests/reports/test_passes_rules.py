"""The benchmark of tables that pass the rules of output checkers, on few people."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "passes_rules.py"


@pytest.mark.slow
def test_tables_without_numbers_below_10_prove_groups(capsys):
    made = runpy.run_path(str(SCRIPT))
    X, outcomes, groups = made["draw_people"]("census-synthetic", 120)
    report = made["tabulate"](X, outcomes, groups, 2, acro=False)
    shown = ~report.suppressed
    assert report.value[shown].min() >= 10
    assert not shown.all()
    made["main"].__globals__["DEFENCES"] = {"midpoint 6": made["DEFENCES"]["midpoint 6"]}
    made["main"](["--dataset", "census-synthetic", "--rows", "120", "--defences", "--order", "2"])
    told, *table = capsys.readouterr().out.splitlines()
    assert told.startswith("census-synthetic, 120 people")
    assert " 0 of 120 people proven" not in told
    assert [line.split(" | ")[0] for line in table[2:]] == ["| midpoint 6"]
