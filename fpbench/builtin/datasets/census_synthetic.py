"""Synthetic census: embedded data of any size, of a distribution in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fpbench import Dataset, Sample, Table
from fpbench.data import Domain
from fpbench.errors import DataError
from fpbench.plugin import DataHome

if TYPE_CHECKING:
    from pandas import DataFrame

_CHUNK = 16_384  # rows of one child seed; another value would change the data
_MOST_CHANCES = 1_000_000
"""Greatest number of people of a table with probabilities of the groups."""
_BASE_LOGIT = -2.0
_GROUP_EFFECT = 0.5


class CensusSynthetic(Dataset):
    r"""Synthetic people with census-like features; their dependence on the group is a parameter.

    A row is drawn in this order; draws are independent given the named conditions:

    1. *Group* g in 0..K-1, with probability proportional to 1 / (g + 1); names "A", "B", ...
       Two groups hold 2/3 and 1/3, ten hold from 34.1 % down to 3.4 %.
    2. *Features*, independent of each other given the group. Feature j has finitely many values v,
       base probabilities b_j(v), and scores u_j(v) of mean 0 and variance 1 under b_j. In group g

           P(v | g) = b_j(v) exp(dependence * w_j * t_jg * u_j(v)) / normaliser,

       where t_jg = sqrt(K / 2) (1 - 2 ((g + 2j) mod K) / (K - 1)) spaces the groups evenly, in a
       different order for each feature, so that together they distinguish any two groups.
    3. *Label* 1 ("high income") with probability

           P(1 | v, g) = logistic(-2 + sum_j c_j u_j(v_j) + dependence * 0.5 * t_0g).

    ============== ===================================== ================================ ===  ====
    feature        values                                score follows                     w    c
    ============== ===================================== ================================ ===  ====
    age            17..90, skewed to the right           closeness to 44 (in no order)    .45  .45
    hours          1..99 a week, about half of them 40   hours                            .65  .35
    capital_gain   0 for 92 %, else 23 amounts to 99,999 0, or log of the amount          .25  .50
    education      7 ordered levels                      level                            .30  .80
    occupation     7                                     trades high, clerical low        .85  .30
    marital_status 5                                     married high, widowed low        .70  .90
    workclass      5                                     self-employed high, public low   .35  .00
    ============== ===================================== ================================ ===  ====

    Base probabilities, roughly those of Adult, are in `_make_features` of this module. At
    dependence 0 features and label are independent of the group. With two groups, at the default,
    26 % of all people, 34 % of A and 9 % of B have label 1.

    So `posterior` gives the exact P(group | features, label), and the mean of its largest value
    bounds the accuracy of any adversary that sees only these:

    ==================== ===== ===== ===== ===== =====
    at dependence        0     0.25  0.5   0.75  1
    with two groups      .667  .698  .793  .877  .935
    with ten groups      .341  .345  .403  .486  .562
    ==================== ===== ===== ===== ===== =====

    Tables of up to 1,000,000 people include `posterior` (`group_chances`), so that rows of attacks
    have the accuracy of the best possible guess; larger ones do not, to save memory.

    Random numbers come from `numpy.random.PCG64`, one child of `SeedSequence(seed)` for each 16,384
    rows: the same seed gives the same table, and a larger table begins with the rows of a smaller.
    """

    name = "census-synthetic"
    summary = "embedded census-like data, any size, 2 to 10 groups, exact posterior known"

    rows: int = Field(12_000, ge=100, le=10_000_000, description="number of people")
    groups: int = Field(2, ge=2, le=10, description="number of groups K")
    dependence: float = Field(
        0.5, ge=0, le=1, description="dependence of features and label on the group; 0: none"
    )
    seed: int = Field(0, ge=0, description="seed of the generator")

    @property
    def n_groups(self) -> int:
        """The parameter `groups`."""
        return self.groups

    def load(self, home: DataHome | None = None) -> Table:
        """Generate the table; beyond 1,000,000 rows peak memory stays below twice its size.

        Raises DataError if a group has no member, which may happen with few rows and many groups.
        """
        import pandas as pd

        columns, labels, codes = self._generate()
        names = list("ABCDEFGHIJ"[: self.groups])
        for group, letter in enumerate(names):
            if not (codes == group).any():
                raise DataError(
                    f"data set {self.name!r}: with rows = {self.rows} and seed = {self.seed} group "
                    f"{letter!r} has no member; ask for more rows or fewer groups"
                )
        data = {f.name: f.column(c) for f, c in zip(_make_features(), columns, strict=True)}
        features = pd.DataFrame(data, copy=False)  # unshared: no copy halves memory
        chances = None
        if self.rows <= _MOST_CHANCES:
            chances = self.posterior(Sample(tuple(names), features=features, labels=labels))
        return Table(
            name=self.name,
            features=features,
            labels=labels,
            sensitive=pd.DataFrame({"group": _make_categorical(codes, names)}, copy=False),
            positive="high income",
            domain=Domain.of({f.name: f.public for f in _make_features()}),
            group_chances=chances,
        )

    def posterior(self, people: Table | Sample) -> NDArray[np.float64]:
        r"""Exact probabilities of the groups, given features and label.

        With the symbols of the class's description, for a person with features v and label y::

            P(g | v, y) = P(g) P(y | v, g) prod_j P(v_j | g) / (the same summed over g)

        Parameters
        ----------
        people
            n people of a table of this component, or a part of them, with features and labels.

        Returns
        -------
        ndarray
            (n, K), rows sum to 1; column g is the group of code g.

        Raises
        ------
        DataError
            If the features are not of this data set.
        """
        logit = np.full(len(people), _BASE_LOGIT)
        joint = np.tile(np.log(_compute_shares(self.groups)), (len(people), 1))
        for feature, log_rates in zip(_make_features(), self._tilt_rates(), strict=True):
            codes = feature.encode(people.features)
            logit += (feature.effect * feature.scores).take(codes)
            joint += log_rates.T.take(codes, axis=0)
        sign = 1.0 - 2.0 * people.labels
        for group, shift in enumerate(self.dependence * _GROUP_EFFECT * self._place_groups(0)):
            joint[:, group] -= np.logaddexp(0.0, sign * (logit + shift))
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        posterior: NDArray[np.float64] = joint / joint.sum(axis=1, keepdims=True)
        return posterior

    def _place_groups(self, feature: int) -> NDArray[np.float64]:
        """t_jg for every group, (K,)."""
        order = (np.arange(self.groups) + 2 * feature) % self.groups
        span = np.sqrt(self.groups / 2)
        positions: NDArray[np.float64] = span * (1.0 - 2.0 * order / (self.groups - 1))
        return positions

    def _tilt_rates(self) -> list[NDArray[np.float64]]:
        """Per feature, log P(value | group), (K, values)."""
        tilted = []
        for j, feature in enumerate(_make_features()):
            tilts = self.dependence * feature.tilt * self._place_groups(j)
            logs = np.log(feature.base) + np.outer(tilts, feature.scores)
            tilted.append(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))
        return tilted

    def _generate(self) -> tuple[list[NDArray[np.integer]], NDArray[np.int8], NDArray[np.int8]]:
        """Columns of features as stored, labels and group codes."""
        stored = [feature.stored for feature in _make_features()]
        effects = [feature.effect * feature.scores for feature in _make_features()]
        # Cumulated rates of group g shifted by g: sorted as one, row after row.
        shift = np.arange(float(self.groups))[:, None]
        rates = [np.cumsum(np.exp(log_rates), axis=1) + shift for log_rates in self._tilt_rates()]
        shares = np.cumsum(_compute_shares(self.groups))[:-1]
        shifts = self.dependence * _GROUP_EFFECT * self._place_groups(0)
        columns = [np.empty(self.rows, values.dtype) for values in stored]
        labels, codes = np.empty(self.rows, np.int8), np.empty(self.rows, np.int8)
        starts = range(0, self.rows, _CHUNK)
        children = np.random.SeedSequence(self.seed).spawn(len(starts))
        for start, child in zip(starts, children, strict=True):
            chunk = slice(start, min(start + _CHUNK, self.rows))
            rng = np.random.Generator(np.random.PCG64(child))
            # A row's draws are consecutive in the stream, so a short chunk begins like a full one.
            draws = rng.random((chunk.stop - start, len(columns) + 2))
            group = np.searchsorted(shares, draws[:, 0], side="right")
            logit = _BASE_LOGIT + shifts.take(group)
            for j, column in enumerate(columns):
                value = _draw(rates[j], group, draws[:, j + 1])
                logit += effects[j].take(value)
                column[chunk] = stored[j].take(value)
            labels[chunk] = draws[:, -1] * (1.0 + np.exp(-logit)) < 1.0
            codes[chunk] = group
        return columns, labels, codes


class _Feature(NamedTuple):
    """A feature: its values, their base rates, and their scores for group and label."""

    name: str
    values: tuple[str, ...] | NDArray[np.integer]
    weights: ArrayLike
    raw_scores: ArrayLike
    tilt: float
    effect: float
    ordered: bool = False

    @property
    def public(self) -> list[Any]:
        """Its categories, or its least and greatest number."""
        if isinstance(self.values, tuple):
            return list(self.values)
        return [float(self.values[0]), float(self.values[-1])]

    @property
    def base(self) -> NDArray[np.float64]:
        """b_j, (values,)."""
        weights = np.asarray(self.weights, np.float64)
        rates: NDArray[np.float64] = weights / weights.sum()
        return rates

    @property
    def scores(self) -> NDArray[np.float64]:
        """u_j, (values,): mean 0 and variance 1 under b_j."""
        raw = np.asarray(self.raw_scores, np.float64)
        centred: NDArray[np.float64] = raw - self.base @ raw
        return centred / np.sqrt(self.base @ centred**2)

    @property
    def stored(self) -> NDArray[np.integer]:
        """Stored form of each value in a column: the number itself, or a category's code."""
        if isinstance(self.values, tuple):
            return np.arange(len(self.values), dtype=np.int8)
        return self.values

    def column(self, stored: NDArray[np.integer]) -> Any:
        """A column of a DataFrame that shares the memory of the stored values."""
        if isinstance(self.values, tuple):
            return _make_categorical(stored, self.values, ordered=self.ordered)
        return stored

    def encode(self, features: DataFrame) -> NDArray[np.intp]:
        """Position of each person's value in `values`, (n,)."""
        if self.name not in features:
            raise DataError(f"no feature {self.name!r}: the data are not from census-synthetic")
        column = features[self.name]
        if isinstance(self.values, tuple):
            known = column.astype("category").cat.set_categories(self.values)
            places, strange = known.cat.codes.to_numpy().astype(np.intp), known.isna()
        else:
            places = np.searchsorted(self.values[:-1], column.to_numpy())
            strange = self.values.take(places) != column.to_numpy()
        if strange.any():
            value = column[strange].iloc[0]
            raise DataError(f"feature {self.name!r} of census-synthetic is never {value!r}")
        return places


@cache
def _make_features() -> tuple[_Feature, ...]:
    """All features, in drawing order."""
    age = np.arange(17, 91, dtype=np.int16)
    ages = (age - 16.0) ** 1.9 * np.exp((16.0 - age) / 7.7)
    hours = np.arange(1, 100, dtype=np.int16)
    week = np.exp(-np.abs(hours - 40.0) / 10.0) + 20.0 * (hours == 40)
    amounts = np.geomspace(600, 99_999, 23).round()
    gain = np.append(0, amounts).astype(np.int32)
    gains = np.exp(-(np.log(amounts / 7_000) ** 2) / 2)
    gains = np.append(0.92, 0.08 * gains / gains.sum())
    school = ("Primary", "Secondary", "High school", "College", "Associate", "Bachelor", "Master")
    schooling, level = (5, 8, 33, 22, 8, 16.5, 7.5), range(7)
    work = ("Clerical", "Service", "Sales", "Professional", "Operator", "Technical", "Trades")
    works, calling = (12, 14, 12, 21, 15, 6, 20), (-1.5, -1.2, 0, 0.5, 0.6, 0.6, 1.3)
    marital = ("Married", "Never married", "Divorced", "Separated", "Widowed")
    maritals, bond = (47, 33, 14, 3, 3), (1, -0.7, -0.9, -1.1, -2)
    employer = ("Private", "Self-employed", "Incorporated", "Local government", "Government")
    employers, own = (73, 8, 4, 7, 8), (0, 1.5, 2, -1.2, -1)
    return (
        _Feature("age", age, ages, -np.abs(age - 44.0), 0.45, 0.45),
        _Feature("hours", hours, week, hours, 0.65, 0.35),
        _Feature("capital_gain", gain, gains, np.log1p(gain / 1000), 0.25, 0.5),
        _Feature("education", school, schooling, level, 0.3, 0.8, ordered=True),
        _Feature("occupation", work, works, calling, 0.85, 0.3),
        _Feature("marital_status", marital, maritals, bond, 0.7, 0.9),
        _Feature("workclass", employer, employers, own, 0.35, 0.0),
    )


def _make_categorical(
    codes: NDArray[np.integer], names: Sequence[str], *, ordered: bool = False
) -> Any:
    import pandas as pd

    return pd.Categorical.from_codes(codes, categories=pd.Index(names), ordered=ordered)


def _compute_shares(groups: int) -> NDArray[np.float64]:
    """P(group), (K,)."""
    weights = 1.0 / np.arange(1, groups + 1)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _draw(
    cumulated: NDArray[np.float64], group: NDArray[np.intp], uniform: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Value of everyone by inverting the cumulated rates of their group, (n,)."""
    values = cumulated.shape[1]
    places = np.searchsorted(cumulated.ravel(), uniform + group, side="right") - group * values
    # With a rounded sum, a draw at the edge would be in another group.
    inside: NDArray[np.intp] = places.clip(0, values - 1)
    return inside
