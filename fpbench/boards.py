"""Tables of results: leaderboards, a paper's table from our rows, and verdicts on a paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fpbench import console, verdict_boards
from fpbench.console import short
from fpbench.kinds import Status
from fpbench.summary_boards import (
    LABEL_WIDTH,
    column_widths,
    empty_table,
    fitting,
    over_seeds,
    show_summary,
)

if TYPE_CHECKING:
    from fpbench.leaderboard import Leaderboard, Line
    from fpbench.reproduce import Reproduction
    from fpbench.summary import AuditLine

_AUDIT_COLUMNS = 7
"""Measures that an audit shows of which we know none."""
_MOST_AUDITS = 150
"""Lines of audits beside a paper; of more, so many evenly spaced ones are shown."""

_SHOWN = {"initial_accuracy": "guess", "corrected_accuracy": "corrected", "gain": "gain"}
"""Measures with a column of their own on an attack leaderboard, and its heading."""
_TELLING = {
    "claim_holds": "claim true",
    "metric_right": "metric right",
    "proven": "proven",
    "relaxed_tolerance": "relaxed to",
    "gain_over_best": "over best",
    "claim_bits": "bits",
    "reconsidered_accuracy": "recalibrated",
    "correct_seconds": "solve s",
}
"""Measures that have one where they tell something: where not every line has the same."""


_AUDITED = {
    "epsilon": "epsilon",
    "true_ratio": "truth",
    "estimated_ratio": "estimate",
    "error": "error",
    "random_guess_error": "guessing",
    "coverage": "coverage",
    "invalid_ratio": "invalid",
    "uar": "UAR",
    "uar_minus_error": "UAR - error",
    "independence_gap": "independence",
    "separation_gap": "separation",
    "sufficiency_gap": "sufficiency",
    "pate_epsilon": "PATE eps",
    "flip_probability": "flips",
    "sensitivity": "sensitivity",
    "baseline_loss_test": "clean",
    "loss_test": "loss",
    "expected_accuracy_test": "accuracy",
    "risk_gap_test": "test gap",
    "risk_gap_train": "train gap",
}
"""Measures of audits, and their headings: of private ones, of gaps, of excessive risk."""
_GAPS = ("independence_gap", "separation_gap", "sufficiency_gap")
_ONLY_BESIDE = ("random_guess_error", "uar", "uar_minus_error")
"""Those that are shown beside a paper only."""
_LESS_TELLING = (
    "independence_gap", "invalid_ratio", "epsilon", "coverage", "true_ratio", "baseline_loss_test",
    "flip_probability", "loss_test", "expected_accuracy_test", "pate_epsilon", "risk_gap_test",
)  # fmt: skip
"""Those that a narrow terminal does without, in this order."""
_NUMBER_WIDTH, _ALWAYS = 9, 33
"""Columns of a measure's column, or more; and of the rank, the last measure, its deviation and
interval."""


def show_leaderboard(board: Leaderboard) -> None:
    """A leaderboard as a table; what all its lines share is said once, above."""
    from rich.markup import escape

    out = console.terminal()
    varying = _varying(board)
    shared = [f"{k} {board.lines[0].labels[k]}" for k in board.kinds if k not in varying]
    counts = [_counts(line) for line in board.lines]
    alike = len(set(counts)) == 1 and not board.lines[0].failed
    if alike:
        shared.append(f"{counts[0]} seed" + "s" * (counts[0] != "1"))
    if board.title:
        out.print(escape(board.title), style="bold")
    out.print(escape(" · ".join(shared)), style="dim")
    table = empty_table()
    table.add_column("#", justify="right")
    taken = _ALWAYS + (0 if alike else len(" seeds"))
    for kind in varying:
        words = [w for line in board.lines for w in line.labels[kind].split()]
        widest = min(max(map(len, [kind, *words])), LABEL_WIDTH)
        table.add_column(kind, overflow="fold", min_width=widest)
        taken += 1 + widest
    headings = {**_SHOWN, **_TELLING, **_AUDITED}
    names = _columns(board)
    widths = column_widths(names, headings, board.lines, _NUMBER_WIDTH)
    names = [*fitting(names[:-1], _LESS_TELLING, out.width - taken, widths), *names[-1:]]
    numeric = [headings.get(name, name) for name in names]
    columns = [*numeric, *(("sd", "95 %") if names else ()), *(("seeds",) if not alike else ())]
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for line, count in zip(board.lines, counts, strict=True):
        labels = [escape(line.labels[kind]) for kind in varying]
        row = [str(line.rank or "-"), *labels, *_values(line, names), count]
        table.add_row(*row[: len(table.columns)])
    out.print(table)
    if any(_not_private(line) for line in board.lines):
        out.print("Excessive risk is not a private output: do not release it.", style="dim")
    warned = Counter(text for line in board.lines for text in line.warnings)
    for text, times in warned.items():
        where = f" ({times} of {len(board.lines)} lines)" if len(board.lines) > 1 else ""
        out.print(f"warning: {text}{where}", style="yellow", markup=False, soft_wrap=True)
    if any(line.done == 1 for line in board.lines):
        out.print("One seed gives no interval: run more seeds.", style="dim")
    for reason in dict.fromkeys(reason for line in board.lines for reason in line.reasons):
        text = f"failed: {reason}"
        out.print(text, style=console.COLOURS[Status.FAILED], markup=False, soft_wrap=True)


def _not_private(line: Line) -> bool:
    """Whether an audit says that what it found protects nobody."""
    return "audit_private" in line.measures and line.measures["audit_private"].mean == 0


def _columns(board: Leaderboard) -> list[str]:
    """Measures to show, the one that is ranked by last: it is the one with an interval."""
    measured = dict.fromkeys(name for line in board.lines for name in line.measures)
    if "auditor" in board.kinds:
        wanted = [name for name in _AUDITED if name not in _ONLY_BESIDE and name in measured]
        if "error" in wanted:  # beside private audits, one gap of the open ones must do
            wanted = [name for name in wanted if name not in _GAPS[1:]]
        wanted = wanted or list(measured)[:_AUDIT_COLUMNS]
    else:
        wanted = [*(name for name in _TELLING if _tells(board, name)), *_SHOWN]
    last = board.rank_by if board.rank_by in measured else next(reversed(measured), "")
    return [name for name in wanted if name in measured and name != last] + [last] * bool(last)


def _tells(board: Leaderboard, name: str) -> bool:
    """Whether a measure tells lines apart; a proof or a true claim is no news."""
    found = [line.measures[name].mean for line in board.lines if name in line.measures]
    if name == "correct_seconds":  # of several solvers
        lines = [line for line in board.lines if "proven" in line.measures]
        return len({line.labels.get("corrector") for line in lines}) > 1
    if name == "gain_over_best":  # which only another adversary makes differ from the gain
        return len({line.labels.get("adversary") for line in board.lines}) > 1
    if name in ("proven", "claim_holds"):
        return any(share < 1 for share in found)
    return len(set(found)) + (0 < len(found) < len(board.lines)) > 1


def _varying(board: Leaderboard) -> list[str]:
    """The kinds whose labels differ."""
    return [k for k in board.kinds if len({line.labels[k] for line in board.lines}) > 1]


def _values(line: Line, names: list[str]) -> list[str]:
    """Means of the measures, then standard deviation and interval of the last."""
    found = [line.measures.get(name) for name in names]
    values = [short(value.mean) if value else "-" for value in found]
    if not found:
        return values
    last = found[-1]
    if last is None or last.low is None or last.high is None:
        return [*values, "-", "-"]
    return [*values, short(last.deviation), f"{short(last.low)} to {short(last.high)}"]


def _counts(line: Line) -> str:
    return f"{line.done}" + (f" [red]({line.failed} failed)[/]" if line.failed else "")


def show_reproduction(made: Reproduction, title: str) -> None:
    """A paper's tables and statements beside our numbers; attacks against the strongest, too."""
    if made.table or not made.audits:
        show_summary(made.table, title)
    if made.audits:
        show_audits(made.audits, title)
    verdict_boards.show_verdicts(made.verdicts)
    verdict_boards.show_standings(made.verdicts)
    counted = [("as stated", made.verdicts)]
    if made.table_of_strongest:
        show_summary(
            made.table_of_strongest,
            "Beside it: the same, of the strongest adversary of the run",
        )
        verdict_boards.show_verdicts(made.verdicts_on_strongest)
        counted.append(("strongest adversary", made.verdicts_on_strongest))
    verdict_boards.show_counts(counted)


def show_audits(lines: Sequence[AuditLine], title: str) -> None:
    """Audits as a table, in the order of the matrix; what they share is said once, above."""
    from rich.markup import escape

    out = console.terminal()
    kinds = list(lines[0].labels)
    varying = [kind for kind in kinds if len({line.labels[kind] for line in lines}) > 1]
    shared = [f"{k} {lines[0].labels[k]}" for k in kinds if k not in varying and lines[0].labels[k]]
    shared.append(over_seeds(max(line.seeds for line in lines)))
    step = max(-(-len(lines) // _MOST_AUDITS), 1)
    if step > 1:
        which = {2: "2nd", 3: "3rd"}.get(step, f"{step}th")
        shared.append(f"every {which} of {len(lines)} lines; `fpbench leaderboard` shows all")
    out.print(escape(title), style="bold")
    out.print(escape(" · ".join(shared)), style="dim")
    names = [name for name in _AUDITED if any(name in line.measures for line in lines)]
    table, taken = empty_table(), 0
    for kind in varying:
        widest = max([len(kind), *(len(line.labels[kind]) for line in lines)])
        table.add_column(kind, overflow="fold", min_width=min(widest, LABEL_WIDTH))
        taken += 1 + min(widest, LABEL_WIDTH)
    widths = column_widths(names, _AUDITED, lines, _NUMBER_WIDTH)
    taken += sum(widths[name] for name in names[-1:])
    names = [*fitting(names[:-1], _LESS_TELLING, out.width - taken, widths), *names[-1:]]
    for name in names:
        table.add_column(_AUDITED[name], justify="right", no_wrap=True)
    for line in lines[::step]:
        found = [line.measures.get(name) for name in names]
        labels = [escape(line.labels[kind]) for kind in varying]
        table.add_row(*labels, *(short(value.mean) if value else "-" for value in found))
    out.print(table)
