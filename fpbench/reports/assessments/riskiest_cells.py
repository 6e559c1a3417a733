"""The published cells that give away most, one after the other, and all as a heat map."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.text import escape_unprintable
from fpbench.claims.set_counts import Facts, Floats, Mask

_STEPS = 40
"""Most steps for a cell's multipliers."""
_STEP = 3.0
"""The longest step, in log-odds."""
_NEAR = 1e-3
"""People by which an expected count may miss the published one."""
_LEAST = 1e-9
"""Least belief in a group that is possible."""
_STILL = 1e-6
"""Log-odds that no longer matter."""
_WORTH = 0.01
"""People: a cell that adds less is not listed."""


@dataclass(frozen=True)
class RiskyCell:
    """A published cell, and what it gives away beyond the cells before it."""

    name: str
    """The slice, and the prediction whose people are counted; of several reports, which one
    first."""
    report: int
    """Number of its report, from 0."""
    row: int
    """A row of that report, from 0."""
    people: int
    """Number of people."""
    counts: tuple[tuple[float, float], ...]
    """(K, 2) least and greatest number of each group, as published; both are the noisy number if
    there is noise."""
    settled: int
    """People whose group follows from the cell and those before it, and not without the cell."""
    gain: float
    """Rise of the number of right guesses, as expected after it, over the guesses before all."""

    def write_counts(self) -> list[str]:
        """Counts by group as text; blank where nothing is known."""
        texts = []
        for low, high in self.counts:
            known = f"{low:,g}" if low == high else f"{low:,g}-{high:,g}"
            texts.append("" if low == -np.inf else known)
        return texts

    def to_dict(self, groups: Sequence[str], reports: Sequence[str]) -> dict[str, Any]:
        """Plain data."""
        counts = [[x if np.isfinite(x) else None for x in ends] for ends in self.counts]
        return {
            "name": self.name,
            "report": reports[self.report],
            "row": self.row,
            "people": self.people,
            "counts": dict(zip(groups, counts, strict=True)),
            "settled": self.settled,
            "gain": self.gain,
        }


def find_riskiest(
    facts: Facts,
    beliefs: Floats,
    rows: NDArray[np.intp],
    reports: NDArray[np.intp] | None = None,
    most: int = 10,
    deadline: float = math.inf,
) -> tuple[tuple[RiskyCell, ...], NDArray[np.intp], bool]:
    """The cells that give away most, their numbers among the facts, and whether these are all.

    What cells add is how many more people are guessed right by the beliefs after them than by the
    guesses before all: sum_i max_k q_ik - q_i,g(i), where q are beliefs after, and g(i) is the
    likeliest group before. A cell that makes a guess surer, and does not change it, adds nothing.
    The first is the cell that adds most, taken alone. Beliefs about its members are conditioned on
    it, and the second is the cell that adds most from there, what falls elsewhere subtracted; and
    so on. Where no cell adds anything, that follows which proves most people's groups.

    `beliefs`: (n, K) before. `rows`: (M,) a row of its report for each of the facts. `reports`:
    (M,) the number of that report; by default there is one. `deadline`: by `time.perf_counter`:
    cells that were not chosen by then are left out.

    Conditioned on one cell, the nearest beliefs (Kullback-Leibler) with its counts are those whose
    log-probabilities move by one number a group (`condition_beliefs` on one fact). With two groups
    they all move the same way, so a cell raises what is added by at most twice the difference
    between its count and the expected count. Cells are tried in the order of this bound, until no
    other can be best. With more groups the bound is twice that.
    """
    beliefs = np.maximum(beliefs, _LEAST)
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    possible, guesses = np.ones(beliefs.shape, np.bool_), beliefs.argmax(axis=1)
    left, soft = np.flatnonzero(~facts.derived), facts.soften()
    cells: list[RiskyCell] = []
    chosen: list[int] = []
    while len(chosen) < most and len(left):
        if time.perf_counter() > deadline:
            return tuple(cells), np.array(chosen, np.intp), False
        bound = _bound_gains(facts, soft, beliefs, possible)[left]
        best: _Step | None = None
        for place in np.argsort(-bound, kind="stable"):
            if bound[place] <= max(best.gain if best else 0.0, _WORTH):
                break
            if time.perf_counter() > deadline:  # a better one may be among those not tried
                return tuple(cells), np.array(chosen, np.intp), False
            step = _Step.of(facts, soft, int(left[place]), beliefs, possible, guesses)
            if step.rank > (best.rank if best else (0.0, 0)):
                best = step
        if best is None:
            break
        number, members = best.number, facts.sets[[best.number]].indices
        beliefs[members], possible[members] = best.beliefs, best.possible
        name = facts.name(number).removesuffix(f" (row {rows[number]})")
        ends = zip(facts.low[number].tolist(), facts.high[number].tolist(), strict=True)
        cells.append(
            RiskyCell(
                name, 0 if reports is None else int(reports[number]), int(rows[number]),
                len(members), tuple(ends), best.settled, best.gain,
            )
        )  # fmt: skip
        chosen.append(number)
        left = left[left != number]
    return tuple(cells), np.array(chosen, np.intp), True


def _bound_gains(facts: Facts, soft: Facts, beliefs: Floats, possible: Mask) -> Floats:
    """(M,) upper bound of what each cell can add; `soft` as of `Facts.soften`."""
    expected = facts.count(beliefs)
    # What was measured may be less than 0, or missing.
    goal = np.where(np.isfinite(soft.low), np.clip(expected, soft.low, soft.high), expected)
    slack = 2.0 if facts.groups == 2 else 4.0
    bound = slack * np.abs(goal - expected).sum(axis=1) / 2
    sure = possible & (possible.sum(axis=1) == 1)[:, None]
    fixed, upper = facts.count(sure.astype(np.int64)), facts.count(possible.astype(np.int64))
    decides = (upper > fixed) & ((fixed == facts.high) | (upper == facts.low))
    decides &= ~facts.noisy[:, None]
    open_ = facts.sizes - fixed.sum(axis=1)
    return np.asarray(bound + np.where(decides.any(axis=1), open_, 0))


@dataclass(frozen=True, eq=False)
class _Step:
    """One more cell: what it adds, and beliefs and possible groups (members, K) after it."""

    number: int
    settled: int
    gain: float
    beliefs: Floats
    possible: Mask

    @property
    def rank(self) -> tuple[float, int]:
        """What it adds, if that is worth telling, and then whom it proves."""
        return (self.gain if self.gain > _WORTH else 0.0), self.settled

    @classmethod
    def of(
        cls, facts: Facts, soft: Facts, number: int, beliefs: Floats, possible: Mask,
        guesses: NDArray[np.intp],
    ) -> _Step:  # fmt: skip
        """The step that adds a cell to those before it.

        `soft`: as of `Facts.soften`. `guesses`: (n,) those before all cells.
        """
        # Rows of groups, as numpy is slow along axes of two.
        members = facts.sets.indices[slice(*facts.sets.indptr[number : number + 2])]
        before, allowed = (np.ascontiguousarray(one[members].T) for one in (beliefs, possible))
        open_ = allowed.sum(axis=0) > 1
        if not facts.noisy[number]:
            fixed = (allowed & ~open_).sum(axis=1)
            full, short = fixed == facts.high[number], allowed.sum(axis=1) == facts.low[number]
            allowed &= ~(open_ & full[:, None])
            for group in np.flatnonzero(short):
                own = open_ & allowed[group]
                allowed[:, own] = np.arange(facts.groups)[:, None] == group
        after = _condition(soft, number, np.where(allowed, before, 0.0))
        settled = open_ & (allowed.sum(axis=0) == 1)
        guess, column = guesses[members], np.arange(len(members))
        gain = sum(
            sign * (now.max(axis=0) - now[guess, column]).sum()
            for sign, now in ((1, after), (-1, before))
        )
        return cls(number, int(settled.sum()), float(gain), after.T, allowed.T)


def _condition(facts: Facts, number: int, own: Floats) -> Floats:
    """Beliefs (K, members) of a set's members given its counts alone."""
    low, high = facts.low[number], facts.high[number]
    sigma, scale = float(facts.sigma[number]), float(facts.scale[number])
    noisy, known = sigma > 0 or scale > 0, np.isfinite(low)
    now = own = own / own.sum(axis=0)
    with np.errstate(divide="ignore"):
        prior = np.log(own)
    force = np.zeros(len(own))
    furthest = 1 / scale if scale > 0 else np.inf
    for _ in range(_STEPS):
        expected = now.sum(axis=1)
        # A range pulls to the end that was reached, until its multiplier is 0 again.
        goal = np.where(force > 0, low, np.where(force < 0, high, np.clip(expected, low, high)))
        miss = np.where(known, goal - expected - sigma**2 * force, 0.0)
        spread = (now * (1 - now)).sum(axis=1) + sigma**2
        step = np.clip(0.5 * miss / np.maximum(spread, _LEAST), -_STEP, _STEP)
        new = np.clip(force + step, -furthest, furthest)
        if not noisy:
            new[(low < high) & (new * force < 0)] = 0.0
        if np.abs(new - force).max() < _STILL or np.abs(miss).max() < _NEAR:
            break
        force = new
        logits = prior + force[:, None]
        weights = np.exp(logits - logits.max(axis=0))
        now = weights / weights.sum(axis=0)
    return np.asarray(now)


_SLICES = 40
"""Most slices that are shown."""
_NAMED = 10 * _SLICES
"""Most cells that are named, which takes time."""
_COLOURS = {"proven": "179,38,30", "sure": "215,120,0", "adds": "30,100,200"}
_NAME = re.compile(r"(.*?)(?:, predicted ([01]))? \(row (\d+)\)", re.DOTALL)


def write_heat_map(
    facts: Facts, proven: Mask, sure: Mask, gain: Floats, riskiest: Sequence[RiskyCell]
) -> str:
    """A table with a row for each slice, and a column for each prediction; all text is escaped.

    Shown are the slices of the riskiest cells, and of those cells of whose people more is known
    than of others. `proven`, `sure`: (n,) people. `gain`: (n,) rise of the chance that a person is
    guessed right.
    """
    told = np.stack([facts.count(one.astype(float)) for one in (proven, sure, gain)], axis=1)
    above = told.sum(axis=1) - facts.sizes * (proven + sure + gain).mean()
    for cell in riskiest:
        same = (np.stack([facts.low, facts.high], axis=2) == np.array(cell.counts)).all(axis=(1, 2))
        above[same & (facts.sizes == cell.people)] = np.inf
    above[facts.derived | (facts.sizes == 0)] = -np.inf
    ranks = {cell.name: rank for rank, cell in enumerate(riskiest, 1)}
    slices: dict[str, dict[str, str]] = {}
    order: dict[str, tuple[bool, int]] = {}
    for number in np.argsort(-above, kind="stable")[:_NAMED]:
        found = _NAME.fullmatch(facts.name(int(number)))
        if found is None or above[number] == -np.inf:
            continue
        name, prediction, row = found.groups()
        rank = ranks.get(found[0].removesuffix(f" (row {row})"))
        cells = slices.setdefault(name, {})
        cells[prediction or ""] = _write_cell(told[number], int(facts.sizes[number]), rank)
        first, _ = order.get(name, (True, 0))
        order[name] = first and rank is None, int(row)
    shown = sorted(slices, key=lambda name: order[name][0])[:_SLICES]
    shown.sort(key=lambda name: order[name][1])
    if not shown:
        return ""
    columns = sorted({prediction for name in shown for prediction in slices[name]})
    heads = "".join(f"<th>{f'predicted {one}' if one else 'all'}</th>" for one in columns)
    legend = ", ".join(f'<span style="background:rgba({colour},.4)">{name}</span>'
                       for name, colour in _COLOURS.items())  # fmt: skip
    lines = [
        f"<p><b>Cells, and what is known of their people by everything published</b>: {legend} "
        "(how many more are expected to be guessed right). The darker, the larger their share; #: "
        f"place among the riskiest cells. At most {_SLICES} slices: those of the riskiest cells, "
        "and those of whose people more is known than of others.</p>",
        '<div style="overflow-x:auto">', f"<table><tr><th>slice</th>{heads}</tr>",
        *(f'<tr><td style="text-align:left">{escape(name)}</td>'
          f"{''.join(slices[name].get(one, '<td></td>') for one in columns)}</tr>"
          for name in shown),
        "</table></div>",
    ]  # fmt: skip
    return escape_unprintable("\n".join(lines), but="\n")


def _write_cell(told: Floats, people: int, rank: int | None) -> str:
    """People of a cell; its colour is that of the first of what is known of any of them."""
    known = [(name, number) for name, number in zip(_COLOURS, told, strict=True) if number >= 0.05]
    words = [f"adds {number:,.1f}" if name == "adds" else f"{number:,.0f} {name}"
             for name, number in known]  # fmt: skip
    text = f"{people:,} people{f' (#{rank})' if rank else ''}"
    if not known:
        return f"<td>{text}</td>"
    colour, strength = _COLOURS[known[0][0]], 0.5 * math.sqrt(min(told.sum() / people, 1))
    return f'<td style="background:rgba({colour},{strength:.2f})">{text}: {", ".join(words)}</td>'
