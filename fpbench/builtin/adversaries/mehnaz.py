"""Attacks that query a model with every possible group of a person.

The model takes people's groups as an input, and was trained with the true ones: for a training
person it is more often right, and more confident, if given the true group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench import Guess, Sample, View
from fpbench.builtin.adversaries._holding_out import HoldingOut, estimate_shares, split_rows
from fpbench.builtin.adversaries._learned_adversary import LearnedAdversary, find_confidence
from fpbench.data import ModelAnswers
from fpbench.models import random_state
from fpbench.plugin import Codes, MeasureValues

Floats = NDArray[np.float64]

_REFERENCE = (
    "Mehnaz, Dibbo, Kabir, Li, Bertino. Are Your Sensitive Attributes Private? Novel Model "
    "Inversion Attribute Inference Attacks on Classification Models. USENIX Security 2022"
)
_CASES = 3
_EQUAL = 1e-9
"""Confidences that differ by less count as equal."""


class Cases(NamedTuple):
    """Cases of n people by a model's answers for every group."""

    case: NDArray[np.intp]
    """(n,) 0 if the model predicts the label right for exactly one group, 1 for several groups, 2
    for none: cases 1, 2 and 3 of the paper."""
    values: NDArray[np.intp]
    """(n,) the group that CSMIA guesses."""


def find_cases(answers: ModelAnswers, labels: Codes, shares: Floats) -> Cases:
    """CSMIA: the group with a right prediction; of several, the one with most confidence.

    If the prediction is wrong for all groups, the one with least confidence in the wrong label.
    Both are the group for which the person's own label is most probable. Ties go to the most
    frequent group; the paper does not mention ties.

    `answers`: (n, K) for every group. `labels`: (n,) people's labels. `shares`: (K,) shares of the
    groups.

    Source: Mehnaz et al. (USENIX Security 2022), CSMIA.
    """
    right = answers.predictions == np.asarray(labels)[:, None]
    count = right.sum(axis=1)
    case = np.where(count == 1, 0, np.where(count > 1, 1, 2))
    # Right groups first, whatever the scores: a model may predict the less probable label.
    merit = find_confidence(answers, labels) + 2.0 * right
    best = merit >= merit.max(axis=1, keepdims=True) - _EQUAL
    return Cases(case, np.where(best, shares, -1.0).argmax(axis=1))


def believe_cases(cases: Cases, truth: Codes, shares: Floats) -> Floats:
    """(3, K, K) probability of each group, by case and guessed group.

    Shares among people whose groups are known, shrunk towards the overall shares by K
    pseudo-counts.

    `cases`: of m people whose groups are known. `truth`: (m,) their groups. `shares`: (K,) shares
    of the groups.
    """
    groups = len(shares)
    cells = (cases.case * groups + cases.values) * groups + truth
    counts = np.bincount(cells, minlength=_CASES * groups**2).reshape(_CASES, groups, groups)
    sizes = counts.sum(axis=2, keepdims=True)
    return np.asarray((counts + groups * shares) / (sizes + groups))


class CSMIA(HoldingOut):
    """Queries the model with every group, and guesses the group that explains the label best.

    The confidence score-based model inversion attack: the group for which the model predicts the
    person's label; if several, the one with most confidence; if none, the one with least. A model
    without probabilities is queried for labels. The attack needs nobody's group; its beliefs come
    from the attack set: how often it is right there, by case of the answers.
    """

    name = "csmia"
    summary = "queries the model with every group; guesses the one that explains the label best"
    reference = f"{_REFERENCE}: CSMIA"
    sees = frozenset({"labels", "query"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Query the target and the attack set.

        Raises DataError if the attack set has fewer than two people.
        """
        attack, target = view.attack, view.target
        held_out, others = split_rows(len(attack), self.held_out, rng)
        shares = estimate_shares(attack.sensitive[others], len(target.groups))
        known = _read(attack, shares)
        rest = Cases(*(part[others] for part in known))
        believed = believe_cases(rest, attack.sensitive[others], shares)
        case, values = _read(target, shares)
        beliefs = believed[case, values]
        known_case, known_values = (part[held_out] for part in known)
        known_beliefs = believed[known_case, known_values]
        return Guess(
            values, _pick(beliefs, values), held_out, known_values,
            _pick(known_beliefs, known_values), {}, beliefs, known_beliefs,
        )  # fmt: skip


class LOMIA(LearnedAdversary):
    """Queries the model with every group, and learns from people whom the answers give away.

    The label-only model inversion attack: if the model predicts a person's label for one group
    only, the attack assumes that group. A classifier learns from these people how groups depend on
    features and labels, and guesses everybody else. It needs nobody's group; the attack set
    calibrates its beliefs. The classifier is that of `a1`; the paper uses a cloud service's
    ensemble of trees.
    """

    name = "lomia"
    summary = "queries the model with every group; learns from people whom its labels give away"
    reference = f"{_REFERENCE}: LOMIA"
    sees = frozenset({"features", "labels", "query"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Learn from target people with exactly one right answer.

        Raises DataError if the attack set has fewer than two people.
        """
        attack, target = view.attack, view.target
        k = len(target.groups)
        held_out, others = split_rows(len(attack), self.held_out, rng)
        state, recipe = random_state(rng), self._find_recipe(target)
        shares = estimate_shares(attack.sensitive[others], k)
        known, cases = (
            _read(people.having(query=ModelAnswers(people.query.predictions)), shares)
            for people in (attack, target)
        )
        rest = Cases(*(part[others] for part in known))
        believed = believe_cases(rest, attack.sensitive[others], shares)[0]
        told = cases.case == 0
        notes: MeasureValues = {}
        matrix, held_out_matrix = (
            self._encode(people, self.sees_without_model)
            for people in (target, attack.take(held_out))
        )
        beliefs, known_beliefs = (np.tile(shares, (len(rows), 1)) for rows in (target, held_out))
        if np.count_nonzero(told) > 1:
            model, notes = self._fit(recipe, matrix[told], cases.values[told], state, rng)
            beliefs, known_beliefs = model.guess(matrix, k), model.guess(held_out_matrix, k)
        values, known_values = beliefs.argmax(axis=1), known_beliefs.argmax(axis=1)
        for guessed, believing, (case, named) in (
            (values, beliefs, cases),
            (known_values, known_beliefs, (known.case[held_out], known.values[held_out])),
        ):
            certain = case == 0
            guessed[certain] = named[certain]
            believing[certain] = believed[named[certain]]
        abstains = beliefs.max(axis=1) < self.abstain_below if self.abstain_below else None
        return Guess(
            values, _pick(beliefs, values), held_out, known_values,
            _pick(known_beliefs, known_values), notes, beliefs, known_beliefs, abstains,
        )  # fmt: skip


class A2Query(LearnedAdversary):
    """Guesses the group from features, label, prediction, and the model's answers for each group.

    It learns from the attack set how groups depend on answers: which answer is the prediction, the
    probability of the label given each group, and the answers themselves. CSMIA and LOMIA are rules
    for the same answers; otherwise it is `a2`.
    """

    name = "a2-query"
    summary = "boosted trees on what `a2` sees, and on the model's answers about every group"
    reference = f"{_REFERENCE}: the queries; the classifier is ours"
    sees = frozenset({"features", "labels", "predictions", "query"})


def _read(people: Sample, shares: Floats) -> Cases:
    return find_cases(people.query, people.labels, shares)


def _pick(beliefs: Floats, groups: NDArray[np.intp]) -> Floats:
    """(n,) the belief in one group of each person."""
    return np.asarray(beliefs[np.arange(len(groups)), groups])
