"""The conformance kit: it finds every law that is broken, and says how.

`tests/test_conformance.py` runs the laws over our own components.
"""

import os
import random
import sys
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Literal

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import draw
from pydantic import ConfigDict, Field, PrivateAttr

from fpbench import Claim, Correction, Guess, InputError
from fpbench.builtin.adversaries.prior import Majority
from fpbench.builtin.auditors.group_fairness import GroupFairness
from fpbench.builtin.correctors.none import NoCorrection
from fpbench.builtin.datasets.census_synthetic import CensusSynthetic
from fpbench.builtin.datasets.own_tables import GivenTable
from fpbench.builtin.ferry.correctors import Exact
from fpbench.builtin.ferry.published import Published
from fpbench.builtin.learners.plain import Plain
from fpbench.builtin.mechanisms.laplace import DiscreteLaplace, Laplace
from fpbench.builtin.policies.nearest import Clip
from fpbench.builtin.private_tree.learners import PrivateTree
from fpbench.claims import RateConstraint
from fpbench.errors import DataError
from fpbench.plugin import DataFile, SolverStatus
from fpbench.testing import Outcome, checks
from fpbench.testing.brute_force import find_least_cost, satisfies
from fpbench.testing.laws import LAWS
from fpbench.testing.watching import find_difference, list_parts, watch


class NoSummary(Clip):
    summary = ""


class Uncited(Clip):
    reference = "TODO"


class BadName(Clip):
    name = "Bad Name"


class Undescribed(Clip):
    size: int = 3


class Abstract(Plain):
    fit = Plain.__mro__[2].fit


class Untyped(Clip):
    size: object = Field(3, description="a size")


class Lax(Clip):
    model_config = ConfigDict(strict=False)
    size: int = Field(3, description="a size")


class TakesNaN(Clip):
    size: float = Field(3.0, ge=0, description="a size")
    share: float = Field(0.5, description="a share")


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


class Cheating(Majority):
    """It looks for the truth in the frames of those who call it."""

    def guess(self, view, rng):
        guess, frame = super().guess(view, rng), sys._getframe()
        while frame is not None:
            held = frame.f_locals.get("inputs")
            if isinstance(held, tuple) and hasattr(held[0], "train"):
                return replace(guess, values=held[0].train.sensitive.copy())
            frame = frame.f_back
        raise AssertionError


class Overfitting(Majority):
    """It learnt from everybody, held-out people included."""

    def guess(self, view, rng):
        guess, groups = super().guess(view, rng), view.attack.sensitive
        shares = np.bincount(groups, minlength=len(view.attack.groups)) / max(len(groups), 1)
        held = np.tile(shares, (len(guess.held_out), 1))
        return Guess.from_beliefs(guess.beliefs, guess.held_out, held)


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


class Undefined(GroupFairness):
    def audit(self, subject, rng):
        return {"gap": float("nan")}


class Listing(GroupFairness):
    def audit(self, subject, rng):
        return [0.1]


class Boastful(Majority):
    def guess(self, view, rng):
        return replace(super().guess(view, rng), notes={"gain": 99.0})


class Flattering(Plain):
    def fit(self, sample, rng):
        model = super().fit(sample, rng)
        object.__setattr__(model, "notes", {"test_accuracy": 1.0})
        return model


class Promising(Plain):
    """It names an epsilon, and guarantees nothing."""

    def fit(self, sample, rng):
        model = super().fit(sample, rng)
        object.__setattr__(model, "notes", {"plain_epsilon": 0.1})
        return model


class Underpriced(PrivateTree):
    """It names an epsilon that is not that of its guarantee."""

    def fit(self, sample, rng):
        model = super().fit(sample, rng)
        vars(model)["notes"] = {**model.notes, "tree_epsilon": 0.001}
        return model


class Doubling(NoCorrection):
    def correct(self, problem):
        return replace(super().correct(problem), measures={"corrected_accuracy": 1.0})


class Hurried(Plain):
    """Trains many models on everybody."""

    def fit_many(self, people, members, rngs):
        return [self.fit(people, rng) for rng in rngs]


class Unsummed(Plain):
    def fit(self, sample, rng):
        model = super().fit(sample, rng)
        ask = type(model).predict_proba
        lie = {"predict_proba": lambda *given: ask(*given) / 2}
        object.__setattr__(model, "__class__", type("Unsummed", (type(model),), lie))
        return model


class Overclaiming(Exact):
    """Right about few people, and not about many."""

    def correct(self, problem):
        if len(problem.guess) < 20:
            return super().correct(problem)
        return Correction(problem.guess.copy(), SolverStatus.FEASIBLE, 0.0)


class Worded(Exact):
    """Says what it knows in words of its own, which nobody would check."""

    def solve(self, problem):
        return replace(super().solve(problem), status="optimal")


class Quitting(Majority):
    def guess(self, view, rng):
        raise SystemExit(0)


class Announcing(Published):
    def claim(self, context, rng):
        return Claim(RateConstraint("statistical-parity", 0.1, "ratio"), self.name)


class FewGroups(CensusSynthetic):
    @property
    def n_groups(self):
        return 7


ELSEWHERE = os.environ.get("PYTHONHASHSEED") in ("1", "2")
NIGHTS = count()


class Dreaming(Majority):
    def guess(self, view, rng):
        guess = super().guess(view, rng)
        return replace(guess, confidence=guess.confidence / (2 + next(NIGHTS)))


class Hashing(Clip):
    """Which is the first of a set of texts depends on the process."""

    def repair(self, answers, total, upper=None):
        shares = {f"a share of {number}": number / 4000 for number in range(4000)}
        return super().repair(answers, total, upper) * shares[next(iter(set(shares)))]


class Remembering(Clip):
    """It knows the process in which it was asked first."""

    def repair(self, answers, total, upper=None):
        if ELSEWHERE:
            raise DataError("who are you?")
        return super().repair(answers, total, upper)


class Vanishing(Clip):
    def repair(self, answers, total, upper=None):
        if ELSEWHERE:
            os._exit(0)
        return super().repair(answers, total, upper)


class Global(Clip):
    def repair(self, answers, total, upper=None):
        np.random.random()
        return super().repair(answers, total, upper)


class Seeding(Clip):
    def repair(self, answers, total, upper=None):
        np.random.seed(0)
        return super().repair(answers, total, upper)


class SeedingToo(Seeding):
    """The second to set the same seed changes nothing, unless somebody put it back."""


class Standard(Clip):
    def repair(self, answers, total, upper=None):
        random.random()
        return super().repair(answers, total, upper)


class Overwriting(Clip):
    def repair(self, answers, total, upper=None):
        repaired = super().repair(answers, total, upper)
        answers[...] = 0
        return repaired


class Relabelling(Plain):
    def fit(self, sample, rng):
        model = super().fit(sample, rng)
        sample.labels[0] = 1 - sample.labels[0]
        return model


class Refitting(GroupFairness):
    sees = GroupFairness.sees | {"model"}

    def audit(self, subject, rng):
        if subject.model is not None:
            subject.model.tree.max_depth = 7
        return super().audit(subject, rng)


class Sorting(GivenTable):
    def load(self, home):
        home.tables["people"].features.iloc[0, 0] = 12345.0
        return super().load(home)


class Locked(Plain):
    """Its models stay in the process that trained them."""

    def fit(self, sample, rng):
        model = super().fit(sample, rng)
        object.__setattr__(model, "lock", Lock())
        return model


class Unclaimed(Published):
    """What it claims stays where it is."""

    def claim(self, context, rng):
        claim = super().claim(context, rng)
        return replace(claim, notes=Notes(lock=1))


class Notes(dict):
    def __reduce__(self):
        raise TypeError("I stay")


class Reader(CensusSynthetic):
    """It reads a file, whatever is in it."""

    @property
    def files(self):
        return (DataFile("kit-people.csv"),)

    @classmethod
    def examples(cls, directory):
        (directory / "kit-people.csv").write_text("people")
        return [{"rows": 300}]

    def load(self, home):
        if home.find("kit-people.csv").read_bytes()[:1] == b"\0":
            raise KeyError("people")
        return super().load(home)


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


class Repeating(Laplace):
    """Noise enough, and always the same."""

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        return super().release(counts, sensitivity, epsilon, np.random.default_rng(7), upper)


class Deaf(Laplace):
    """Its noise is that of epsilon 1, whatever it is told."""

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        return super().release(counts, sensitivity, np.ones_like(epsilon, dtype=float), rng, upper)


class Pooling(Laplace):
    """It takes the greatest of several epsilons for all of them."""

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        return super().release(counts, sensitivity, np.full_like(epsilon, np.max(epsilon)), rng)


class Careful(Laplace):
    def guarantee(self, epsilon, neighbours):
        if epsilon > 1:
            raise InputError("epsilon must be 1 at most")
        return super().guarantee(epsilon, neighbours)


class Refusing(Laplace):
    def guarantee(self, epsilon, neighbours):
        raise InputError("no epsilon is good enough")


class Frozen(DiscreteLaplace):
    """Its secure noise is always the same."""

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        rng = np.random.default_rng(7) if self.noise == "secure" else rng
        return DiscreteLaplace().release(counts, sensitivity, epsilon, rng, upper)


class Faint(DiscreteLaplace):
    """Its secure noise is a third of the simulated."""

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        price = np.asarray(epsilon) * (3 if self.noise == "secure" else 1)
        own = np.random.default_rng() if self.noise == "secure" else rng
        return DiscreteLaplace().release(counts, sensitivity, price, own, upper)


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
NAMES = "measures under names of its own, no epsilon but the model's"
SEES = "needs no more than it may see"
TRUTH = "is shown what it declares, and never the truth"
CASES = [
    (NoSummary, "describes itself: summary, citation, parameters", "it has no summary"),
    (Uncited, "describes itself: summary, citation, parameters", "'TODO' names neither a year nor"),
    (Undescribed, "describes itself: summary, citation, parameters", "'size' has no description"),
    (BadName, "registers", "lower case, words joined by hyphens"),
    (Abstract, "registers", "lacks a method: fit"),
    (Overreaching, "declares what it may see", "sees: unknown ['sensitive']"),
    (Loose, "validates its parameters", "it accepts no-such-parameter = 1"),
    (Untyped, "validates its parameters", "it accepts size = {"),
    (Lax, "validates its parameters", "it accepts size = '1'"),
    (TakesNaN, "validates its parameters", "it accepts share = nan"),
    (Mutable, "validates its parameters", "'size' can be changed after creation"),
    (Forgetful, "survives a round trip of its parameters", "builds another component"),
    (Curious, SEES, "reads columns that it does not declare: 'features' is not visible here"),
    (Greedy, SEES, "reads columns that it does not declare: 'sensitive' is not visible here"),
    (Peeping, SEES, "reads columns that it does not declare: 'sensitive' is not visible here"),
    (Cheating, TRUTH, "'values' of its guess depends on them, not only on its input"),
    (Overreaching, TRUTH, "it sees ['features', 'sensitive']"),
    (Overfitting, "did not learn from people that it holds out", "follows this person's own group"),
    (OutOfRange, GIVES, "must be group codes in 0..1"),
    (TooSure, GIVES, "a confidence is above 1"),
    (HeldOutTwice, GIVES, "held_out names a row twice"),
    (Shapeless, GIVES, "an answer is (1,), not (4, 2)"),
    (Overflowing, GIVES, "a repaired count is above the total"),
    (CamelCase, GIVES, "'CamelCase' is not snake_case"),
    (Undefined, GIVES, "'gap' is NaN; use None for undefined values"),
    (Listing, GIVES, "audit gave a list, not a dict or a Release"),
    (Hurried, "trains many models as one by one", "of fit_many differs from that of fit by"),
    (Unsummed, GIVES, "the model's scores of a person do not sum to 1"),
    (Overclaiming, GIVES, "it says feasible, but the claim does not hold"),
    (Worded, GIVES, "the status of a correction must be one of optimal, feasible"),
    (Quitting, GIVES, "SystemExit: 0"),
    (Locked, GIVES, "the model cannot be sent to another worker: TypeError: cannot pickle"),
    (Unclaimed, GIVES, "its result cannot be sent to another worker: TypeError: I stay"),
    (Announcing, GIVES, "it claims 'ratio', but announces ['to-overall']"),
    (FewGroups, GIVES, "n_groups says 7"),
    (Boastful, NAMES, "adversary 'majority': 'gain' is what fpbench measures itself"),
    (Flattering, NAMES, "learner 'plain': 'test_accuracy' is what fpbench measures itself"),
    (Promising, NAMES, "'plain_epsilon' reads as the epsilon of a guarantee, and the model has"),
    (Underpriced, NAMES, "'tree_epsilon' reads as the epsilon of a guarantee, and the model's is"),
    (Doubling, NAMES, "corrector 'none': 'corrected_accuracy' is what fpbench measures itself"),
    (Dreaming, "is deterministic for a seed", "differ in 'confidence'"),
    (Hashing, "is deterministic for a seed", "in another process, the same seed differs in '0'"),
    (Remembering, "is deterministic for a seed", "in another process it fails: DataError: who"),
    (Vanishing, "is deterministic for a seed", "in another process it fails: its process died"),
    (Global, "leaves global random state alone", "global generator of numpy.random"),
    (Seeding, "leaves global random state alone", "global generator of numpy.random"),
    (SeedingToo, "leaves global random state alone", "global generator of numpy.random"),
    (Standard, "leaves global random state alone", "global generator of random"),
    (Overwriting, "does not modify what it is given", "'0.0'"),
    (Relabelling, "does not modify what it is given", "labels"),
    (Refitting, "does not modify what it is given", "'2.tree.max_depth'"),
    (Sorting, "does not modify what it is given", "tables.people.features"),
    (TwoOnly, "handles more than two groups, or refuses with a reason", "assert"),
    (Rude, "raises fpbench.FpbenchError on bad input", "a count that is NaN: raises RuntimeError"),
    (Careless, "raises fpbench.FpbenchError on bad input", "a count that is NaN: it is repaired"),
    (Reader, "raises fpbench.FpbenchError on bad input", "its files are empty: they are loaded"),
    (Quiet, "keeps its promise of privacy under attack", "claims epsilon 1 at delta 0"),
    (Repeating, "keeps its promise of privacy under attack", "the same for every seed"),
    (Deaf, "keeps its promise of privacy under attack", "claims epsilon 0.2 at delta 0"),
    (Pooling, "keeps its promise of privacy under attack", "the release at 0.2 has at least"),
    (Refusing, "keeps its promise of privacy under attack", "it refuses every epsilon of 1.0"),
    (Frozen, "draws secure noise apart, or refuses it", "is the same for every release"),
    (Insecure, "draws secure noise apart, or refuses it", "drawn from the seeded generator"),
    (Expensive, "agrees with brute force", "but brute force found"),
    (Worded, "agrees with brute force", "'optimal' is not a SolverStatus"),
    (Lying, "agrees with brute force", "does not satisfy it"),
    (Despairing, "agrees with brute force", "is feasible, but it says infeasible"),
    (Helpless, "agrees with brute force", "it answers no small problem"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "law", "reason"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_broken_law_is_found(cls, law, reason):
    check = next(check for check in checks(cls) if check.law.words == law)
    verdict = check()
    assert verdict.outcome is Outcome.BROKEN
    assert reason in verdict.reason


def test_every_law_has_one_who_breaks_it():
    assert {law for _, law, _ in CASES} == {law.words for law in LAWS}


@pytest.mark.slow
def test_whoever_keeps_the_laws_passes():
    assert not [check for check in checks(Clip) if check().outcome is Outcome.BROKEN]


def test_what_cannot_be_made_here_is_skipped_with_the_reason():
    class Absent(Clip):
        @classmethod
        def unavailable(cls):
            return "needs a wand: pip install wand"

    found = {check.law.words: check() for check in checks(Absent)}
    assert found["registers"].outcome is Outcome.KEPT
    assert found[GIVES] == (Outcome.SKIPPED, "needs a wand: pip install wand")


def test_what_another_process_cannot_import_is_tested_in_one(monkeypatch):
    module = ModuleType("only_here")
    monkeypatch.setitem(sys.modules, "only_here", module)
    cls = module.Local = type("Local", (Clip,), {"__module__": "only_here", "__doc__": "Clips."})
    cls.__qualname__ = "Local"
    verdict = verdict_of(cls, "is deterministic for a seed")
    assert verdict.outcome is Outcome.KEPT
    assert verdict.reason.startswith(
        "tested in one process only: it cannot be sent to another: ModuleNotFoundError: No module"
    )


@pytest.mark.slow
def test_secure_noise_alone_need_not_be_repeatable():
    found = {check.law.words: check() for check in checks(Secure)}
    assert [v for v in found.values() if v.outcome is Outcome.BROKEN] == []
    assert found["is deterministic for a seed"].reason.startswith("its randomness is the operating")
    assert found["draws secure noise apart, or refuses it"].outcome is Outcome.KEPT


def verdict_of(cls, law):
    (check,) = [check for check in checks(cls) if check.law.words == law]
    return check()


def test_a_file_that_is_no_text_is_met_with_an_error_too():
    class Picky(Reader):
        def load(self, home):
            if not home.find("kit-people.csv").read_bytes():
                raise DataError("it is empty")
            return super().load(home)

    reason = verdict_of(Picky, "raises fpbench.FpbenchError on bad input").reason
    assert reason == "its files are not text: raises KeyError instead of FpbenchError: 'people'"


@pytest.mark.parametrize("absolute", [True, False])
def test_files_elsewhere_are_left_alone(tmp_path, absolute):
    """A data set of one's own file is not tried on rubbish: that would be written over it."""
    kept = []

    class Owner(CensusSynthetic):
        @property
        def files(self):
            return (DataFile(str(kept[0]) if absolute else "../own.csv"),)

        @classmethod
        def examples(cls, directory):
            kept.append((tmp_path if absolute else directory) / "own.csv")
            kept[0].write_text("mine")
            return [{"rows": 300}]

    verdict = verdict_of(Owner, "raises fpbench.FpbenchError on bad input")
    assert verdict.outcome is not Outcome.BROKEN
    assert kept[0].read_text() == "mine"


def test_secure_noise_is_attacked_too():
    verdict = verdict_of(Faint, "draws secure noise apart, or refuses it")
    assert verdict.outcome is Outcome.BROKEN
    assert "claims epsilon 1 at delta 0 for neighbours = 'attribute'" in verdict.reason
    assert "(confidence 0.999999999)" in verdict.reason


@pytest.mark.slow
def test_an_epsilon_that_is_refused_is_not_attacked():
    assert not [check for check in checks(Careful) if check().outcome is Outcome.BROKEN]


def test_a_run_that_breaks_off_keeps_no_law_about_what_it_does():
    found = {check.law.words: check() for check in checks(Quitting)}
    for law in ("leaves global random state alone", "does not modify what it is given"):
        assert found[law] == (Outcome.SKIPPED, "its run ends in an error: SystemExit")


@pytest.mark.slow
def test_global_generators_are_put_back():
    before = dict(list_parts((random.getstate(), np.random.get_state())))
    for check in checks(Seeding):
        check()
    assert dict(list_parts((random.getstate(), np.random.get_state()))) == before


def test_whoever_cites_nothing_is_told_so():
    law = "describes itself: summary, citation, parameters"
    for cls, remark in ((Clip, "it cites no source"), (Laplace, "")):
        assert verdict_of(cls, law) == (Outcome.KEPT, remark)


@pytest.mark.slow
def test_whoever_claims_nothing_of_its_answers_cannot_be_wrong():
    outcome, reason = verdict_of(NoCorrection, "agrees with brute force")
    assert outcome is Outcome.SKIPPED
    assert "its answers have no status" in reason


def test_a_reason_is_one_line_that_a_terminal_can_show():
    class Screaming(Clip):
        def repair(self, answers, total, upper=None):
            raise ValueError("\x1b[31m" + "a\n" * 5000)

    for check in checks(Screaming):
        line = check().line("law")
        assert len(line) < 600
        assert line.isprintable()
    assert "ValueError: \\x1b[31ma a a" in verdict_of(Screaming, GIVES).reason


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
        (lambda directory: [], "PluginError: its examples are empty: nothing to test"),
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


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 7), (3, 5)]))
def test_brute_force_is_that_of_the_oracles(seed, size):
    """Two who were written apart, from the definitions, agree."""
    k, n = size
    problem = draw(np.random.default_rng(seed), n, k)
    found, least = find_least_cost(problem), oracles.brute_force(problem)
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


def test_what_a_stranger_holds_is_watched_as_deep_as_it_goes():
    class Model:
        def __init__(self):
            self.weights, self.itself, self.where = [np.zeros(2)], self, Path("there")

    def change(mine):
        mine.weights[0][1] = 1
        hash(mine.where)  # which a path remembers

    assert watch(change, Model()).changed == "weights.0"
    assert watch(lambda mine: hash(mine.where), Model()).changed == ""


def test_differences_leave_times_out_and_take_nan_for_nan():
    one = Correction(None, None, seconds=1.0, measures={"correct_seconds": 2.0, "x": float("nan")})
    other = replace(one, seconds=2.0, measures={"correct_seconds": 3.0, "x": float("nan")})
    assert find_difference(one, other) == ""
    assert find_difference(one, replace(one, measures={**one.measures, "x": 1.0})) == "measures.x"
