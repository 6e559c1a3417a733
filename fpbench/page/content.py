"""The content of a page: a run as plain data.

A column is `{"all": [...]}` or, if values recur, `{"of": [...], "at": [...]}`: its values, and the
index of each row's value. Values that JSON cannot represent, and whole numbers that a browser
cannot hold, are `{"is": "nan"}`, `{"is": "inf"}`, `{"is": "-inf"}` and
`{"is": "12345678901234567890"}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from fpbench.base.errors import FpbenchError
from fpbench.base.sheet import Sheet
from fpbench.components.catalog import Catalog
from fpbench.components.names import KINDS
from fpbench.components.own_measures import GUARANTEE, NO_GUARANTEE
from fpbench.components.spec import specify
from fpbench.page.figures import Figure, Series
from fpbench.page.gathered import Gathered
from fpbench.page.ideas import make_figures
from fpbench.results.defences import OBJECTIVES, STRONGEST
from fpbench.results.findings import Verdict
from fpbench.results.judging import (
    JudgedStatement,
    Judgement,
    format_range,
    judge_statements,
    lay_out_verdicts,
)
from fpbench.results.leaderboard import Leaderboard, Line, is_of_audits, list_columns
from fpbench.results.rows.labels import ConfiguredComponent
from fpbench.results.sentences import summarise_ranking
from fpbench.results.verdicts import ExpectationOutcome

_OF_DATASET = "data set "
"""The beginning of the scope of a leaderboard of one data set."""
_EXACT = 2**53
"""The greatest whole number that is exact in a browser."""
_DIGITS = 8
"""Digits of means and intervals; measures of cells keep every digit."""


def make_content(run: Gathered, catalog: Catalog) -> dict[str, Any]:
    """A run as plain data, which the page's script reads.

    `catalog`: the installed components: it knows the parameters that the matrix does not set.
    """
    latest: Mapping[str, Any] = run.sessions[-1].environment if run.sessions else {}
    versions = latest.get("packages", {})
    return {
        "title": run.title,
        "path": run.path,
        "kinds": list(KINDS),
        "messages": _write_messages(run),
        "statements": _collect_statements(run.judgement) if run.judgement else None,
        "matrix": run.matrix,
        "combinations": [list(one.labels) for one in run.combinations],
        "cells": _collect_cells(run),
        "glossary": _collect_glossary(run),
        "summaries": {kind.name: kind.summary for kind in KINDS.values()},
        "boards": [_describe_board(board, run) for board in run.boards],
        "components": {
            kind: {
                label: _describe_component(
                    _add_defaults(kind, component, catalog, versions),
                    _summarise(kind, component, catalog),
                )
                for label, component in by_label.items()
            }
            for kind, by_label in run.components.items()
        },
        "sessions": [
            {
                "number": session.number,
                "started": datetime.fromtimestamp(session.started, UTC).isoformat(" ", "seconds"),
                "environment": session.environment,
            }
            for session in run.sessions
        ],
        "timings": [[*step, seconds] for step, seconds in run.timings.items()],
        "figures": [_describe_figure(figure) for figure in make_figures(run)],
        "fronts": [
            _describe_front(board, run)
            for board in run.boards
            if board.view == "defences" and "dataset" in board.kinds
        ],
    }


def _collect_cells(run: Gathered) -> dict[str, Any]:
    """The rows, with the number of a combination instead of labels."""
    number = {i: one.number for one in run.combinations for i in one.rows}
    results = run.results
    names = ("cell", "seed", "status", "reason", "seconds", *results.names)
    return {
        "count": len(results),
        "combination": encode_column([number[i] for i in range(len(results))]),
        "session": encode_column([run.made_in.get(cell) for cell in results.cells]),
        "columns": {name: encode_column(results.values(name)) for name in names},
    }


def _collect_glossary(run: Gathered) -> dict[str, dict[str, Any]]:
    """Headings and meanings of the measures that the page shows, and which direction is better."""
    names = [*run.results.names, *(name for board in run.boards for name in board.measured)]
    names += OBJECTIVES
    glossary = run.results.glossary
    return {
        name: {
            field: getattr(glossary[name], field)
            for field in ("heading", "better", "unit", "decimals", "meaning")
        }
        for name in dict.fromkeys(names)
    }


def _write_messages(run: Gathered) -> list[dict[str, Any]]:
    """The first block of the page: sentences on each data set, beside its waterfall."""
    messages: dict[str, dict[str, Any]] = {}

    def say(scope: str) -> dict[str, Any]:
        blank: dict[str, Any] = {
            "scope": scope,
            "scene": "",
            "things": [],
            "sentences": [],
            "waterfall": None,
            "caption": "",
        }
        return messages.setdefault(scope, blank)

    if run.judgement:
        say("")["sentences"] += run.judgement.sentences
    for board in run.boards:
        if board.view in ("combinations", "reports") and board.sentences:
            one = say(board.scope.removeprefix(_OF_DATASET))
            one["sentences"] += board.sentences
            if board.findings is not None:
                tones = {Verdict.WITHIN: "good", Verdict.BEYOND: "bad", Verdict.OPEN: "warn"}
                one["scene"] = board.findings.scene
                one["things"] += [
                    [thing.name, thing.verdict.value, thing.words, tones[thing.verdict]]
                    for thing in board.findings.things
                ]
    for number, waterfall in enumerate(run.waterfalls):
        one = say(waterfall.scope if len(run.waterfalls) > 1 else "")
        one.update(waterfall=number, caption=waterfall.caption)
    if not messages and run.boards:
        say("")["sentences"] += summarise_ranking(run.boards[0])
    return list(messages.values())


def _collect_statements(judged: Judgement) -> dict[str, Any]:
    """The statements of a matrix, and whether they hold; the tables that it asks for."""
    groups = {"": judged.verdicts, "with the strongest adversary": judged.verdicts_on_strongest}
    lines = [
        {"among": among, **_describe_statement(one)}
        for among, verdicts in groups.items()
        for one in judge_statements(verdicts)
    ]
    tables = [*judged.tables, *judged.tables_of_strongest]
    return {"lines": lines, "tables": [_describe_table(sheet) for sheet in tables]}


def _describe_statement(judged: JudgedStatement) -> dict[str, Any]:
    expectation = judged.expectation
    return {
        "says": expectation.says, "source": expectation.source, "quantity": expectation.quantity,
        "stated": expectation.stated, "tolerance": expectation.tolerance,
        "standing": judged.standing, "matched": judged.counts.get(ExpectationOutcome.MATCHED, 0),
        "run": sum(judged.counts.values()), "ours": format_range(judged),
        "table": _describe_table(lay_out_verdicts(expectation, judged.verdicts)),
    }  # fmt: skip


def _describe_table(sheet: Sheet) -> dict[str, Any]:
    """A printed table as plain data."""
    return {
        "title": sheet.title, "about": sheet.about, "rows": [list(row) for row in sheet.rows],
        "columns": [[column.heading, column.number] for column in sheet.columns],
        "remarks": list(sheet.remarks),
    }  # fmt: skip


def _choose_columns(board: Leaderboard) -> list[str]:
    """The columns of a leaderboard; a page has room for the model's beside the attack's."""
    names = list_columns(board)
    if board.view == "defences" or is_of_audits(board) or board.in_points:
        return names
    model = ("test_accuracy", "test_unfairness")
    return [*(name for name in model if name in board.measured and name not in names), *names]


def _describe_board(board: Leaderboard, run: Gathered) -> dict[str, Any]:
    """A leaderboard as plain data; the only place that knows how a leaderboard is made."""
    lines = [*board.lines, *([board.reference] if board.reference else [])]
    measures = {}
    for name in board.measured:
        intervals = [line.measures.get(name) for line in lines]
        measures[name] = {
            end: encode_column(round_numbers([getattr(one, end, None) for one in intervals]))
            for end in ("mean", "low", "high")
        }
    return {
        "view": board.view,
        "scope": board.scope,
        "apart": list(board.apart),
        "notes": list(board.notes),
        "rank_by": board.rank_by,
        "shown": _choose_columns(board),
        "kinds": list(board.kinds),
        "audits": not any(kind in board.kinds for kind in ("adversary", "corrector"))
        and board.view != "defences",
        "labels": [[line.labels.get(kind, "") for kind in board.kinds] for line in lines],
        "of": [_list_combinations(board, line, run) for line in lines],
        "within": list(board.within),
        "in_points": board.in_points,
        "sentences": list(board.sentences),
        "compared": len(board.lines),
        "rank": [line.rank for line in lines],
        "p": round_numbers(line.p_above for line in lines),
        "done": [line.done for line in lines],
        "failed": [line.failed for line in lines],
        "reasons": [list(line.reasons) for line in lines],
        "warnings": [list(line.warnings) for line in lines],
        "measures": measures,
    }


def _list_combinations(board: Leaderboard, line: Line, run: Gathered) -> list[int]:
    """The combinations that a line is about: one, or all that its means are over."""
    labels = {kind: label for kind, label in line.labels.items() if kind in KINDS and label}
    if board.scope.startswith(_OF_DATASET):
        labels["dataset"] = board.scope.removeprefix(_OF_DATASET)
    needed = {"defences": "adversary", "audits": "mechanism"}.get(board.view)
    sets = [
        run.having[kind, label] for kind, label in labels.items() if (kind, label) in run.having
    ]
    if line is board.reference:
        needed, sets = "adversary", [*sets, frozenset(range(len(run.combinations)))]
    numbers = frozenset.intersection(*sets) if sets else frozenset()
    return sorted(n for n in numbers if not needed or run.combinations[n].label(needed))


def _describe_front(board: Leaderboard, run: Gathered) -> dict[str, Any]:
    """The learners of a data set with what the page compares them by."""
    return {
        "dataset": board.lines[0].labels["dataset"],
        "objectives": [name for name in OBJECTIVES if name in board.measured],
        "notes": list(board.notes),
        "points": [
            {
                "learner": line.labels["learner"],
                "values": {
                    name: round_numbers([value.mean, value.low, value.high])
                    for name in OBJECTIVES if (value := line.measures.get(name))
                },
                "guarantee": line.labels.get(GUARANTEE, NO_GUARANTEE),
                "strongest": line.labels.get(STRONGEST, ""),
                "of": _list_combinations(board, line, run),
            }
            for line in board.lines
        ],
    }  # fmt: skip


def _add_defaults(
    kind: str, component: ConfiguredComponent, catalog: Catalog, versions: Mapping[str, str]
) -> ConfiguredComponent:
    """The component with the parameters that the matrix does not set.

    `versions`: versions of the run's distributions: other versions may have other defaults.
    """
    try:
        source = catalog.entry(kind, component.use).source
        then = versions.get(source.distribution)
        if then != source.version:
            made_with = f"{source.distribution} {then or 'of an unknown version'}"
            note = f"defaults are not known: made with {made_with}, and {source.version} is here"
            return replace(component, note=note)
        where = f"{kind} {component.use!r}"
        _, spec = specify(catalog, kind, component.use, dict(component.parameters), where)
    except (FpbenchError, ValueError) as error:
        return replace(component, note=f"defaults are not known here: {error}")
    others = {k: v for k, v in spec.parameters.items() if k not in component.parameters}
    return replace(component, defaults=others)


def _summarise(kind: str, component: ConfiguredComponent, catalog: Catalog) -> str:
    """A line on what a component does; empty if it is not installed here."""
    try:
        return catalog.component(kind, component.use).summary
    except FpbenchError:
        return ""


def _describe_component(component: ConfiguredComponent, summary: str) -> dict[str, Any]:
    return {
        "use": component.use, "summary": summary,
        "parameters": _to_json_value(component.parameters),
        "defaults": _to_json_value(component.defaults), "note": component.note,
    }  # fmt: skip


def _describe_figure(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "x": asdict(figure.x),
        "y": asdict(figure.y),
        "panels": [
            {"title": panel.title, "series": [_describe_series(series) for series in panel.series]}
            for panel in figure.panels
        ],
    }


def _describe_series(series: Series) -> dict[str, Any]:
    points = series.points
    return {
        "name": series.name,
        "dashed": series.dashed,
        "joined": series.joined,
        "bars": series.bars,
        "floor": series.floor,
        "x": [point.x for point in points],
        "y": round_numbers([point.y for point in points]),
        "low": round_numbers([point.low for point in points]),
        "high": round_numbers([point.high for point in points]),
        "seeds": [point.seeds for point in points],
        "of": [point.combination for point in points],
    }


def _to_json_value(value: Any) -> Any:
    """Values that JSON cannot represent, coded as in columns."""
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(inner) for inner in value]
    return to_plain(value)


def encode_column(values: Sequence[Any]) -> dict[str, list[Any]]:
    """A column, coded by its distinct values if that is shorter."""
    encoded = [to_plain(value) for value in values]
    keys = [_make_key(value) for value in encoded]
    distinct = dict(zip(keys, encoded, strict=True))
    if 2 * len(distinct) > len(values):
        return {"all": encoded}
    places = {key: i for i, key in enumerate(distinct)}
    return {"of": list(distinct.values()), "at": [places[key] for key in keys]}


def round_numbers(numbers: Iterable[float | None]) -> list[Any]:
    """Numbers rounded to the digits that readers need."""
    return [
        None if x is None else to_plain(float(f"{x:.{_DIGITS}g}") if math.isfinite(x) else x)
        for x in numbers
    ]


def to_plain(value: Any) -> Any:
    """One value in the types of JSON."""
    if hasattr(value, "item"):  # numpy's numbers
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else {"is": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"is": str(value)}
    return str(value)


def _make_key(value: Any) -> Any:
    """A key that distinguishes values: in Python 1, 1.0 and True are equal, and 0.0 and -0.0."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) or value == 0:
        return type(value), repr(value)
    return type(value), value
