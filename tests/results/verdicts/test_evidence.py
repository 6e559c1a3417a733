"""What the rows of a run say about an expectation, on rows made by hand."""

import pytest

from fpbench.components.names import KINDS
from fpbench.matrix.expectations import parse_expectations
from fpbench.results.rows.groups import RowGroup
from fpbench.results.verdicts.evidence import gather_evidence
from fpbench.store.results import Results


@pytest.mark.parametrize(
    ("check", "value", "rival", "mean"), [("least", "a", "b", -0.1), ("most", "d", "c", 0.3)]
)
def test_the_next_best_is_the_nearest_of_the_others(check, value, rival, mean):
    gains = {"a": 0.1, "b": 0.2, "c": 0.5, "d": 0.8}
    rows = [
        {**dict.fromkeys(KINDS, ""), "cell": "", "dataset": "d", "adversary": name, "seed": seed,
         "status": "done", "reason": None, "seconds": 1.0, "gain": gain + seed / 100}
        for name, gain in gains.items() for seed in range(5)
    ]  # fmt: skip
    table = {"check": check, "measure": "gain", "of": "adversary", "value": value}
    table |= {"says": "so", "source": "there"}
    (expectation,) = parse_expectations([table], "here")
    found = gather_evidence(expectation, RowGroup(Results.of(rows)))
    assert f"next best: {rival}" in found.note
    assert found.ours.mean == pytest.approx(mean)
