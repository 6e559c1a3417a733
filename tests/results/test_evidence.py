"""What the rows of a run say about an expectation, on rows made by hand."""

import pytest

from fpbench.components.names import KINDS
from fpbench.matrix.expectations import parse_expectations
from fpbench.results.rows.selection import RowGroup
from fpbench.results.verdicts import gather_evidence
from fpbench.store.results import Results


def gather(table, rows):
    (expectation,) = parse_expectations([{**table, "says": "so", "source": "there"}], "here")
    common = {**dict.fromkeys(KINDS, ""), "cell": "", "dataset": "d", "status": "done"}
    return gather_evidence(expectation, RowGroup(Results.of(common | row for row in rows)))


def test_a_bound_is_about_the_difference_to_the_other_measure():
    rows = [{"seed": seed, "gain": 0.5 + seed / 100, "error": 0.2} for seed in range(5)]
    for than, mean in ((0.1, 0.52), ("error", 0.32)):
        table = {"check": "at-least", "measure": "gain", "than": than}
        assert gather(table, rows).ours.mean == pytest.approx(mean)


@pytest.mark.parametrize(
    ("check", "value", "rival", "mean"), [("least", "a", "b", -0.1), ("most", "d", "c", 0.3)]
)
def test_the_next_best_is_the_nearest_of_the_others(check, value, rival, mean):
    gains = {"a": 0.1, "b": 0.2, "c": 0.5, "d": 0.8}
    rows = [
        {"adversary": name, "seed": seed, "gain": gain + seed / 100}
        for name, gain in gains.items()
        for seed in range(5)
    ]
    found = gather({"check": check, "measure": "gain", "of": "adversary", "value": value}, rows)
    assert f"next best: {rival}" in found.note
    assert found.ours.mean == pytest.approx(mean)
