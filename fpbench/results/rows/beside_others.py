"""Measures that compare a row with the other rows of its run."""

from __future__ import annotations

import math
from statistics import fmean  # of exact sums, so that the order of rows does not matter

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arrays import find_unique
from fpbench.components.names import AUDIT
from fpbench.components.own_measures import DERIVED, BesideAttacks, BesideAudits
from fpbench.correction.leak_limits import limit_leaks_by_error
from fpbench.store.results import Results


def add_comparisons(results: Results) -> Results:
    """The rows, with the measures that compare them with others, in the words of `OWN`.

    `limit` is from `limit_leak_by_error`, with the error of the adversary that is best over all
    seeds at the same target. `uar` is the mean, over the tenths with true ratios of a combination
    at any seed, of the share of estimates in the right tenth (van der Steen et al., 2023, section
    5.1.3); `uar_minus_error` is equation 11.
    """
    recall = results.numbers("tenth_recall")
    audits = np.flatnonzero(~np.isnan(recall))
    guess = results.numbers("initial_accuracy")
    if np.isnan(guess).all():
        attacks, beside_attacks = np.zeros(0, np.intp), BesideAttacks()
    else:
        target = _number_targets(results)
        best = _find_best(target, guess)
        attacks = np.flatnonzero(
            results.has("initial_accuracy") & ~np.isnan(best) & np.isnan(recall)
        )
        beside_attacks = {
            "best_initial_accuracy": best[attacks],
            "gain_over_best": results.numbers("corrected_accuracy")[attacks] - best[attacks],
        }
        without = results.numbers("without_accuracy")
        if not np.isnan(without).all():
            best = _find_best_adversary(results, target, without)
            beside_attacks |= _compare_limits(results, attacks, best[attacks])
    # Names in a store are ignored: these measures are computed, and never read.
    beside = results.without(DERIVED).beside(attacks, beside_attacks)
    return beside.beside(audits, _compare_recalls(results, audits, recall[audits]))


def _number_targets(results: Results) -> NDArray[np.intp]:
    """(n,) the number of the target of each row: a model, made at a seed."""
    models = results.merge_combinations(("dataset", "learner"))[1][results.combination]
    _, seeds = find_unique(results.seeds)
    return find_unique(models * (seeds.max() + 1) + seeds)[1]


def _find_best(target: NDArray[np.intp], accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the greatest accuracy at the target of each row; NaN if nobody guessed."""
    best = np.full(target.max() + 1, np.nan)
    np.fmax.at(best, target, accuracy)
    greatest: NDArray[np.float64] = best[target]
    return greatest


def _find_best_adversary(
    results: Results, target: NDArray[np.intp], accuracy: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n,) the accuracy, at the target of each row, of the adversary that is best over all seeds.

    The best at each seed would owe its place to noise. If the adversary did not guess, the greatest
    accuracy counts.
    """
    models, guesses = (
        find_unique(results.merge_combinations(kinds)[1][results.combination])[1]
        for kinds in (("dataset", "learner"), ("dataset", "learner", "adversary"))
    )
    known = ~np.isnan(accuracy)
    sums = np.bincount(guesses[known], weights=accuracy[known], minlength=guesses.max() + 1)
    counts = np.bincount(guesses[known], minlength=len(sums))
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)[guesses]
    strongest = means == _find_best(models, means)
    chosen = _find_best(target, np.where(strongest, accuracy, np.nan))
    return np.where(np.isnan(chosen), _find_best(target, accuracy), chosen)


def _compare_limits(
    results: Results, attacks: NDArray[np.intp], best: NDArray[np.float64]
) -> BesideAttacks:
    """The most that the disclosure can add to the run's best beliefs, and the excess of gains.

    `results`, `attacks`: all rows, and the rows that are attacks. `best`: (attacks,) the greatest
    accuracy of beliefs without the disclosure.
    """
    bits, people, groups, gain, household = (
        results.numbers(name)[attacks]
        for name in ("disclosure_bits", "people", "n_groups", "gain", "household_size")
    )
    # A stranger's rows may say anything.
    known = (best >= 0) & (best <= 1) & (bits >= 0) & np.isfinite(bits)
    known &= (people >= 1) & (groups >= 2)
    # The information about k dependent people can add up to k times the whole.
    nats = bits * math.log(2) * np.fmax(household, 1)
    limit = np.full(len(attacks), np.nan)
    limit[known] = limit_leaks_by_error(1 - best[known], nats[known], people[known], groups[known])
    return {
        "best_without_accuracy": best,
        "limit": limit,
        "repair": np.maximum(gain - limit, 0.0),
    }


def _compare_recalls(
    results: Results, audits: NDArray[np.intp], recall: NDArray[np.float64]
) -> BesideAudits:
    """`uar` and `uar_minus_error` of audits that differ only in their seeds."""
    alike = results.merge_combinations(AUDIT)[1][results.combination[audits]]
    tenth, error = results.numbers("true_tenth")[audits], results.numbers("error")[audits]
    order = np.lexsort((tenth, alike))
    uar, less = np.zeros(len(audits)), np.zeros(len(audits))
    for group in _find_runs(order, alike[order]):
        classes = _find_runs(group, tenth[group])
        uar[group] = fmean(fmean(recall[rows].tolist()) for rows in classes)
        less[group] = uar[group] - fmean(error[group].tolist())
    return {"uar": uar, "uar_minus_error": less}


def _find_runs(rows: NDArray[np.intp], values: NDArray[np.generic]) -> list[NDArray[np.intp]]:
    """Groups of adjacent rows with the same value."""
    if not len(rows):
        return []
    return np.split(rows, np.flatnonzero(values[1:] != values[:-1]) + 1)
