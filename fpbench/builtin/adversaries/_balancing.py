"""Guesses with balanced accuracy over groups: the adaptive threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, Guess, MeasureValues

Floats = NDArray[np.float64]


def weigh_groups(beliefs: Floats, truth: Codes) -> Floats:
    """Weights (K,) of groups: the greatest weighted belief gives balanced guesses.

    With two groups, the second is guessed at or above the threshold of its belief with the greatest
    balanced accuracy, (TPR + TNR) / 2, on people whose groups are known: the point of their ROC
    curve farthest above the diagonal. With more groups, weights are the inverse shares of the
    groups, which maximise balanced accuracy if beliefs are exact.

    `beliefs`: (m, K) probability of each group, for people whose groups are known. `truth`: (m,)
    their groups.

    Source: Aalmoes, Duddu, Boutet. On the Alignment of Group Fairness with Attribute Privacy. 2024,
    arXiv 2211.10209 (AdaptAIA-S; for binary attributes).
    """
    groups = beliefs.shape[1]
    counts = np.bincount(truth, minlength=groups)
    if groups != 2 or not counts.all():
        return np.asarray(1.0 / np.maximum(counts, 1))
    order = np.argsort(-beliefs[:, 1], kind="stable")
    chances = beliefs[order, 1]
    members = truth[order] == 1
    rise = np.cumsum(members) / counts[1] - np.cumsum(~members) / counts[0]
    last = np.append(np.flatnonzero(np.diff(chances)), len(chances) - 1)  # of tied beliefs
    best = last[int(rise[last].argmax())]
    following = chances[best + 1] if best + 1 < len(chances) else 0.0
    threshold = (chances[best] + following) / 2
    return np.array([threshold, 1.0 - threshold])


def guess_weighted(
    beliefs: Floats,
    held_out: NDArray[np.intp],
    held_out_beliefs: Floats,
    weights: Floats,
    notes: MeasureValues | None = None,
    abstains: NDArray[np.bool_] | None = None,
) -> Guess:
    """A guess of the group with the greatest weighted belief; beliefs are unchanged.

    `beliefs`, `held_out`, `held_out_beliefs`, `notes`, `abstains`: as in `fpbench.Guess`.
    `weights`: (K,) weight of each group.
    """
    values, known = (beliefs * weights).argmax(axis=1), (held_out_beliefs * weights).argmax(axis=1)
    return Guess(
        values, beliefs[np.arange(len(values)), values], held_out, known,
        held_out_beliefs[np.arange(len(known)), known], notes or {}, beliefs, held_out_beliefs,
        abstains,
    )  # fmt: skip
