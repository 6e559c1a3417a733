"""What exact counts of a group in disjoint cells add to the best guess, without simulation.

Every claim about parity is a function of such counts (in cells of a prediction, or of a prediction
and a label), and so cannot add more than they do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import to_array, to_floats
from fpbench.base.errors import InputError

_Floats = NDArray[np.floating[Any]]
_Complex = NDArray[np.complex128]

_SURE = 33.0
"""Events less probable than e^-33 add nothing at floating-point precision."""
_BLOCK = 1 << 17
"""About as many numbers are computed at once: a few arrays of them fit into the cache."""


@check_arguments
def compute_count_leak(beliefs: ArrayLike, cells: ArrayLike) -> float:
    """The expected rise of accuracy by the exact number of group 1 in every cell.

    Parameters
    ----------
    beliefs
        (n,) probability of belonging to group 1, of independent people.
    cells
        (n,) whole numbers: the cell that each person is counted in.

    Returns
    -------
    float
        A share of the n people; about .4 to .9 *persons* per count, whatever n is.

    Raises
    ------
    InputError
        If beliefs are not probabilities, or cells are of another length.

    Notes
    -----
    mean_i [sum_c max(p_i P_-i(c - 1), (1 - p_i) P_-i(c)) - m_i], where P_-i is the distribution of
    the count of all others in the cell. That of everybody comes from its characteristic function
    (Hong, On computing the distribution function for the Poisson binomial distribution, 2013), and
    a person is removed by dividing it. People whose guess changes with probability below e^-33 are
    left out.
    """
    chances, members = to_floats("beliefs", beliefs), to_array("cells", cells, "biu")
    if chances.ndim != 1 or len(chances) == 0 or members.shape != chances.shape:
        raise InputError(
            f"beliefs and cells must be (n,) of the same people, not {chances.shape} and "
            f"{members.shape}"
        )
    if not ((chances >= 0) & (chances <= 1)).all():
        raise InputError("beliefs must be probabilities of group 1, in [0, 1]")
    people = sum(_count_gained(chances[members == cell]) for cell in np.unique(members))
    return people / len(chances)


def _count_gained(chances: _Floats) -> float:
    """Expected number of people in a cell whom the count puts right in addition."""
    from scipy.special import lambertw

    chances = chances[(chances > 0) & (chances < 1)]
    if len(chances) == 0:
        return 0.0
    mean, variance = float(chances.sum()), float(chances @ (1 - chances))
    # Bernstein's inequality: no count is further from the mean.
    reach = math.ceil(_SURE / 3 + math.sqrt((_SURE / 3) ** 2 + 2 * _SURE * variance)) + 1
    turns = np.exp(2j * np.pi / (2 * reach + 1) * np.arange(2 * reach + 1))
    # At an angle t, the characteristic function of all but one is at most e^(-rest (1 - cos t)).
    rest = variance - 0.25
    widest = math.acos(1 - _SURE / rest) if 2 * rest > _SURE else math.pi
    modes = np.arange(math.ceil(len(turns) * widest / (2 * math.pi)))
    law = (np.where(modes > 0, 2, 1) / len(turns)).astype(np.complex128)
    # Two people at once: (1 + p w) (1 + q w) = 1 + (p + q) w + p q w^2.
    w = turns[modes] - 1
    powers = np.stack([w, w * w]).view(np.float64)
    p, q = np.append(chances, np.zeros(len(chances) % 2)).reshape(-1, 2).T
    for some in _cut_blocks(np.stack([p + q, p * q], axis=1), len(modes)):
        factors = (some @ powers).view(np.complex128)
        factors += 1
        law *= factors.prod(axis=0)
    # Tilted by a person's log-odds, the others' law has its mode where the guess changes. Chernoff
    # bounds how probable it is to be beyond: of log-odds t, e^(-rest (1 - (1 + t) e^-t)).
    furthest = -1 - lambertw((_SURE / max(rest, _SURE) - 1) / math.e, -1).real
    near = chances[np.abs(chances - 0.5) < 0.5 * math.tanh(furthest / 2)]
    alike, people = np.unique(near, return_counts=True)
    low = alike <= 0.5
    waves = turns[-np.multiply.outer(modes, np.arange(reach + 1)) % len(turns)]
    # Counts from the mean up put people into group 1, and those from it down into group 0.
    up = law * turns[-math.floor(mean) * modes % len(turns)]
    down = (law * turns[-math.ceil(mean) * modes % len(turns)]).conj()
    gained = float(_count_each(alike[low], up, waves) @ people[low])
    return gained + float(_count_each(1 - alike[~low], down, waves) @ people[~low])


def _count_each(chances: _Floats, law: _Complex, waves: _Complex) -> _Floats:
    """(n,) expected right guesses that the count adds for a person of each belief up to 1/2.

    Counts are columns of waves.
    """
    cosine, sine = waves[:, 1].real, -waves[:, 1].imag
    waves = law[:, None] * waves
    parts = np.concatenate([waves.real, -sine[:, None] * waves.imag])
    gained = np.empty(0)
    for p in _cut_blocks(chances[:, None], waves.shape[1]):
        twice = 2 * p * (1 - p)
        size = 1 / (1 - twice * (1 - cosine))
        # p P_-i(count - 1) - (1 - p) P_-i(count), whose positive part is what the count adds.
        rises = np.hstack([(2 * p - 1) * size, twice * size]) @ parts
        gained = np.append(gained, np.maximum(rises, 0.0, out=rises).sum(axis=1))
    return gained


def _cut_blocks(values: _Floats, width: int) -> Iterator[_Floats]:
    """Blocks of values, small enough for arrays with `width` columns."""
    step = max(_BLOCK // width, 1)
    return (values[start : start + step] for start in range(0, len(values), step))
