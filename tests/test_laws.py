"""The conformance kit: it finds every law that is broken, and says how.

`tests/test_conformance.py` runs the laws over our own components.
"""

import random
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Literal

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import draw
from pydantic import ConfigDict, Field, PrivateAttr

from fpbench import Claim, Correction, RateConstraint, SolverStatus
from fpbench.builtin.adversaries.majority import Majority
from fpbench.builtin.auditors.group_fairness import GroupFairness
from fpbench.builtin.correctors.exact import Exact
from fpbench.builtin.datasets.census_synthetic import CensusSynthetic
from fpbench.builtin.disclosures.published import Published
from fpbench.builtin.learners.plain import Plain
from fpbench.builtin.mechanisms.discrete_laplace import DiscreteLaplace
from fpbench.builtin.mechanisms.laplace import Laplace
from fpbench.builtin.policies.clip import Clip
from fpbench.testing import LAWS, Outcome, check_component, checks
from fpbench.testing.brute_force import least_cost, satisfies
from fpbench.testing.watching import difference, watch


class NoSummary(Clip):
    summary = ""


class BadName(Clip):
    name = "Bad Name"


class Undescribed(Clip):
    size: int = 3


class Abstract(Plain):
    fit = Plain.__mro__[2].fit


class Loose(Clip):
    model_config = ConfigDict(extra="ignore")


class Mutable(Clip):
    model_config = ConfigDict(frozen=False)
    size: int = Field(3, ge=1, description="a size")


class Forgetful(Clip):
    """Its parameters change when they are read again."""

    size: float = Field(3.0, description="a size")

    def model_post_init(self, context):
        object.__setattr__(self, "size", self.size + 1)


class Curious(Majority):
    def guess(self, view, rng):
        view.target.features.sum()
        return super().guess(view, rng)


class Overreaching(Majority):
    sees = frozenset({"features", "sensitive"})


class Greedy(Plain):
    def fit(self, sample, rng):
        sample.sensitive.sum()
        return super().fit(sample, rng)


class Peeping(GroupFairness):
    sees = GroupFairness.sees - {"sensitive"}


class OutOfRange(Majority):
    def guess(self, view, rng):
        guess = super().guess(view, rng)
        return replace(guess, values=guess.values + 5)


class TooSure(Majority):
    def guess(self, view, rng):
        guess = super().guess(view, rng)
        return replace(guess, confidence=guess.confidence + 1)


class HeldOutTwice(Majority):
    def guess(self, view, rng):
        guess = super().guess(view, rng)
        return replace(guess, held_out=np.zeros_like(guess.held_out))


class Shapeless(Laplace):
    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        return super().release(counts, sensitivity, epsilon, rng, upper).ravel()[:1]


class Overflowing(Clip):
    def repair(self, answers, total, upper=None):
        return super().repair(answers, total, upper) + 1.0


class CamelCase(GroupFairness):
    def audit(self, subject, rng):
        return {"CamelCase": 1.0}


class Announcing(Published):
    def claim(self, context, rng):
        return Claim(RateConstraint("statistical-parity", 0.1, "ratio"), self.name)


class FewGroups(CensusSynthetic):
    @property
    def n_groups(self):
        return 7


NIGHTS = count()


class Dreaming(Majority):
    def guess(self, view, rng):
        guess = super().guess(view, rng)
        return replace(guess, confidence=guess.confidence / (2 + next(NIGHTS)))


class Global(Clip):
    def repair(self, answers, total, upper=None):
        np.random.random()
        return super().repair(answers, total, upper)


class Standard(Clip):
    def repair(self, answers, total, upper=None):
        random.random()
        return super().repair(answers, total, upper)


class Overwriting(Clip):
    def repair(self, answers, total, upper=None):
        repaired = super().repair(answers, total, upper)
        answers[...] = 0
        return repaired


class Renaming(Plain):
    def fit(self, sample, rng):
        model = super().fit(sample, rng)
        sample.features.iloc[0, 0] = 12345.0
        return model


class TwoOnly(Clip):
    def repair(self, answers, total, upper=None):
        assert answers.shape[-1] == 2
        return super().repair(answers, total, upper)


class Rude(Clip):
    def repair(self, answers, total, upper=None):
        if not np.isfinite(answers).all():
            raise RuntimeError("what is this?")
        return super().repair(answers, total, upper)


class Careless(Clip):
    def repair(self, answers, total, upper=None):
        return np.clip(np.nan_to_num(answers), 0, np.maximum(np.asarray(total)[..., None], 0))


class Quiet(Laplace):
    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        return (super().release(counts, sensitivity, epsilon, rng, upper) - counts) / 2 + counts


class Insecure(DiscreteLaplace):
    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        seeded = self.model_copy(update={"noise": "simulation"})
        return DiscreteLaplace.release(seeded, counts, sensitivity, epsilon, rng, upper)


class Secure(DiscreteLaplace):
    noise: Literal["secure"] = Field("secure", description="the operating system's")


class Expensive(Exact):
    """It changes one guess too many, and says that is the optimum."""

    def solve(self, problem):
        found = super().solve(problem)
        if found.values is None:
            return found
        same = [c for c in _all(problem) if satisfies(problem, c) and (c != found.values).any()]
        weights = np.ones(len(problem.guess)) if problem.weights is None else problem.weights
        worst = max(same, key=lambda c: weights[c != problem.guess].sum(), default=found.values)
        cost = float(weights[worst != problem.guess].sum())
        return replace(found, values=worst, objective=cost, bound=cost)


@cache
def _vectors(n, k):
    return oracles.all_vectors(n, k)


def _all(problem):
    return _vectors(len(problem.guess), problem.groups) if len(problem.guess) < 10 else []


class Lying(Exact):
    def solve(self, problem):
        return Correction(problem.guess.copy(), SolverStatus.OPTIMAL, 0.0, 0.0)


class Despairing(Exact):
    def solve(self, problem):
        return Correction(None, SolverStatus.INFEASIBLE)


class Helpless(Exact):
    def solve(self, problem):
        return Correction(None, SolverStatus.TIMEOUT)


GIVES = "gives results of the declared shape and range"
SEES = "needs no more than it may see"
CASES = [
    (NoSummary, "describes itself: summary, citation, parameters", "it has no summary"),
    (Undescribed, "describes itself: summary, citation, parameters", "'size' has no description"),
    (BadName, "registers", "lower case, words joined by hyphens"),
    (Abstract, "registers", "lacks a method: fit"),
    (Overreaching, "declares what it may see", "sees: unknown ['sensitive']"),
    (Loose, "validates its parameters", "it accepts no-such-parameter = 1"),
    (Mutable, "validates its parameters", "'size' can be changed after it was made"),
    (Forgetful, "survives a round trip of its parameters", "builds another component"),
    (Curious, SEES, "asks for more than it declares: 'features' is not to be seen here"),
    (Greedy, SEES, "asks for more than it declares: 'sensitive' is not to be seen here"),
    (Peeping, SEES, "asks for more than it declares: 'sensitive' is not to be seen here"),
    (OutOfRange, GIVES, "must be group codes in 0..1"),
    (TooSure, GIVES, "a confidence is above 1"),
    (HeldOutTwice, GIVES, "held_out names a row twice"),
    (Shapeless, GIVES, "an answer is (1,), not (4, 2)"),
    (Overflowing, GIVES, "a repaired count is above the total"),
    (CamelCase, GIVES, "'CamelCase' is not snake_case"),
    (Announcing, GIVES, "it claims 'ratio', and announces ['to-overall']"),
    (FewGroups, GIVES, "n_groups says 7"),
    (Dreaming, "is deterministic for a seed", "differ in 'confidence'"),
    (Global, "leaves global random state alone", "global generator of numpy.random"),
    (Standard, "leaves global random state alone", "global generator of random"),
    (Overwriting, "does not modify what it is given", "'0.0'"),
    (Renaming, "does not modify what it is given", "features.skill"),
    (TwoOnly, "handles more than two groups, or refuses with a reason", "assert"),
    (Rude, "meets bad input with an error of fpbench", "a count that is NaN: raises RuntimeError"),
    (Careless, "meets bad input with an error of fpbench", "a count that is NaN: it is repaired"),
    (Quiet, "keeps its promise of privacy under attack", "claims epsilon 1 at delta 0"),
    (Insecure, "draws secure noise apart, or refuses it", "drawn from the seeded generator"),
    (Expensive, "agrees with brute force", "and brute force found"),
    (Lying, "agrees with brute force", "does not satisfy it"),
    (Despairing, "agrees with brute force", "is possible, and it says infeasible"),
    (Helpless, "agrees with brute force", "it answers no small problem"),
]


@pytest.mark.parametrize(("cls", "law", "reason"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_broken_law_is_found(cls, law, reason):
    (check,) = [check for check in checks(cls) if check.law.words == law]
    verdict = check()
    assert verdict.outcome is Outcome.BROKEN
    assert reason in verdict.reason
    assert "\n" not in str(verdict)
    with pytest.raises(AssertionError) as found:
        check_component(cls)
    assert f"{check}: {verdict.reason}" in str(found.value).splitlines()


def test_every_law_has_one_who_breaks_it():
    assert {law for _, law, _ in CASES} == {law.words for law in LAWS}


def test_whoever_keeps_the_laws_passes():
    check_component(Clip)


def test_what_cannot_be_made_here_is_skipped_with_the_reason():
    class Absent(Clip):
        @classmethod
        def unavailable(cls):
            return "needs a wand: pip install wand"

    found = {check.law.words: check() for check in checks(Absent)}
    assert found["registers"].outcome is Outcome.KEPT
    assert found[GIVES] == (Outcome.SKIPPED, "needs a wand: pip install wand")


def test_secure_noise_alone_need_not_be_repeatable():
    found = {check.law.words: check() for check in checks(Secure)}
    assert [v for v in found.values() if v.outcome is Outcome.BROKEN] == []
    assert found["is deterministic for a seed"].reason.startswith("its randomness is the operating")
    assert found["draws secure noise apart, or refuses it"].outcome is Outcome.KEPT


def test_examples_are_tested_each():
    class Two(Clip):
        size: int = Field(3, ge=1, description="a size")

        @classmethod
        def examples(cls, directory):
            (directory / "file").write_text("there")
            return [{"size": 1}, {"size": 2}]

    found = [check for check in checks(Two) if check.law.words == GIVES]
    assert list(map(str, found)) == [f"policy clip (1) {GIVES}", f"policy clip (2) {GIVES}"]
    assert [check().outcome for check in found] == [Outcome.KEPT] * 2


@pytest.mark.parametrize(
    ("examples", "reason"),
    [
        (lambda directory: [], "PluginError: its examples are none, so there is nothing to test"),
        (lambda directory: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_component_without_examples_is_broken(examples, reason):
    silent = type("Silent", (Clip,), {"examples": staticmethod(examples), "__module__": __name__})
    (check,) = checks(silent)
    assert check() == (Outcome.BROKEN, reason)


def test_a_refusal_of_three_groups_needs_words():
    class Wordless(Clip):
        def repair(self, answers, total, upper=None):
            from fpbench import InputError

            if answers.shape[-1] > 2:
                raise InputError(self._why)
            return super().repair(answers, total, upper)

        _why: str = PrivateAttr("")

    class Polite(Wordless):
        _why: str = PrivateAttr("two groups only")

    law = "handles more than two groups, or refuses with a reason"
    for cls, outcome in ((Wordless, Outcome.BROKEN), (Polite, Outcome.KEPT)):
        (check,) = [check for check in checks(cls) if check.law.words == law]
        assert check().outcome is outcome


# The tools of the laws


@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 7), (3, 5)]))
@settings(max_examples=60)
def test_brute_force_is_that_of_the_oracles(seed, size):
    """Two who were written apart, from the definitions, agree."""
    k, n = size
    problem = draw(np.random.default_rng(seed), n, k)
    found, least = least_cost(problem), oracles.brute_force(problem)
    assert (found is None) == (least is None)
    assert least is None or found == pytest.approx(least, rel=1e-12)


def test_watching_sees_what_is_changed_and_how_it_ends():
    numbers = {"a": np.arange(3), "b": [np.zeros(2)]}

    def change(mine):
        mine["b"][0][1] = 7
        raise KeyError("no")

    seen = watch(change, numbers)
    assert (seen.changed, type(seen.error), seen.drew) == ("b.0", KeyError, "")
    assert numbers["b"][0][1] == 0
    assert watch(lambda mine: mine["a"].sum(), numbers).changed == ""


def test_differences_leave_times_out_and_take_nan_for_nan():
    one = Correction(None, None, seconds=1.0, measures={"correct_seconds": 2.0, "x": float("nan")})
    other = replace(one, seconds=2.0, measures={"correct_seconds": 3.0, "x": float("nan")})
    assert difference(one, other) == ""
    assert difference(one, replace(one, measures={**one.measures, "x": 1.0})) == "measures.x"
