"""Beliefs of many people given any conditions on totals: maximum entropy.

Given the totals, the posterior is the tilted beliefs conditioned on the totals, which differs from
the tilted beliefs by about one part in the number of people. So the beliefs given a claim are those
of least relative entropy to the given ones under which totals have the expectation that they have
given the claim. A connected region is sampled as a whole; if a claim leaves several regions (rates
that are far apart in one direction or another), each has its own tilt and its own probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import AnyOf, RatesApart
from fpbench.claims.constraints import LinearConstraint
from fpbench.claims.counts import Condition
from fpbench.correction.conditioning.conditioned import Conditioned
from fpbench.correction.conditioning.likeliest_counts import Likeliest, LinearRow, find_likeliest
from fpbench.correction.conditioning.regions import Tables, list_options, satisfy
from fpbench.correction.conditioning.sampled_counts import RegionSampler, Sampled, TableLaw
from fpbench.correction.conditioning.tilted_people import TiltedPeople, WeightedSum
from fpbench.correction.exact.counting import CountedProblem
from fpbench.data.sample import Codes

_Floats: TypeAlias = NDArray[np.float64]

_PILOT = 8_192
"""Tables drawn from every piece."""
_FULL = 8
"""Number of pieces above which fewer tables are drawn from each in the first round."""
_MORE = 16_384
"""Tables drawn at a time from the piece whose error matters most."""
_MOST_DRAWS = 12
"""Most times that more tables are drawn."""
_SMALL = 0.1
"""Error of a group's expected size, in people, at which drawing stops."""
_RARE = 1e-3
"""Least share of a claim's probability that a piece needs to count."""
_NEGLIGIBLE = 10.0
"""A piece whose log-probability lies this far below the likeliest one's does not count."""
_MOST_PIECES = 512


def condition_approximately(
    beliefs: _Floats, counted: CountedProblem, feasible: Codes | None = None
) -> Conditioned:
    """Beliefs given conditions on totals; impossible if no drawn table satisfies them.

    `beliefs`: (n, K) probabilities of independent people; those of the problem are not used.
    `feasible`: (n,) groups that satisfy the conditions: tables are drawn around theirs.
    """
    members, classes = counted.members, len(counted.classes.sizes)
    conditions, linear = counted.conditions, counted.linear
    if linear and (members < 0).any():  # sums are about everyone
        members, classes = np.where(members < 0, np.int8(classes), members), classes + 1
    sums = [WeightedSum(one.group, one.array()) for one in linear]
    people = TiltedPeople(beliefs, members, classes, sums)
    bounds = [_widen(one) for one in linear]
    if feasible is None:
        pieces = _list_pieces(conditions, people, _list_rows(bounds, people))
    else:
        pieces = [_Piece(tuple(conditions), (), _locate(people, members, feasible))]
    effort = max(min(1.0, _FULL / max(len(pieces), 1)), 0.25)
    samplers = [
        RegionSampler(
            TableLaw(people, piece.likeliest, piece.conditions, bounds, piece.is_first), effort
        )
        for piece in pieces
    ]
    found = [
        _Found(piece.likeliest, sampler, sampler.draw(round(effort * _PILOT)))
        for piece, sampler in zip(pieces, samplers, strict=True)
    ]
    found = [one for one in found if one.sampled.log_probability > -np.inf]
    if found:
        found = _draw_enough(found, people)
        return _mix(beliefs, people, found)
    table = _take_table(people, pieces[0]) if feasible is not None else None
    if table is None:
        return Conditioned(-math.inf, None)
    alone = _mix(beliefs, people, [_Found(pieces[0].likeliest, samplers[0], table)])
    return replace(alone, error=None)


@dataclass(frozen=True)
class _Found:
    """A piece with positive probability."""

    likeliest: Likeliest
    sampler: RegionSampler
    sampled: Sampled

    def errors(self, share: float, people: TiltedPeople) -> float:
        """Standard error of expected counts, summed, by a piece of some share of a claim."""
        counts = people.classes * people.groups
        # A wrong share moves people from the piece's beliefs to the others'.
        moved = np.abs(self.sampled.mean - self.likeliest.moments.mean)[:counts].sum()
        own = self.sampled.error[:counts].sum()
        return float(share * (own + (1 - share) * self.sampled.log_error * moved))


def _compute_shares(found: Sequence[_Found]) -> tuple[float, _Floats]:
    """Log-probability of the claim, and the pieces' shares of its probability."""
    logs = np.array([one.sampled.log_probability for one in found])
    log_claim = float(np.logaddexp.reduce(logs))
    return log_claim, np.exp(logs - log_claim)


def _draw_enough(found: list[_Found], people: TiltedPeople) -> list[_Found]:
    """Draw more tables of the pieces whose errors matter, until these are small."""
    shares = _compute_shares(found)[1]
    found = [one for one, share in zip(found, shares, strict=True) if share > _RARE]
    for _ in range(_MOST_DRAWS):
        shares = _compute_shares(found)[1]
        errors = [one.errors(share, people) for one, share in zip(found, shares, strict=True)]
        if sum(errors) <= _SMALL * people.groups:
            break
        worst = int(np.argmax(errors))
        found[worst] = replace(found[worst], sampled=found[worst].sampler.draw(_MORE))
    return found


def _widen(one: LinearConstraint) -> tuple[float, float]:
    """Bounds of a sum as a continuous number: half a unit wider than the sums that it may have."""
    coefficients = np.abs(one.array())
    for digits in range(7):
        scaled = coefficients * 10**digits
        whole = np.rint(scaled)
        if np.abs(scaled - whole).max(initial=0.0) < 1e-6 and whole.max(initial=0.0) < 2**53:
            unit = float(np.gcd.reduce(whole.astype(np.int64))) / 10**digits or 1.0
            low, high = np.ceil(one.low / unit - 1e-6), np.floor(one.high / unit + 1e-6)
            return float((low - 0.5) * unit), float((high + 0.5) * unit)
    slack = 1e-6 * float(coefficients.max())
    return one.low - slack, one.high + slack


def _locate(people: TiltedPeople, members: NDArray[np.int8], groups: Codes) -> Likeliest:
    """The tilt under which totals expect those of a vector of groups."""
    inside = members >= 0
    cells = members[inside].astype(np.intp) * people.groups + groups[inside]
    wanted = np.bincount(cells, minlength=people.totals).astype(np.float64)
    tilt = people.match(wanted, np.zeros(people.totals))
    return Likeliest(tilt, people.moments(tilt), True)


def _take_table(people: TiltedPeople, piece: _Piece) -> Sampled | None:
    """The table that a tilt expects, alone; None if people cannot have it, or conditions do not."""
    totals = np.rint(piece.likeliest.moments.mean)
    table = totals.reshape(1, people.classes, people.groups).astype(np.int64)
    if (table.sum(axis=2) != people.sizes).any() or not satisfy(piece.conditions, table)[0]:
        return None
    log_probability = TableLaw(people, piece.likeliest).weigh(totals)
    return Sampled(log_probability, 0.0, totals, np.zeros_like(totals))


@dataclass(frozen=True)
class _Piece:
    """One way to satisfy the conditions."""

    conditions: tuple[Condition, ...]
    earlier: tuple[tuple[Condition, ...], ...]
    """Earlier pieces, which must not hold: pieces are disjoint."""
    likeliest: Likeliest

    def is_first(self, tables: Tables) -> NDArray[np.bool_]:
        """Whether tables (N, J, K) satisfy none of the earlier ways."""
        first = np.ones(len(tables), dtype=bool)
        for options in self.earlier:
            rows = np.flatnonzero(first)
            first[rows] = ~satisfy(options, tables[rows])
        return first


def _list_pieces(
    conditions: Sequence[Condition], people: TiltedPeople, rows: Sequence[LinearRow]
) -> list[_Piece]:
    plain = [c for c in conditions if not isinstance(c, AnyOf | RatesApart)]
    choices = [list_options(c) for c in conditions if isinstance(c, AnyOf | RatesApart)]
    if math.prod(len(options) for options in choices) > _MOST_PIECES:
        # Too many pieces: the condition is checked table by table instead.
        plain, choices = list(conditions), []
    ways = [tuple(one for option in chosen for one in option) for chosen in product(*choices)]
    located = [(way, find_likeliest(people, [*plain, *way], rows)) for way in ways]
    if len(located) > 1:
        located = [(way, likeliest) for way, likeliest in located if likeliest.satisfied]
    located.sort(key=lambda pair: -pair[1].log_height)
    pieces: list[_Piece] = []
    for way, likeliest in located:
        if likeliest.log_height < located[0][1].log_height - _NEGLIGIBLE:
            break
        earlier = tuple(way for way, _ in located[: len(pieces)])
        pieces.append(_Piece((*plain, *way), earlier, likeliest))
    return pieces


def _list_rows(bounds: Sequence[tuple[float, float]], people: TiltedPeople) -> list[LinearRow]:
    rows: list[LinearRow] = []
    for number, (low, high) in enumerate(bounds):
        for sign, bound in ((1.0, high), (-1.0, -low)):
            if bound < np.inf:
                row = np.zeros(people.totals)
                row[people.classes * people.groups + number] = sign
                rows.append((row, bound))
    return rows


def _mix(beliefs: _Floats, people: TiltedPeople, found: Sequence[_Found]) -> Conditioned:
    """The tilted beliefs of every piece, by its share of the claim's probability."""
    log_claim, shares = _compute_shares(found)
    posterior = beliefs.copy()
    for rows in people.rows:
        posterior[rows] = 0.0
    error = 0.0
    for one, share in zip(found, shares, strict=True):
        tilt = people.match(one.sampled.mean, one.likeliest.tilt)
        for rows, tilted in zip(people.rows, people.beliefs(tilt), strict=True):
            posterior[rows] += share * tilted
        error += one.errors(share, people)
    return Conditioned(log_claim, posterior, error / beliefs.size)
