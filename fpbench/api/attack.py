"""Attribute inference against anybody's fitted model, for people without a matrix."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_methods
from fpbench.base.arguments import check_same_rows, check_whole_number, show_value, to_path
from fpbench.base.arrays import check_binary, to_plain
from fpbench.base.errors import InputError
from fpbench.base.sheet import html
from fpbench.base.text import percent
from fpbench.base.threads import use_one_thread
from fpbench.components.attack_kinds import Adversary, Corrector, Disclosure
from fpbench.components.by_name import resolve_component
from fpbench.components.names import Status
from fpbench.components.own_measures import GLOSSARY
from fpbench.components.records import CalibratedGuess, Predictions, Scores
from fpbench.components.sights import sights_of
from fpbench.data.groups import group_codes
from fpbench.data.sample import Codes, Sample, Split
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING
from fpbench.matrix.step import Step
from fpbench.models.model_outputs import ask_predictions
from fpbench.results.leaderboard import Leaderboard, sheet
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.sentences import list_words
from fpbench.results.snapshot import Snapshot
from fpbench.store.results import Results

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from fpbench.report.figures import Figure

_CLAIM: Mapping[str, Any] = {"use": "published", "metric": "statistical-parity"}
_SEEN = sights_of("adversary") - {"query", "twin"}
"""What can be shown of a model that is not trained here."""
_LEAST_KNOWN = 10
"""People whose group is known, at least: some train the adversary, and some calibrate it."""
_MISSING = "(missing)"
_RANK_BY = "with_accuracy"


@check_methods
@dataclass(frozen=True, eq=False)
class AttackResult:
    """What an attack on a model found out; prints itself in at most three sentences and a note.

    Attributes
    ----------
    people
        A row for each person who was attacked at some seed, with the index of X. Whose group the
        adversary knows at every seed is not among them: more seeds leave out fewer, half as many
        each where half are known. `group`: the true one.
        `attacks`: the number of seeds at which the person was attacked. `risk`: the mean
        probability that the adversary assigns to the true group, given the disclosure if the
        corrector gives beliefs (`posterior` does), else before it. `guessed_right`: the share of
        these seeds at which the corrected guess was right. `proven`: whether the group
        followed from the disclosure, whatever anybody believes.
    rows
        A row for each seed: `seed` and all measures of an attack (`docs/measures.md`).
    disclosed
        Whether anything was disclosed besides what the adversary sees of the model.
    never_attacked
        Number of people who are not among `people`.
    """

    people: DataFrame
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    disclosed: bool
    never_attacked: int = 0

    @cached_property
    def _snapshot(self) -> Snapshot:
        rows = add_comparisons(Results.of(self.rows, GLOSSARY))
        return Snapshot(Path(), "", _RANK_BY, rows)

    def frame(self) -> DataFrame:
        """The rows as a data frame, one a seed."""
        return self._snapshot.results.frame()

    def leaderboard(self) -> Leaderboard:
        """The attack as a line of a leaderboard: means over seeds, and their intervals."""
        return self._snapshot.leaderboard()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, as a leaderboard says it."""
        if self.disclosed:
            return self.leaderboard().sentences
        largest, right = (
            percent(float(np.mean([row[name] for row in self.rows])))
            for name in ("majority_accuracy", "without_accuracy")
        )
        seen = list_words(str(self.rows[0]["adversary_sees"]).split(", "))
        return (
            f"Naming the largest group is right for {largest} %.",
            f"From {seen} the attack guesses {right} % ({self.rows[0]['adversary']}).",
        )

    @property
    def _notes(self) -> tuple[str, ...]:
        """Whom `people` leaves out."""
        if not self.never_attacked:
            return ()
        return (
            f"people has {len(self.people):,} of {len(self.people) + self.never_attacked:,}: the "
            "adversary knew the groups of the others at every seed",
        )

    def figures(self) -> dict[str, str]:
        """The figures of the attack: titles by name."""
        return {one.name: one.title for one in self._draw()}

    def figure(
        self, name: str, output: str | Path | None = None, *, width: float | None = None
    ) -> Path:
        """Draw a figure: `people`, everybody's risk by group, or `waterfall`.

        Parameters
        ----------
        name
            One of `figures()`.
        output
            A .pdf, .svg or .png file; NAME.pdf if None.
        width
            Inches; by default as wide as it needs to be.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If there is no such figure, matplotlib is not installed (extra `figures`), or the file
            cannot be written.
        """
        from fpbench.report.ideas import choose_figure
        from fpbench.report.writing import write_one

        file = None if output is None else to_path("output", output)
        return write_one(lambda: choose_figure(self._draw(), name, "the attack"), name, file, width)

    def _draw(self) -> list[Figure]:
        from fpbench.report.attack_figures import attack_figures

        return attack_figures(self.people, self.leaderboard().waterfall)

    def __str__(self) -> str:
        return "\n".join([*self.sentences, *self._notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        board = sheet(self.leaderboard())
        return html([replace(board, notes=(*board.notes, *self._notes))])


def attack(
    model: Any,
    X: DataFrame | ArrayLike,
    y: ArrayLike,
    groups: ArrayLike | DataFrame,
    *,
    known: float | ArrayLike = 0.5,
    positive: Any = None,
    adversary: str | Mapping[str, Any] | Adversary = "a2",
    disclosure: str | Mapping[str, Any] | Disclosure | None = _CLAIM,
    corrector: str | Mapping[str, Any] | Corrector = "posterior",
    seeds: int | Sequence[int] = 5,
) -> AttackResult:
    """How well an adversary guesses people's group from a fitted model and what is said of it.

    The adversary knows the groups of some of the people, learns from them, and guesses those of the
    others, first without and then with the disclosure. The model is only asked, never trained.

    Parameters
    ----------
    model
        Anything with `predict`, such as a scikit-learn pipeline, for people as X has them; or its
        predictions (n,).
    X
        Features of n people, a data frame or (n, d). Texts, truth values and dates may be among
        them, and values may be missing; columns of one value are left out for the adversary.
    y
        (n,) true labels, of two values.
    groups
        (n,) the sensitive attribute, or a data frame of several, which are crossed.
    known
        Whose groups the adversary knows: a share of the people, drawn anew for each seed; or (n,)
        truth values.
    positive
        The label that counts as 1; by default the model's second class, or the larger value.
    adversary
        A name, a table with `use` and parameters, or a component, that sees no more than features,
        labels, predictions and scores (for which the model needs `predict_proba`).
    disclosure
        What is published: a name, a table or a component; None for nothing. By default the true
        claim that rates of predictions differ no more between groups than they do.
    corrector
        What uses the disclosure, if there is one: a name, a table or a component.
    seeds
        Number of repetitions, or the seeds.

    Raises
    ------
    InputError
        If an argument is not as described, or too few people of a group are known or attacked.

    Examples
    --------
    >>> import fpbench, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 400)
    >>> X = np.column_stack([rng.normal(sex == "m", 0.4), rng.normal(size=400)])
    >>> y = X.sum(axis=1) > 0.5
    >>> result = fpbench.attack(LogisticRegression().fit(X, y), X, y, sex, seeds=2)
    >>> bool(result.people["risk"].mean() > 0.7)
    True
    """
    check_same_rows(X=X, y=y, groups=groups, model=model, known=known)
    frame, features = _read_features(X)
    n = len(frame)
    labels, classes = _read_labels(model, y, positive, n)
    codes, names = _read_groups(groups, n)
    parts = _draw_known(known, seeds, codes, names)
    adversary, corrector, disclosure = _resolve(adversary, corrector, disclosure)
    predictions = _predict(model, X, classes, n)
    columns: dict[str, Any] = {"labels": labels, "predictions": predictions, "sensitive": codes}
    if "scores" in adversary.sees:
        columns["scores"] = _predict_scores(model, X, classes, n)
    everyone = Sample(names, features=features, **columns)
    labels_of_row = {
        "dataset": "your people", "learner": "your model", "adversary": adversary.name,
        "disclosure": disclosure.name if disclosure else "nothing", "corrector": corrector.name,
    }  # fmt: skip
    rows, tally = [], _Tally(n)
    for seed, told in parts:
        target = everyone.take(np.flatnonzero(~told))
        split = Split(target, target, everyone.take(np.flatnonzero(told)))
        started = time.perf_counter()
        with use_one_thread():  # as the workers of a run have: the same numbers, and no waiting
            measures, outcome = _attack_once(
                split, adversary, disclosure, corrector, seed, tuple(labels_of_row.items())
            )
        seconds = time.perf_counter() - started
        rows.append({
            "cell": "", **labels_of_row, "seed": seed, "status": Status.DONE, "reason": None,
            "seconds": seconds, **measures,
        })  # fmt: skip
        tally.add(np.flatnonzero(~told), target.sensitive, outcome)
    people = tally.frame(frame, codes, names)
    return AttackResult(people, tuple(rows), disclosure is not None, n - len(people))


class _Outcome(NamedTuple):
    """What one attack came to about n people."""

    guess: Codes
    """(n,) the groups that it names in the end."""
    beliefs: NDArray[np.float64]
    """(n, K)."""
    proven: NDArray[np.bool_]
    """(n,)."""


class _Tally:
    """What was found out about each person, over seeds."""

    def __init__(self, people: int) -> None:
        self._attacks = np.zeros(people, np.int64)
        self._risk = np.zeros(people)
        self._right = np.zeros(people)
        self._proven = np.zeros(people, np.bool_)

    def add(self, rows: NDArray[np.intp], truth: Codes, outcome: _Outcome) -> None:
        """Count one seed: the people attacked, and (n,) their groups."""
        self._attacks[rows] += 1
        self._risk[rows] += outcome.beliefs[np.arange(len(rows)), truth]
        self._right[rows] += outcome.guess == truth
        self._proven[rows] |= outcome.proven

    def frame(self, X: DataFrame, codes: Codes, names: tuple[str, ...]) -> DataFrame:
        """A row for each person who was attacked."""
        import pandas as pd

        attacked = np.flatnonzero(self._attacks)
        times = self._attacks[attacked]
        return pd.DataFrame(
            {
                "group": np.array(names, object)[codes[attacked]],
                "attacks": times,
                "risk": self._risk[attacked] / times,
                "guessed_right": self._right[attacked] / times,
                "proven": self._proven[attacked],
            },
            index=X.index[attacked],
        )


def _attack_once(
    split: Split,
    adversary: Adversary,
    disclosure: Disclosure | None,
    corrector: Corrector,
    seed: int,
    uses: tuple[tuple[str, str], ...],
) -> tuple[Mapping[str, Any], _Outcome]:
    """The measures of one attack, and what it came to.

    What is done is what the steps of a matrix do.
    """
    target, told = split.train, split.attack
    predictions = Predictions(target.predictions, target.predictions, told.predictions, None)

    def do(action: str, component: Any, parents: tuple[Any, ...]) -> Any:
        step = Step("", f"attack {seed} {action}", action, None, (), uses=uses)
        handed = HANDED[action](component, parents, step) if action in HANDED else parents
        answer = ACTIONS[action](component, handed, step)
        measure = MEASURING.get(action)
        return answer if measure is None else measure(answer, handed, step)

    shown: list[Any] = [predictions] if "predictions" in adversary.sees else []
    if "scores" in adversary.sees:
        shown.append(Scores(target.scores, told.scores))
    of_target = target.only(_OF_PEOPLE)
    bare = Split(of_target, of_target, told.only(_OF_PEOPLE))
    if adversary.tunes_once:
        shown.append(do("tune", adversary, (bare,)))
    guess: CalibratedGuess = do("guess", adversary, (bare, *shown))
    claim = do("disclose", disclosure, (bare, predictions)) if disclosure else None
    corrected = do("correct", corrector, (bare, predictions, guess, claim))
    measures = do("score", None, (bare, predictions, guess, claim, corrected))
    correction = corrected[0]
    beliefs = guess.beliefs if correction.posterior is None else correction.posterior
    named = guess.values if correction.values is None else correction.values
    assert beliefs is not None
    proven = np.zeros(len(target), np.bool_)
    if claim is not None and claim.possible is not None:
        proven = claim.possible.sum(axis=1) == 1
    return measures, _Outcome(named, beliefs, proven)


_OF_PEOPLE = frozenset({"features", "labels", "sensitive"})


def _resolve(
    adversary: Any, corrector: Any, disclosure: Any
) -> tuple[Adversary, Corrector, Disclosure | None]:
    """The components, of which nothing is asked that a given model cannot do."""
    attacker = resolve_component("adversary", adversary)
    repairer = resolve_component("corrector", "none" if disclosure is None else corrector)
    published = None if disclosure is None else resolve_component("disclosure", disclosure)
    assert isinstance(attacker, Adversary)
    assert isinstance(repairer, Corrector)
    assert isinstance(published, Disclosure | None)
    if more := sorted(attacker.sees - _SEEN - {"sensitive"}):
        raise InputError(
            f"adversary: {attacker.name!r} sees {', '.join(more)}, which takes a learner in a "
            "matrix; choose one that sees features, labels, predictions or scores, such as 'a2'"
        )
    if published is not None and published.needs_model:
        raise InputError(
            f"disclosure: {published.name!r} is read from a model that a matrix trains; publish "
            "something else, such as 'published', or use a matrix"
        )
    return attacker, repairer, published


def _read_features(X: Any) -> tuple[DataFrame, DataFrame]:
    """The people as given, and numbers and categoricals of them for the adversary."""
    import pandas as pd

    if isinstance(X, type) or X is None or isinstance(X, str | bytes | Mapping):
        raise InputError(f"X must be a data frame or (n, d) numbers, not {show_value(X)}")
    try:
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    except ValueError:
        raise InputError("X must be a data frame or (n, d) values, one row a person") from None
    if frame.columns.duplicated().any():
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(f"X has two columns {str(twice)!r}: rename one")
    columns = {str(name): _read_column(frame[name]) for name in frame.columns}
    kept = {name: column for name, column in columns.items() if column.nunique() > 1}
    if not kept:
        raise InputError(f"X: none of its {len(columns)} columns has two values")
    return frame, pd.DataFrame(kept).reset_index(drop=True)


def _read_column(column: Series) -> Series:
    """A column as numbers, in which some may be missing, or as a categorical without gaps."""
    import pandas as pd
    from pandas.api import types

    if types.is_datetime64_any_dtype(column.dtype):
        column = (column - column.min()).dt.total_seconds()
    if types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype):
        numbers = column.astype(np.float64)
        if np.isinf(numbers).any():
            raise InputError(f"X: column {str(column.name)!r} holds infinite numbers")
        return numbers
    texts = column.astype(object).map(str, na_action="ignore").fillna(_MISSING)
    return pd.Series(pd.Categorical(texts), index=column.index)


def _read_labels(model: Any, y: Any, positive: Any, n: int) -> tuple[Codes, tuple[Any, Any]]:
    """Labels (n,) in {0, 1}, and the two values that they stand for."""
    values = to_plain("y", y)
    if values.shape != (n,):
        raise InputError(f"y must be ({n},) labels, one for each row of X, not {values.shape}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise InputError(f"y: row {row} is missing; leave out people without a value")
    values = values.astype(object)
    distinct = sorted(set(values.tolist()), key=lambda value: (str(type(value)), value))
    known_classes = [*getattr(model, "classes_", ())]
    classes = known_classes if len(known_classes) == 2 else distinct
    if len(distinct) != 2 or set(distinct) - set(classes):
        raise InputError(
            f"y must have two values{', as the model has' if known_classes else ''}, not "
            f"{', '.join(map(repr, distinct[:5]))}"
        )
    second = classes[1] if positive is None else positive
    labels = check_binary("y", values, second)
    first = next(value for value in classes if value != second)
    return labels, (first, second)


def _read_groups(groups: Any, n: int) -> tuple[Codes, tuple[str, ...]]:
    try:
        codes, names = group_codes(groups)
    except InputError as error:
        raise InputError(f"groups: {error}") from None
    if len(codes) != n:
        raise InputError(f"groups: has {len(codes)} people, and X has {n} rows")
    return codes.astype(np.int64), names


def _predict(model: Any, X: Any, classes: tuple[Any, Any], n: int) -> Codes:
    """(n,) predictions in {0, 1}."""
    name, answer = "model", model
    if hasattr(model, "predict"):
        name, answer = "predictions of the model", ask_predictions(model, X)
    answer = to_plain(name, answer)
    if answer.shape != (n,):
        what = "the model predicts" if hasattr(model, "predict") else "model, as it has no predict,"
        raise InputError(f"{what} {answer.shape} values, and X has {n} rows")
    known = np.isin(answer.astype(object), np.array(classes, object))
    if not known.all():
        other = answer.astype(object)[~known][0]
        raise InputError(
            f"the model predicts {other!r}, and labels are {classes[0]!r} and {classes[1]!r}"
        )
    return check_binary(name, answer, classes[1])


def _predict_scores(model: Any, X: Any, classes: tuple[Any, Any], n: int) -> NDArray[np.float64]:
    """(n,) probabilities of the positive label."""
    if not hasattr(model, "predict_proba"):
        raise InputError(
            "model: has no predict_proba, and the adversary sees scores; choose one that sees "
            "predictions, such as 'a2'"
        )
    answer = np.asarray(model.predict_proba(X), np.float64)
    if answer.shape != (n, 2) or not ((answer >= 0) & (answer <= 1)).all():
        raise InputError(f"model: predict_proba must give ({n}, 2) probabilities")
    second = [*getattr(model, "classes_", classes)].index(classes[1])
    column: NDArray[np.float64] = answer[:, second]
    return column


def _draw_known(
    known: Any, seeds: Any, codes: Codes, names: tuple[str, ...]
) -> list[tuple[int, NDArray[np.bool_]]]:
    """For each seed, (n,) whether the adversary knows a person's group."""
    n = len(codes)
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        check_whole_number("seeds", seeds, 1)
        numbers = list(range(int(seeds)))
    else:
        numbers = [*seeds] if np.iterable(seeds) and not isinstance(seeds, str | bytes) else []
        if not numbers:
            raise InputError(f"seeds must be a number, or seeds, not {show_value(seeds)}")
        for number in numbers:
            check_whole_number("seeds", number, 0)
    chosen = np.asarray(known)
    if chosen.ndim == 0:
        if chosen.dtype.kind not in "iuf" or not 0 < chosen < 1:
            raise InputError(f"known: must be a share between 0 and 1, not {show_value(known)}")
        drawn = [
            (number, np.random.default_rng([number, n]).permutation(n) < round(float(chosen) * n))
            for number in numbers
        ]
    elif chosen.shape != (n,) or chosen.dtype.kind != "b":
        raise InputError(f"known: must be a share or ({n},) truth values, not {show_value(known)}")
    else:
        drawn = [(number, chosen) for number in numbers]
    for _, told in drawn:
        if told.sum() < _LEAST_KNOWN:
            raise InputError(f"known: {told.sum()} people are too few to learn from")
        for whose, part in (("whose groups are known", told), ("who are attacked", ~told)):
            counts = np.bincount(codes[part], minlength=len(names))
            if not counts.all():
                name = names[int(np.argmin(counts))]
                raise InputError(
                    f"known: nobody of group {name!r} is among those {whose}; merge rare groups, "
                    "or choose another share"
                )
    return drawn
