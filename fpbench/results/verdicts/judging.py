"""Rows compared with the statements of their matrix: verdicts, and the tables of the matrix."""

from __future__ import annotations

from dataclasses import dataclass

from fpbench.base.sheet import Sheet
from fpbench.matrix.matrix import Matrix
from fpbench.results.rows.groups import RowGroup
from fpbench.results.verdicts.paper_tables import make_sheet, summarise
from fpbench.results.verdicts.standings import describe_outcomes, describe_standings
from fpbench.results.verdicts.verdicts import (
    ExpectationOutcome,
    ExpectationVerdict,
    evaluate,
    evaluate_strongest,
)
from fpbench.store.results import Results


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdicts on all statements of a matrix."""

    title: str
    scale: str
    """The profile and number of seeds, if the whole matrix has others; or empty."""
    tables: list[Sheet]
    """The tables that the matrix asks for."""
    verdicts: list[ExpectationVerdict]
    """Verdicts on the statements, one by one."""
    tables_of_strongest: list[Sheet]
    """Tables beyond the paper: of the strongest adversaries of the run."""
    verdicts_on_strongest: list[ExpectationVerdict]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The number of statements that hold, in plain English."""
        strongest = self.verdicts_on_strongest
        counted = f"{describe_standings(self.verdicts)} {describe_outcomes(self.verdicts)}"
        beside = f"With the strongest adversary only: {describe_standings(strongest)}"
        return tuple(filter(None, (counted, beside if strongest else "", self.scale)))

    @property
    def deviates(self) -> bool:
        """Whether any statement deviates from the measured numbers."""
        return any(verdict.outcome == ExpectationOutcome.DEVIATES for verdict in self.verdicts)


def judge_results(matrix: Matrix, results: Results) -> Judgement:
    """The rows of a run, compared with the statements of its matrix."""
    rows = RowGroup(results)
    tables = [(table, make_sheet(table, summarise(table, rows))) for table in matrix.summaries]
    return Judgement(
        title=matrix.title,
        scale=_describe_scale(matrix, len({*results.seeds.tolist()})),
        tables=[sheet for table, sheet in tables if not table.strongest],
        verdicts=evaluate(matrix.expect, rows),
        tables_of_strongest=[sheet for table, sheet in tables if table.strongest],
        verdicts_on_strongest=evaluate_strongest(matrix.expect, rows),
    )


def _describe_scale(matrix: Matrix, seeds: int) -> str:
    """The scale of a run that is smaller or larger than its whole matrix; empty if it is not."""
    profile = f"profile {matrix.profile}" if matrix.profile else ""
    instead = f"{seeds} seed{'s' * (seeds != 1)} instead of {matrix.seeds_in_full}"
    chosen = (f"{kind} {', '.join(sorted(own)) or '-'}" for kind, own in matrix.chosen.items())
    parts = [profile, instead if seeds != matrix.seeds_in_full else "", *chosen]
    words = ", ".join(filter(None, parts))
    return f"Not the whole matrix: {words}." if words else ""
