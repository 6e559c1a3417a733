"""Measures that compare a row with the other rows of its run."""

from __future__ import annotations

from statistics import fmean  # of exact sums, so that the order of rows does not matter

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arrays import unique_inverse
from fpbench.components.names import AUDIT
from fpbench.components.own_measures import DERIVED, BesideAttacks, BesideAudits
from fpbench.store.results import Results


def add_comparisons(results: Results) -> Results:
    """The rows, with the measures that compare them with others.

    Of attacks, `best_initial_accuracy` is the greatest accuracy of a guess at the same dataset,
    learner and seed in the run; `gain_over_best` is how much more accurate the row's correction is.
    A gain that repairs a weak guess is no gain over a strong one.

    Of private audits, `uar` is the unweighted average recall of the ratio in tenths, over all seeds
    of the same combination of components: the mean, over the tenths that the true ratios are in, of
    the share of estimates in the right one (van der Steen et al., 2023, section 5.1.3); and
    `uar_minus_error` is that less the mean error over the same seeds (equation 11).

    Parameters
    ----------
    results
        All rows of a run.
    """
    recall = results.numbers("tenth_recall")
    audits = np.flatnonzero(~np.isnan(recall))
    guess = results.numbers("initial_accuracy")
    best = _best(results, guess)
    attacks = np.flatnonzero(results.has("initial_accuracy") & ~np.isnan(best) & np.isnan(recall))
    gain = results.numbers("corrected_accuracy")[attacks] - best[attacks]
    beside_attacks: BesideAttacks = {
        "best_initial_accuracy": best[attacks],
        "gain_over_best": gain,
    }
    # Whoever wrote such names into a store: they are computed, and never read.
    beside = results.without(DERIVED).beside(attacks, beside_attacks)
    return beside.beside(audits, _recalls(results, audits, recall[audits]))


def _best(results: Results, guess: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the greatest accuracy of a guess at the target of each row; NaN if nobody guessed."""
    if np.isnan(guess).all():
        return guess
    targets = results.merge_combinations(("dataset", "learner"))[1][results.combination]
    _, seeds = unique_inverse(results.seeds)
    _, target = unique_inverse(targets * (seeds.max() + 1) + seeds)
    best = np.full(target.max() + 1, np.nan)
    np.fmax.at(best, target, guess)
    greatest: NDArray[np.float64] = best[target]
    return greatest


def _recalls(
    results: Results, audits: NDArray[np.intp], recall: NDArray[np.float64]
) -> BesideAudits:
    """Of audits alike but for their seeds."""
    alike = results.merge_combinations(AUDIT)[1][results.combination[audits]]
    tenth, error = results.numbers("true_tenth")[audits], results.numbers("error")[audits]
    order = np.lexsort((tenth, alike))
    uar, less = np.zeros(len(audits)), np.zeros(len(audits))
    for group in _runs(order, alike[order]):
        classes = _runs(group, tenth[group])
        uar[group] = fmean(fmean(recall[rows].tolist()) for rows in classes)
        less[group] = uar[group] - fmean(error[group].tolist())
    return {"uar": uar, "uar_minus_error": less}


def _runs(rows: NDArray[np.intp], values: NDArray[np.generic]) -> list[NDArray[np.intp]]:
    """Rows whose values are the same, beside each other as they are."""
    if not len(rows):
        return []
    return np.split(rows, np.flatnonzero(values[1:] != values[:-1]) + 1)
