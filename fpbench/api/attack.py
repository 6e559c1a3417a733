"""Attribute inference against any fitted model, without a matrix."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.api.given_model import PREDICTION, SCORE, read_answers
from fpbench.base.argument_types import check_methods
from fpbench.base.arguments import (
    check_columns_distinct,
    check_whole_number,
    count_rows,
    show_value,
    to_path,
)
from fpbench.base.arrays import to_plain
from fpbench.base.errors import InputError
from fpbench.base.sheet import write_html
from fpbench.base.text import format_percent, format_points, show_lines
from fpbench.base.threads import use_one_thread
from fpbench.claims.rates import is_metric
from fpbench.components.attack_kinds import Adversary, Corrector, Disclosure
from fpbench.components.beliefs import name_likeliest
from fpbench.components.names import Status
from fpbench.components.own_measures import GLOSSARY
from fpbench.components.records import CalibratedGuess, Predictions, Scores
from fpbench.components.sights import keep_model_sights, list_sights
from fpbench.components.spec import resolve_component
from fpbench.data.groups import group_codes
from fpbench.data.people import read_people
from fpbench.data.sample import Codes, Sample, Split
from fpbench.execution.work.actions import ACTIONS, HANDED, MEASURING
from fpbench.matrix.step import Step
from fpbench.models.model_outputs import choose_people
from fpbench.results.leaderboard import Leaderboard, make_sheet
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.sentences import list_words
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
_FEW = 200
"""Fewer people than this tell too little: the result says so."""


@check_methods
@dataclass(frozen=True, eq=False)
class AttackResult:
    """The result of an attack on a model; prints itself, the verdict first.

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
    added
        What the model adds to the share guessed right without it, and the ends of a 95 % interval
        over people; None if the adversary does not look at the model.
    never_attacked
        Number of people who are not in `people`.
    warnings
        Problems that distort the attack, such as groups among the features.
    notes
        What was assumed about the model and its labels.
    """

    people: DataFrame
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    disclosed: bool
    added: tuple[float, float, float] | None = None
    never_attacked: int = 0
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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
        """The verdict on the model, the accuracies behind it, and what the disclosure adds."""
        disclosed = self.leaderboard().sentences[2:] if self.disclosed else ()
        # The caller of `attack` has published nothing yet.
        claim = f"Publishing a true claim of {self.rows[0].get('claim_metric')}"
        meant = (text.replace("The published claim", claim, 1) for text in disclosed)
        return (*self._describe_model(), *meant)

    @property
    def _opening(self) -> tuple[str, ...]:
        """The verdict, warnings, then the other sentences."""
        verdict, *others = self.sentences
        return (verdict, *(f"warning: {text}." for text in self.warnings), *others)

    def _describe_model(self) -> tuple[str, str]:
        """What the model adds to what is known without it, and the accuracies."""
        row, right = self.rows[0], format_percent(self._average("without_accuracy"))
        largest = format_percent(self._average("majority_accuracy"))
        naming = f"naming the largest group is right for {largest} %"
        name, seen = row["adversary"], str(row["adversary_sees"]).split(", ")
        said = list_words([one for one in seen if one in keep_model_sights(seen)])
        known = list_words([one for one in seen if one not in keep_model_sights(seen)])
        if not said:
            return (
                f"The attack does not look at your model: from {known or 'nothing'} it guesses "
                f"{right} %.",
                f"It is {name}; {naming}.",
            )
        added, side = self._describe_added()
        if not known:
            return (
                f"Your model {added} {side} what naming the largest group gets right.",
                f"From its {said} the attack guesses {right} % ({name}); {naming}.",
            )
        before = format_percent(self._average("without_model_accuracy"))
        return (
            f"Your model {added} {side} what anybody guesses from the same people's {known}.",
            f"From {known} the attack guesses {before} % ({name}), and with the model's {said} "
            f"{right} %; {naming}.",
        )

    def _describe_added(self) -> tuple[str, str]:
        """What the model adds, and whether that is to or from what is guessed without it."""
        assert self.added is not None
        mean, low, high = self.added
        ends = f"95 %: {format_points(low)} to {format_points(high)}"
        if low <= 0 <= high:
            few = f"{len(self.people):,} people can tell"
            return f"adds nothing that {few} ({format_points(mean)} points, {ends})", "to"
        verb, side = ("adds", "to") if mean > 0 else ("takes away", "from")
        return f"{verb} {format_points(abs(mean)).lstrip('+')} points ({ends})", side

    def _average(self, name: str) -> float:
        """The mean of a measure over seeds."""
        return float(np.mean([row[name] for row in self.rows]))

    @property
    def _notes(self) -> tuple[str, ...]:
        """What was assumed, and whether people are too few."""
        n = len(self.people)
        if n + self.never_attacked >= _FEW:
            return self.notes
        return (
            f"Only {n:,} people are attacked: so few tell of great leaks only.",
            *self.notes,
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
    X: Any,
    labels: Any,
    groups: Any,
    *,
    known: Any = 0.5,
    positive: Any = None,
    threshold: float | None = None,
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
        (n,), or scores (n,) or (n, classes). It may predict classes, two or more, or numbers. One
        whose `predict` takes `sensitive_features`, as fairlearn's do, is given the groups.
    X
        Features of n people, a data frame of pandas, polars, Arrow or whatever narwhals reads, or
        (n, d). It may have texts, booleans, dates and missing values; the adversary does not see
        constant columns. A column that reveals everybody's group gives a warning: the adversary
        reads the group there.
    labels
        (n,) true labels, or numbers.
    groups
        (n,) the sensitive attribute, or a data frame of several, which are crossed; or the name of
        a column of X, or a list of names, which the adversary does not see then.
    known
        The people whose groups the adversary knows: a share, drawn for each seed; or (n,) booleans.
    positive
        The label that counts as 1, and that scores are of; by default the last of two classes, in
        the order of the model or sorted, and the largest of several.
    threshold
        The least score at which it is predicted, if the model gives scores; .5 by default.
    adversary
        A name, a table with `use` and parameters, or a component. It may see only features, labels,
        predictions and scores (for which the model needs `predict_proba`).
    disclosure
        What is published: a name, a table or a component; None for nothing. By default a true claim
        of the unfairness of the predictions; of a model of numbers, nothing.
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
    people, groups, given = read_people(X, groups, labels=labels, model=model, known=known)
    model = given["model"]
    frame, features = _read_features(people)
    n = len(frame)
    codes, names = _read_groups(groups, n)
    if count_rows(given["labels"]) not in (n, None):
        raise InputError(f"labels: has {len(given['labels'])} values, but X has {n} rows")
    parts = _draw_known(given["known"], _read_seeds(seeds), codes, names)
    adversary, corrector, published = _resolve(adversary, corrector, disclosure)
    answers = read_answers(
        model, choose_people(model, X, people), given["labels"], groups, positive=positive,
        threshold=threshold, group_names=names, sees=adversary.sees,
    )  # fmt: skip
    if answers.numeric and disclosure is _CLAIM:
        adversary, corrector, published = _resolve(adversary, corrector, None)
    columns: dict[str, Any] = {"predictions": answers.predictions, "sensitive": codes}
    if "scores" in adversary.sees:
        columns["scores"] = answers.scores
    seen = features.assign(**answers.in_full) if len(answers.in_full.columns) else features
    everyone = Sample(names, features=seen, labels=answers.labels, **columns)
    labels_of_row = {
        "dataset": "your people", "learner": "your model", "adversary": adversary.name,
        "disclosure": published.name if published else "nothing", "corrector": corrector.name,
    }  # fmt: skip
    rows: list[dict[str, Any]] = []
    outcomes = []
    for seed, told in parts:
        target = everyone.take(np.flatnonzero(~told))
        split = Split(target, target, everyone.take(np.flatnonzero(told)))
        started = time.perf_counter()
        with use_one_thread():  # like the workers of a run: the same numbers, and no waiting
            measures, outcome = _attack_once(
                split, adversary, published, corrector, seed, tuple(labels_of_row.items())
            )
        seconds = time.perf_counter() - started
        rows.append({
            "cell": "", **labels_of_row, "seed": seed, "status": Status.DONE, "reason": None,
            "seconds": seconds, **measures,
        })  # fmt: skip
        outcomes.append(outcome.set_axis(np.flatnonzero(~told)))
    tallied, added = _tally(outcomes, frame, codes, names)
    visible = {"features": features, "labels": answers.labels}
    warnings = _warn_of_groups(
        {name: visible[name] for name in visible if name in adversary.sees},
        frame.columns.tolist(), groups, codes, named=hasattr(people, "columns"),
    )  # fmt: skip
    return AttackResult(
        tallied, tuple(rows), published is not None, added, n - len(tallied),
        tuple(warnings), answers.notes,
    )  # fmt: skip


def _tally(
    outcomes: Sequence[DataFrame], X: DataFrame, codes: Codes, names: tuple[str, ...]
) -> tuple[DataFrame, tuple[float, float, float] | None]:
    """A row for each person who was attacked; and what the model adds, with its 95 % interval.

    `outcomes`: of each seed, as `_attack_once` returns it, with the rows of the people in X.
    """
    import pandas as pd

    everyone = pd.concat(outcomes)
    sums, times = everyone.groupby(level=0).sum(), everyone.groupby(level=0).size()
    rows, attacks = times.index.to_numpy(), np.asarray(times, np.int64)
    people = pd.DataFrame(
        {
            "group": np.array(names, object)[codes[rows]],
            "attacks": attacks,
            "risk": sums["risk"].to_numpy() / attacks,
            "guessed_right": sums["guessed_right"].to_numpy() / attacks,
            "proven": sums["proven"].to_numpy() > 0,
        },
        index=X.index[rows],
    )
    if everyone["added"].isna().any():
        return people, None
    added = sums["added"].to_numpy(np.float64)
    return people, (float(added.sum() / attacks.sum()), *bound_paired(added, attacks))


def bound_paired(differences: NDArray[np.float64], times: NDArray[np.int64]) -> tuple[float, float]:
    """Ends of a 95 % interval of the mean difference of two shares of the same people.

    `differences`: (n,) sums of each person's differences, each -1, 0 or 1. `times`: (n,) number of
    these differences.

    Source: Agresti, Min. Simple improved confidence intervals for comparing matched proportions.
    Statistics in Medicine 24, 2005 (adjusted Wald: half a person of each of the four outcomes is
    added, so that people who all agree leave a width, too). There each person counts once; here a
    person's sum is one draw, as differences of one person depend on each other.
    """
    n, each = len(times) + 2, float(times.mean())
    mean = float(differences.sum()) / each / n
    spread = float((((differences - mean * times) / each) ** 2).sum()) + 1 + 2 * mean**2
    half = 1.959964 * spread**0.5 / n
    return max(-1.0, mean - half), min(1.0, mean + half)


def _attack_once(
    split: Split,
    adversary: Adversary,
    disclosure: Disclosure | None,
    corrector: Corrector,
    seed: int,
    uses: tuple[tuple[str, str], ...],
) -> tuple[Mapping[str, Any], DataFrame]:
    """The measures of one attack, and a row for each person.

    It does the same as the steps of a matrix. `risk`: the final probability of the true group;
    `guessed_right`, `proven`; `added`: 1 where the guess is right only with the model, -1 where
    only without it, NaN for an adversary that does not look at it.
    """
    import pandas as pd

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
    truth, added = target.sensitive, np.full(len(target), np.nan)
    assert guess.beliefs is not None
    right = name_likeliest(guess.beliefs)[0] == truth
    if adversary.sees & _OF_MODEL:
        added = right.astype(float) - (truth == np.bincount(truth).argmax())
    if adversary.sees_without_model and adversary.sees_without_model < adversary.sees:
        target, told = _silence(target), _silence(told)
        of_target = target.only(_OF_PEOPLE)
        silent = Split(of_target, of_target, told.only(_OF_PEOPLE))
        shown = _show(adversary, target, told)
        blind: CalibratedGuess = do("guess", adversary, (silent, *shown, *tuned))
        assert blind.beliefs is not None
        before = name_likeliest(blind.beliefs)[0] == truth
        added = right.astype(float) - before
        measures = {**measures, "without_model_accuracy": float(before.mean())}
    correction = corrected[0]
    beliefs = guess.beliefs if correction.posterior is None else correction.posterior
    named = guess.values if correction.values is None else correction.values
    assert beliefs is not None
    proven = np.zeros(len(target), np.bool_)
    if claim is not None and claim.possible is not None:
        proven = claim.possible.sum(axis=1) == 1
    return measures, pd.DataFrame({
        "risk": beliefs[np.arange(len(truth)), truth], "guessed_right": named == truth,
        "proven": proven, "added": added,
    })  # fmt: skip


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
    import pandas as pd

    n, features = len(people), people.features
    for name in features.columns:
        if name == PREDICTION or name.startswith(SCORE.format("")):
            column = features[name]
            is_class = isinstance(column.dtype, pd.CategoricalDtype)
            features[name] = pd.Series(
                column.cat.categories[0] if is_class else 0.0, column.index, column.dtype
            )
    return people.having(
        predictions=np.zeros(n, np.int8), scores=np.full(n, 0.5), features=features
    )


_OF_PEOPLE = frozenset({"features", "labels", "sensitive"})
_OF_MODEL = frozenset({"predictions", "scores"})


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
    if hasattr(X, "toarray"):  # a sparse matrix of SciPy
        raise InputError(
            f"X must be a data frame or (n, d) values, not {type(X).__name__}: give X.toarray()"
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
