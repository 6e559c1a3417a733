"""Attacks that ask a model about every group that a person may be of.

The model takes people's groups as an input, and was trained with the right ones: about a training
person it is likelier right, and surer, if told the right group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, Guess, MeasureValues, Sample, View
from fpbench.builtin.adversaries._holding_out import HoldingOut, estimate_shares, split_rows
from fpbench.builtin.adversaries._learned_adversary import LearnedAdversary
from fpbench.builtin.adversaries._seen_columns import find_confidence
from fpbench.data import ModelAnswers
from fpbench.models import random_state

Floats = NDArray[np.float64]

_REFERENCE = (
    "Mehnaz, Dibbo, Kabir, Li, Bertino. Are Your Sensitive Attributes Private? Novel Model "
    "Inversion Attribute Inference Attacks on Classification Models. USENIX Security 2022"
)
_CASES = 3
_EQUAL = 1e-9
"""Confidences that differ by less are equal."""


class Cases(NamedTuple):
    """What a model's answers about every group say of n people."""

    case: NDArray[np.intp]
    """(n,) 0 if the model is right about the label for one group only, 1 for several groups, 2 for
    none: cases 1, 2 and 3 of the paper."""
    values: NDArray[np.intp]
    """(n,) the group that CSMIA names."""


def find_cases(answers: ModelAnswers, labels: Codes, shares: Floats) -> Cases:
    """CSMIA: the group for which the model is right; of several, for which it is surest.

    If it is wrong for all groups, the one for which it is least sure of the wrong label. Both are
    the group that makes the person's own label most probable. Among equals the most frequent
    group is named; the paper says nothing of them.

    `answers`: (n, K) about every group. `labels`: (n,) people's labels. `shares`: (K,) how frequent
    the groups are.

    Source: Mehnaz et al. (USENIX Security 2022), CSMIA.
    """
    right = answers.predictions == np.asarray(labels)[:, None]
    count = right.sum(axis=1)
    case = np.where(count == 1, 0, np.where(count > 1, 1, 2))
    # Right groups first, whatever the scores: a model need not predict what is more probable.
    merit = find_confidence(answers, labels) + 2.0 * right
    best = merit >= merit.max(axis=1, keepdims=True) - _EQUAL
    return Cases(case, np.where(best, shares, -1.0).argmax(axis=1))


def believe_cases(cases: Cases, truth: Codes, shares: Floats) -> Floats:
    """(3, K, K) probability of each group, by case and by the group that is named.

    Shares among people whose groups are known, shrunk to those of everybody as if K more people
    were there.

    `cases`: of m people whose groups are known. `truth`: (m,) their groups. `shares`: (K,) of the
    groups.
    """
    groups = len(shares)
    cells = (cases.case * groups + cases.values) * groups + truth
    counts = np.bincount(cells, minlength=_CASES * groups**2).reshape(_CASES, groups, groups)
    sizes = counts.sum(axis=2, keepdims=True)
    return np.asarray((counts + groups * shares) / (sizes + groups))


class CSMIA(HoldingOut):
    """Asks the model about every group, and names that which explains the label best.

    The confidence score-based model inversion attack: the group for which the model predicts the
    person's label; of several the one for which it is surest, and of none the one for which it is
    least sure. A model without probabilities is asked for labels. The attack needs nobody's group;
    those of the attack set make its beliefs: how often it is right about others, by what the
    answers were.
    """

    name = "csmia"
    summary = "asks the model about every group, and names the one that explains the label best"
    reference = f"{_REFERENCE}: CSMIA"
    sees = frozenset({"labels", "query"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Ask about the target and the attack set.

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
    """Asks the model about every group, and learns from those whom the answers give away.

    The label-only model inversion attack: of people for whom the model predicts their label if
    told one group and no other, that group is taken for theirs. A classifier learns from them what
    groups go with which features and labels, and guesses everybody else. It needs nobody's group;
    those of the attack set say how much to believe the answers, and calibrate. The classifier is
    that of `a1`; the paper lets an ensemble of trees of a cloud service learn.
    """

    name = "lomia"
    summary = "asks the model about every group, and learns from those whom its labels give away"
    reference = f"{_REFERENCE}: LOMIA"
    sees = frozenset({"features", "labels", "query"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Learn from target people whom one answer gives away.

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
    """Guesses the group from features, label, prediction, and what the model answers of each group.

    It learns from the attack set how answers go with groups: which answer is the prediction, how
    probable each group makes the label, and the answers themselves. CSMIA and LOMIA are rules for
    the same answers; in all else it is `a2`.
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
