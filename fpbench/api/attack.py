"""Attribute inference against any fitted model, without a matrix."""

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
from fpbench.base.arguments import (
    check_columns_distinct,
    check_same_rows,
    check_whole_number,
    show_value,
    to_path,
)
from fpbench.base.arrays import (
    are_fractions,
    check_binary,
    check_present,
    explain_shape,
    list_values,
    suggest_binary,
    to_plain,
)
from fpbench.base.errors import InputError
from fpbench.base.sheet import write_html
from fpbench.base.text import format_percent, show_lines
from fpbench.base.threads import use_one_thread
from fpbench.claims.rates import is_metric
from fpbench.components.attack_kinds import Adversary, Corrector, Disclosure
from fpbench.components.beliefs import name_likeliest
from fpbench.components.by_name import resolve_component
from fpbench.components.names import Status
from fpbench.components.own_measures import GLOSSARY
from fpbench.components.records import CalibratedGuess, Predictions, Scores
from fpbench.components.sights import keep_model_sights, list_sights
from fpbench.data.groups import group_codes
from fpbench.data.sample import Codes, Sample, Split
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING
from fpbench.matrix.step import Step
from fpbench.models.model_outputs import read_predictions
from fpbench.results.leaderboard import Leaderboard, make_sheet
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.sentences import describe_added, list_words
from fpbench.results.snapshot import Snapshot
from fpbench.results.waterfall import make_waterfall_sheet
from fpbench.store.results import Results

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from fpbench.page.figures import Figure

_CLAIM: Mapping[str, Any] = {"use": "published", "metric": "statistical-parity"}
_SEEN = list_sights("adversary") - {"query", "twin"}
"""Sights that need no learner: the model is not trained here."""
_LEAST_KNOWN = 10
"""Least number of known people: some train the adversary, and some calibrate it."""
_MISSING = "(missing)"
_RANK_BY = "with_accuracy"


@check_methods
@dataclass(frozen=True, eq=False)
class AttackResult:
    """The result of an attack on a model; prints itself in at most three sentences and a note.

    Attributes
    ----------
    people
        A row for each person who was attacked at some seed, with the index of X. People whose group
        is known at every seed are missing: if half are known, each further seed halves their
        number. `group`: the true group.
        `attacks`: the number of seeds at which the person was attacked. `risk`: the mean
        probability that the adversary assigns to the true group, given the disclosure if the
        corrector gives beliefs (`posterior` does), else before it. `guessed_right`: the share of
        these seeds at which the corrected guess was right. `proven`: whether the disclosure implied
        the group, whatever the beliefs.
    rows
        A row for each seed: `seed` and all measures of an attack (`docs/measures.md`). The
        accuracies are, step by step, `majority_accuracy`, of always guessing the largest group;
        `without_model_accuracy`, from features and labels alone, if the adversary sees these and
        the model's output; `without_accuracy`, from all that it sees; and `with_accuracy`, given
        the disclosure too.
    disclosed
        Whether anything was disclosed besides the model's output.
    never_attacked
        Number of people who are not in `people`.
    warnings
        Problems that distort the attack, such as groups among the features.
    """

    people: DataFrame
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    disclosed: bool
    never_attacked: int = 0
    warnings: tuple[str, ...] = ()

    @cached_property
    def _snapshot(self) -> Snapshot:
        rows = add_comparisons(Results.of(self.rows, GLOSSARY))
        return Snapshot(Path(), "", _RANK_BY, rows)

    def frame(self) -> DataFrame:
        """The rows as a data frame, one per seed."""
        return self._snapshot.results.frame()

    def leaderboard(self) -> Leaderboard:
        """The attack as a leaderboard of one line: means over seeds, with intervals."""
        return self._snapshot.leaderboard()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The results: largest group, without and with the model, with the disclosure."""
        largest = format_percent(self._average("majority_accuracy"))
        first = f"Naming the largest group is right for {largest} %."
        disclosed = self.leaderboard().sentences[2:] if self.disclosed else ()
        # The caller of `attack` has published nothing yet.
        claim = f"Publishing a true claim of {self.rows[0].get('claim_metric')}"
        meant = (text.replace("The published claim", claim, 1) for text in disclosed)
        return (first, self._describe_model(), *meant)

    @property
    def _opening(self) -> tuple[str, ...]:
        """Warnings, then the sentences."""
        return (*(f"warning: {text}." for text in self.warnings), *self.sentences)

    def _describe_model(self) -> str:
        """The accuracy without the model, and what the model adds."""
        row, right = self.rows[0], format_percent(self._average("without_accuracy"))
        name, seen = row["adversary"], str(row["adversary_sees"]).split(", ")
        said = list_words([one for one in seen if one in keep_model_sights(seen)])
        known = list_words([one for one in seen if one not in keep_model_sights(seen)])
        if not said:
            from_known = f"From {known or 'nothing'} the attack guesses {right} % ({name})"
            return f"{from_known}, which does not look at the model."
        if not known:
            return f"From {said} the attack guesses {right} % ({name})."
        before = self._average("without_model_accuracy")
        added = np.array([row["without_accuracy"] - row["without_model_accuracy"]
                          for row in self.rows])  # fmt: skip
        return (
            f"From {known} the attack guesses {format_percent(before)} % ({name}), and with the "
            f"model's {said} {right} %: the model {describe_added(added, added[None])}."
        )

    def _average(self, name: str) -> float:
        """The mean of a measure over seeds."""
        return float(np.mean([row[name] for row in self.rows]))

    @property
    def _notes(self) -> tuple[str, ...]:
        """A note about the people missing in `people`."""
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
            Width in inches; by default the content decides.

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
        from fpbench.page.ideas import choose_figure
        from fpbench.page.writing import write_one

        file = None if output is None else to_path("output", output)
        return write_one(lambda: choose_figure(self._draw(), name, "the attack"), name, file, width)

    def _draw(self) -> list[Figure]:
        from fpbench.page.ideas import attack_figures

        return attack_figures(self.people, self.leaderboard().waterfall)

    def __str__(self) -> str:
        return show_lines([*self._opening, *self._notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The HTML for notebooks."""
        board = self.leaderboard()
        table = replace(make_sheet(board), opening=self._opening)
        bars = [] if board.waterfall is None else [make_waterfall_sheet(board.waterfall)]
        return write_html([replace(table, notes=(*table.notes, *self._notes)), *bars])


def attack(
    model: Any,
    X: DataFrame | ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | DataFrame,
    *,
    known: float | ArrayLike = 0.5,
    positive: Any = None,
    adversary: str | Mapping[str, Any] | Adversary = "a2",
    disclosure: str | Mapping[str, Any] | Disclosure | None = _CLAIM,
    corrector: str | Mapping[str, Any] | Corrector = "posterior",
    seeds: int | Sequence[int] = 6,
) -> AttackResult:
    """How well an adversary guesses people's groups from a fitted model and claims about it.

    The adversary knows the groups of some of the people, learns from them, and guesses those of the
    others: from features and labels alone, then with the model's output, then with the disclosure.
    So the result separates what the model gives away from what is known without it. The model is
    only queried, never trained.

    Parameters
    ----------
    model
        Anything with `predict`, such as a scikit-learn pipeline, that accepts X; or its predictions
        (n,).
    X
        Features of n people, a data frame or (n, d). It may have texts, booleans, dates and missing
        values; the adversary does not see constant columns. A column that reveals everybody's group
        gives a warning: the adversary reads the group there.
    labels
        (n,) true labels, of two values.
    groups
        (n,) the sensitive attribute, or a data frame of several, which are crossed.
    known
        The people whose groups the adversary knows: a share, drawn for each seed; or (n,) booleans.
    positive
        The label that counts as 1; needed if labels are not 0 and 1 or booleans.
    adversary
        A name, a table with `use` and parameters, or a component. It may see only features, labels,
        predictions and scores (for which the model needs `predict_proba`).
    disclosure
        What is published: a name, a table or a component; None for nothing. By default a true claim
        of the unfairness of the predictions.
    corrector
        The corrector that uses any disclosure: a name, a table or a component.
    seeds
        Number of repetitions, or the seeds; fewer than 6 can never be significant.

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
    check_same_rows(X=X, labels=labels, groups=groups, model=model, known=known)
    frame, features = _read_features(X)
    n = len(frame)
    codes, names = _read_groups(groups, n)
    truth, classes = _read_labels(model, labels, positive, n, names)
    parts = _draw_known(known, _read_seeds(seeds), codes, names)
    adversary, corrector, disclosure = _resolve(adversary, corrector, disclosure)
    predictions = _predict(model, X, classes)
    columns: dict[str, Any] = {"labels": truth, "predictions": predictions, "sensitive": codes}
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
        with use_one_thread():  # like the workers of a run: the same numbers, and no waiting
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
    seen = {"features": features, "labels": truth}
    warnings = _warn_of_groups({name: seen[name] for name in seen if name in adversary.sees},
                               frame.columns.tolist(), groups, codes, named=frame is X)  # fmt: skip
    return AttackResult(
        people, tuple(rows), disclosure is not None, n - len(people), tuple(warnings)
    )


class _Outcome(NamedTuple):
    """The result of one attack on n people."""

    guess: Codes
    """(n,) the finally guessed groups."""
    beliefs: NDArray[np.float64]
    """(n, K) the final probability of each group."""
    proven: NDArray[np.bool_]
    """(n,)."""


class _Tally:
    """Sums of each person's results over seeds."""

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
    """The measures of one attack, and its result.

    It does the same as the steps of a matrix.
    """
    target, told = split.train, split.attack
    predictions = Predictions(target.predictions, target.predictions, told.predictions, None)

    def do(action: str, component: Any, parents: tuple[Any, ...]) -> Any:
        step = Step("", f"attack {seed} {action}", action, None, (), uses=uses)
        handed = HANDED[action](component, parents, step) if action in HANDED else parents
        answer = ACTIONS[action](component, handed, step)
        measure = MEASURING.get(action)
        return answer if measure is None else measure(answer, handed, step)

    of_target = target.only(_OF_PEOPLE)
    bare = Split(of_target, of_target, told.only(_OF_PEOPLE))
    tuned = [do("tune", adversary, (bare,))] if adversary.tunes_once else []
    guess: CalibratedGuess = do("guess", adversary, (bare, *_show(adversary, target, told), *tuned))
    claim = do("disclose", disclosure, (bare, predictions)) if disclosure else None
    corrected = do("correct", corrector, (bare, predictions, guess, claim))
    measures = do("score", None, (bare, predictions, guess, claim, corrected))
    if adversary.sees_without_model and adversary.sees_without_model < adversary.sees:
        silent = _show(adversary, _silence(target), _silence(told))
        blind: CalibratedGuess = do("guess", adversary, (bare, *silent, *tuned))
        assert blind.beliefs is not None
        right = name_likeliest(blind.beliefs)[0] == target.sensitive
        measures = {**measures, "without_model_accuracy": float(right.mean())}
    correction = corrected[0]
    beliefs = guess.beliefs if correction.posterior is None else correction.posterior
    named = guess.values if correction.values is None else correction.values
    assert beliefs is not None
    proven = np.zeros(len(target), np.bool_)
    if claim is not None and claim.possible is not None:
        proven = claim.possible.sum(axis=1) == 1
    return measures, _Outcome(named, beliefs, proven)


def _show(adversary: Adversary, target: Sample, told: Sample) -> list[Any]:
    """The model's output for people, as far as the adversary sees it."""
    shown: list[Any] = []
    if "predictions" in adversary.sees:
        ours = target.predictions
        shown.append(Predictions(ours, ours, told.predictions, None))
    if "scores" in adversary.sees:
        shown.append(Scores(target.scores, told.scores))
    return shown


def _silence(people: Sample) -> Sample:
    """The people with constant model output: an adversary on them lacks the model."""
    n = len(people)
    return people.having(predictions=np.zeros(n, np.int8), scores=np.full(n, 0.5))


_OF_PEOPLE = frozenset({"features", "labels", "sensitive"})


def _resolve(
    adversary: Any, corrector: Any, disclosure: Any
) -> tuple[Adversary, Corrector, Disclosure | None]:
    """The components; InputError if one needs more than a given model."""
    attacker = resolve_component("adversary", adversary)
    repairer = resolve_component("corrector", "none" if disclosure is None else corrector)
    if isinstance(disclosure, str) and is_metric(disclosure):
        raise InputError(
            f"disclosure: {disclosure!r} is a metric; to publish it, give "
            f"disclosure={{'use': 'published', 'metric': {disclosure!r}}}"
        )
    published = None if disclosure is None else resolve_component("disclosure", disclosure)
    assert isinstance(attacker, Adversary)
    assert isinstance(repairer, Corrector)
    assert isinstance(published, Disclosure | None)
    if more := sorted(attacker.sees - _SEEN - {"sensitive"}):
        raise InputError(
            f"adversary: {attacker.name!r} sees {', '.join(more)}, which needs a learner in a "
            "matrix; choose one that sees features, labels, predictions or scores, such as 'a2'"
        )
    if published is not None and published.needs_model:
        raise InputError(
            f"disclosure: {published.name!r} is read from a model that a matrix trains; publish "
            "something else, such as 'published', or use a matrix"
        )
    return attacker, repairer, published


def _read_features(X: Any) -> tuple[DataFrame, DataFrame]:
    """The people as given, and their numbers and categoricals for the adversary."""
    import pandas as pd

    if isinstance(X, type) or X is None or isinstance(X, str | bytes | Mapping):
        raise InputError(f"X must be a data frame or (n, d) numbers, not {show_value(X)}")
    if hasattr(X, "predict"):
        raise InputError(f"X must be people, not {show_value(X)}: the model comes first")
    for convert in ("toarray", "to_pandas"):  # methods of SciPy's sparse matrices, and of polars
        if hasattr(X, convert):
            raise InputError(
                f"X must be a pandas data frame or (n, d) values, not {type(X).__name__}: give "
                f"X.{convert}()"
            )
    try:
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    except ValueError:
        raise InputError("X must be a data frame or (n, d) values, one row per person") from None
    check_columns_distinct("X has", frame.columns)
    columns = {str(name): _read_column(frame[name]) for name in frame.columns}
    kept = {name: column for name, column in columns.items() if column.nunique(dropna=False) > 1}
    if not kept:
        raise InputError(f"X: none of its {len(columns)} columns has two values")
    return frame, pd.DataFrame(kept).reset_index(drop=True)


def _read_column(column: Series) -> Series:
    """A column as numbers, possibly with missing ones, or as a complete categorical."""
    import pandas as pd
    from pandas.api import types

    column = column.infer_objects()  # for an array of texts and numbers
    if types.is_datetime64_any_dtype(column.dtype):
        column = (column - column.min()).dt.total_seconds()
    if types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype):
        numbers = column.astype(np.float64)
        if np.isinf(numbers).any():
            raise InputError(f"X: column {str(column.name)!r} holds infinite numbers")
        return numbers
    texts = column.astype(object).map(str, na_action="ignore").fillna(_MISSING)
    return pd.Series(pd.Categorical(texts), index=column.index)


def _read_labels(
    model: Any, labels: Any, positive: Any, n: int, names: tuple[str, ...]
) -> tuple[Codes, tuple[Any, Any]]:
    """Labels (n,) in {0, 1}, and the two original values."""
    values = to_plain("labels", labels)
    if values.ndim != 1:
        raise InputError(f"labels: {explain_shape(values)}")
    if len(values) != n:
        raise InputError(f"labels: has {len(values)} values, but X has {n} rows")
    check_present("labels", values)
    distinct = list(dict.fromkeys(values.tolist()))
    known_classes = [*getattr(model, "classes_", ())]
    of_model = len(known_classes) == 2
    classes = known_classes if of_model else distinct
    if len(distinct) < 2 or set(distinct) - set(classes):
        like = f", as the model has ({list_values(classes)})" if of_model else ""
        swapped = "; are labels and groups swapped?" if set(map(str, classes)) <= set(names) else ""
        raise InputError(f"labels must have two values{like}, not {list_values(distinct)}{swapped}")
    binary = check_binary("labels", values, positive, nameable=True)
    second = distinct[int(binary[0] == 0)]
    return binary, (next(value for value in classes if value != second), second)


def _read_groups(groups: Any, n: int) -> tuple[Codes, tuple[str, ...]]:
    codes, names = group_codes(groups, name="groups")
    if len(codes) != n:
        raise InputError(f"groups: has {len(codes)} people, but X has {n} rows")
    return codes.astype(np.int64), names


def _warn_of_groups(
    seen: Mapping[str, Any], names: list[Any], groups: Any, codes: Codes, *, named: bool
) -> list[str]:
    """Warnings about visible columns that reveal everybody's group, or a crossed attribute.

    `seen`: `features`, a data frame, and `labels` (n,), if the adversary sees them. `names`: the
    columns of X, which are numbers unless `named`.
    """
    import pandas as pd

    attributes = [codes]
    if isinstance(groups, pd.DataFrame) and groups.shape[1] > 1:
        attributes = [pd.factorize(groups[name])[0] for name in groups.columns]
    features = seen.get("features", pd.DataFrame(index=range(len(codes))))
    telling = [name for name in names
               if str(name) in features
               and any(_tells(features[str(name)], each) for each in attributes)]  # fmt: skip
    warnings = []
    if telling:
        several = len(telling) > 1
        which = f"{'columns' if several else 'column'} {list_words([*map(show_value, telling)])}"
        left = f"X.drop(columns={telling})" if named else f"numpy.delete(X, {telling}, axis=1)"
        part = "" if len(attributes) == 1 else "a part of "
        warnings.append(
            f"{which} of X {'reveal' if several else 'reveals'} {part}everybody's group, which the "
            f"attack reads there; leave {'them' if several else 'it'} out to see what the model "
            f"reveals: fpbench.attack(model.predict(X), {left}, labels, groups)"
        )
    if "labels" in seen and any(_tells(pd.Series(seen["labels"]), each) for each in attributes):
        warnings.append("labels reveal everybody's group: are they the groups?")
    return warnings


_PEOPLE_PER_VALUE = 5
"""Least mean number of people per value: a column with more values identifies people."""


def _tells(column: Series, attribute: NDArray[Any]) -> bool:
    """Whether all people of the same value have the same value of an attribute (n,)."""
    import pandas as pd

    places, values = pd.factorize(column, use_na_sentinel=False)
    if len(values) * _PEOPLE_PER_VALUE > len(places):
        return False
    pairs = np.unique(places.astype(np.int64) * (int(attribute.max()) + 1) + attribute)
    return len(pairs) == len(values)


def _predict(model: Any, X: Any, classes: tuple[Any, Any]) -> Codes:
    """(n,) predictions in {0, 1}."""
    name, answer = read_predictions(model, X)
    known = np.isin(answer.astype(object), np.array(classes, object))
    if answer.ndim == 1 and not known.all():
        other = show_value(answer.astype(object)[~known][0])
        raise InputError(
            f"{name}: {other} is among them, but labels are {list_values(classes)}"
            + (suggest_binary(answer) if are_fractions(answer) else "; both need the same values")
        )
    return check_binary(name, answer, classes[1])


def _predict_scores(model: Any, X: Any, classes: tuple[Any, Any], n: int) -> NDArray[np.float64]:
    """(n,) probabilities of the positive label."""
    if not hasattr(model, "predict_proba"):
        raise InputError(
            "model: has no predict_proba, but the adversary sees scores; choose one that sees "
            "predictions, such as 'a2'"
        )
    answer = np.asarray(model.predict_proba(X), np.float64)
    if answer.shape != (n, 2) or not ((answer >= 0) & (answer <= 1)).all():
        raise InputError(f"model: predict_proba must give ({n}, 2) probabilities")
    second = [*getattr(model, "classes_", classes)].index(classes[1])
    column: NDArray[np.float64] = answer[:, second]
    return column


def _read_seeds(seeds: Any) -> list[int]:
    """The seeds."""
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        check_whole_number("seeds", seeds, 1)
        return list(range(int(seeds)))
    numbers = [*seeds] if np.iterable(seeds) and not isinstance(seeds, str | bytes) else []
    if not numbers:
        raise InputError(
            "seeds must be their number, such as 6, or a list of them, such as [0, 1], not "
            f"{show_value(seeds)}"
        )
    for number in numbers:
        check_whole_number("seeds", number, 0)
    return numbers


def _draw_known(
    known: Any, seeds: list[int], codes: Codes, names: tuple[str, ...]
) -> list[tuple[int, NDArray[np.bool_]]]:
    """For each seed, (n,) whether the adversary knows a person's group."""
    n = len(codes)
    chosen = to_plain("known", known)
    if chosen.ndim == 0:
        share = chosen.item()
        if chosen.dtype.kind not in "iuf" or not 0 < share < 1:
            hint = f"; {share} people are {share / n:.3g}" if chosen.dtype.kind in "iu" else ""
            raise InputError(
                f"known: must be a share between 0 and 1, not {show_value(known)}{hint}"
            )
        drawn = [
            (seed, np.random.default_rng([seed, n]).permutation(n) < round(share * n))
            for seed in seeds
        ]
    elif chosen.shape != (n,) or chosen.dtype.kind != "b":
        bits = chosen.shape == (n,) and np.isin(chosen, (0, 1)).all()
        mend = "(known == 1)" if bits else f"numpy.isin(range({n}), rows) of row numbers"
        raise InputError(
            f"known: must be a share, or True or False for each of {n} people, not "
            f"{show_value(known)}; give {mend}"
        )
    else:
        drawn = [(seed, chosen) for seed in seeds]
    for _, told in drawn:
        if told.sum() < _LEAST_KNOWN:
            raise InputError(
                f"known: {told.sum()} of {n} people are too few to learn from; use "
                f"{_LEAST_KNOWN} or more"
            )
        if told.all():
            raise InputError("known: is everybody, so nobody is left to attack")
        for whose, part in (("whose groups are known", told), ("who are attacked", ~told)):
            counts = np.bincount(codes[part], minlength=len(names))
            if not counts.all():
                name = names[int(np.argmin(counts))]
                raise InputError(
                    f"known: nobody of group {name!r} is among those {whose}; merge rare groups, "
                    "or choose another share"
                )
    return drawn
