"""Many small neural networks at once: two hidden ReLU layers, trained by Adam in NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.builtin.batched.row_blocks import pad_groups

_Floats = NDArray[np.float64]

_CACHE = 1 << 16
"""Parameters trained together (0.5 MB): more of them, and they leave the processor's cache."""
_DECAY, _DECAY_SQUARES, _TINY = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class MLPTraining:
    """How networks are trained.

    They minimise the mean cross-entropy + penalty times the sum of squared weights, biases left
    out: scikit-learn's `alpha` is 2 penalty n, n people in a batch. Adam has the constants of its
    authors (Kingma & Ba, ICLR 2015), as in scikit-learn.

    Attributes
    ----------
    hidden
        Units of the two layers.
    penalty
        Factor of the sum of squared weights, at least 0.
    epochs
        Passes over the people, at least 1.
    batch
        People of a step.
    rate
        Learning rate.
    shuffle
        Whether every epoch takes people in a new order.
    """

    hidden: tuple[int, int] = (32, 16)
    penalty: float = 0.0
    epochs: int = 50
    batch: int = 32
    rate: float = 1e-3
    shuffle: bool = True

    def __post_init__(self) -> None:
        fine = 0 <= self.penalty < math.inf and 0 < self.rate < math.inf
        if not fine or min(*self.hidden, self.epochs, self.batch) < 1:
            raise InputError(
                f"networks need a penalty of at least 0, a rate above 0, and counts of at least 1: "
                f"{self}"
            )


@dataclass(frozen=True)
class Networks:
    """B networks of one shape, as the rows of one matrix.

    Attributes
    ----------
    flat
        (B, parameters).
    width
        Number d of inputs; the last is a column of ones, for the biases.
    hidden
        Units of the two layers.
    """

    flat: _Floats
    width: int
    hidden: tuple[int, int]

    @classmethod
    def random(
        cls, width: int, hidden: tuple[int, int], rngs: Sequence[np.random.Generator]
    ) -> Networks:
        """Untrained networks: uniform weights of the width of Glorot & Bengio (2010)."""
        networks = cls(np.empty((len(rngs), sum(_count_parameters(width, hidden)))), width, hidden)
        one, two = hidden
        first, second, biases, third, last = _count_parameters(width, hidden)
        fans = np.repeat(
            [width - 1 + one, one + two, two + 1], [first, second + biases, third + last]
        )
        for row, rng in zip(networks.flat, rngs, strict=True):
            row[:] = rng.uniform(-1.0, 1.0, len(row))
        networks.flat[:] *= np.sqrt(6 / fans)
        return networks

    @property
    def layers(self) -> tuple[_Floats, ...]:
        """Views: (B, d, h1), (B, h1, h2), (B, h2), (B, h2), (B, 1).

        The first layer with its biases as the last row; the second, and its biases; the last, and
        its bias.
        """
        one, two = self.hidden
        ends = np.cumsum(_count_parameters(self.width, self.hidden))
        first, second, bias, third, last = np.split(self.flat, ends[:-1], axis=1)
        return (
            first.reshape(-1, self.width, one), second.reshape(-1, one, two), bias, third, last,
        )  # fmt: skip

    def proba(self, design: _Floats) -> _Floats:
        """Probabilities (B, n) of label 1, of people (n, d)."""
        chances = np.empty((len(self.flat), len(design)))
        most = max(1, (1 << 20) // (max(len(design), 1) * max(self.hidden)))
        for first in range(0, len(chances), most):
            chunk = replace(self, flat=self.flat[first : first + most])
            chances[first : first + most] = apply_sigmoid(
                _propagate_forward(design, chunk.layers)[2]
            )
        return chances

    def gradient_norms(self, design: _Floats, labels: _Floats) -> _Floats:
        """Lengths (B, n) of the gradients of people's losses by all parameters.

        Of people (n, d) with labels (n,).
        """
        return np.sqrt(_measure_gradients(design, *_propagate(design, labels, 1.0, self)))

    def take(self, first: int, last: int) -> Networks:
        """The networks first to last - 1, sharing memory."""
        return replace(self, flat=self.flat[first:last])


def fit_networks(
    design: _Floats,
    targets: _Floats,
    training: MLPTraining,
    rng: np.random.Generator,
    weights: _Floats | None = None,
) -> Networks:
    """B networks trained on the same people with different targets (and weights).

    All begin with the same parameters and visit people in the same order, so that they differ only
    through their targets.

    Parameters
    ----------
    design
        (m, d), the last column of ones.
    targets
        (B, m) in [0, 1]: outside, the loss has no lower bound, and networks diverge.
    training
        Parameters of the training.
    rng
        Draws initial parameters and orders.
    weights
        (B, m), 0 leaves a person out. All 1 by default.

    Raises
    ------
    InputError
        If a target is not in [0, 1].
    """
    if targets.size and not (targets.min() >= 0 and targets.max() <= 1):
        raise InputError("targets of networks must lie in [0, 1]: beyond, networks diverge")
    begin, order_rng = rng.spawn(2)
    first = Networks.random(design.shape[1], training.hidden, [begin])
    networks = replace(first, flat=np.repeat(first.flat, len(targets), axis=0))
    people = len(design)
    orders = [
        order_rng.permutation(people) if training.shuffle else np.arange(people)
        for _ in range(training.epochs)
    ]
    weights = np.ones_like(targets) if weights is None else weights
    size = max(1, _CACHE // networks.flat.shape[1])
    for start in range(0, len(targets), size):
        chunk = slice(start, start + size)
        adam = _NetworkTraining(networks.take(start, start + size), training)
        for order in orders:
            x, y, w = design[order], targets[chunk][:, order], weights[chunk][:, order]
            for at in range(0, people, training.batch):
                rows = slice(at, at + training.batch)
                adam.step(x[rows], y[:, rows], w[:, rows])
    return networks


def fit_networks_apart(
    design: _Floats,
    labels: _Floats,
    groups: list[NDArray[np.intp]],
    training: MLPTraining,
    rng: np.random.Generator,
) -> Networks:
    """One network for each group of rows, each with a beginning and orders of its own.

    A network depends on its own rows, to the last bit, and not on the size or number of the other
    groups.

    Parameters
    ----------
    design, labels
        (n, d), the last column of ones, and (n,) in [0, 1]: everybody.
    groups
        B arrays of row numbers; a group of no rows gets a network of zeros, which predicts 1/2.
    training
        Parameters of the training.
    rng
        Spawns a generator for each network, by its number.
    """
    rngs = rng.spawn(len(groups))
    networks = Networks.random(design.shape[1], training.hidden, rngs)
    networks.flat[[not len(rows) for rows in groups]] = 0.0
    parameters = networks.flat.shape[1]
    size = max(1, _CACHE // parameters)
    for block, rows, present in pad_groups(groups, 1, most=1 << 62):
        for start in range(0, len(block), size):
            chunk = slice(start, start + size)
            # An even distance between networks, so that each begins at a multiple of 16 bytes, see
            # `pad_groups`.
            flat = np.zeros((len(block[chunk]), parameters + parameters % 2))[:, :parameters]
            flat[:] = networks.flat[block[chunk]]
            adam = _NetworkTraining(replace(networks, flat=flat), training)
            sizes = present[chunk].sum(axis=1).astype(np.intp)
            shuffled = rows[chunk]
            for _ in range(training.epochs):
                if training.shuffle:
                    shuffled = _shuffle(shuffled, sizes, [rngs[number] for number in block[chunk]])
                for x, y, w in _iterate_batches(design, labels, shuffled, sizes, training.batch):
                    adam.step(x, y, w)
            networks.flat[block[chunk]] = adam.networks.flat
    return networks


def _count_parameters(width: int, hidden: tuple[int, int]) -> tuple[int, ...]:
    one, two = hidden
    return (width * one, one * two, two, two, 1)


def _shuffle(
    rows: NDArray[np.intp], sizes: NDArray[np.intp], rngs: list[np.random.Generator]
) -> NDArray[np.intp]:
    """The row numbers of each network in a new order; padding stays at the end."""
    shuffled = rows.copy()
    for row, size, rng in zip(shuffled, sizes, rngs, strict=True):
        rng.shuffle(row[:size])
    return shuffled


def _iterate_batches(
    design: _Floats,
    labels: _Floats,
    rows: NDArray[np.intp],
    sizes: NDArray[np.intp],
    batch: int,
) -> Iterator[tuple[_Floats, _Floats, _Floats]]:
    """Batches (x, y, weights) of all networks at once, without those that have no people left.

    A batch has an even number of rows, as many for the longest network as for the shortest.
    """
    length = rows.shape[1]
    for at in range(0, int(sizes[0]), batch):
        width = min(batch, length - at)
        columns = at + np.arange(width + width % 2)
        count = np.count_nonzero(sizes > at)
        chosen = rows[:count, np.minimum(columns, length - 1)]
        present = columns < np.minimum(sizes[:count], at + batch)[:, None]
        yield design[chosen], labels[chosen], present.astype(np.float64)


class Adam:
    """The state of Adam for models of one shape, the rows of a matrix (B, parameters)."""

    def __init__(self, flat: _Floats, rate: float) -> None:
        self.rate = rate
        self.means, self.squares, self.spare = (np.zeros_like(flat) for _ in range(3))
        self.steps = np.zeros((len(flat), 1))

    def move(self, flat: _Floats, gradients: _Floats) -> None:
        """Move the first models by their gradients, of as many rows."""
        count = len(flat)
        means, squares, spare = self.means[:count], self.squares[:count], self.spare[:count]
        steps = self.steps[:count]
        steps += 1
        means *= _DECAY
        means += np.multiply(gradients, 1 - _DECAY, out=spare)
        squares *= _DECAY_SQUARES
        np.multiply(gradients, gradients, out=spare)
        spare *= 1 - _DECAY_SQUARES
        squares += spare
        rate = self.rate * np.sqrt(1 - _DECAY_SQUARES**steps) / (1 - _DECAY**steps)
        np.sqrt(squares, out=spare)
        spare += _TINY
        np.divide(means, spare, out=spare)
        spare *= rate
        flat -= spare


class _NetworkTraining:
    """Networks in training."""

    def __init__(self, networks: Networks, training: MLPTraining) -> None:
        self.networks, self.training = networks, training
        self.adam = Adam(networks.flat, training.rate)
        self.gradients = replace(networks, flat=np.zeros_like(networks.flat))
        self.penalised = np.zeros(networks.flat.shape[1])
        weights = replace(networks, flat=self.penalised[None]).layers
        weights[0][:, :-1] = weights[1][:] = weights[3][:] = 2 * training.penalty

    def step(self, x: _Floats, y: _Floats, w: _Floats) -> None:
        """Train the first len(y) networks by one step."""
        networks, gradients = self.networks.take(0, len(y)), self.gradients.take(0, len(y))
        people = np.maximum(w.sum(axis=1, keepdims=True), 1.0)
        sum_gradients(x, y, w, networks, gradients, people)
        if self.training.penalty:
            gradients.flat[:] += networks.flat * self.penalised
        self.adam.move(networks.flat, gradients.flat)


def _propagate_forward(x: _Floats, layers: tuple[_Floats, ...]) -> tuple[_Floats, _Floats, _Floats]:
    """Hidden units (B, n, h1) and (B, n, h2), and scores (B, n)."""
    first, second, bias, third, last = layers
    one = np.matmul(x, first)
    np.maximum(one, 0.0, out=one)
    two = np.matmul(one, second)
    two += bias[:, None]
    np.maximum(two, 0.0, out=two)
    scores = np.matmul(two, third[..., None])[..., 0]
    scores += last
    return one, two, scores


def sum_gradients(
    x: _Floats,
    y: _Floats,
    w: _Floats,
    networks: Networks,
    into: Networks,
    divisor: _Floats | float = 1.0,
    clip: float = math.inf,
) -> None:
    """Write weighted sums of people's gradients, each at most `clip` long, into other networks.

    The gradient of a person for a layer is the product of the layer's inputs and of the derivatives
    by its outputs, so that its length is the product of theirs (Goodfellow, Efficient Per-Example
    Gradient Computations, 2015).

    `x` is (B, n, d) or (n, d), the last column of ones; labels `y` and weights `w` are (B, n). The
    `divisor` is of all gradients, before they are shortened.
    """
    one, two, off, back_two, back_one = _propagate(x, y, w, networks, divisor)
    if clip < math.inf:
        factor = limit_lengths(_measure_gradients(x, one, two, off, back_two, back_one), clip)
        off *= factor
        back_two *= factor[..., None]
        back_one *= factor[..., None]
    first, middle, biases, last, bias = into.layers
    bias[:] = off.sum(axis=1, keepdims=True)
    last[:] = np.matmul(off[:, None], two)[:, 0]
    biases[:] = back_two.sum(axis=1)
    middle[:] = np.matmul(one.swapaxes(1, 2), back_two)
    first[:] = np.matmul(x.swapaxes(-1, -2), back_one)


def _propagate(
    x: _Floats, y: _Floats, w: _Floats | float, networks: Networks, divisor: _Floats | float = 1.0
) -> tuple[_Floats, ...]:
    """Hidden units of both layers, and derivatives of weighted losses by scores and by these."""
    _, second, _, third, _ = networks.layers
    one, two, scores = _propagate_forward(x, networks.layers)
    off = apply_sigmoid(scores)
    off -= y
    off *= w
    off /= divisor
    back_two = off[..., None] * third[:, None]
    back_two *= two > 0
    back_one = np.matmul(back_two, second.swapaxes(1, 2))
    back_one *= one > 0
    return one, two, off, back_two, back_one


def _measure_gradients(
    x: _Floats, one: _Floats, two: _Floats, off: _Floats, back_two: _Floats, back_one: _Floats
) -> _Floats:
    """Squared lengths (B, n) of people's gradients."""
    squares = off**2 * (1 + _sum_squares(two)) + _sum_squares(back_two) * (1 + _sum_squares(one))
    return squares + _sum_squares(back_one) * _sum_squares(x)


def limit_lengths(squares: _Floats, clip: float) -> _Floats:
    """Factors that shorten vectors of these squared lengths to `clip`; 1 for shorter ones."""
    lengths = np.sqrt(squares)
    return np.divide(clip, lengths, out=np.ones_like(lengths), where=lengths > clip)


def _sum_squares(vectors: _Floats) -> _Floats:
    """Squared lengths over the last axis."""
    return np.asarray(np.einsum("...i,...i->...", vectors, vectors))


def apply_sigmoid(scores: _Floats) -> _Floats:
    """Probabilities of label 1 by log-odds."""
    small = np.exp(-np.abs(scores))
    return np.asarray(np.where(scores >= 0, 1.0, small) / (1.0 + small))
