"""The policies of PAFER, which replace each invalid count separately."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Policy
from fpbench.privacy import check_answers

_Replacement: TypeAlias = Literal["0", "1", "uniform", "total-valid"]


class PaperPolicy(Policy):
    """Replaces invalid counts and keeps valid counts.

    A count is invalid below 0 or above the total. It is replaced by:

    ============= ============================================================
    `0`, `1`      0; 1, or the total if that is less
    `uniform`     total / K, as if all groups had the same size
    `total-valid` total - (sum of the valid counts), at least 0; if several of
                  the K counts are invalid, each gets an equal share of it
    ============= ============================================================

    The counts sum to the total only if all were valid and did so before, or if `total-valid`
    replaced every invalid count and the valid ones sum to at most the total. Repairing twice is
    the same as repairing once.
    """

    reference = "van der Steen et al., PAFER, 2023, section 4.2.4 and table 2"

    negative: ClassVar[_Replacement]
    """Replacement of counts below 0."""
    too_large: ClassVar[_Replacement]
    """Replacement of counts above the total."""

    def repair(
        self, answers: NDArray[np.float64], total: ArrayLike, upper: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Histograms between 0 and their totals.

        `answers`: (..., K) noisy counts of the K groups. `total`: (...) public number of people of
        each histogram, broadcast. `upper`: (...) greatest valid count; by default the total. The
        paper uses the number of people in the data set for every rule, so counts above the total of
        a rule stay.

        Raises InputError if there are no counts, one is not finite, or a total is negative.
        """
        values, totals = check_answers(answers, total)
        most = totals if upper is None else np.asarray(upper, dtype=np.float64)[..., None]
        negative, too_large = values < 0, values > most
        invalid = negative | too_large
        repaired = np.where(negative, _replace(self.negative, values, totals, invalid), values)
        return np.where(too_large, _replace(self.too_large, values, totals, invalid), repaired)


def _replace(
    replacement: _Replacement,
    values: NDArray[np.float64],
    totals: NDArray[np.float64],
    invalid: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Replacement of the invalid counts of each histogram, (..., 1)."""
    if replacement == "uniform":
        uniform: NDArray[np.float64] = totals / values.shape[-1]
        return uniform
    if replacement == "total-valid":
        valid = np.where(invalid, 0, values).sum(axis=-1, keepdims=True)
        sharers = np.maximum(invalid.sum(axis=-1, keepdims=True), 1)
        rest: NDArray[np.float64] = np.maximum(totals - valid, 0) / sharers
        return rest
    return np.minimum(float(replacement), totals)


class ZeroUniform(PaperPolicy):
    """Counts below 0 become 0; counts above the total become total / K."""

    name = "0/uniform"
    summary = "negative counts become 0, counts above the total become total / K"
    negative, too_large = "0", "uniform"


class ZeroTotalValid(PaperPolicy):
    """Counts below 0 become 0; counts above the total share what the valid counts leave."""

    name = "0/total-valid"
    summary = "negative counts become 0, counts above the total become a share of the rest"
    negative, too_large = "0", "total-valid"


class OneUniform(PaperPolicy):
    """Counts below 0 become 1; counts above the total become total / K."""

    name = "1/uniform"
    summary = "negative counts become 1, counts above the total become total / K"
    negative, too_large = "1", "uniform"


class OneTotalValid(PaperPolicy):
    """Counts below 0 become 1; counts above the total share what the valid counts leave."""

    name = "1/total-valid"
    summary = "negative counts become 1, counts above the total become a share of the rest"
    negative, too_large = "1", "total-valid"


class UniformUniform(PaperPolicy):
    """Counts below 0 or above the total become total / K, as in the paper's experiments."""

    name = "uniform/uniform"
    summary = "invalid counts become total / K"
    negative, too_large = "uniform", "uniform"


class UniformTotalValid(PaperPolicy):
    """Counts below 0 become total / K; counts above the total share what the valid counts leave."""

    name = "uniform/total-valid"
    summary = "negative counts become total / K, counts above the total become a share of the rest"
    negative, too_large = "uniform", "total-valid"


class TotalValidUniform(PaperPolicy):
    """Counts below 0 share what the valid counts leave; counts above the total become total / K."""

    name = "total-valid/uniform"
    summary = "negative counts become a share of the rest, counts above the total become total / K"
    negative, too_large = "total-valid", "uniform"


class TotalValidTotalValid(PaperPolicy):
    """Counts below 0 or above the total share what the valid counts leave."""

    name = "total-valid/total-valid"
    summary = "invalid counts become equal shares of what the valid ones leave"
    negative, too_large = "total-valid", "total-valid"
