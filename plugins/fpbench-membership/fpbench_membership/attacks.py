"""Attacks that tell members of the training data from others, by scores of shadow models.

An attack gives everybody a number; the greater, the likelier the person is a member. Confidences
are those of the person's own label, as a probability or on the scale of log-odds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import InputError
from fpbench_membership._checks import Floats, check_number, to_array, to_floats

FEW_SHADOWS = 64
"""Below this number of shadow models one variance for everybody is better than one for each."""
_CLIP = 1e-6
"""Confidences are clipped to this distance from 0 and 1, which trees and rounding give."""
_LEAST_SPREAD = 0.1
"""Least standard deviation of a person, in units of everybody's."""
_TINY = 1e-9


def compute_confidence(scores: ArrayLike, labels: ArrayLike) -> Floats:
    """Probabilities (..., n) that a model gives people's own labels.

    Parameters
    ----------
    scores
        (..., n) in [0, 1]: probabilities of label 1, or predicted labels.
    labels
        (n,) in {0, 1}.
    """
    positive, own = to_floats("scores", scores), to_array("labels", labels)
    if positive.shape[-1:] != own.shape or own.ndim != 1:
        raise InputError(
            f"labels must be (n,), one a person, and scores (..., n), not {own.shape} and "
            f"{positive.shape}"
        )
    return np.where(own == 1, positive, 1.0 - positive)


def compute_log_odds(confidence: ArrayLike) -> Floats:
    """Logit-scaled confidences, log(p / (1 - p)), of probabilities p; finite.

    On this scale they are about normal (Carlini et al. 2022, section V-C).

    Parameters
    ----------
    confidence
        Probabilities, of any shape; clipped to 1e-6 from 0 and 1.
    """
    kept = np.clip(to_floats("confidence", confidence), _CLIP, 1 - _CLIP)
    return np.asarray(np.log(kept) - np.log1p(-kept))


def score_loss(target: ArrayLike) -> Floats:
    """Scores (n,) of the attack by loss: the confidence of the audited model, and nothing else.

    Parameters
    ----------
    target
        (n,) confidences of the audited model; log-odds order people alike.

    References
    ----------
    Yeom, Giacomelli, Fredrikson, Jha. Privacy Risk in Machine Learning: Analyzing the Connection
    to Overfitting. CSF 2018, Adversary 2.
    """
    return to_floats("target", target).copy()


def score_lira(
    target: ArrayLike,
    shadows: ArrayLike,
    members: ArrayLike,
    *,
    online: bool = True,
    shared_variance: bool | None = None,
) -> Floats:
    """Scores (n,) of the likelihood-ratio attack (LiRA).

    Online it is the log-likelihood ratio of the audited model's log-odds under two normal
    distributions of a person: of shadow models with the person, and without. Offline it has shadow
    models without the person only, and the score is the logarithm of the probability that such a
    model is less confident.

    Parameters
    ----------
    target
        (n,) log-odds of the audited model.
    shadows
        (S, n) log-odds of shadow models.
    members
        (S, n) whether the person was in the shadow model's training data.
    online
        Whether shadow models with the person are used.
    shared_variance
        Whether all people have one variance, estimated from everybody's distances to their own
        mean; by default if there are fewer than 64 shadow models. Otherwise a person's standard
        deviation is at least a tenth of everybody's: a few equal scores would give 0.

    Raises
    ------
    InputError
        If shapes do not agree, or somebody is in no shadow model, or in all of them.

    Notes
    -----
    The paper's code estimates the shared deviation around one mean of everybody, which includes
    differences between people; its text means the deviation within people, as here.

    References
    ----------
    Carlini, Chien, Nasr, Song, Terzis, Tramèr. Membership Inference Attacks From First Principles.
    IEEE S&P 2022, Algorithm 1 and section VI-B.
    """
    from scipy.special import log_ndtr

    own, others, inside = _check(target, shadows, members)
    shared = len(others) < FEW_SHADOWS if shared_variance is None else shared_variance
    outside_mean, outside_spread = _fit_normals(others, ~inside, shared)
    outside_z = (own - outside_mean) / outside_spread
    if not online:
        return np.asarray(log_ndtr(outside_z))
    mean, spread = _fit_normals(others, inside, shared)
    inside_z = (own - mean) / spread
    return (outside_z**2 - inside_z**2) / 2 + np.log(outside_spread) - np.log(spread)


def score_rmia(
    target: ArrayLike,
    shadows: ArrayLike,
    members: ArrayLike,
    *,
    online: bool = True,
    gamma: float = 1.0,
    offline_factor: float = 0.3,
    population: ArrayLike | None = None,
) -> Floats:
    """Scores (n,) of the robust membership inference attack (RMIA).

    A person's ratio is that of the audited model's confidence and its mean over shadow models; the
    score is the share of the population whose ratio is at most 1 / gamma of the person's.

    Parameters
    ----------
    target
        (n,) confidences of the audited model: probabilities.
    shadows, members
        (S, n) confidences of shadow models, and who was in their training data.
    online
        Whether the mean is over models with and without the person, half each. Otherwise it is
        ((1 + a) out + 1 - a) / 2, from the mean `out` over those without.
    gamma
        At least 1.
    offline_factor
        a, in [0, 1].
    population
        (n,) true for people to compare with; everybody by default.

    Raises
    ------
    InputError
        If shapes do not agree, somebody is in no shadow model, or in all of them, a number is out
        of range, or the population is empty.

    Notes
    -----
    The score grows with the person's ratio, so that it orders people as the ratio does. The
    population and gamma calibrate it, and change the ROC curve only by ties: a gamma above 1 makes
    all scores equal that are less than gamma apart. So 1 is the default here, and not the paper's
    2, at which a model that has not overfitted (ratios near 1) would give everybody the score 0.

    References
    ----------
    Zarifzadeh, Liu, Shokri. Low-Cost High-Power Membership Inference Attacks. ICML 2024,
    equations (2), (3) and (10), Algorithm 1.
    """
    own, others, inside = _check(target, shadows, members)
    check_number("gamma", gamma, 1)
    check_number("offline_factor", offline_factor, 0, 1)
    outside = _average(others, ~inside)
    if online:
        reference = (outside + _average(others, inside)) / 2
    else:
        reference = ((1 + offline_factor) * outside + 1 - offline_factor) / 2
    ratio = (own + _TINY) / (reference + _TINY)  # 0 of 0 is 1: nothing is known
    among = np.ones(len(ratio), bool)
    if population is not None:
        among = to_array("population", population, "b")
    if among.shape != ratio.shape or not among.any():
        raise InputError(f"population: must be {ratio.shape} true or false, and somebody")
    ranked = np.sort(ratio[among])
    # Ratios that differ by rounding only are equal: the last bits of a mean must not decide.
    return np.searchsorted(ranked, ratio / gamma * (1 + 1e-12), side="right") / len(ranked)


def score_fairness_discrepancy(
    target: ArrayLike,
    shadows: ArrayLike,
    twin_target: ArrayLike,
    twin_shadows: ArrayLike,
    members: ArrayLike,
    *,
    shared_variance: bool | None = None,
) -> Floats:
    """Scores (n,) of an attack on a fair model together with its unfair twin.

    It is the log-likelihood ratio of both models' log-odds under two bivariate normal distributions
    of a person: of pairs of shadow models with the person, and without.

    Parameters
    ----------
    target, shadows
        (n,) and (S, n) log-odds of the fair model, and of its shadow models.
    twin_target, twin_shadows
        The same of the twin; a shadow model and its twin were trained on the same people.
    members
        (S, n) whether the person was among them.
    shared_variance
        As in `score_lira`; it holds for covariances, too.

    Raises
    ------
    InputError
        As `score_lira`.

    Notes
    -----
    The paper lets the attack learn from both predictions; the likelihood ratio is LiRA's, in two
    dimensions, and the best use of both if they are normal. With the correlation it sees the
    difference between both models, which neither of them gives away alone.

    References
    ----------
    Tian, Zhang, Liu, Zhu, Ding, Zhou. When Fairness Meets Privacy: Exploring Privacy Threats in
    Fair Binary Classifiers via Membership Inference Attacks. IJCAI 2024, arXiv:2311.03865.
    """
    pairs = [_check(target, shadows, members), _check(twin_target, twin_shadows, members)]
    inside = pairs[0][2]
    shared = len(inside) < FEW_SHADOWS if shared_variance is None else shared_variance
    log_likelihoods = []
    for chosen in (inside, ~inside):
        fits = [_fit_normals(others, chosen, shared) for _, others, _ in pairs]
        z, other_z = (
            (own - mean) / spread for (own, _, _), (mean, spread) in zip(pairs, fits, strict=True)
        )
        products = np.where(
            chosen,
            (pairs[0][1] - fits[0][0]) / fits[0][1] * (pairs[1][1] - fits[1][0]) / fits[1][1],
            0.0,
        )
        counts = chosen.sum(axis=0)
        rho = products.sum() / counts.sum() if shared else products.sum(axis=0) / counts
        rho = np.clip(rho, -0.99, 0.99)  # if both models are the same, the second adds nothing
        rest = 1 - rho**2
        distance = (z**2 - 2 * rho * z * other_z + other_z**2) / rest
        log_likelihoods.append(
            -distance / 2 - np.log(rest) / 2 - np.log(fits[0][1]) - np.log(fits[1][1])
        )
    return np.asarray(log_likelihoods[0] - log_likelihoods[1])


def score_answers(
    target: ArrayLike, shadows: ArrayLike, members: ArrayLike, *, online: bool = True
) -> Floats:
    """Scores (n,) of the likelihood-ratio attack on models that give labels only.

    LiRA with frequencies instead of normal distributions: the log-ratio of the frequencies of the
    audited model's answer among shadow models with the person, and without; half a model is added
    to each answer. Offline the score is minus the logarithm of the frequency without the person,
    if the answer is right (the highest code), and otherwise its logarithm.

    Parameters
    ----------
    target
        (n,) answers, whole numbers from 0: whether the audited model predicts the person's label;
        or of two models, twice one answer plus the other.
    shadows, members
        (S, n) answers of shadow models, and who was in their training data.
    online
        Whether shadow models with the person are used.

    Raises
    ------
    InputError
        As `score_lira`.
    """
    own, others, inside = _check(target, shadows, members)
    kinds = int(max(own.max(initial=1), others.max(initial=1))) + 1
    same = others == own

    def frequency(chosen: NDArray[np.bool_]) -> Floats:
        hits = (same & chosen).sum(axis=0)
        return np.asarray((hits + 0.5) / (chosen.sum(axis=0) + kinds / 2))

    outside = np.log(frequency(~inside))
    if online:
        return np.asarray(np.log(frequency(inside)) - outside)
    return np.where(own == kinds - 1, -outside, outside)


def _check(
    target: ArrayLike, shadows: ArrayLike, members: ArrayLike
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    own, others = to_floats("target", target), to_floats("shadows", shadows)
    inside = to_array("members", members, "b")
    if others.ndim != 2 or own.shape != others.shape[1:] or inside.shape != others.shape:
        raise InputError(
            f"shapes do not agree: target {own.shape}, shadows {others.shape}, members "
            f"{inside.shape}; want (n,), (S, n) and (S, n)"
        )
    for name, values in (("target", own), ("shadows", others)):
        if not np.isfinite(values).all():
            raise InputError(f"{name}: must be finite numbers")
    counts = inside.sum(axis=0)
    for wrong, where in ((counts == 0, "no shadow model"), (counts == len(inside), "all of them")):
        if wrong.any():
            raise InputError(
                f"members: person {int(np.flatnonzero(wrong)[0])} is in {where}: shadow models "
                "with and without each person are needed"
            )
    return own, others, inside


def _average(values: Floats, chosen: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.where(chosen, values, 0.0).sum(axis=0) / chosen.sum(axis=0))


def _fit_normals(values: Floats, chosen: NDArray[np.bool_], shared: bool) -> tuple[Floats, Floats]:
    """Means (n,) and standard deviations (n,) of the chosen values (S, n) of each person."""
    counts = chosen.sum(axis=0)
    mean = _average(values, chosen)
    squares = np.where(chosen, (values - mean) ** 2, 0.0).sum(axis=0)
    free = np.maximum(counts - 1, 0).sum()
    pooled = max(float(np.sqrt(squares.sum() / free)) if free else 0.0, _CLIP)
    if shared:
        return mean, np.full(len(mean), pooled)
    own = np.sqrt(squares / np.maximum(counts - 1, 1))
    return mean, np.maximum(own, _LEAST_SPREAD * pooled)
