"""What fairness reports give away about people's groups, as a verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_methods
from fpbench.base.sheet import Column, Sheet, align_row, write_html
from fpbench.base.text import (
    escape_unprintable,
    format_percent,
    format_points,
    format_points_above,
    show_lines,
)
from fpbench.claims.set_counts import Facts, Floats, Mask
from fpbench.correction.facts.worlds import Worlds
from fpbench.reports.assessments.attack import Allowed
from fpbench.reports.assessments.evidence import pack_evidence
from fpbench.reports.assessments.hidden_numbers import HiddenNumbers
from fpbench.reports.assessments.least_change import ChangeSearch
from fpbench.reports.assessments.placebo import Placebo
from fpbench.reports.assessments.prior_beliefs import SHARES_ALONE
from fpbench.reports.assessments.riskiest_cells import RiskyCell, write_heat_map

if TYPE_CHECKING:
    from pandas import DataFrame


_NAMED = 3
"""Most reports that the verdict names."""
_LEAST_WIDTH = 60
_LEAST_WORDS = 24
"""Least width of a table's first column, in characters."""


@dataclass(frozen=True)
class ReportAlone:
    """One of the reports that were assessed."""

    name: str
    """Its name."""
    people: int
    """How many people it is about."""
    proven: int | None
    leak: float | None
    """People proven by it, and rise of the share of all people guessed right, without the other
    reports; None if there is no other."""
    finished: bool = True
    """Whether the attack on it ended before its limit of time."""
    sure: int = 0
    """People who are as good as proven by it alone."""

    def within(self, allowed: Allowed) -> bool:
        """Whether it stays within the limits."""
        return self.proven is None or allowed.holds(self.leak or 0.0, self.proven + self.sure)


_EVIDENCE_FOR = {
    "NIST AI RMF 1.0": ["MEASURE 2.10: privacy risk", "MEASURE 2.11: fairness and bias"],
    "ISO/IEC 42001:2023": ["A.5.4: impact on individuals or groups of individuals"],
}
"""What auditors call the question that an assessment answers."""


@check_methods
@dataclass(frozen=True, eq=False)
class Assessment:
    """What an adversary learns from a report, or several; prints itself as a verdict.

    Attributes
    ----------
    groups
        Names of the K groups.
    people
        Number of people who are in any of the reports.
    reports
        The reports, in the order of publishing.
    without, with_
        Share of people whose likeliest group is right, by beliefs before and after the report.
    measured
        Whether the shares were measured on true groups; else they are what the beliefs expect.
    leak_expected
        Rise of the share that the beliefs expect, whatever was measured.
    limit
        Upper bound of the rise, on average over reports, for an adversary whose beliefs before are
        exact, from `bits` and the share guessed wrong before (`limit_leak_by_error`).
    private_limit
        The same by the guarantee of differential privacy that the reports state, composed of all;
        None if a number has no noise, or a report states no guarantee of exactly its rows.
    privacy
        That guarantee in words, or why there is none; empty if there is no noise.
    bits
        Upper bound of the information in the report about everybody's groups.
    proven
        (n,) whether the person's group follows from the report, whatever the beliefs.
    sure
        (n,) whether the belief in the person's group is above `allowed.sure`, and was not before;
        not of proven people.
    proven_unsure
        (n,) whether it follows and the adversary was unsure before: gave that group .05 to .95.
    undecided
        (n,) who is not proven, and of whom no second world is known: groups of all people that
        satisfy everything published, in which the person's group differs.
    worlds
        Groups that people in reports may have, worlds that show who cannot be proven, and proofs.
    finished
        Whether the attack ended before its limit of time: the search for proofs, and beliefs.
    unfinished
        What did not end before the limit of time, in words; empty if everything did.
    prior, posterior
        (n, K) beliefs before and after the report.
    knowledge
        Where the beliefs before are from, in words.
    error_bound
        Upper bound of the root mean square distance of undecided people's beliefs to the optimum.
    facts
        What the report tells about these people.
    riskiest
        The published cells that give away most, one after the other.
    alone
        People proven, and rise of the share guessed right, by these cells alone; measured.
    allowed
        The limits.
    change
        The search for the least change that passes; None if there was none.
    folds_matter
        Whether the verdict depends on how people were divided into folds for cross-fitting.
    placebo
        The leak of a table of other people; None if it was not asked for.
    hidden
        What readers can tell of suppressed numbers; None if nothing is suppressed.
    read_as
        What was read of tables in other forms than ours, a line each.
    """

    groups: tuple[str, ...]
    people: int
    reports: tuple[ReportAlone, ...]
    without: float
    with_: float
    measured: bool
    leak_expected: float
    limit: float
    private_limit: float | None
    privacy: str
    bits: float
    proven: Mask = field(repr=False)
    proven_unsure: Mask = field(repr=False)
    sure: Mask = field(repr=False)
    undecided: Mask = field(repr=False)
    worlds: Worlds = field(repr=False)
    finished: bool
    prior: Floats = field(repr=False)
    posterior: Floats = field(repr=False)
    knowledge: str
    error_bound: float
    facts: Facts = field(repr=False)
    riskiest: tuple[RiskyCell, ...] = field(repr=False)
    alone: tuple[int, float]
    allowed: Allowed
    change: ChangeSearch | None = None
    unfinished: tuple[str, ...] = ()
    folds_matter: bool = False
    placebo: Placebo | None = None
    hidden: HiddenNumbers | None = None
    read_as: tuple[str, ...] = ()

    @property
    def leak(self) -> float:
        """What the report adds to the share of people who are guessed right."""
        return self.with_ - self.without

    @property
    def passes(self) -> bool:
        """Whether the attack ended, stayed within the limits, and would with any folds."""
        return self._decided and self._holds

    @property
    def _decided(self) -> bool:
        few = self.undecided.sum() <= self.allowed.undecided
        return bool(few and self.finished and not self.folds_matter and not self._open_numbers)

    @property
    def _holds(self) -> bool:
        return self.allowed.holds(self.leak, self._told) and not self._unprotected

    @property
    def _unprotected(self) -> int:
        return 0 if self.hidden is None else self.hidden.unprotected

    @property
    def _open_numbers(self) -> int:
        """Number of suppressed numbers that may not be protected."""
        return 0 if self.hidden is None else self.hidden.maybe_unprotected

    @property
    def _told(self) -> int:
        """Number of people whose group is proven, or as good as proven."""
        return int((self.proven | self.sure).sum())

    def over(self, inside: Mask, beliefs: Floats | None = None) -> Assessment:
        """The same with rows for people who are in no report.

        `inside`: (n,) whether a person is in a report. `beliefs`: (n, K), if given before; else
        beliefs about people who are in none are the mean ones.
        """
        n = len(inside)
        nothing = np.zeros(n, np.bool_)
        rest = np.tile(self.prior.mean(axis=0), (n, 1)) if beliefs is None else beliefs

        def spread(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
            wide = others.copy()
            wide[inside] = rows
            return wide

        return replace(
            self, proven=spread(self.proven, nothing), prior=spread(self.prior, rest),
            proven_unsure=spread(self.proven_unsure, nothing), sure=spread(self.sure, nothing),
            posterior=spread(self.posterior, rest), undecided=spread(self.undecided, nothing),
            facts=self.facts.over(np.flatnonzero(inside), n),
        )  # fmt: skip

    @property
    def verdict(self) -> str:
        """One sentence."""
        n, proven = self.people, int(self.proven.sum())
        whose = f"the group of {proven:,} of {n:,} people" if proven else "nobody's group"
        sure = ""
        if self.sure.any():
            sure = f", that of {self.sure.sum():,} is sure ({self._limit})"
        finding = (
            f"{whose} is proven by {self._by}{sure}, and guesses get "
            f"{format_percent(self.with_)} % of all people right instead of "
            f"{format_percent(self.without)} %"
        )
        if self._unprotected and self.hidden is not None:
            finding += (
                f", and readers can tell {self._unprotected:,} of {len(self.hidden):,} suppressed "
                "numbers too exactly"
            )
        start = "May be published within these limits" if self.passes else "Do not publish"
        open_ = int(self.undecided.sum())
        if self._holds and open_ > self.allowed.undecided:
            start = f"Not decided, because the group of {open_:,} more may be provable; so far"
        elif self._holds and not self.finished:
            start = "Not decided, because the attack ran out of time; so far"
        elif self._holds and self.folds_matter:
            start = "Not decided, because the leak is so near its limit that the folds decide"
        elif self._holds and self._open_numbers:
            start = (
                f"Not decided, because {self._open_numbers:,} suppressed "
                f"number{'s' * (self._open_numbers != 1)} may not be protected; so far"
            )
        elif open_:
            finding = f"of {open_:,} people it is open whether their group can be proven; {finding}"
        return f"{start}: {finding} (allowed: {self.allowed})."

    @property
    def _by(self) -> str:
        """Names of the reports that prove; if several, with what each proves alone."""
        if len(self.reports) == 1:
            return "it"
        together = f"the {len(self.reports)} reports together"
        if not self.proven.any() or len(self.reports) > _NAMED:
            return together
        alone = (f"{one.proven:,} by {one.name}" for one in self.reports)
        return f"{together} (alone: {', '.join(alone)})"

    @property
    def _limit(self) -> str:
        return f"a belief above {100 * self.allowed.sure:g} %"

    def to_frame(self) -> DataFrame:
        """One row a person: `proven`, `sure`, `unsure`, the likeliest group, and beliefs.

        Beliefs stand in a column `before NAME` and a column `after NAME` for each group.
        """
        import pandas as pd

        columns: dict[str, Any] = {
            "proven": self.proven,
            "sure": self.sure,
            "unsure": self.proven_unsure,
            "likeliest": np.array(self.groups, dtype=object)[self.posterior.argmax(axis=1)],
        }
        for when, beliefs in (("before", self.prior), ("after", self.posterior)):
            columns |= {f"{when} {name}": beliefs[:, k] for k, name in enumerate(self.groups)}
        return pd.DataFrame(columns)

    def to_model_index(self, model: str, dataset: str) -> dict[str, Any]:
        """The `model-index` of a Hugging Face model card: what a published table gives away.

        Parameters
        ----------
        model, dataset
            What they are called there.
        """
        measured = "measured on true groups" if self.measured else "expected"
        values = {
            "attribute-inference-leak": (f"Share of groups guessed right, added ({measured})",
                                         self.leak),
            "attribute-inference-proven": ("People whose group is proven", int(self.proven.sum())),
            "attribute-inference-sure": ("People whose group is as good as proven",
                                         int(self.sure.sum())),
        }  # fmt: skip
        metrics = [
            {"type": kind, "name": name, "value": value} for kind, (name, value) in values.items()
        ]
        result = {
            "task": {"type": "tabular-classification"},
            "dataset": {"type": dataset, "name": dataset},
            "metrics": metrics,
        }
        return {"model-index": [{"name": model, "results": [result]}]}

    def to_json(self, *, witnesses: bool = False) -> dict[str, Any]:
        """Everything but data about single people, as numbers, texts, lists and dictionaries.

        Parameters
        ----------
        witnesses
            Whether to hold worlds and proofs, too, for others to recount (`fpbench assess
            --check`). They tell everybody's possible groups, the true ones among them.
        """
        search = self.change
        evidence = {"evidence": pack_evidence(self.worlds, self.facts)} if witnesses else {}
        return {
            "verdict": self.verdict,
            "passes": self.passes,
            "criteria": {
                "max_leak": self.allowed.leak,
                "max_proven": self.allowed.proven,
                "max_undecided": self.allowed.undecided,
                "sure": self.allowed.sure,
                "protect_hidden": self.allowed.protect_hidden,
            },
            "checks": self._list_checks(),
            "people": self.people,
            "groups": list(self.groups),
            "reports": [asdict(one) for one in self.reports],
            "read_as": list(self.read_as),
            "beliefs_before": self.knowledge,
            "measures": {
                "without": self.without,
                "with": self.with_,
                "leak": self.leak,
                "leak_is": "measured" if self.measured else "expected",
                "placebo": None if self.placebo is None else asdict(self.placebo),
                "leak_expected": self.leak_expected,
                "limit": self.limit,
                "private_limit": self.private_limit,
                "private_limit_by": self.privacy,
                "proven": int(self.proven.sum()),
                "proven_by_solver": self.worlds.by_solver,
                "proven_unsure": int(self.proven_unsure.sum()),
                "sure": int(self.sure.sum()),
                "undecided": int(self.undecided.sum()),
                "proofs_finished": self.finished,
                "unfinished": list(self.unfinished),
                "facts": self._sets,
                "hidden_known": None if self.hidden is None else self.hidden.to_dict(),
                "bits": self.bits,
                "error_bound": self.error_bound if isfinite(self.error_bound) else None,
            },
            "riskiest": [
                cell.to_dict(self.groups, [one.name for one in self.reports])
                for cell in self.riskiest
            ],
            "riskiest_alone": {"proven": self.alone[0], "leak": self.alone[1]},
            "evidence_for": _EVIDENCE_FOR,
            "change": None if search is None else search.to_dict(),
            **evidence,
        }

    def _list_checks(self) -> list[dict[str, Any]]:
        """Every criterion with its threshold, and whether it is met."""
        told = "the report raises the share of people who are guessed right by no more"
        also, most = (
            f"the report proves the group of no more people, or {self._limit}",
            self.allowed.proven,
        )
        rows: list[tuple[str, str, float, float, bool]] = [
            ("proven", also, most, self._told, self._told <= most)
        ]
        if (leak := self.allowed.leak) is not None:
            rows.insert(0, ("leak", told, leak, self.leak, self.allowed.holds_leak(self.leak)))
        if self.allowed.protect_hidden is not None:
            share = f"{100 * self.allowed.protect_hidden:g} %"
            told = f"no suppressed number can be told to {share} of it"
            rows.append(("hidden", told, 0, self._unprotected, not self._unprotected))
        open_, limit = int(self.undecided.sum()), self.allowed.undecided
        return [
            {"name": name, "statement": statement, "threshold": threshold, "measured": measured,
             "outcome": "not met" if not holds else "met" if self._decided else "not decided"}
            for name, statement, threshold, measured, holds in rows
        ] + [
            {"name": "undecided", "threshold": limit, "measured": open_,
             "statement": "of no more people it is open whether the report proves their group",
             "outcome": "met" if self._decided else "not decided"}
        ]  # fmt: skip

    def to_text(self, width: int = 100) -> str:
        """The verdict, followed by the findings that it rests on.

        Parameters
        ----------
        width
            Characters per line.
        """
        width = max(width, _LEAST_WIDTH)
        lines = textwrap.wrap(self.verdict, width)
        findings = list(self._list_findings())
        room = max(len(name) for name, _ in findings)
        for name, words in findings:
            start = f"  {name.ljust(room)}  "
            lines += textwrap.wrap(
                words, width, initial_indent=start, subsequent_indent=" " * len(start)
            )
        for sheet in self._sheets:
            lines += ["", *textwrap.wrap(sheet.title, width), *_write_rows(sheet, width)]
            for note in sheet.notes:
                lines += textwrap.wrap(note, width, initial_indent="  ", subsequent_indent="    ")
        return show_lines(lines)

    def __str__(self) -> str:
        return self.to_text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        gain = (
            self.posterior.max(axis=1)
            - np.take_along_axis(self.posterior, self.prior.argmax(axis=1)[:, None], axis=1)[:, 0]
        )
        cells = write_heat_map(self.facts, self.proven, self.sure, gain, self.riskiest)
        colour = "#1a7f37" if self.passes else "#b3261e"
        findings = "".join(
            f"<li><b>{escape(name)}</b>: {escape(words)}</li>"
            for name, words in self._list_findings()
        )
        start = f'<p style="color:{colour}"><b>{escape(self.verdict)}</b></p><ul>{findings}</ul>'
        return f"{escape_unprintable(start)}\n{write_html(self._sheets)}\n{cells}"

    @property
    def _sets(self) -> int:
        """Number of sets of people whose counts are published, not merely implied by others."""
        return int((~self.facts.derived).sum())

    @property
    def _sheets(self) -> list[Sheet]:
        sheets = [self._list_cells()] if self.riskiest else []
        whose = f" of {self.reports[-1].name}" if len(self.reports) > 1 else ""
        return [*sheets, *([_list_changes(self.change, whose)] if self.change else [])]

    def _list_findings(self) -> Iterator[tuple[str, str]]:
        expected = f"{format_points(self.leak_expected)} points"
        how = (
            f"measured on the true groups; the beliefs expect {expected}"
            if self.measured
            else "as the beliefs expect, since the true groups are unknown"
        )
        if self.allowed.leak is None:
            how += (
                "; it does not decide: true groups (--group) or known people (--known) would show "
                "how much of it anybody may know of people like these"
            )
        for told in self.read_as:
            yield "read as", told
        yield "leak", f"{format_points(self.leak)} points, {how}"
        if self.placebo is not None:
            yield "placebo", str(self.placebo)
        open_, proven = int(self.undecided.sum()), int(self.proven.sum())
        unsure = ""
        if proven:
            unsure = f"; the adversary was unsure about {self.proven_unsure.sum():,} of them"
        yield (
            "proven",
            f"{proven:,}{unsure}; {self.people - proven - open_:,} not provable, as what is "
            f"published allows them another group; {open_:,} undecided",
        )
        yield "sure", f"{self.sure.sum():,}: {self._limit} in their group, which was not before"
        if self.hidden is not None:
            yield "hidden", str(self.hidden)
        if len(self.reports) > 1:
            each = (
                f"{one.name}, about {one.people:,} people, proves {one.proven:,} and leaks "
                f"{format_points(one.leak or 0.0)}"
                for one in self.reports
            )
            yield "alone", "; ".join(each)
        more = ""
        if self.leak > self.limit:
            rest = format_points(self.leak - self.limit)
            more = f"; the leak is {rest} above: chance, or learnt from other people as well"
        yield (
            "limit",
            f"{format_points_above(self.limit)} points is the most that "
            f"{'the report' if len(self.reports) == 1 else 'they'} can add, on average over "
            "reports, for an adversary who knows how groups depend on columns, if people's groups "
            f"are independent{more}",
        )
        if self.private_limit is not None:
            yield (
                "private",
                f"{format_points_above(self.private_limit)} points on average over reports, by "
                f"differential privacy ({self.privacy}), if the beliefs are exact",
            )
        elif self.privacy:
            yield "private", f"no limit by differential privacy: {self.privacy}"
        if self.unfinished:
            yield "no time", f"{', '.join(self.unfinished)}: not finished; give more seconds"
        kind = "noisy counts" if self.facts.noisy.any() else "counts"
        yield (
            "tells",
            f"{kind} by group in {self._sets:,} sets of people, at most {self.bits:,.0f} bits",
        )
        charged = ""
        if self.knowledge.startswith(SHARES_ALONE):
            charged = ", so that what columns tell of people like these is charged to the table"
        yield (
            "holds for" if self.passes else "reader",
            "a reader who knows everybody's columns and predictions; beliefs before: "
            f"{self.knowledge}{charged}; after: within {self.error_bound:.3f} of the optimum (root "
            "mean square, of people who are not proven)",
        )
        if self.passes:
            more = "; only noise gives a guarantee against all of them"
            more *= self.private_limit is None
            yield (
                "not for",
                f"readers who know more, or other tables of these people, earlier or later{more}",
            )

    def _list_cells(self) -> Sheet:
        rows = [
            [
                cell.name, f"{cell.row}", f"{cell.people:,}", *cell.write_counts(),
                f"{cell.settled:,}", f"{cell.gain:,.1f}",
            ]
            for cell in self.riskiest
        ]  # fmt: skip
        proven, leak = self.alone
        return _make_sheet(
            "Riskiest cells, each given those above it:",
            ["cell", "row", "people", *self.groups, "proves", "adds"],
            rows,
            [
                f"These {len(rows)} alone: {proven:,} proven, a leak of {format_points(leak)} "
                "points.",
                "row: of its report, from 0; proves: people whose group follows from this cell and "
                "those above, not from those above alone; adds: how many more people are expected "
                "to be guessed right after these cells than by the guesses before them.",
            ],
        )


def _list_changes(search: ChangeSearch, whose: str) -> Sheet:
    notes = []
    if search.failed:
        notes.append(f"Not enough, even the strongest tried: {'; '.join(search.failed)}.")
    if search.empty:
        notes.append(f"Pass only because nothing would be published: {'; '.join(search.empty)}.")
    for reason in dict.fromkeys(why for _, why in search.untried):
        kinds = [kind for kind, why in search.untried if why == reason]
        notes.append(f"Not tried, or not finished ({reason}): {'; '.join(kinds)}.")
    best = search.cheapest
    if best is None:
        title = f"No change{whose} that passes was found in {search.attacks} attacks."
        if search.empty:
            title = (
                f"No change{whose} that passes and publishes anything was found in "
                f"{search.attacks} attacks."
            )
        return _make_sheet(title, [], [], notes)
    rows = []
    for change in search.passing:
        use = change.utility
        numbers = f"{change.proven:,}", format_points(change.leak)
        errors = (_write(error, ".3f") for error in (use.rate_error, use.rate_error_max))
        shares = (_write(part, ".0%") for part in (use.cells_published, use.disparities_visible))
        rows.append([change.words, *numbers, *errors, *shares])
    cost = "No rate is about 10 people or more, so its cost is not measured."
    if best.utility.cells_published is not None:
        cost = (
            f"It publishes {best.utility.cells_published:.0%} of the rates; the mean error of all "
            f"is {_write(best.utility.rate_error, '.3f')}."
        )
    return _make_sheet(
        f"The least change{whose} that passes: {best.words}. {cost} Found in "
        f"{search.attacks} attacks; the mildest of each kind that passes, least error first:",
        ["change", "told", "leak", "error", "greatest", "published", "seen"],
        rows,
        [
            "told: people proven or sure; error, greatest: of all rates about 10 people or more; a "
            "rate that is not published is replaced by the group's rate among everybody; seen: "
            "slices in which groups' rates differ by more than 0.1, and still do as published.",
            *["Draws: the first of the 20 is the changed report, and one of those that pass."]
            * any(change.draws_passed for change in search.passing),
            *notes,
        ],
    )


def _make_sheet(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str]
) -> Sheet:
    """A table with words in its first column, and numbers in the others."""
    columns = tuple(Column(head, number=place > 0) for place, head in enumerate(heads))
    return Sheet(title, "", columns, tuple(map(tuple, rows)), tuple(notes))


def _write_rows(sheet: Sheet, width: int) -> Iterator[str]:
    """Lines of a table, of which the first column alone is made narrow."""
    rows = [tuple(column.heading for column in sheet.columns), *sheet.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if widths:
        rest = sum(own + 2 for own in widths[1:])
        widths[0] = min(widths[0], max(width - 2 - rest, _LEAST_WORDS))
        numbers = [column.number for column in sheet.columns]
        for row in rows:
            for parts in align_row(row, numbers, widths, "  "):
                yield f"  {'  '.join(parts)}".rstrip()


def _write(number: float | None, form: str) -> str:
    return "-" if number is None else format(number, form)
