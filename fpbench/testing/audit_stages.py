"""How mechanisms, policies and auditors are run by the kit, and what they must give."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fpbench.components.auditor import Auditor, Release, Subject
from fpbench.components.epsilons import LEAST_EPSILON
from fpbench.components.guarantee import COUNT_SENSITIVITY, NEIGHBOURS, Guarantee
from fpbench.components.mechanism import Mechanism, Policy
from fpbench.data.data_files import DataHome
from fpbench.execution.work.actions import ACTIONS, MEASURING
from fpbench.testing.checking import check_measures
from fpbench.testing.data_stage import DatasetStage
from fpbench.testing.stages import (
    AdversaryStage,
    Attempts,
    CorrectorStage,
    DisclosureStage,
    LearnerStage,
    Stage,
)
from fpbench.testing.world import fill, step, world

_BAD_EPSILONS = (0.0, -1.0, math.inf, math.nan, LEAST_EPSILON / 2)


class MechanismStage(Stage):
    """Releases counts, of several shapes."""

    def given(self, component: Mechanism, k: int, home: DataHome) -> Any:
        """Counts and epsilons that are broadcast."""
        counts = fill(f"counts {k}").integers(0, 30, (4, k))
        return [(counts, 1.0, counts.sum(axis=-1, keepdims=True)),
                (counts[0], np.array([[0.5], [2.0]]), counts[0].sum()),
                (np.zeros(k, np.int64), 1.0, 5)]  # fmt: skip

    def run(self, component: Mechanism, given: Any, seed: int) -> Any:
        """Release each."""
        rng = step(seed).rng()
        return [
            component.release(counts, COUNT_SENSITIVITY[relation], epsilon, rng, upper=upper)
            for relation in NEIGHBOURS
            for counts, epsilon, upper in given
        ]

    def check(self, component: Mechanism, given: Any, result: Any) -> None:
        """Finite numbers of the broadcast shape; a guarantee of what was asked for."""
        for answer, (counts, epsilon, _) in zip(result, 2 * given, strict=True):
            shape = np.broadcast_shapes(counts.shape, np.shape(epsilon))
            assert np.shape(answer) == shape, f"an answer is {np.shape(answer)}, not {shape}"
            assert np.isfinite(answer).all(), "an answer is not finite"
        for relation in NEIGHBOURS:
            said = component.guarantee(1.0, relation)
            assert isinstance(said, Guarantee), f"guarantee gave a {type(said).__name__}"
            assert said.neighbours == relation, f"asked for {relation}, it guarantees {said}"
            assert said.epsilon <= 1 + 1e-9, f"asked for epsilon 1, it guarantees {said.epsilon}"

    def attempts(self, component: Mechanism, home: DataHome) -> Attempts:
        """An epsilon that is none."""
        for bad in _BAD_EPSILONS:

            def guarantee(bad: float = bad) -> None:
                component.guarantee(bad, "attribute")
                raise AssertionError("it is guaranteed")

            def release(bad: float = bad) -> None:
                component.release(
                    np.array([3, 4]), COUNT_SENSITIVITY["attribute"], bad, step(0).rng(), 7
                )
                raise AssertionError("it is released")

            yield f"guarantee of epsilon {bad}", guarantee
            yield f"release with epsilon {bad}", release


class PolicyStage(Stage):
    """Repairs noisy histograms."""

    def given(self, component: Policy, k: int, home: DataHome) -> Any:
        """Noisy counts, valid ones among them, and totals."""
        rng = fill(f"noisy {k}")
        totals = rng.integers(0, 40, (3, 5))
        shares = rng.dirichlet(np.ones(k), (3, 5))
        noisy = shares * totals[..., None] + rng.normal(0, 8, (3, 5, k))
        return [(noisy, totals, None), (noisy[0, 0], 40, None), (noisy, 40, np.full((3, 5), 20))]

    def run(self, component: Policy, given: Any, seed: int) -> Any:
        """Repair each."""
        return [component.repair(*one) for one in given]

    def check(self, component: Policy, given: Any, result: Any) -> None:
        """Counts of the same shape between 0 and the total."""
        for repaired, (answers, total, _) in zip(result, given, strict=True):
            assert np.shape(repaired) == answers.shape, (
                f"{answers.shape} answers became {np.shape(repaired)}"
            )
            assert (repaired >= 0).all(), "a repaired count is below 0"
            most = np.asarray(total)[..., None] * (1 + 1e-12) + 1e-9
            assert (repaired <= most).all(), "a repaired count is above the total"

    def attempts(self, component: Policy, home: DataHome) -> Attempts:
        """Counts that are no numbers, a total below 0."""

        def repair(answers: list[float], total: float) -> None:
            component.repair(np.array(answers), total)
            raise AssertionError("it is repaired")

        yield "a count that is NaN", lambda: repair([1.0, math.nan], 3)
        yield "an infinite count", lambda: repair([1.0, math.inf], 3)
        yield "a total below 0", lambda: repair([1.0, 2.0], -3)


class AuditorStage(Stage):
    """Audits a small tree that has rules and a baseline."""

    def given(self, component: Auditor, k: int, home: DataHome) -> Any:
        """People, predictions and the model."""
        w = world(k)
        model = (w.model,) if "model" in component.sees else ()
        return w.split, w.predictions, *model

    def run(self, component: Auditor, given: Any, seed: int) -> Any:
        """What the auditor gave, and the row that is made of it."""
        said = replace(step(seed), uses=(("auditor", component.name),))
        answer = ACTIONS["audit"](component, given, said)
        kind = type(answer).__name__
        assert isinstance(answer, dict | Release), f"audit gave a {kind}, not a dict or a Release"
        return answer, MEASURING["audit"](answer, given, said)

    def check(self, component: Auditor, given: Any, result: Any) -> None:
        """Measures by name, or a release with intervals."""
        found, measured = result
        check_measures(measured, "measures")
        if isinstance(found, Release):
            values = np.asarray(found.values)
            assert values.ndim == 1, "values of a release must be one a repetition"
            assert ((values >= 0) & (values <= 1)).all(), "a released ratio is not in [0, 1]"
            for end in (found.low, found.high):
                assert np.shape(end) == values.shape, "ends of intervals must be one a value"
            assert not (found.low > found.high).any(), "an interval ends before it begins"
        else:
            check_measures(found, "measures")

    def words(self, result: Any) -> tuple[list[Any], Guarantee | None]:
        """What the auditor gave itself."""
        found, _ = result
        return [found.measures if isinstance(found, Release) else found], None

    def attempts(self, component: Auditor, home: DataHome) -> Attempts:
        """There is no model, and nobody who answers about groups."""
        split, said = world(2).split, world(2).predictions
        sees = component.sees
        train = split.train.having(predictions=said.train).only(sees)
        test = split.test.having(predictions=said.test).only(sees)
        if sees & {"model", "curator"}:
            bare = Subject(train, test)
            yield (
                "no model and no curator",
                lambda: component.audit(bare, step(0).rng()),
            )


STAGES: dict[str, Stage] = {
    "dataset": DatasetStage(),
    "learner": LearnerStage(),
    "disclosure": DisclosureStage(),
    "adversary": AdversaryStage(),
    "corrector": CorrectorStage(),
    "mechanism": MechanismStage(),
    "policy": PolicyStage(),
    "auditor": AuditorStage(),
}
"""How the components of each kind are run."""
