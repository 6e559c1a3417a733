"""The laws that every component must keep, and their tests."""

from __future__ import annotations

import inspect
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from fpbench.auditing.halves import draw_halves
from fpbench.base.errors import FpbenchError, HiddenError, InputError, PluginError
from fpbench.components.attack_kinds import (
    Adversary,
    Component,
    Corrector,
    Disclosure,
    Learner,
)
from fpbench.components.auditor import BASES, Auditor
from fpbench.components.guarantee import COUNT_SENSITIVITY, NEIGHBOURS, Neighbours
from fpbench.components.mechanism import Mechanism
from fpbench.components.names import KINDS
from fpbench.components.records import Guess
from fpbench.components.sights import list_sights
from fpbench.components.spec import find_slot_kinds
from fpbench.data.sample import Sample
from fpbench.execution.work.actions import HANDED
from fpbench.execution.work.rows import ComponentWords, make_row
from fpbench.testing.attacks import (
    PAIRS,
    check_mechanism,
    epsilon_lower_bound,
    list_relations,
)
from fpbench.testing.brute_force import judge, make_problems
from fpbench.testing.cases import Case, Inapplicable, NotTransferable
from fpbench.testing.fixtures import hide_otherwise, make_cell_inputs, make_step
from fpbench.testing.watching import (
    Watched,
    find_difference,
    find_first_difference,
    list_parts,
    pickle_and_back,
    restore_generators,
    transfer,
    watch,
)

_NAME = re.compile(r"[a-z0-9]+([-/][a-z0-9]+)*")
_SEERS = frozenset({"learner", "disclosure", "adversary", "auditor"})
"""Kinds that declare what they see, or show."""
_SPEAKERS = frozenset({"learner", "disclosure", "adversary", "corrector", "auditor"})
"""Kinds that add their own measures to rows."""
_LONGEST = 400
"""Greatest length of a component's error in a line."""
_CITED = re.compile(r"\b(1[5-9]|20)\d\d\b|https?://|\bdoi:", re.IGNORECASE)
"""A citation has a year, or a link to its source."""


_EPSILONS = (1.0, 0.2, 5.0)
"""Epsilons to attack: several, as a mechanism may be right at one only."""
_ATTACK_SETTINGS: dict[str, dict[str, Any]] = {
    "simulation": {"draws": 10_000, "confidence": 0.999},
    # Slow and unseeded: the confidence must exclude false alarms.
    "secure": {"draws": 2000, "confidence": 1 - 1e-9},
}
"""Draws from each of two neighbours, and confidence, by source of noise."""
_EXAMPLES: dict[str, Any] = {"string": "1", "number": 1.5, "boolean": True, "object": {}}
"""A value of each JSON type; an integer is also a number."""

_TYPE_WORDS = {"type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"}
"""Keys of a schema that restrict a value."""


class Outcome(StrEnum):
    """The result of testing a law."""

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
        The fault, or why it could not be tested; for a kept law, a remark or nothing.
    """

    outcome: Outcome
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}" if self.reason else str(self.outcome)

    def line(self, law: str) -> str:
        """The line printed for a law."""
        return f"{self.outcome:7}  {law}" + (f": {self.reason}" if self.reason else "")


class Law(NamedTuple):
    """A property of every component of some kinds.

    Attributes
    ----------
    words
        The predicate of the component: `is deterministic for a seed`.
    test
        Raises AssertionError if it is broken; may return a remark if it is kept.
    kinds
        Kinds of components that must keep it.
    """

    words: str
    test: Callable[[Case], str | None]
    kinds: frozenset[str] = frozenset(KINDS)


class Check(NamedTuple):
    """A law, for a component with one set of parameters.

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
        """The verdict of the test; never raises, whatever the component does."""
        try:
            with warnings.catch_warnings(), restore_generators():
                warnings.simplefilter("ignore")
                remark = self.law.test(self.case)
        except Inapplicable as why:
            return Verdict(Outcome.SKIPPED, _write_one_line(why))
        except AssertionError as failure:
            return Verdict(Outcome.BROKEN, _write_one_line(failure) or "its own assertion failed")
        except (Exception, SystemExit) as error:  # a third party's failure must not end ours
            return Verdict(Outcome.BROKEN, f"{type(error).__name__}: {_write_one_line(error)}")
        return Verdict(Outcome.KEPT, remark or "")


def _write_one_line(error: BaseException) -> str:
    # pytest rewrites assertions of plugins like this one, and appends the comparison.
    words = " ".join(str(error).partition("\nassert ")[0].split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."


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
    if issubclass(cls, Adversary | Auditor):
        words["sees"] = getattr(cls, "sees", None), list_sights(cls.kind)
    if issubclass(cls, Disclosure):
        words["shows"] = cls.shows, list_sights(cls.kind)
    if issubclass(cls, Learner):
        words["needs"] = cls.needs, frozenset(Sample.COLUMNS[:3])
    for what, (declared, known) in words.items():
        assert isinstance(declared, frozenset), f"{what} must be a frozenset of words"
        assert declared <= known, (
            f"{what}: unknown {sorted(declared - known)}; known: {sorted(known)}"
        )


def _validates(case: Case) -> None:
    component, parameters = case.component, case.parameters
    for name, wrong in (("no-such-parameter", 1), *list_invalid_values(case.cls)):
        try:
            case.build_with({**parameters, name: wrong})
        except InputError:
            continue
        raise AssertionError(f"it accepts {name} = {wrong!r}")
    for name in case.cls.model_fields:
        try:
            setattr(component, name, getattr(component, name))
        except ValidationError:
            continue
        raise AssertionError(f"parameter {name!r} can be changed after creation")


def _survives_round_trip(case: Case) -> None:
    component, spec = case.built
    # A spec is the data that travels: strings and numbers, in JSON as well.
    assert json.loads(json.dumps(spec.parameters)) == spec.parameters, "parameters change in JSON"
    assert case.build_from_spec(spec) == component, "its spec builds another component"
    assert case.build_from_spec(pickle_and_back(spec)) == component, (
        "its pickled spec builds another component"
    )
    assert pickle_and_back(component) == component, "pickled, it becomes another component"
    inner = {name: getattr(component, name) for name in find_slot_kinds(case.cls)}
    again = case.cls(**{**component.model_dump(mode="json", exclude=set(inner)), **inner})
    assert again == component, "its parameters make another component"


def _sees_only(case: Case) -> None:
    error = case.watched().error
    if isinstance(error, HiddenError):
        raise AssertionError(f"it reads columns that it does not declare: {error}")
    if error is not None:
        raise error


def _sees_no_truth(case: Case) -> None:
    """Nothing changes for an adversary if every target person is of another group."""
    adversary, guess = case.component, case.ran()
    assert isinstance(adversary, Adversary)
    worlds = guess.inputs, hide_otherwise(guess.inputs)
    views = [HANDED["guess"](adversary, world, make_step(0))[0] for world in worlds]
    for view in views:
        for who, people, sights in (
            ("the target people", view.target, adversary.sees),
            ("the attack set", view.attack, adversary.sees | {"sensitive"}),
        ):
            assert people.seen == sights, (
                f"its view of {who} has {sorted(people.seen)}, but it sees {sorted(sights)}"
            )
    where = find_difference(*views)
    assert not where, f"its input depends on the groups that it must guess: {where!r}"
    other = watch(lambda copied: case.stage.run(adversary, copied, 0), worlds[1])
    if other.error is not None:
        raise other.error
    where = find_difference(guess.result, other.result)
    assert not where, (
        f"it knows the groups that it must guess: {where!r} of its guess depends on them, not "
        "only on its input"
    )


def _gives_declared_results(case: Case) -> None:
    watched = case.ran()
    case.stage.check(case.component, watched.inputs, transfer(watched.result, "its result"))


def _uses_own_names(case: Case) -> None:
    measures, guarantee = case.stage.words(case.ran().result)
    sources = [ComponentWords(case.entry.kind, case.entry.name, values) for values in measures]
    try:
        make_row({}, sources, guarantee)
    except PluginError as error:
        raise AssertionError(str(error)) from None


_CHANGED = 5
"""Number of held-out people whose group is changed, one at a time."""


def _holds_out(case: Case) -> None:
    """A held-out person's belief is learnt from others: it stays if the person's group changes."""
    adversary, watched = case.component, case.ran()
    assert isinstance(adversary, Adversary)
    split, guess = watched.inputs[0], watched.result
    rows = np.asarray(guess.held_out)
    if not len(rows):
        raise Inapplicable("it holds nobody out of the small attack set")
    codes, k = split.attack.sensitive, len(split.attack.groups)
    for row in rows[np.linspace(0, len(rows) - 1, min(_CHANGED, len(rows))).astype(np.intp)]:
        other = np.where(np.arange(len(codes)) == row, (codes + 1) % k, codes).astype(codes.dtype)
        people = split.attack.having(sensitive=other)
        again = watch(
            lambda copied: case.stage.run(adversary, copied, 0),
            (replace(split, attack=people), *watched.inputs[1:]),
        )
        if again.error is not None:
            raise again.error
        before, after = (_find_held_out(one, row) for one in (guess, again.result))
        if before is not None and after is not None:
            assert np.allclose(before, after, rtol=0, atol=_NEAR), (
                f"it learnt from people that it holds out: its belief about row {row} of the "
                f"attack set follows this person's own group ({before} becomes {after}); hold rows "
                "out before learning"
            )


_NEAR = 1e-6
"""Greatest difference of beliefs that count as the same."""


def _find_held_out(guess: Guess, row: int) -> NDArray[np.float64] | None:
    """What a guess believes about a held-out row: (K,), or (2,) guess and confidence; or None."""
    place = np.flatnonzero(np.asarray(guess.held_out) == row)
    if not len(place):
        return None
    if guess.held_out_beliefs is not None:
        return np.asarray(guess.held_out_beliefs[place[0]])
    return np.array([guess.held_out_values[place[0]], guess.held_out_confidence[place[0]]])


def _repeats(case: Case) -> str | None:
    if getattr(case.component, "noise", "") == "secure":
        raise Inapplicable("its randomness is the operating system's and cannot be repeated")
    one, other = case.ran(), case.rerun()
    if other.error is not None:
        raise other.error
    here = dict(list_parts(one.result))
    where = find_first_difference(here, dict(list_parts(other.result)))
    assert not where, f"two runs with the same seed differ in {where!r}"
    there = case.run_in_other_process()
    if isinstance(there, NotTransferable):
        return f"tested in one process only: it cannot be sent to another: {there.reason}"
    assert not there.error, f"in another process it fails: {there.error}"
    where = find_first_difference(here, there.parts)
    assert not where, (
        f"in another process, the same seed differs in {where!r}: sets of texts have another "
        "order there, and hash() other values"
    )
    return None


def _leaves_generators_alone(case: Case) -> None:
    watched = case.watched()
    assert not watched.drew, f"it draws from or seeds the global generator of {watched.drew}"
    _require_complete_run(watched)


def _leaves_input_alone(case: Case) -> None:
    watched = case.watched()
    assert not watched.changed, f"it modifies its input: {watched.changed!r}"
    _require_complete_run(watched)


def _require_complete_run(watched: Watched) -> None:
    """Skip the law if the run ended early: the rest was not observed."""
    if watched.error is not None:
        raise Inapplicable(f"its run ends in an error: {type(watched.error).__name__}")


def _handles_several_groups(case: Case) -> None:
    if not case.stage.groups:
        raise Inapplicable("its groups are fixed")
    try:
        case.check_runnable(2)
    except Inapplicable as why:
        raise Inapplicable(f"it cannot run even with two: {why}") from None
    try:
        watched = case.watched(3)
    except Inapplicable:
        return  # refused at planning, with a reason
    if isinstance(watched.error, FpbenchError) and not isinstance(watched.error, HiddenError):
        assert str(watched.error).strip(), "it refuses three groups without a reason"
        return
    if watched.error is not None:
        raise watched.error
    case.stage.check(case.component, watched.inputs, watched.result)


def _fits_many(case: Case) -> None:
    """Compare models of `fit_many` with those of `fit`, on disjoint halves of the people."""
    learner = case.component
    assert isinstance(learner, Learner)
    if type(learner).fit_many is Learner.fit_many:
        return  # its models are those of `fit`
    case.check_runnable(2)
    people = make_cell_inputs(2).split.train
    cells = people.labels.astype(np.int64) * len(people.groups) + people.sensitive
    members = draw_halves(cells, 4, np.random.default_rng(0))
    rngs = np.random.default_rng(1).spawn(len(members))
    seen = people.only(learner.needs)
    models = learner.fit_many(seen, members, rngs)
    assert len(models) == len(members), f"it gives {len(models)} models, not {len(members)}"
    for number, (model, chosen) in enumerate(zip(models, members, strict=True)):
        rng = np.random.default_rng(1).spawn(len(members))[number]
        alone = learner.fit(seen.take(np.flatnonzero(chosen)), rng)
        one, other = (
            Learner.score_many(learner, [each], people, np.random.default_rng(2))[0]
            for each in (model, alone)
        )
        off = float(np.abs(one - other).max())
        assert off <= 1e-6, f"model {number} of fit_many differs from that of fit by {off:.2g}"
    scores = (
        ask(learner, models, people, np.random.default_rng(2))
        for ask in (type(learner).score_many, Learner.score_many)
    )
    off = float(np.abs(np.subtract(*scores)).max())
    assert off <= 1e-6, f"score_many differs from the models by {off:.2g}"


def _refuses(case: Case) -> None:
    component = case.component
    if component.unavailable():
        raise Inapplicable(str(component.unavailable()))
    attempts = list(case.stage.attempts(component, case.home))
    if not attempts:
        raise Inapplicable("there is no bad input for it")
    for what, call in attempts:
        try:
            call()
        except FpbenchError as error:
            if not str(error).strip():
                raise AssertionError(f"{what}: its error has no message") from None
        except AssertionError as failure:
            raise AssertionError(f"{what}: {failure}") from None
        except (Exception, SystemExit) as error:  # this law forbids any other error
            raise AssertionError(
                f"{what}: raises {type(error).__name__} instead of FpbenchError: {error}"
            ) from None


def _agrees_with_brute_force(case: Case) -> None:
    case.check_runnable(2)
    corrector = case.component
    assert isinstance(corrector, Corrector)
    answers = []
    for k in (2, 3):
        for problem in make_problems(corrector.expresses, k):
            try:
                answer = corrector.correct(problem)
            except InputError:
                continue  # refused, with a reason
            wrong = judge(problem, answer)
            assert not wrong, wrong
            answers += [answer] if answer.values is not None else []
    assert answers, "it answers no small problem with a constraint that it declares to express"
    if all(answer.status is None for answer in answers):
        raise Inapplicable("its answers have no status, so they make no claim to check")


def _withstands_attacks(case: Case) -> None:
    """Attack it at several epsilons, separately and in one call; noise must depend on the seed."""
    mechanism = case.component
    assert isinstance(mechanism, Mechanism)
    one, other = case.ran(seed=0), case.ran(seed=1)
    assert find_difference(one.result, other.result), "its noise is the same for every seed"
    relations = list_relations(mechanism)
    attacked = list(_attack_epsilons(mechanism, relations))
    assert attacked, f"it refuses every epsilon of {', '.join(map(str, _EPSILONS))}"
    if len(attacked) == len(_EPSILONS):
        _attack_side_by_side(mechanism)


def _draws_secure_noise(case: Case) -> None:
    """Secure noise ignores the generator, differs each time, and withstands attacks."""
    try:
        secure, _ = case.build_with({**case.parameters, "noise": "secure"})
    except InputError:
        return  # it refuses secure noise
    assert isinstance(secure, Mechanism)
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    counts = np.full((32, 2), 5)
    one, other = (
        secure.release(counts, COUNT_SENSITIVITY["attribute"], 1.0, rng, 10) for _ in range(2)
    )
    assert rng.bit_generator.state == before, 'noise = "secure" is drawn from the seeded generator'
    assert (one != other).any(), 'noise = "secure" is the same for every release'
    if case.component != secure:  # otherwise it is attacked anyway
        list(_attack_epsilons(secure, NEIGHBOURS[:1], _EPSILONS[:1]))


def _attack_epsilons(
    mechanism: Mechanism,
    neighbours: tuple[Neighbours, ...],
    epsilons: tuple[float, ...] = _EPSILONS,
) -> Iterator[float]:
    """The epsilons at which it withstood an attack; it refuses the others."""
    force = _ATTACK_SETTINGS[mechanism.noise]
    for epsilon in epsilons:
        try:
            mechanism.guarantee(epsilon, neighbours[0])
        except InputError:
            continue
        check_mechanism(mechanism, epsilon=epsilon, neighbours=neighbours, **force)
        yield epsilon


def _attack_side_by_side(mechanism: Mechanism) -> None:
    """Attack releases at the least epsilon that are drawn in one call with the greatest."""
    least, greatest = min(_EPSILONS), max(_EPSILONS)
    relation = NEIGHBOURS[0]
    pair = PAIRS[relation][0]

    def release(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        prices = np.tile([[least], [greatest]], (len(counts), 1))
        both = np.repeat(counts, 2, axis=0)
        return mechanism.release(
            both, COUNT_SENSITIVITY[relation], prices, rng, upper=sum(pair[0])
        )[::2]

    claimed = mechanism.guarantee(least, relation)
    bound = epsilon_lower_bound(
        release,
        *pair,
        delta=claimed.delta,
        rng=np.random.default_rng(0),
        **_ATTACK_SETTINGS[mechanism.noise],
    )
    assert bound <= claimed.epsilon, (
        f"in an array of epsilons, the release at {least:g} has at least {bound:.4g}"
    )


def list_invalid_values(cls: type[Component]) -> Iterator[tuple[str, Any]]:
    """Parameters with invalid values: past a limit, or of another type."""
    slots = find_slot_kinds(cls)
    for name, schema in cls.model_json_schema().get("properties", {}).items():
        if name in slots:
            continue
        options = schema.get("anyOf", [schema])
        if not all(_TYPE_WORDS & option.keys() for option in options):
            yield name, {"no-such-parameter": 1}
        if all("type" in option for option in options):
            yield from (
                (name, wrong)
                for wrong in (
                    *_list_values_past_limits(options),
                    *_list_values_of_other_types(options),
                )
            )


def _list_values_of_other_types(options: list[dict[str, Any]]) -> Iterator[Any]:
    types = {option["type"] for option in options}
    if "array" in types:  # a single value may mean a list of one
        return
    yield from (value for name, value in _EXAMPLES.items() if name not in types)


def _list_values_past_limits(options: list[dict[str, Any]]) -> Iterator[Any]:
    """Values past the limits of a purely numeric parameter."""
    typed = [option for option in options if option["type"] != "null"]
    if len(typed) != 1 or typed[0]["type"] not in ("integer", "number"):
        return
    (schema,) = typed
    one = 1 if schema["type"] == "integer" else 1.0
    yield math.nan
    if "minimum" in schema:
        yield schema["minimum"] - one
    if "exclusiveMinimum" in schema:
        yield one * schema["exclusiveMinimum"]
    if "maximum" in schema:
        yield schema["maximum"] + one
    if "exclusiveMaximum" in schema:
        yield one * schema["exclusiveMaximum"]


LAWS: tuple[Law, ...] = (
    Law("registers", _registers),
    Law("describes itself: summary, citation, parameters", _describes_itself),
    Law("declares what it may see", _declares, _SEERS),
    Law("validates its parameters", _validates),
    Law("survives a round trip of its parameters", _survives_round_trip),
    Law("needs no more than it may see", _sees_only),
    Law("is shown what it declares, and never the truth", _sees_no_truth, frozenset({"adversary"})),
    Law("did not learn from people that it holds out", _holds_out, frozenset({"adversary"})),
    Law("gives results of the declared shape and range", _gives_declared_results),
    Law("measures under names of its own, no epsilon but the model's", _uses_own_names, _SPEAKERS),
    Law("is deterministic for a seed", _repeats),
    Law("leaves global random state alone", _leaves_generators_alone),
    Law("does not modify what it is given", _leaves_input_alone),
    Law("handles more than two groups, or refuses with a reason", _handles_several_groups),
    Law("trains many models as one by one", _fits_many, frozenset({"learner"})),
    Law("raises fpbench.FpbenchError on bad input", _refuses),
    Law("keeps its promise of privacy under attack", _withstands_attacks, frozenset({"mechanism"})),
    Law("draws secure noise apart, or refuses it", _draws_secure_noise, frozenset({"mechanism"})),
    Law("agrees with brute force", _agrees_with_brute_force, frozenset({"corrector"})),
)
"""All laws, in the order in which they are tested."""
