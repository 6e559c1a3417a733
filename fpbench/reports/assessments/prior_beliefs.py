"""Beliefs before a report: given, learnt from known people or from the others, or shares.

Cross-fitting: each person's belief is learnt from the people of the other folds, so that it holds
what anybody may know of people like these, and nothing of this person's own group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.arguments import check_columns_distinct
from fpbench.base.arrays import check_binary
from fpbench.base.errors import DataError, InputError, check_choice, suggest_name
from fpbench.base.threads import use_one_thread
from fpbench.claims.set_counts import Facts, Floats
from fpbench.components.beliefs import Beliefs, check_beliefs
from fpbench.components.catalog import discover
from fpbench.components.records import View
from fpbench.correction.calibration import calibrate_beliefs
from fpbench.data.sample import Sample
from fpbench.reports.reading.long_form import numbers_rows
from fpbench.reports.slices import Codes, check_bits, code_groups, name_values

if TYPE_CHECKING:
    from pandas import DataFrame, Series

KNOWN_COLUMNS = ("group", "prediction", "label")
"""Columns of known people that are no features; labels are needed where the target has them."""

SHARES_ALONE = "the groups' shares, the same for everybody"
"""Prior knowledge of an adversary who has nothing to learn beliefs from."""
CROSS_FITTED = (
    "of boosted trees, learnt for each person from the other people of the table (cross-fitting): "
    "what anybody may know of people like these"
)
"""Prior knowledge learnt from the other people, whose true groups are given."""
_TRIED = 100
"""Cells, the largest first, from which shares of groups are learnt."""
_ADVERSARY = "a2"
"""The strongest adversary that sees what readers of a report see."""
_FOLDS = 5
_MOST_LEARNT = 50_000
"""Most people that a fold's beliefs are learnt from; more hardly sharpen them."""


class Prior(NamedTuple):
    """Beliefs before a report."""

    beliefs: Floats
    """(n, K)."""
    source: str
    """In words."""
    fit: Callable[[int], Floats] | None = None
    """Cross-fits (n, K) beliefs, by the number of a repetition; None where they are not
    cross-fitted."""

    @property
    def is_shares(self) -> bool:
        """Whether they are the groups' shares, as wished or for want of anything better."""
        return self.source.startswith(SHARES_ALONE)


def find_prior(
    X: DataFrame,
    predictions: Codes,
    labels: ArrayLike | None,
    names: tuple[str, ...],
    facts: Facts,
    truth: NDArray[np.intp] | None,
    *,
    beliefs: ArrayLike | Literal["shares"] | None,
    known: DataFrame | None,
    households: ArrayLike | None,
) -> Prior:
    """Beliefs about the n people before a report: given, learnt from others, or shares.

    `predictions`, `labels`, `truth`: (n,). `names`: of the K groups. `facts`: what the report
    tells, for shares. Others: as in `assess`.
    """
    labels = None if labels is None else check_bits(labels, facts.people, "labels")
    n = facts.people
    if beliefs is not None and known is not None:
        raise InputError("give beliefs, or known people to learn them from, not both")
    if isinstance(beliefs, str):
        check_choice("beliefs", beliefs, ("shares",))
        return Prior(tile_shares(facts, truth), SHARES_ALONE)
    if beliefs is not None:
        named = list(name_values(getattr(beliefs, "columns", ()), "beliefs"))
        if named != list(names) and sorted(named) == sorted(names):
            raise InputError(
                f"beliefs: their columns are {', '.join(named)}, and those of the report's groups "
                f"{', '.join(names)}: put them in this order"
            )
        prior = check_beliefs(beliefs)
        if prior.shape != (n, facts.groups):
            raise InputError(
                f"beliefs must be ({n}, {facts.groups}), a probability of each of "
                f"{', '.join(names)} for each person of X, not {prior.shape}"
            )
        return Prior(prior, "as given")
    if known is not None:
        learnt = learn_beliefs(known, X, predictions, labels, names)
        shared = sum(name in known for name in X.columns)
        return Prior(
            learnt,
            f"of boosted trees, learnt from {shared} columns of {len(known):,} people whose group "
            "is known",
        )
    if truth is None:
        return Prior(tile_shares(facts, truth), SHARES_ALONE)

    @cache
    def fit(repetition: int) -> Floats:
        return cross_fit_beliefs(X, predictions, labels, truth, names, households, repetition)

    try:
        return Prior(fit(0), CROSS_FITTED, fit)
    except DataError as error:
        why = f"{SHARES_ALONE} (too few to learn from: {error})"
        return Prior(tile_shares(facts, truth), why)


def tile_shares(facts: Facts, truth: NDArray[np.intp] | None) -> Floats:
    """(n, K) the same shares for everybody."""
    shares: Floats = np.tile(find_shares(facts, truth), (facts.people, 1))
    return shares


def find_shares(facts: Facts, truth: NDArray[np.intp] | None) -> Floats:
    """(K,) shares of the groups: true, or in the largest disjoint published cells.

    Of cells with ranges, rounded ones for instance, the middles count; the narrower a range, the
    larger a cell of that size.
    """
    if truth is not None:
        return np.bincount(truth, minlength=facts.groups) / len(truth)
    sizes = facts.sizes[:, None]
    low = np.maximum(facts.low, 0)
    high = np.maximum(np.where(np.isfinite(facts.high), facts.high, sizes), low)
    told = facts.sizes - (high - low).max(axis=1)
    tells = np.flatnonzero((told > 0) & ~facts.derived)
    counts = np.ones(facts.groups)  # one of each, for where nothing is told
    covered = np.zeros(facts.people, np.bool_)
    for number in tells[np.argsort(-told[tells], kind="stable")][:_TRIED]:
        members = facts.sets[[number]].indices
        if not covered[members].any():
            covered[members] = True
            counts += (low[number] + high[number]) / 2
    shares: Floats = counts / counts.sum()
    return shares


def learn_beliefs(
    known: DataFrame,
    X: DataFrame,
    predictions: Codes,
    labels: Codes | None,
    groups: Sequence[str],
) -> Beliefs:
    """Calibrated beliefs (n, K) of the adversary `a2`, trained on people whose groups are known.

    `known`: m rows with `group`, `prediction`, `label` if labels are given, and columns of X;
    columns of X that it lacks are not used. `X`: n rows, the people whose groups are guessed.
    `predictions`, `labels`: (n,) in {0, 1}; without labels the adversary does not see any.

    Raises InputError if a column is missing, or a value is of another kind: names row and column;
    DataError if the known people are too few, or of one group.
    """
    import pandas as pd

    if not isinstance(known, pd.DataFrame):
        raise InputError(f"known people must be a data frame, not {type(known).__name__}")
    check_columns_distinct("the known people have", known.columns)
    check_columns_distinct("X has", X.columns)
    for name in KNOWN_COLUMNS if labels is not None else KNOWN_COLUMNS[:2]:
        if name not in known:
            raise InputError(
                f"the known people have no column {name!r}; "
                f"{suggest_name(name, map(str, known.columns))}"
            )
    for name in KNOWN_COLUMNS:
        if name in X:
            raise InputError(
                f"a column of people cannot be called {name!r}, as known people's {name}s are: "
                "rename it"
            )
    shared = [name for name in X.columns if name in known]
    if not shared:
        raise InputError("the known people have none of the columns of X")
    sensitive = code_groups(known["group"], groups, "the known people")
    answers = _read_bits(known, "prediction")
    # The adversary requires labels; its trees ignore a constant column.
    seen = np.zeros(len(X), np.int64) if labels is None else labels
    known_labels = np.zeros(len(known), np.int64) if labels is None else _read_bits(known, "label")
    pairs = {name: _match_columns(X[name], known[name]) for name in shared}
    ours, theirs = (
        pd.DataFrame({name: pair[side] for name, pair in pairs.items()}) for side in (0, 1)
    )
    return _guess_groups(
        _Seen(ours, predictions, seen), _Seen(theirs, answers, known_labels), sensitive, groups
    )


def cross_fit_beliefs(
    X: DataFrame,
    predictions: Codes,
    labels: Codes | None,
    truth: NDArray[np.intp],
    groups: Sequence[str],
    households: ArrayLike | None = None,
    repetition: int = 0,
) -> Beliefs:
    """Calibrated beliefs (n, K) of the adversary `a2`, each learnt from people of other folds.

    `X`: n rows. `predictions`, `labels`: (n,) in {0, 1}. `truth`: (n,) codes of `groups`.
    `households`: (n,) values that are equal for people who are in one fold together; everybody is
    alone by default. `repetition` numbers the division into folds, which is always the same for a
    number.

    Raises DataError if a fold leaves too few people, or people of one group, to learn from.
    """
    import pandas as pd

    check_columns_distinct("X has", X.columns)
    # The order of rows is no knowledge of people like these.
    names = [name for name in X.columns if not numbers_rows(list(map(str, X[name])))]
    columns = pd.DataFrame(
        {name: _match_columns(X[name], X[name])[0] for name in names}, index=np.arange(len(X))
    )
    seen = np.zeros(len(X), np.int64) if labels is None else labels
    rng = np.random.default_rng(repetition)
    fold = _divide(truth, households, rng)

    everybody = _Seen(columns, predictions, seen)
    beliefs = np.empty((len(X), len(groups)))
    for one in range(_FOLDS):
        inside, others = np.flatnonzero(fold == one), np.flatnonzero(fold != one)
        if len(inside):
            learnt = np.sort(rng.permutation(others)[:_MOST_LEARNT])
            beliefs[inside] = _guess_groups(
                everybody.take(inside), everybody.take(learnt), truth[learnt], groups
            )
    return beliefs


def _divide(
    truth: NDArray[np.intp], households: ArrayLike | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """(n,) folds: of alike many people of each group, or of alike many households."""
    if households is not None:
        _, household = np.unique(np.asarray(households).astype(str), return_inverse=True)
        return np.asarray(rng.permutation(household.max() + 1)[household] % _FOLDS)
    order = rng.permutation(len(truth))
    fold = np.empty(len(truth), np.intp)
    fold[order[np.argsort(truth[order], kind="stable")]] = np.arange(len(truth)) % _FOLDS
    return fold


class _Seen(NamedTuple):
    """What an adversary sees of people."""

    features: DataFrame
    predictions: Codes
    labels: Codes

    def take(self, rows: NDArray[np.intp]) -> _Seen:
        """These people."""
        features = self.features.iloc[rows].reset_index(drop=True)
        return _Seen(features, self.predictions[rows], self.labels[rows])


def _guess_groups(
    target: _Seen, others: _Seen, truth: NDArray[np.intp], groups: Sequence[str]
) -> Beliefs:
    """Calibrated beliefs about the target, of the adversary trained on others of true groups."""
    _check_two_groups(truth, f"the {len(truth):,} known people")
    # Trees fail on a column without values, and learn nothing from a constant one.
    names = list(others.features)
    used = [name for name in names if others.features[name].nunique(dropna=False) > 1] or names
    samples = [
        Sample(
            tuple(groups), features=one.features[used], predictions=one.predictions,
            labels=one.labels, sensitive=codes,
        )
        for one, codes in ((target, None), (others, truth))
    ]  # fmt: skip
    view = View(*samples)
    adversary: Any = discover().component("adversary", _ADVERSARY)()
    with use_one_thread():
        guess = adversary.guess(view, np.random.default_rng(0))
    held_out = truth[guess.held_out]
    _check_two_groups(held_out, f"the {len(held_out)} known people on whom beliefs are calibrated")
    return calibrate_beliefs(guess.beliefs, guess.held_out_beliefs, held_out)[0]


def mark_positive(known: Any, positive: Any) -> Any:
    """The known people with predictions and labels of 0 and 1, the latter where one is positive."""
    if not hasattr(known, "assign"):  # which `learn_beliefs` refuses
        return known
    return known.assign(**{
        name: check_binary(f"known people: {name}", known[name], positive)
        for name in ("prediction", "label")
        if name in known
    })  # fmt: skip


def _check_two_groups(codes: NDArray[np.intp], whom: str) -> None:
    if len(np.unique(codes)) < 2:
        raise DataError(f"{whom} are all of one group; beliefs need people of two or more")


def _read_bits(known: DataFrame, name: str) -> Codes:
    return check_bits(known[name].to_numpy(), len(known), f"column {name!r} of the known people")


def _match_columns(ours: Series, theirs: Series) -> tuple[Series, Series]:
    """A column of two frames as numbers, or as categoricals of the same categories."""
    import pandas as pd
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    numbers = [
        is_numeric_dtype(one.dtype) and not is_bool_dtype(one.dtype) for one in (ours, theirs)
    ]
    if all(numbers):
        return ours.reset_index(drop=True), theirs.reset_index(drop=True)
    if any(numbers):
        raise InputError(
            f"column {ours.name!r} holds {ours.dtype} for the people of the report and "
            f"{theirs.dtype} for the known people"
        )
    texts = [one.astype(object).map(str, na_action="ignore") for one in (ours, theirs)]
    categories = sorted(set(texts[0].dropna()) | set(texts[1].dropna()))
    first, second = (pd.Series(pd.Categorical(text, categories=categories)) for text in texts)
    return first, second
