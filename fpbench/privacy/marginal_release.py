"""Tables of people by group, measured with noise and fitted to what is public.

Everybody's columns are public, groups are not. One table of people is found that is likely given
the noisy counts: every kind of people is as many as it is known to be, and whatever is published is
a sum over that table. The fit sees noisy counts and public numbers only, so it costs no privacy.
Where the sizes are secret too, they are fitted first (`fit_sizes`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, eye_array, vstack
from scipy.special import softmax

from fpbench.components.guarantee import Guarantee, Sensitivity
from fpbench.components.mechanism import Mechanism

_Floats = NDArray[np.float64]
_Codes = NDArray[np.int64]

_SPREAD, _DECAY = 1.0, 3.0
"""Standard deviation of the logit of everybody's share before anything is measured, and how many
times smaller that of an effect is for each column that it crosses."""
_HIGHEST = 30.0
"""Greatest logarithm of how many times more people than on average a kind has."""
_LEAST = 0.01
"""Least standard deviation that the fit assumes: whole numbers are certain with it."""
_STEPS = 300
"""Most steps of the fit."""
_PASSES = 20
"""Most times that everybody's number is looked at to make numbers whole."""
_WIDE = 4.0
"""How many times larger effects on sizes are than on shares of groups."""
_SHARES = 0.25, 0.5, 0.75, 0.95
"""Shares of the privacy that tables by one column may get."""
_VARIED = 0.2
"""Variance of somebody's group that is planned for, as if one in four were of it."""
_FINE = 4
"""Least weight of tables, such that their shares are not rounded much."""
_COUNTS = 0.03
"""What a difference of numbers counts beside one of rates when numbers are made whole."""


@dataclass(frozen=True, eq=False)
class Marginals:
    """Tables over kinds of people.

    Attributes
    ----------
    kinds
        (A, C) public codes of each kind of people; -1 is a missing value, one more.
    sizes
        (A,) people of each kind, public; any numbers, which nobody looks at, if they are secret.
    tables
        Columns that each measured table crosses.
    weights
        Numbers that counts of each table are multiplied by before they get noise: a table of
        weight w has a w-th of the noise of one of weight 1.
    secret
        Whether sizes are: then the kinds are chosen without looking at people, and neighbours
        differ in one person who is added, removed or replaced.
    """

    kinds: _Codes
    sizes: _Codes
    tables: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    secret: bool = False

    @classmethod
    def of(
        cls,
        kinds: _Codes,
        sizes: _Codes,
        tables: Iterable[tuple[int, ...]],
        single: Iterable[tuple[int, ...]],
        *,
        pure: bool,
        share: float = 0.5,
    ) -> Self:
        """Tables that share some of the privacy equally, and smaller ones that share the rest.

        Parameters
        ----------
        kinds, sizes
            As of the class.
        tables
            Columns of the largest tables.
        single
            Those cut by one column, which tell most of what noise leaves.
        pure
            Whether noise grows with the sum of the weights, not of their squares.
        share
            What of that sum the smaller ones have.
        """
        largest = list(dict.fromkeys(tables))
        smaller = [t for t in dict.fromkeys(single) if t not in largest]
        times = share / (1 - share) * len(largest) / max(len(smaller), 1)
        times = times if pure else times**0.5
        least = math.ceil(_FINE / times) if smaller else 1
        weights = [least] * len(largest) + [max(round(least * times), 1)] * len(smaller)
        return cls(kinds, sizes, (*largest, *smaller), tuple(weights))

    @cached_property
    def codes(self) -> _Codes:
        """(tables, A) the cell of each kind in each table, counted on from table to table."""
        own = [number_cells(self.kinds, table) for table in self.tables]
        first = np.cumsum([0, *(codes.max(initial=-1) + 1 for codes in own)])
        return np.array([codes + start for codes, start in zip(own, first, strict=False)])

    @cached_property
    def members(self) -> csr_array:
        """(A, cells) the cells of each kind, one of each table."""
        tables, many = self.codes.shape
        pointers = np.arange(0, many * tables + 1, tables)
        shape = many, int(self.codes.max(initial=-1)) + 1
        return csr_array((np.ones(many * tables), self.codes.T.ravel(), pointers), shape=shape)

    @cached_property
    def cells(self) -> csr_array:
        """(cells, A) the kinds of each cell."""
        return self.members.T.tocsr()

    @cached_property
    def table(self) -> _Codes:
        """(cells,) the table of each cell."""
        owner = np.zeros(self.cells.shape[0], np.int64)
        owner[self.codes] = np.arange(len(self.codes))[:, None]
        return owner

    @cached_property
    def contrasts(self) -> csr_array:
        """(slices, cells) by how much more of a group has the last column than in all the slice.

        Numbers of people, multiplied by this, are 0 if the group has the rate of the slice.
        """
        last, size = self.kinds.shape[1] - 1, np.asarray(self.cells @ self.sizes)
        rows, values, many = [], [], 0
        for codes, table in zip(self.codes, self.tables, strict=True):
            cells, first = np.unique(codes, return_index=True)
            own = number_cells(self.kinds[first], [column for column in table if column != last])
            selected = self.kinds[first, last] == 1
            people = np.maximum(np.bincount(own, size[cells]), 1)
            rows.append(many + own)
            values.append(selected - (np.bincount(own, size[cells] * selected) / people)[own])
            many += len(people)
        where = np.concatenate(rows), np.arange(len(size))
        return csr_array((np.concatenate(values), where), shape=(many, len(size)))

    def locate(self, number: int, keys: _Codes) -> _Codes:
        """(M,) cells of a table, by its number, that keys (M, C) are in; -1 where no kind is."""
        same = number_cells(np.concatenate([self.kinds, keys]), self.tables[number])
        cell = np.full(int(same.max(initial=-1)) + 1, -1)
        cell[same[: len(self.kinds)]] = self.codes[number]
        return np.asarray(cell[same[len(self.kinds) :]])

    def find_reach(self, groups: int) -> Sensitivity:
        """How far weighted counts move between neighbours.

        Of two groups the counts of one are measured: the other follows from the sizes. Of more,
        those of all are, for the change of a group moves two counts anyway; so are they of secret
        sizes, of which the replacement of a person moves two, its addition or removal one.
        """
        one = groups == 2 and not self.secret
        changes, weights = 1 if one else 2, np.array(self.weights, np.float64)
        return Sensitivity(
            float(changes * weights.sum()), float(changes * weights @ weights) ** 0.5
        )


@dataclass(frozen=True, eq=False)
class NoisyMarginals:
    """Noisy counts of all tables.

    Attributes
    ----------
    answers
        (cells, measured groups) noisy counts: of the last of two groups, or of all; NaN where
        none is measured.
    law, width
        Name of the noise's distribution, `gaussian` or `laplace`, and its (cells,) standard
        deviations or scales.
    guarantee
        For the change of one person's group; of secret sizes, for one person replaced.
    """

    answers: _Floats
    law: str
    width: _Floats
    guarantee: Guarantee


def plan_marginals(
    kinds: _Codes,
    sizes: _Codes,
    tables: Iterable[tuple[int, ...]],
    single: Iterable[tuple[int, ...]],
    groups: int,
    mechanism: Mechanism,
    epsilon: float,
) -> Marginals:
    """The tables with the share of the privacy for each that promises the least error of rates.

    Parameters
    ----------
    kinds, sizes, tables, single
        As of `Marginals.of`, with public sizes.
    groups
        How many there are.
    mechanism, epsilon
        The noise to come.

    Notes
    -----
    Nobody's group is looked at: the error is predicted from sizes and the noise. See
    `_predict_errors`.
    """
    pure = mechanism.guarantee(epsilon, "attribute").delta == 0
    own = list(tables), list(single)
    plans = [Marginals.of(kinds, sizes, *own, pure=pure, share=share) for share in _SHARES]
    if plans[0].weights == plans[-1].weights:
        return plans[0]  # there are no smaller tables
    deviations = []
    for plan in plans:
        weights = np.array(plan.weights)
        reach, upper = plan.find_reach(groups), weights * int(sizes.max(initial=1))
        sigma, scale = mechanism.find_noise_law(reach, epsilon, upper)
        deviations.append(np.maximum((sigma + 2**0.5 * scale) / weights, _LEAST))
    return plans[int(_predict_errors(plans[0], np.array(deviations)).argmin())]


def _predict_errors(marginals: Marginals, deviations: _Floats) -> _Floats:
    """(P,) about how far off rates will be, up to a factor, with (P, tables) deviations of noise.

    As if every effect that counts for rates, of parts of tables by the last column, were measured
    alone, by all tables that it is in; effects are normal as in `fit_people`, but those of several
    columns as large as of two. The deviations of the effects of a cell are those of a rate r,
    times r (1 - r).
    """
    last, size = marginals.kinds.shape[1] - 1, np.asarray(marginals.cells @ marginals.sizes)
    precision: dict[tuple[int, ...], _Floats] = {}
    cells = []
    for number, (codes, table) in enumerate(zip(marginals.codes, marginals.tables, strict=True)):
        own, first = np.unique(codes, return_index=True)
        columns, kinds, people = [c for c in table if c != last], marginals.kinds[first], size[own]
        within = number_cells(kinds, columns)
        rate = people / np.maximum(np.bincount(within, people)[within], 1)
        effects = {}
        for part in (p for many in range(len(columns) + 1) for p in combinations(columns, many)):
            effects[part] = number_cells(kinds, (*part, last))
            told = np.bincount(effects[part], (_VARIED * people) ** 2.0)
            precision[part] = precision.get(part, 0) + told / deviations[:, [number]] ** 2
        cells.append((effects, rate * (1 - rate)))
    spread = {part: _SPREAD / _DECAY ** min(len(part) + 1, 2) for part in precision}
    left = {part: 1 / (spread[part] ** -2 + told) for part, told in precision.items()}
    off = [
        np.sqrt(sum(left[part][:, effect] for part, effect in effects.items())) @ counts
        for effects, counts in cells
    ]
    return np.asarray(np.sum(off, axis=0))


def measure_marginals(
    marginals: Marginals,
    counts: _Floats,
    mechanism: Mechanism,
    epsilon: float,
    rng: np.random.Generator,
) -> NoisyMarginals:
    """Measure the tables with noise.

    Parameters
    ----------
    marginals
        The tables.
    counts
        (cells, K) true counts; rows of NaN are not measured.
    mechanism, epsilon, rng
        As of `Mechanism.release`, for all tables together.
    """
    known = np.asarray(np.isfinite(counts).all(axis=1))
    weight = np.array(marginals.weights)[marginals.table]
    own = np.where(known[:, None], counts, 0).astype(np.int64)
    one = counts.shape[1] == 2 and not marginals.secret
    measured = weight[:, None] * (own[:, 1:] if one else own)
    upper = weight * np.asarray(marginals.cells @ marginals.sizes).astype(np.int64)
    reach = marginals.find_reach(counts.shape[1])
    bounds = None if marginals.secret else np.broadcast_to(upper[:, None], measured.shape)
    answers = mechanism.release(measured, reach, epsilon, rng, bounds) / weight[:, None]
    sigma, scale = mechanism.find_noise_law(reach, epsilon, upper)
    law, width = ("gaussian", sigma) if sigma.any() else ("laplace", scale)
    guarantee = mechanism.guarantee(epsilon, "attribute")
    if marginals.secret:
        guarantee = replace(guarantee, neighbours="replace-one")
    return NoisyMarginals(np.where(known[:, None], answers, np.nan), law, width / weight, guarantee)


def fit_sizes(marginals: Marginals, noisy: NoisyMarginals) -> _Codes:
    """(A,) likely numbers of people of each kind, whole ones, where they are secret.

    Parameters
    ----------
    marginals
        The tables, of secret sizes.
    noisy
        Their noisy counts, of all groups.

    Notes
    -----
    As in `fit_people`, but numbers are exponentials of sums of effects, with wider ones. Whole
    numbers keep the sums of all kinds before each, then single people change their kind while cells
    come nearer to the real numbers.
    """
    cells, members = marginals.cells, marginals.members
    effects, spread = _find_effects(marginals)
    spread, parts = _WIDE * spread[:, 0], effects.T.tocsr()
    answers = noisy.answers.sum(axis=1)
    deviation = noisy.width * (2 * noisy.answers.shape[1]) ** 0.5
    precision = 1 / np.maximum(deviation, _LEAST) ** 2
    known = np.bincount(marginals.table, deviation**2)
    totals = np.bincount(marginals.table, answers)
    start = max(float((totals / known).sum() / (1 / known).sum()), 1.0) / len(marginals.sizes)

    def count(scaled: _Floats) -> _Floats:
        logits = np.minimum(members @ (effects @ (spread * scaled)), _HIGHEST)
        return np.asarray(start * np.exp(logits))

    def descend(scaled: _Floats) -> tuple[float, _Floats]:
        numbers = count(scaled)
        off = cells @ numbers - answers
        back = spread * (parts @ (cells @ (numbers * (members @ (off * precision)))))
        return float(((off**2 * precision).sum() + scaled @ scaled) / 2), back + scaled

    options = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "maxcor": 20}
    none = np.zeros(effects.shape[1])
    numbers = count(minimize(descend, none, jac=True, method="L-BFGS-B", options=options).x)
    whole = np.diff(np.rint(np.cumsum(numbers)), prepend=0).astype(np.int64)
    weight = 1 / np.maximum(cells @ numbers, 1)

    def measure(whole: _Codes) -> _Floats:
        return np.asarray(cells @ (whole - numbers))

    off, many = measure(whole), max(int(whole.sum()) // 10, 1)
    for _ in range(_STEPS):
        pull = members @ (weight * off)
        moved = whole.copy()
        givers = np.argsort(-np.where(whole > 0, pull, -np.inf))[:many]
        moved[givers[whole[givers] > 0]] -= 1
        moved[np.argsort(pull)[: (moved < whole).sum()]] += 1
        nearer = measure(moved)
        if (weight * nearer**2).sum() < (weight * off**2).sum():
            whole, off = moved, nearer
        elif (many := many // 2) == 0:
            break
    return whole


def fit_people(marginals: Marginals, noisy: NoisyMarginals, groups: int) -> _Codes:
    """(A, K) likely numbers of each kind of people in each group, whole ones that sum to its size.

    Notes
    -----
    The share of each group among a kind of people is the softmax of a sum of effects, one of each
    cell of the tables and of the tables that are part of them. Effects are normal, with a standard
    deviation of 3^-c where c columns are crossed; noise is taken for normal, with its own. The
    likeliest effects are found, so that what noise hides is shrunk to the rates of larger slices:
    in the limit, to those of everybody in the slice, which are public. Numbers are then made whole
    such that rates differ least from it, and numbers little.
    """
    cells, members = marginals.cells, marginals.members
    sizes = marginals.sizes[:, None].astype(np.float64)
    effects, spread = _find_effects(marginals)
    parts = effects.T.tocsr()
    free = noisy.answers.shape[1]
    deviation = np.maximum(noisy.width * (2**0.5 if noisy.law == "laplace" else 1), _LEAST)
    precision = (1 / deviation**2)[:, None] * np.isfinite(noisy.answers)
    answers = np.nan_to_num(noisy.answers)
    none = np.zeros((len(sizes), 1))
    assert free in (1, groups)

    def share(scaled: _Floats) -> _Floats:
        logits = members @ (effects @ (spread * scaled.reshape(-1, free)))
        return np.asarray(softmax(np.hstack([none, logits]) if free == 1 else logits, axis=1))

    def descend(scaled: _Floats) -> tuple[float, _Floats]:
        shares = share(scaled)
        told = shares[:, -free:]
        off = cells @ (sizes * told) - answers
        pull = sizes * (members @ (off * precision))
        slope = told * (pull - (told * pull).sum(axis=1, keepdims=True))
        back = spread * (parts @ (cells @ slope))
        value = ((off**2 * precision).sum() + scaled @ scaled) / 2
        return float(value), back.ravel() + scaled

    start = np.zeros(effects.shape[1] * free)
    known = deviation.max(initial=0.0) <= 1  # to a person: then the fit takes longer
    steps = 4 * _STEPS if known else _STEPS
    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20}
    optimum = minimize(descend, start, jac=True, method="L-BFGS-B", options=options)
    return _make_whole(marginals, sizes * share(optimum.x), 0.0 if known else 1.0)


def _find_effects(marginals: Marginals) -> tuple[csr_array, _Floats]:
    """(cells, effects) the effects in each cell, and (effects, 1) their standard deviations.

    Everybody is in one cell of each table, so effects of smaller tables are put into one of these.
    """
    owner = {
        part: number
        for number, table in enumerate(marginals.tables)
        for size in range(len(table) + 1)
        for part in combinations(table, size)
    }
    rows, columns, spread, many = [], [], [], 0
    for part, number in owner.items():
        cells, first = np.unique(marginals.codes[number], return_index=True)
        effect = number_cells(marginals.kinds[first], part)
        rows.append(cells)
        columns.append(many + effect)
        spread.append(np.full(int(effect.max(initial=-1)) + 1, _SPREAD / _DECAY ** len(part)))
        many += len(spread[-1])
    where = np.concatenate(rows), np.concatenate(columns)
    shape = marginals.cells.shape[0], many
    effects = csr_array((np.ones(len(where[0])), where), shape=shape)
    return effects, np.concatenate(spread)[:, None]


def number_cells(kinds: _Codes, table: Sequence[int]) -> _Codes:
    """(A,) numbers of the cells of a table that kinds (A, C) of people are in, from 0."""
    key = np.zeros(len(kinds), np.int64)
    for column in table:
        _, key = np.unique(key, return_inverse=True)
        key = key.ravel() * (kinds[:, column].max(initial=-1) + 2) + kinds[:, column] + 1
    return np.asarray(np.unique(key, return_inverse=True)[1].ravel())


def _make_whole(marginals: Marginals, numbers: _Floats, rates: float) -> _Codes:
    """Whole numbers (A, K) whose rates, and cells a little, differ least from real ones, about.

    One kind after the other gets the whole numbers that are best for the cells so far; then single
    people change their group while that is better. Differences count by the sizes of the cells;
    those of rates as `rates` says, 0 or 1.
    """
    whole = np.floor(numbers).astype(np.int64)
    left = marginals.sizes - whole.sum(axis=1)
    size = np.asarray(marginals.cells @ marginals.sizes).astype(np.float64)
    slices = np.asarray((marginals.contrasts != 0) @ size)
    sums = vstack([marginals.contrasts, eye_array(len(size))]).tocsr()
    parts = (sums @ marginals.cells).T.tocsr()
    counts = _COUNTS if rates else 1.0
    weight = np.append(rates / np.maximum(slices, 1), counts / np.maximum(size, 1))
    off = np.zeros((len(weight), numbers.shape[1]))
    part = whole - numbers
    places = np.split(parts.indices, parts.indptr[1:-1])
    values = np.split(parts.data, parts.indptr[1:-1])
    # Kinds whose numbers are nearly whole come last, when there is little left to make good.
    for kind in np.argsort(-np.abs(numbers - np.rint(numbers)).max(axis=1), kind="stable"):
        own, value = places[kind], values[kind]
        scale = weight[own] * value
        off[own] += value[:, None] * part[kind]
        for _ in range(left[kind]):
            group = int((scale @ off[own] + whole[kind] - numbers[kind]).argmin())
            off[own, group] += value
            whole[kind, group] += 1
    for _ in range(_PASSES):
        moved = 0
        for kind, (own, value) in enumerate(zip(places, values, strict=True)):
            scale = weight[own] * value
            pull = scale @ off[own]
            taken = np.where(whole[kind] > 0, pull, -np.inf)
            giver, taker = int(taken.argmax()), int(pull.argmin())
            if taken[giver] - pull[taker] > scale @ value + 1e-9:
                whole[kind, [giver, taker]] += -1, 1
                off[own, giver] -= value
                off[own, taker] += value
                moved += 1
        if not moved:
            break
    return whole
