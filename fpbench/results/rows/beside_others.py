"""Measures that compare a row with the other rows of its run."""

from __future__ import annotations

import math
from statistics import fmean  # of exact sums, so that the order of rows does not matter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpbench.components.names import AUDIT
from fpbench.components.own_measures import DERIVED
from fpbench.correction.leak_limits import limit_leaks_by_error
from fpbench.store.results import Results

_Floats = NDArray[np.float64]


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
    attacks, beside_attacks = np.zeros(0, np.intp), dict[str, _Floats]()
    if not np.isnan(guess).all():
        _, model = results.merge_combinations(("dataset", "learner"))
        frame = pd.DataFrame({
            "model": model[results.combination], "seed": results.seeds, "guess": guess,
            "without": results.numbers("without_accuracy"),
        })  # fmt: skip
        targets = frame.groupby(["model", "seed"], sort=False)
        best = targets["guess"].transform("max").to_numpy()
        attacks = np.flatnonzero(
            results.has("initial_accuracy") & ~np.isnan(best) & np.isnan(recall)
        )
        beside_attacks = {
            "best_initial_accuracy": best[attacks],
            "gain_over_best": results.numbers("corrected_accuracy")[attacks] - best[attacks],
        }
        if frame["without"].notna().any():
            without = _find_best_adversary(results, frame)
            beside_attacks |= _compare_limits(results, attacks, without[attacks])
    # Names in a store are ignored: these measures are computed, and never read.
    beside = results.without(DERIVED).beside(attacks, beside_attacks)
    return beside.beside(audits, _compare_recalls(results, audits, recall[audits]))


def _find_best_adversary(results: Results, frame: pd.DataFrame) -> _Floats:
    """(n,) the accuracy, at the target of each row, of the adversary that is best over all seeds.

    The best at each seed would owe its place to noise. If the adversary did not guess, the greatest
    accuracy counts.

    `frame`: `model`, `seed` and accuracy `without` the disclosure of each row.
    """
    _, guesser = results.merge_combinations(("dataset", "learner", "adversary"))
    means = frame.groupby(guesser[results.combination])["without"].transform("mean")
    strongest = means == means.groupby(frame["model"]).transform("max")
    target = [frame["model"], frame["seed"]]
    chosen = frame["without"].where(strongest).groupby(target, sort=False).transform("max")
    greatest = frame["without"].groupby(target, sort=False).transform("max")
    return chosen.fillna(greatest).to_numpy()


def _compare_limits(
    results: Results, attacks: NDArray[np.intp], best: _Floats
) -> dict[str, _Floats]:
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
    results: Results, audits: NDArray[np.intp], recall: _Floats
) -> dict[str, _Floats]:
    """`uar` and `uar_minus_error` of audits that differ only in their seeds."""
    alike = results.merge_combinations(AUDIT)[1][results.combination[audits]]
    frame = pd.DataFrame({
        "alike": alike, "tenth": results.numbers("true_tenth")[audits], "recall": recall,
        "error": results.numbers("error")[audits],
    })  # fmt: skip
    tenths = frame.groupby(["alike", "tenth"], dropna=False)["recall"].agg(fmean)
    uar = tenths.groupby("alike").agg(fmean)
    less = uar - frame.groupby("alike")["error"].agg(fmean)
    each = pd.DataFrame({"uar": uar, "uar_minus_error": less}).reindex(alike)
    return {
        "uar": np.asarray(each["uar"], np.float64),
        "uar_minus_error": np.asarray(each["uar_minus_error"], np.float64),
    }
