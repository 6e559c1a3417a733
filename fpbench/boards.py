"""Tables of results: leaderboards, a paper's table from our rows, and verdicts on a paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fpbench import console, verdict_boards
from fpbench.console import short
from fpbench.kinds import Status

if TYPE_CHECKING:
    from rich.table import Table

    from fpbench.leaderboard import Leaderboard, Line
    from fpbench.reproduce import Reproduction
    from fpbench.summary import AuditLine, SummaryLine

_LABEL_WIDTH = 14
"""Columns a label gets at least, so that a table still fits a terminal of 80."""

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
"""Columns of a measure's column, and of the rank, the last measure, its deviation and interval."""


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
    table = _table()
    table.add_column("#", justify="right")
    taken = _ALWAYS + (0 if alike else len(" seeds"))
    for kind in varying:
        words = [w for line in board.lines for w in line.labels[kind].split()]
        widest = min(max(map(len, [kind, *words])), _LABEL_WIDTH)
        table.add_column(kind, overflow="fold", min_width=widest)
        taken += 1 + widest
    names = _fitting(_columns(board), out.width - taken)
    numeric = [{**_SHOWN, **_TELLING, **_AUDITED}.get(name, name) for name in names]
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


def _fitting(names: list[str], width: int) -> list[str]:
    """Of the measures of audits, as many as fit; the last one always stays."""
    room = max(width // _NUMBER_WIDTH, 0)
    extra = [name for name in _LESS_TELLING if name in names[:-1]]
    dropped = extra[: max(len(names) - 1 - room, 0)]
    return [name for name in names if name not in dropped]


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


_SUMMARY = {
    "train_accuracy": "acc",
    "test_accuracy": "test acc",
    "train_unfairness": "unf",
    "test_unfairness": "test unf",
    "claim_tolerance": "claimed",
    "metric_right": "named",
    "initial_accuracy": "guess",
    "corrected_accuracy": "corrected",
    "gain_over_best": "over best",
    "gain": "gain",
}
"""Measures of a paper's table, and their headings."""


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
    shared.append(_seeds(max(line.seeds for line in lines)))
    step = max(-(-len(lines) // _MOST_AUDITS), 1)
    if step > 1:
        which = {2: "2nd", 3: "3rd"}.get(step, f"{step}th")
        shared.append(f"every {which} of {len(lines)} lines; `fpbench leaderboard` shows all")
    out.print(escape(title), style="bold")
    out.print(escape(" · ".join(shared)), style="dim")
    names = [name for name in _AUDITED if any(name in line.measures for line in lines)]
    table, taken = _table(), 0
    for kind in varying:
        widest = max([len(kind), *(len(line.labels[kind]) for line in lines)])
        table.add_column(kind, overflow="fold", min_width=min(widest, _LABEL_WIDTH))
        taken += 1 + min(widest, _LABEL_WIDTH)
    names = _fitting(names, out.width - taken)
    for name in names:
        table.add_column(_AUDITED[name], justify="right", no_wrap=True)
    for line in lines[::step]:
        found = [line.measures.get(name) for name in names]
        labels = [escape(line.labels[kind]) for kind in varying]
        table.add_row(*labels, *(short(value.mean) if value else "-" for value in found))
    out.print(table)


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"means over {count} seeds"


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=0)


def show_summary(lines: Sequence[SummaryLine], title: str) -> None:
    """A paper's table from our rows; what all its lines share is said once, above."""
    from rich.markup import escape

    out = console.terminal()
    out.print(escape(title), style="bold")
    if not lines:
        out.print("nothing has been run", style="dim")
        return
    kinds = ("dataset", "disclosure", "adversary", "corrector")
    varying = [kind for kind in kinds if len({line.labels[kind] for line in lines}) > 1]
    shared = [f"{kind} {lines[0].labels[kind]}" for kind in kinds if kind not in varying]
    shared.append(_seeds(max(line.seeds for line in lines)))
    out.print(escape(" · ".join(shared)), style="dim")
    names = [name for name in _SUMMARY if _says_something(lines, name)]
    asked = ["metric", *(["tolerance"] if any(line.tolerance for line in lines) else [])]
    table = _table()
    table.add_column(asked[0], no_wrap=True)
    for word in (*asked[1:], *varying):
        widest = max([len(word), *(len(line.labels.get(word, "")) for line in lines)])
        table.add_column(word, overflow="fold", min_width=min(widest, _LABEL_WIDTH))
    for heading in (*(_SUMMARY[name] for name in names), "sd"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in lines:
        target = [line.metric or "none", "" if line.tolerance is None else f"{line.tolerance:g}"]
        found = [line.measures.get(name) for name in names]
        values = [short(value.mean) if value else "-" for value in found]
        deviation = line.measures["gain"].deviation if "gain" in line.measures else None
        labels = [escape(line.labels[kind]) for kind in varying]
        table.add_row(*target[: len(asked)], *labels, *values, short(deviation))
    out.print(table)
    for said in _named(lines):
        out.print(escape(said), style="dim", soft_wrap=True)


def _named(lines: Sequence[SummaryLine]) -> Iterator[str]:
    """What claims name, where it is not always what the learner was trained for."""
    found: dict[str, Counter[str]] = {}
    for line in lines:
        counts = found.setdefault(line.metric or "nothing", Counter())
        for metric, share in line.claimed.items():
            counts[metric] += round(share * line.seeds)
    for trained, counts in found.items():
        if set(counts) - {trained}:
            shares = (f"{name} {n / counts.total():.0%}" for name, n in counts.most_common())
            yield f"trained for {trained}: claims name {', '.join(shares)}"


def _says_something(lines: Sequence[SummaryLine], name: str) -> bool:
    """Whether a measure is there; claims that all name the right metric are no news."""
    found = [line.measures[name].mean for line in lines if name in line.measures]
    return any(value < 1 for value in found) if name == "metric_right" else bool(found)
