"""Fairness through awareness: the linear program of Dwork et al., and chances of new people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import FpbenchError, Learner, Measure, Sample
from fpbench.models import BoundedFeatures
from fpbench.plugin import Codes, MeasureValues

if TYPE_CHECKING:
    from pandas import DataFrame

_Floats: TypeAlias = NDArray[np.float64]
Distance: TypeAlias = Literal["mean", "greatest"]
"""Of two people: the mean of the differences of their features, or the greatest difference."""

_AT_ONCE = 1 << 22
"""Distances of new people at once (32 MB)."""
_EXACT = 1e-7
"""Violation of a condition at which it is left out of the program."""


@dataclass(frozen=True)
class LipschitzModel:
    """Chances of label 1 that differ by no more than people do, for everybody."""

    design: BoundedFeatures
    distance: Distance
    lipschitz: float
    known: _Floats
    """(m, d) scaled features of the people of the program."""
    chances: _Floats
    """(m,) their chances of label 1."""
    notes: MeasureValues

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Draw labels (n,) in {0, 1}, each with the person's own chance."""
        return (rng.random(len(features)) < self._find_chances(features)).astype(np.int8)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> _Floats:
        """Chances (n, 2) of label 0 and label 1."""
        positive = self._find_chances(features)
        return np.column_stack([1.0 - positive, positive])

    def _find_chances(self, features: DataFrame) -> _Floats:
        """Chances (n,) of label 1: the middle of those that the condition leaves."""
        people, chances = self.design(features), np.empty(len(features))
        size = max(1, _AT_ONCE // len(self.known))
        for first in range(0, len(people), size):
            rows = slice(first, first + size)
            apart = self.lipschitz * measure_distances(
                self.design, self.distance, people[rows], self.known
            )
            most = np.minimum(1.0, (self.chances + apart).min(axis=1))
            least = np.maximum(0.0, (self.chances - apart).max(axis=1))
            chances[rows] = (most + least) / 2
        return chances


class Lipschitz(Learner):
    """The linear program of fairness through awareness: similar people have similar chances.

    Of all randomised classifiers of the training people that satisfy |p(x) - p(y)| <= `lipschitz`
    d(x, y) for every two of them, p the chance of label 1, it is the one with the fewest expected
    errors (Dwork et al., with the total variation distance, and the error as loss). Labels are
    drawn with these chances, each on its own, so that two people who are alike may differ.

    d is in [0, 1]: of `mean`, each number counts with its difference after scaling to [0, 1] by its
    declared bounds, and each category with 0 or 1 (Gower 1971); `greatest` is the l-infinity
    distance, by which people of different categories are never similar.

    **Size.** The program has a condition for every two people of different labels, which imply all
    others by the triangle inequality; those that are violated are added until none is. It takes
    seconds for 1,000 people, and up to half a minute for 2,000: `people` are drawn at random.

    **New people.** The paper has none. Any chance between the greatest p(x) - L d and the least
    p(x) + L d keeps the condition; the middle is taken (McShane and Whitney, 1934; von Luxburg,
    Bousquet), which satisfies it for every two inputs, too.
    """

    name = "lipschitz"
    summary = "Dwork et al.'s linear program: chances that differ by no more than people do"
    reference = (
        "Cynthia Dwork, Moritz Hardt, Toniann Pitassi, Omer Reingold, Richard Zemel. Fairness "
        "through Awareness. ITCS 2012; Ulrike von Luxburg, Olivier Bousquet. Distance-Based "
        "Classification with Lipschitz Functions. JMLR 2004"
    )
    needs = frozenset({"features", "labels"})
    gives_scores = True
    measures = Measure.table("asked", """
        lipschitz_people | neither people | people of the linear program
        lipschitz_loss | less share | expected share of errors among them, the least possible
    """)  # fmt: skip

    lipschitz: float = Field(
        1.0, ge=1e-6, le=1e6, description="greatest difference of chances, in multiples of d"
    )
    distance: Distance = Field("mean", description="d: `mean` or `greatest` difference of features")
    people: int = Field(
        1_000, ge=1, le=5_000, description="greatest number of training people in the program"
    )

    def fit(self, sample: Sample, rng: np.random.Generator) -> LipschitzModel:
        """Solve the program for at most `people` of the sample.

        Raises InputError if a feature has no declared bounds or categories; DataError if a number
        is missing; FpbenchError if the solver fails.
        """
        design = BoundedFeatures.of(sample.features, sample.domain, f"learner {self.name!r}")
        rows = np.sort(rng.permutation(len(sample))[: self.people])
        chosen = sample.take(rows)
        people, favoured = design(chosen.features), chosen.labels == 1
        apart = self.lipschitz * measure_distances(
            design, self.distance, people[favoured], people[~favoured]
        )
        chances = np.empty(len(people))
        chances[favoured], chances[~favoured] = find_fair_chances(apart)
        loss = np.where(favoured, 1 - chances, chances).mean()
        notes: MeasureValues = {"lipschitz_people": len(rows), "lipschitz_loss": float(loss)}
        return LipschitzModel(design, self.distance, self.lipschitz, people, chances, notes)


def measure_distances(
    design: BoundedFeatures, distance: Distance, one: _Floats, other: _Floats
) -> _Floats:
    """Distances (n, m) in [0, 1] of people (n, d) and (m, d), as `design` makes them."""
    from scipy.spatial.distance import cdist

    if distance == "greatest":
        return np.asarray(cdist(one, other, "chebyshev"))
    # Two one-hot entries differ where a category does; the last column is 1 for everybody.
    weights = np.where(design.blocks < len(design.numbers), 1.0, 0.5) / max(design.norm - 1, 1)
    return np.asarray(cdist(one * weights, other * weights, "cityblock"))


def find_fair_chances(apart: _Floats) -> tuple[_Floats, _Floats]:
    """Chances (a,) of people of label 1 and (b,) of label 0, at most `apart` (a, b) in between.

    They maximise the sum of the first minus that of the second. If `apart` is a metric times a
    number, chances of equal labels are no further apart either.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    a, b = apart.shape
    cost = np.repeat([-1.0, 1.0], [a, b])
    chances = (cost < 0).astype(np.float64)
    asked = np.zeros(apart.shape, dtype=bool)
    while True:
        excess = chances[:a, None] - chances[a:] - apart
        broken = (excess > _EXACT) & ~asked
        if not broken.any():
            break
        excess[~broken] = 0.0
        worst = excess == excess.max(axis=0)  # the most broken conditions of each person
        worst |= excess == excess.max(axis=1, keepdims=True)
        asked |= worst & broken
        i, j = np.nonzero(asked)
        row = np.arange(len(i))
        signs = np.repeat([1.0, -1.0], len(i))
        matrix = csr_array((signs, (np.tile(row, 2), np.concatenate([i, a + j]))), (len(i), a + b))
        answer = linprog(cost, matrix, apart[i, j], bounds=(0, 1), method="highs")
        if answer.x is None:
            raise FpbenchError(f"learner 'lipschitz': HiGHS gives no solution: {answer.message}")
        chances = answer.x
    # What rounding left: the greatest chances, then the least, that the others allow.
    zeros = np.clip(chances[a:], 0.0, 1.0)
    ones = np.minimum(1.0, (zeros + apart).min(axis=1, initial=1.0))
    zeros = np.maximum(0.0, (ones[:, None] - apart).max(axis=0, initial=0.0))
    return ones, zeros
