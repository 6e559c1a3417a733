"""What attacks and audits may see: one table.

Checks of components, reasons in plans, the laws of the kit and the documentation are generated
from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


def _lack_scores(learner: Any) -> str | None:
    if not learner.gives_scores:
        return f"sees scores, and learner {learner.name!r} gives none"
    why = learner.explain_no_scores()
    return None if why is None else f"sees scores, and of learner {learner.name!r} {why}"


def _lack_query(learner: Any) -> str | None:
    if learner.predicts_with_sensitive:
        return None
    return (
        f"asks the model about every group, and models of learner {learner.name!r} do not take "
        "people's groups: they answer the same whatever the group"
    )


def _lack_twin(learner: Any) -> str | None:
    if learner.twin() is not None:
        return None
    return f"compares a fair model with its unfair twin, and learner {learner.name!r} has none"


def _lack_structure(learner: Any) -> str | None:
    if learner.gives_trees and learner.predicts_with_sensitive:
        return None
    return (
        "reads trees that have people's groups among their features, and learner "
        f"{learner.name!r} gives none; learner 'group-aware' does, around a learner of trees"
    )


@dataclass(frozen=True)
class Sight:
    """Something that a component may see."""

    name: str
    """Its word in `sees` (of disclosures, in `shows`), and the name of the column of a `Sample`
    that holds it, if there is one."""
    meaning: str
    """What is seen, for the documentation."""
    kinds: frozenset[str]
    """Kinds of components that may declare it. Disclosures do so to show it to everybody."""
    of_model: bool = False
    """Whether it comes from the trained model, and is not a column of the data."""
    lack: Callable[[Any], str | None] = field(default=lambda _: None, repr=False)
    """Why models of a learner cannot give it, as the end of a sentence that begins with the
    component that wants to see it; None if they can."""


_ADVERSARY, _AUDITOR, _DISCLOSURE = (
    frozenset({kind}) for kind in ("adversary", "auditor", "disclosure")
)

SIGHTS: Mapping[str, Sight] = MappingProxyType({
    sight.name: sight
    for sight in (
        Sight("features", "people's features", _ADVERSARY | _AUDITOR),
        Sight("labels", "people's labels", _ADVERSARY | _AUDITOR),
        Sight(
            "predictions", "the model's predictions for them, drawn once",
            _ADVERSARY | _AUDITOR, of_model=True,
        ),
        Sight(
            "scores", "the model's probabilities of label 1", _ADVERSARY, of_model=True,
            lack=_lack_scores,
        ),
        Sight(
            "query", "the model's answers about them, queried with each group: `ModelAnswers` "
            "(n, K)", _ADVERSARY, of_model=True, lack=_lack_query,
        ),
        Sight(
            "twin", "answers about them by the same learner without its fairness, trained on "
            "the same people: `ModelAnswers` (n,)", _ADVERSARY, of_model=True, lack=_lack_twin,
        ),
        Sight(
            "structure", "the model's trees, with the numbers of training people in their leaves",
            _DISCLOSURE, of_model=True, lack=_lack_structure,
        ),
        Sight(
            "series", "a fairness report, and the same again after some people left", _DISCLOSURE,
        ),
        Sight("sensitive", "people's groups", _AUDITOR),
        Sight("model", "the trained model itself", _AUDITOR, of_model=True),
        Sight(
            "curator", "answers about people's groups under differential privacy", _AUDITOR,
        ),
        Sight("fit", "the learner, to be trained on other people", _AUDITOR),
    )
})  # fmt: skip
"""Everything that may be seen, by name. Adversaries see columns of the target people, never their
groups; of the attack set they see the groups as well. Correctors get what disclosures show as
facts."""


def list_sights(kind: str) -> frozenset[str]:
    """Names of the sights that components of a kind may declare."""
    return frozenset(name for name, sight in SIGHTS.items() if kind in sight.kinds)


def keep_model_sights(sights: Collection[str]) -> tuple[str, ...]:
    """The given sights that come from the trained model, in the order of the table."""
    return tuple(name for name, sight in SIGHTS.items() if name in sights and sight.of_model)


def explain_lack(component: str, sights: Collection[str], learner: Any) -> str | None:
    """Why models of a learner cannot give all that a component sees; None if they can.

    `sights`: what the component sees, or shows to others.
    """
    for name, sight in SIGHTS.items():
        if name in sights and (why := sight.lack(learner)):
            return f"{component} {why}"
    return None
