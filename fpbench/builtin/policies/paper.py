"""The policies of PAFER: every count that cannot be true is replaced, on its own."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Policy, checked_answers

_Instead: TypeAlias = Literal["0", "1", "uniform", "total-valid"]


class PaperPolicy(Policy):
    """Replaces invalid counts and leaves valid ones as they are.

    A count is invalid below 0, or above the total. What comes instead:

    ============= ============================================================
    `0`, `1`      0; 1, or the total if that is less
    `uniform`     total / K, as if all groups were of one size
    `total-valid` total - (sum of the valid counts), at least 0; if several of
                  the K counts are invalid, each gets an equal share of it
    ============= ============================================================

    The counts need not sum to the total: they do only where all were valid and did so before, or
    `total-valid` replaced every invalid one and the valid ones sum to no more than the total.
    Repairing twice is repairing once.
    """

    reference = "van der Steen et al., PAFER, 2023, section 4.2.4 and table 2"

    negative: ClassVar[_Instead]
    """What comes instead of counts below 0."""
    too_large: ClassVar[_Instead]
    """What comes instead of counts above the total."""

    def repair(
        self, answers: NDArray[np.float64], total: ArrayLike, upper: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Histograms between 0 and their totals.

        Parameters
        ----------
        answers
            (..., K) noisy counts of the K groups.
        total
            (...) public number of people of each histogram, broadcast.
        upper
            (...) greatest count that is valid; the total, if not given. The paper takes everyone
            in the data set for it, whatever the rule that is asked about, so that counts above
            the total of a rule stay.

        Returns
        -------
        ndarray
            Of the shape of the answers.

        Raises
        ------
        InputError
            If there are no counts, one is not finite, or a total is negative.
        """
        values, totals = checked_answers(answers, total)
        most = totals if upper is None else np.asarray(upper, dtype=np.float64)[..., None]
        negative, too_large = values < 0, values > most
        shares = {}
        for word in {self.negative, self.too_large}:
            shares[word] = _share(word, values, totals, negative | too_large)
        repaired = np.where(negative, shares[self.negative], values)
        return np.where(too_large, shares[self.too_large], repaired)


def _share(
    word: _Instead,
    values: NDArray[np.float64],
    totals: NDArray[np.float64],
    invalid: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """What an invalid count of each histogram is replaced with, (..., 1)."""
    if word == "uniform":
        uniform: NDArray[np.float64] = totals / values.shape[-1]
        return uniform
    if word == "total-valid":
        valid = np.where(invalid, 0, values).sum(axis=-1, keepdims=True)
        sharers = np.maximum(invalid.sum(axis=-1, keepdims=True), 1)
        rest: NDArray[np.float64] = np.maximum(totals - valid, 0) / sharers
        return rest
    return np.minimum(float(word), totals)


class ZeroUniform(PaperPolicy):
    """Negative counts become 0, too large ones total / K.

    Valid counts stay as they are. The counts need not sum to the total. Repairing twice is
    repairing once.
    """

    name = "0/uniform"
    summary = "negative counts become 0, too large ones total / K"
    negative, too_large = "0", "uniform"


class ZeroTotalValid(PaperPolicy):
    """Negative counts become 0, too large ones what the valid ones leave.

    What the valid ones leave is total - (sum of the valid counts), at least 0, in equal shares
    if several counts are invalid. Valid counts stay as they are. The counts need not sum to the
    total. Repairing twice is repairing once.
    """

    name = "0/total-valid"
    summary = "negative counts become 0, too large ones what the valid ones leave"
    negative, too_large = "0", "total-valid"


class OneUniform(PaperPolicy):
    """Negative counts become 1, too large ones total / K.

    No count becomes more than the total. Valid counts stay as they are. The counts need not sum
    to the total. Repairing twice is repairing once.
    """

    name = "1/uniform"
    summary = "negative counts become 1, too large ones total / K"
    negative, too_large = "1", "uniform"


class OneTotalValid(PaperPolicy):
    """Negative counts become 1, too large ones what the valid ones leave.

    No count becomes more than the total. What the valid ones leave is total - (sum of the valid
    counts), at least 0, in equal shares if several counts are invalid. Valid counts stay as
    they are. The counts need not sum to the total. Repairing twice is repairing once.
    """

    name = "1/total-valid"
    summary = "negative counts become 1, too large ones what the valid ones leave"
    negative, too_large = "1", "total-valid"


class UniformUniform(PaperPolicy):
    """Invalid counts become total / K.

    The policy of the paper's experiments. Valid counts stay as they are. The counts need not
    sum to the total. Repairing twice is repairing once.
    """

    name = "uniform/uniform"
    summary = "invalid counts become total / K"
    negative, too_large = "uniform", "uniform"


class UniformTotalValid(PaperPolicy):
    """Negative counts become total / K, too large ones what the valid ones leave.

    What the valid ones leave is total - (sum of the valid counts), at least 0, in equal shares
    if several counts are invalid. Valid counts stay as they are. The counts need not sum to the
    total. Repairing twice is repairing once.
    """

    name = "uniform/total-valid"
    summary = "negative counts become total / K, too large ones what the valid ones leave"
    negative, too_large = "uniform", "total-valid"


class TotalValidUniform(PaperPolicy):
    """Negative counts become what the valid ones leave, too large ones total / K.

    What the valid ones leave is total - (sum of the valid counts), at least 0, in equal shares
    if several counts are invalid. Valid counts stay as they are. The counts need not sum to the
    total. Repairing twice is repairing once.
    """

    name = "total-valid/uniform"
    summary = "negative counts become what the valid ones leave, too large ones total / K"
    negative, too_large = "total-valid", "uniform"


class TotalValidTotalValid(PaperPolicy):
    """Invalid counts become what the valid ones leave.

    What the valid ones leave is total - (sum of the valid counts), at least 0, in equal shares
    if several counts are invalid. Valid counts stay as they are. The counts sum to the total
    where some were invalid and the valid ones do not exceed it. Repairing twice is repairing
    once.
    """

    name = "total-valid/total-valid"
    summary = "invalid counts become what the valid ones leave"
    negative, too_large = "total-valid", "total-valid"
