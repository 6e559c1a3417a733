"""The laws that every component keeps, whoever wrote it, and how one is tested."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import ValidationError

from fpbench.base.errors import FpbenchError, HiddenError, InputError, PluginError
from fpbench.components.attack_kinds import Adversary, Corrector, Learner
from fpbench.components.auditor import Auditor
from fpbench.components.bases import BASES
from fpbench.components.names import KINDS
from fpbench.components.spec import slot_kinds
from fpbench.data.sample import Sample
from fpbench.execution.work.rows import Words, make_row
from fpbench.testing.cases import Case, Inapplicable
from fpbench.testing.elsewhere import Unopened
from fpbench.testing.limits import beyond
from fpbench.testing.problems import problems, verdict
from fpbench.testing.promises import keeps_promise, secures
from fpbench.testing.round_trips import carried, travelled
from fpbench.testing.watching import Watched, generators_kept, parts, unlike

_NAME = re.compile(r"[a-z0-9]+([-/][a-z0-9]+)*")
_SEEN = frozenset({"features", "labels", "predictions", "scores"})
_AUDITED = frozenset({"features", "labels", "sensitive", "predictions", "model", "curator"})
_SPEAKERS = frozenset({"learner", "disclosure", "adversary", "corrector", "auditor"})
"""Kinds whose words are shown in rows."""
_LONGEST = 400
"""Letters of a stranger's error that a line has room for."""
_CITED = re.compile(r"\b(1[5-9]|20)\d\d\b|https?://|\bdoi:", re.IGNORECASE)
"""A citation names a year, or where its source is."""


class Outcome(StrEnum):
    """What became of a law."""

    KEPT = "kept"
    BROKEN = "broken"
    SKIPPED = "skipped"


class Verdict(NamedTuple):
    """Whether a component keeps a law.

    Attributes
    ----------
    outcome
        Kept, broken or skipped.
    reason
        What is wrong, or why it could not be tested; of a law that is kept, a remark if any.
    """

    outcome: Outcome
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}" if self.reason else str(self.outcome)

    def line(self, law: str) -> str:
        """The one line that is shown of a law."""
        return f"{self.outcome:7}  {law}" + (f": {self.reason}" if self.reason else "")


class Law(NamedTuple):
    """Something that is true of every component of some kinds.

    Attributes
    ----------
    words
        Said of the component: `is deterministic for a seed`.
    test
        Raises AssertionError if it is broken; may make a remark if it is kept.
    kinds
        Kinds of components that must keep it.
    """

    words: str
    test: Callable[[Case], str | None]
    kinds: frozenset[str] = frozenset(KINDS)


class Check(NamedTuple):
    """A law, of a component with one set of parameters.

    Attributes
    ----------
    case
        A component with one set of parameters.
    law
        The law.
    """

    case: Case
    law: Law

    def __str__(self) -> str:
        return f"{self.case} {self.law.words}"

    def __call__(self) -> Verdict:
        """Test it; never raises, whatever the component does."""
        try:
            with warnings.catch_warnings(), generators_kept():
                warnings.simplefilter("ignore")
                remark = self.law.test(self.case)
        except Inapplicable as why:
            return Verdict(Outcome.SKIPPED, _line(why))
        except AssertionError as found:
            return Verdict(Outcome.BROKEN, _line(found) or "an assertion of its own failed")
        except (Exception, SystemExit) as error:  # a stranger's failure, not our end
            return Verdict(Outcome.BROKEN, f"{type(error).__name__}: {_line(error)}")
        return Verdict(Outcome.KEPT, remark or "")


def _line(error: BaseException) -> str:
    # pytest adds to an assertion's message what it compared: it rewrites plugins, and we are one.
    words = " ".join(str(error).partition("\nassert ")[0].split())
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ..."


def _registers(case: Case) -> None:
    cls, kind = case.cls, KINDS[case.entry.kind]
    assert issubclass(cls, BASES[kind.name])
    assert not inspect.isabstract(cls), f"it lacks a method: {', '.join(cls.__abstractmethods__)}"
    assert _NAME.fullmatch(cls.name), f"name {cls.name!r}: lower case, words joined by hyphens"
    _ = case.component


def _describes_itself(case: Case) -> str:
    cls = case.cls
    for what, text in (("summary", cls.summary), ("reference", cls.reference)):
        assert isinstance(text, str), f"{what} is a {type(text).__name__}, not a text"
        assert "\n" not in text, f"{what} is more than one line"
    assert cls.summary.strip(), "it has no summary"
    cited = not cls.reference or _CITED.search(cls.reference)
    assert cited, f"reference {cls.reference!r} names neither a year nor a link"
    assert inspect.getdoc(cls) != inspect.getdoc(BASES[cls.kind]), "its class has no docstring"
    for name, field in cls.model_fields.items():
        assert field.description, f"parameter {name!r} has no description"
    return "" if cls.reference else "it cites no source"


def _declares(case: Case) -> None:
    cls = case.cls
    words: dict[str, tuple[Any, frozenset[str]]] = {}
    if issubclass(cls, Adversary):
        words["sees"] = getattr(cls, "sees", None), _SEEN
    if issubclass(cls, Auditor):
        words["sees"] = getattr(cls, "sees", None), _AUDITED
    if issubclass(cls, Learner):
        words["needs"] = cls.needs, frozenset(Sample.COLUMNS[:3])
    for what, (said, known) in words.items():
        assert isinstance(said, frozenset), f"{what} must be a frozenset of words"
        assert said <= known, f"{what}: unknown {sorted(said - known)}; known: {sorted(known)}"


def _validates(case: Case) -> None:
    component, given = case.component, case.parameters
    for name, wrong in (("no-such-parameter", 1), *beyond(case.cls)):
        try:
            case.made({**given, name: wrong})
        except InputError:
            continue
        raise AssertionError(f"it accepts {name} = {wrong!r}")
    for name in case.cls.model_fields:
        try:
            setattr(component, name, getattr(component, name))
        except ValidationError:
            continue
        raise AssertionError(f"parameter {name!r} can be changed after it was made")


def _travels(case: Case) -> None:
    component, spec = case.built
    # A spec is the data that travels: strings and numbers, in JSON as well.
    assert json.loads(json.dumps(spec.parameters)) == spec.parameters, "parameters change in JSON"
    assert case.rebuilt(spec) == component, "its spec builds another component"
    assert case.rebuilt(travelled(spec)) == component, "its pickled spec builds another component"
    assert travelled(component) == component, "pickled, it becomes another component"
    inner = {name: getattr(component, name) for name in slot_kinds(case.cls)}
    again = case.cls(**{**component.model_dump(mode="json", exclude=set(inner)), **inner})
    assert again == component, "its parameters make another component"


def _sees_only(case: Case) -> None:
    error = case.watched().error
    if isinstance(error, HiddenError):
        raise AssertionError(f"it asks for more than it declares: {error}")
    if error is not None:
        raise error


def _gives(case: Case) -> None:
    watched = case.ran()
    case.stage.check(case.component, watched.given, carried(watched.result, "its result"))


def _names_its_own(case: Case) -> None:
    given, guarantee = case.stage.words(case.ran().result)
    words = [Words(case.entry.kind, case.entry.name, values) for values in given]
    try:
        make_row({}, words, guarantee)
    except PluginError as error:
        raise AssertionError(str(error)) from None


def _repeats(case: Case) -> str | None:
    if getattr(case.component, "noise", "") == "secure":
        raise Inapplicable("its randomness is the operating system's, and cannot be repeated")
    one, other = case.ran(), case.again()
    if other.error is not None:
        raise other.error
    here = dict(parts(one.result))
    where = unlike(here, dict(parts(other.result)))
    assert not where, f"two runs with the same seed differ in {where!r}"
    there = case.elsewhere()
    if isinstance(there, Unopened):
        return f"tested in one process: in another it cannot be opened: {there.reason}"
    assert not there.error, f"in another process it fails: {there.error}"
    where = unlike(here, there.parts)
    assert not where, (
        f"in another process, the same seed differs in {where!r}; sets of texts have another "
        "order there, and hash() gives other numbers"
    )
    return None


def _leaves_generators_alone(case: Case) -> None:
    watched = case.watched()
    assert not watched.drew, f"it draws from the global generator of {watched.drew}, or seeds it"
    _to_its_end(watched)


def _leaves_input_alone(case: Case) -> None:
    watched = case.watched()
    assert not watched.changed, f"it changes what it is given: {watched.changed!r}"
    _to_its_end(watched)


def _to_its_end(watched: Watched) -> None:
    """What was not seen of a run that broke off may still happen."""
    if watched.error is not None:
        raise Inapplicable(f"its run ends in an error: {type(watched.error).__name__}")


def _several_groups(case: Case) -> None:
    if not case.stage.groups:
        raise Inapplicable("it brings its own groups")
    try:
        case.must_run(2)
    except Inapplicable as why:
        raise Inapplicable(f"not even with two: {why}") from None
    try:
        watched = case.watched(3)
    except Inapplicable:
        return  # refused while planning, with a reason
    if isinstance(watched.error, FpbenchError) and not isinstance(watched.error, HiddenError):
        assert str(watched.error).strip(), "it refuses three groups without a reason"
        return
    if watched.error is not None:
        raise watched.error
    case.stage.check(case.component, watched.given, watched.result)


def _refuses(case: Case) -> None:
    component = case.component
    if component.unavailable():
        raise Inapplicable(str(component.unavailable()))
    attempts = list(case.stage.attempts(component, case.home))
    if not attempts:
        raise Inapplicable("it can be given no bad input")
    for what, call in attempts:
        try:
            call()
        except FpbenchError as error:
            if not str(error).strip():
                raise AssertionError(f"{what}: its error says nothing") from None
        except AssertionError as found:
            raise AssertionError(f"{what}: {found}") from None
        except (Exception, SystemExit) as error:  # any other error is what this law forbids
            raise AssertionError(
                f"{what}: raises {type(error).__name__}, no error of fpbench: {error}"
            ) from None


def _least(case: Case) -> None:
    case.must_run(2)
    corrector = case.component
    assert isinstance(corrector, Corrector)
    answers = []
    for k in (2, 3):
        for problem in problems(corrector.expresses, k):
            try:
                found = corrector.correct(problem)
            except InputError:
                continue  # refused, with a reason
            wrong = verdict(problem, found)
            assert not wrong, wrong
            answers += [found] if found.values is not None else []
    assert answers, "it answers no small problem, of what it says it can express"
    if all(found.status is None for found in answers):
        raise Inapplicable("its answers have no status, so they say nothing that could be wrong")


LAWS: tuple[Law, ...] = (
    Law("registers", _registers),
    Law("describes itself: summary, citation, parameters", _describes_itself),
    Law("declares what it may see", _declares, frozenset({"learner", "adversary", "auditor"})),
    Law("validates its parameters", _validates),
    Law("survives a round trip of its parameters", _travels),
    Law("needs no more than it may see", _sees_only),
    Law("gives results of the declared shape and range", _gives),
    Law("measures under names of its own, no epsilon but the model's", _names_its_own, _SPEAKERS),
    Law("is deterministic for a seed", _repeats),
    Law("leaves global random state alone", _leaves_generators_alone),
    Law("does not modify what it is given", _leaves_input_alone),
    Law("handles more than two groups, or refuses with a reason", _several_groups),
    Law("meets bad input with an error of fpbench", _refuses),
    Law("keeps its promise of privacy under attack", keeps_promise, frozenset({"mechanism"})),
    Law("draws secure noise apart, or refuses it", secures, frozenset({"mechanism"})),
    Law("agrees with brute force", _least, frozenset({"corrector"})),
)
"""All laws, in the order in which they are tested."""
