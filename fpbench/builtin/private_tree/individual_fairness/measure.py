"""Individual fairness: whether similar people get the same label, as observed and as proven."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import InputError
from fpbench.base.arguments import check_same_rows, show_value, to_generator
from fpbench.base.arrays import check_binary
from fpbench.builtin.private_tree.individual_fairness.similarity import (
    ScaledPeople,
    measure_nearest_people,
    scale_people,
    to_frame_or_matrix,
)
from fpbench.builtin.private_tree.individual_fairness.tree_boxes import measure_nearest_region
from fpbench.data import Domain
from fpbench.models import Rules, get_rules, predict_any
from fpbench.plugin import Codes

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class SimilarityReport:
    """Consistency of the labels of n people with those of similar people, for every tau.

    Distances above the greatest tau are infinite.

    Attributes
    ----------
    taus
        (T,) greatest distance of similar people.
    predictions
        (n,) in {0, 1}.
    other
        (n,) distance to the nearest person of the other label.
    anybody
        (n,) distance to the nearest other person.
    region
        (n,) distance to the nearest input of the other label; None if it is not known.
    note
        Why `region` is unknown; None if it is known.
    free
        Features that may have any value.
    ranged
        Numbers without declared bounds, scaled by the range of people's values.
    """

    taus: NDArray[np.float64]
    predictions: Codes
    other: NDArray[np.float64] = field(repr=False)
    anybody: NDArray[np.float64] = field(repr=False)
    region: NDArray[np.float64] | None = field(repr=False)
    note: str | None
    free: tuple[str, ...]
    ranged: tuple[str, ...]

    @property
    def pair_consistency(self) -> NDArray[np.float64]:
        """(T,) share of people all of whose similar people have their label."""
        return _find_shares_above(self.other, self.taus)

    @property
    def certified_consistency(self) -> NDArray[np.float64] | None:
        """(T,) share of people for whom every similar input has their label; None if unknown."""
        return None if self.region is None else _find_shares_above(self.region, self.taus)

    @property
    def isolated(self) -> NDArray[np.float64]:
        """(T,) share of people without similar people, who count as consistent."""
        return _find_shares_above(self.anybody, self.taus)

    @property
    def pair_consistency_of_others(self) -> NDArray[np.float64]:
        """(T,) pair consistency of the people who are not isolated; NaN if all are."""
        met = self.anybody[:, None] <= self.taus
        fine = (self.other[:, None] > self.taus) & met
        share = np.full(len(self.taus), np.nan)
        np.divide(fine.sum(axis=0), met.sum(axis=0), out=share, where=met.any(axis=0))
        return share

    def table(self) -> DataFrame:
        """A row for each tau; `certified_consistency` is missing where it is unknown."""
        import pandas as pd

        certified = self.certified_consistency
        return pd.DataFrame(
            {
                "tau": self.taus,
                "pair_consistency": self.pair_consistency,
                "pair_consistency_of_others": self.pair_consistency_of_others,
                "certified_consistency": np.nan if certified is None else certified,
                "isolated": self.isolated,
            }
        )

    def __str__(self) -> str:
        lines = []
        certified = self.certified_consistency
        for i, tau in enumerate(self.taus):
            known = "unknown" if certified is None else f"{certified[i]:.4f}"
            lines.append(
                f"tau {tau:g}: pairs {self.pair_consistency[i]:.4f}, certified {known}, "
                f"isolated {self.isolated[i]:.4f}"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows: a row for each tau."""
        return str(self.table().to_html(index=False))


def individual_fairness(
    model: Any,
    X: DataFrame | ArrayLike,
    *,
    tau: float | Sequence[float],
    free: Collection[str] = (),
    domain: Domain | Mapping[str, Any] | None = None,
    reference: DataFrame | ArrayLike | None = None,
    predictions: ArrayLike | None = None,
    positive: Any = None,
    rng: np.random.Generator | int | None = None,
) -> SimilarityReport:
    """Shares of people who get the label of all similar people, as observed and as proven.

    People are similar if they have the same categories and no number differs by more than tau,
    scaled to [0, 1] by its bounds. That is the l-infinity distance of scaled numbers and one-hot
    categories. A person is consistent if all similar people in X have the same label, and certified
    if every possible input within tau has the same label, which needs a model whose rules come from
    a tree. Certified people are always consistent. One exact computation serves every tau.

    Parameters
    ----------
    model
        Any object with `predict`, and optionally `rules`; a decision tree of scikit-learn; or
        predictions (n,), for which nothing is certified.
    X
        n people: a data frame of numbers, texts and categoricals, or a matrix, as the model takes
        them. Numbers are compared as models see them, in single precision.
    tau
        One or several, in [0, 1).
    free
        Features that may have any value: people who differ in them may still be similar.
    domain
        Public bounds of numbers: lists by feature, as a data set declares them; or a `Domain`,
        which may know of more features than these.
    reference
        People whose least and greatest values scale numbers without bounds; X by default.
    predictions
        (n,) the model's predictions for these people, if they are known already.
    positive
        The label that counts as 1; needed if labels are not 0 and 1 or truth values.
    rng
        For a model that draws: a generator, or a seed.

    Returns
    -------
    SimilarityReport
        Distances of everybody, and the shares for every tau.

    Raises
    ------
    InputError
        If a tau is out of range, a free or declared feature does not exist, a number without bounds
        is the same for everybody, a value is missing, or the rules do not predict what the model
        predicts.

    Notes
    -----
    A sensitive attribute that is not a feature is free: people who differ in it alone are similar.
    A model that takes the attribute to predict treats such people differently in pairs.

    References
    ----------
    Dwork, Hardt, Pitassi, Reingold, Zemel: Fairness through Awareness. ITCS 2012. Ranzato, Urban,
    Zanella: Fairness-Aware Training of Decision Trees by Abstract Interpretation. CIKM 2021. See
    docs/individual-fairness.md.

    Examples
    --------
    >>> import fpbench, numpy as np
    >>> ages, hired = np.array([[20.0], [21.0], [40.0], [60.0]]), [0, 1, 1, 1]
    >>> report = fpbench.auditing.individual_fairness(hired, ages, tau=[0.01, 0.1])
    >>> report.pair_consistency.tolist(), report.isolated.tolist()
    ([1.0, 0.5], [1.0, 0.5])
    """
    taus = _parse_taus(tau)
    if isinstance(free, str) or not isinstance(free, Collection) or getattr(free, "ndim", 1) != 1:
        raise InputError(f"free: must be a list of features, not {show_value(free)}")
    check_same_rows(X=X, model=model, predictions=predictions)
    features = to_frame_or_matrix(X)
    generator = to_generator("rng", rng)
    if predictions is None:
        labels, rules = predict_any(model, features, generator, positive)
    else:
        labels = check_binary("predictions", predictions, positive, nameable=True)
        rules = get_rules(model, positive)
        if len(labels) != len(features):
            raise InputError(f"predictions: has {len(labels)} values, and X {len(features)} rows")
    public = domain if isinstance(domain, Domain) or domain is None else Domain.of(domain)
    names = _get_column_names(rules, features)
    placed = scale_people(features, domain=public, reference=reference, free=free, names=names)
    if public is not None and public is not domain:  # a list for these features: refuse typos
        public.check_names(placed.names)
    most = float(taus.max())
    other, anybody = measure_nearest_people(placed, labels, most)
    region, note = _certify(rules, features, placed, labels, most)
    ranged = tuple(n for n, s in zip(placed.numbers, placed.scales, strict=True) if s == "range")
    return SimilarityReport(
        taus, labels, other, anybody, region, note, tuple(str(name) for name in free), ranged
    )


def _parse_taus(tau: float | Sequence[float]) -> NDArray[np.float64]:
    """Values (T,) of one or several tau."""
    several = getattr(tau, "ndim", isinstance(tau, list | tuple))
    values: list[Any] = list(tau) if several else [tau]  # type: ignore[arg-type]
    if not values:
        raise InputError("tau: is empty")
    for value in values:
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not 0 <= value < 1:
            raise InputError(
                f"tau: must be at least 0 and below 1, where people of different categories would "
                f"be similar, not {show_value(value)}"
            )
    return np.array(values, dtype=np.float64)


def _get_column_names(rules: Rules | None, features: Any) -> tuple[str, ...]:
    """Names of the columns of a matrix, as far as a tree knows them."""
    if hasattr(features, "columns") or rules is None or rules.branches is None:
        return ()
    return tuple(column.feature for column in rules.branches.columns)


def _certify(
    rules: Rules | None, features: Any, placed: ScaledPeople, labels: Codes, most: float
) -> tuple[NDArray[np.float64] | None, str | None]:
    """Distances to the nearest input of another label, or the reason why they are unknown."""
    if rules is None:
        return None, "the model has no rules"
    if not np.array_equal(rules.predict(features), labels):
        raise InputError("the rules of the model do not predict what it predicts")
    if rules.branches is None:
        return None, "the rules of the model do not come from a tree"
    region = measure_nearest_region(rules.branches, placed, labels, most)
    if region is None:
        return None, "the tree takes other features than these"
    return region, None


def _find_shares_above(
    distances: NDArray[np.float64], taus: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shares (T,) of distances (n,) that are greater than each tau."""
    shares: NDArray[np.float64] = (distances[:, None] > taus).mean(axis=0)
    return shares
