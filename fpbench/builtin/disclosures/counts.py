"""Disclosures of counts of groups in sets of people: reports of rates, trees of models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from fpbench import Claim, Disclosure, FairnessReport, Guarantee, InputError, Measure, Mechanism
from fpbench.claims import Facts, combine_facts, limit_fact_nats
from fpbench.models import find_tree_facts
from fpbench.plugin import Context
from fpbench.privacy import LEAST_EPSILON, limit_private_nats
from fpbench.reports import measure_utility, parse_report_metric


class CountDisclosure(Disclosure):
    """Publishes counts of groups in sets of people, without a claim that compares rates."""

    @property
    def portable(self) -> bool:
        """Never: proofs and beliefs depend on time limits."""
        return False

    def forms(self) -> tuple[str, ...]:
        """None: it makes no claim that compares rates."""
        return ()

    def words(self) -> list[str]:
        """Words of counts in sets of people, and of further facts."""
        return [Facts.word, *super().words()]


class Report(CountDisclosure):
    """A fairness report of the target people, as in dashboards and model cards.

    It has the rates, or numbers of people, of each group in slices of the target people by the data
    set's columns and their crossings. An adversary reads it as counts of the groups in sets of
    people (`fpbench.claims.Facts`), which the corrector `posterior` takes. Rows have the people
    whose group it proves, and its utility: the error of its rates, over all slices of its tables
    and each group of at least 10 people there.

    With `leavers` it is published twice: about all target people, and again, with the same
    predictions, after this number of people left. The adversary knows who left, and compares both.

    Notes
    -----
    Noise protects a person's group; the columns of the slices, their sizes and the predictions are
    assumed to be known.
    """

    name = "report"
    summary = "rates by group for slices of people, with the usual defences"
    shows = frozenset({"series"})
    measures = Measure.table("varying", """
        rate_error | less | mean absolute error of a report's rates, over each group of at least 10
            people in each slice of its tables; the whole group's rate replaces a suppressed one
        cells_published | greater share | published rates among these
        disparities_visible | greater share | published differences above .1 among slices where
            the true rates of two groups differ by more than .1
        """) + Measure.table("asked", """
        rate_error_max | less | greatest error of a published rate
        """)  # fmt: skip

    by: list[str] | None = Field(
        None, description="columns for slices; by default all columns of the data set"
    )
    order: int = Field(1, ge=0, le=5, description="greatest number of crossed columns")
    tables: list[list[str]] | None = Field(
        None, description="crossed columns of each table, instead of all up to `order`"
    )
    bins: int | dict[str, int | list[float]] = Field(
        5, description="quantile bins of numbers; or, by column, their number or their edges"
    )
    metrics: list[str] = Field(
        ["selection-rate"],
        min_length=1,
        description="published metrics of each group: names in `fpbench.reports.REPORT_METRICS`",
    )
    min_cell: int = Field(
        10, ge=0, description="least number of people, of all groups, behind a rate or number"
    )
    min_group: int = Field(0, ge=0, description="the same for each group; else it is suppressed")
    complementary: bool = Field(
        False,
        description="whether to suppress more, so that no suppressed number follows by adding and "
        "subtracting published ones; bounds (0, sizes) may still fix some",
    )
    protect_hidden: float | None = Field(
        None, ge=0, lt=1,
        description="share of every suppressed number that must stay open on either side; what is "
        "suppressed then costs least",
    )  # fmt: skip
    sizes: bool = Field(True, description="whether numbers of people behind rates are published")
    decimals: int | None = Field(None, ge=0, le=15, description="decimals of published rates")
    round_to: int | None = Field(
        None, ge=2, description="numbers of people are rounded to a multiple of this"
    )
    rounding: Literal["random", "nearest", "midpoint", "controlled"] = Field(
        "random",
        description="how: at random keeping the mean, to the nearest, to the middle of blocks (1 "
        "to 6, 7 to 12, ...), or at random so that parts sum up to wholes",
    )
    cell_keys: dict[str, float] | None = Field(
        None,
        description="perturbs numbers of people by cell keys: { bound = 5, variance = 3.0 } of "
        "its noise",
    )
    noise: Mechanism | None = Field(
        None,
        description="makes the report private by noise on numbers of people, also behind "
        'rates: { use = "discrete-laplace" }',
    )
    epsilon: float | None = Field(
        None,
        ge=LEAST_EPSILON,
        allow_inf_nan=False,
        description="privacy parameter of the whole report",
    )
    leavers: int = Field(
        0, ge=0, description="people who leave before the report is published a second time"
    )

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """An exact report, one with noise, and one published twice."""
        noise = {"noise": {"use": "discrete-laplace"}, "epsilon": 1.0}
        return [{}, noise, {"order": 2, "leavers": 1}]

    @field_validator("metrics")
    @classmethod
    def _check_metrics(cls, metrics: list[str]) -> list[str]:
        return list(dict.fromkeys(map(parse_report_metric, metrics)))

    @model_validator(mode="after")
    def _check_noise(self) -> Report:
        if (self.noise is None) != (self.epsilon is None):
            raise ValueError("noise and epsilon go together")
        return self

    @property
    def protects(self) -> frozenset[str]:
        """The sensitive attribute, if there is noise."""
        return frozenset({"sensitive"} if self.noise is not None else ())

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Make the report, or both, and read them like the adversary.

        Raises InputError if a column is missing, or parameters exclude each other.
        """
        people = context.target
        if self.leavers >= len(people):
            raise InputError(
                f"disclosure {self.name!r}: leavers must be fewer than the {len(people)} people"
            )
        everybody = np.arange(len(people))
        exact = self._tabulate(context, everybody, self.bins)
        # Whoever stays keeps the key.
        coins = rng if self.cell_keys is None else int(rng.integers(2**63))
        first = self._protect(exact, coins)
        reports, exact_facts = [(self._read(first, context, everybody), everybody)], []
        if self._hides:
            exact_facts.append((self._read(exact, context, everybody), everybody))
        if self.leavers:
            staying = np.sort(rng.choice(len(people), len(people) - self.leavers, replace=False))
            # The second report has the slices of the first.
            cuts = {column.name: list(column.edges) for column in exact.columns if column.edges}
            second = self._tabulate(context, staying, cuts or self.bins)
            reports.append((self._read(self._protect(second, coins), context, staying), staying))
            if self._hides:
                exact_facts.append((self._read(second, context, staying), staying))
        published = _combine(reports)
        # A report suppressed by rules about groups has at most the information of the exact one.
        nats = limit_fact_nats(_combine(exact_facts) if exact_facts else published)
        guarantee = None
        if self.noise is not None and self.epsilon is not None:
            once, times = self.noise.guarantee(self.epsilon, "attribute"), len(reports)
            rho = None if once.rho is None else times * once.rho
            # People who stay are in both reports.
            guarantee = Guarantee(times * once.epsilon, times * once.delta, "attribute", rho)
            nats = min(nats, limit_private_nats(guarantee, len(people)))
        utility = asdict(measure_utility(first, exact))
        source = self.noise.noise if self.noise is not None else None
        return Claim(None, self.name, (published,), utility, guarantee, source, nats)

    @property
    def _hides(self) -> bool:
        """Whether people's groups affect which numbers are published, or how exactly."""
        hides = self.min_group > 0 or self.complementary or not self.sizes
        hides |= self.cell_keys is not None or self.rounding in ("midpoint", "controlled")
        return self.noise is None and hides

    def _tabulate(self, context: Context, rows: NDArray[np.intp], bins: Any) -> FairnessReport:
        """The exact report about some of the target people."""
        people = context.target
        features = people.features
        names = [str(name) for name in features.columns] if self.by is None else self.by
        if isinstance(bins, dict):
            bins = {name: cut for name, cut in bins.items() if name in names}
        return FairnessReport.from_predictions(
            features.iloc[rows], people.predictions[rows], _name_groups(context)[rows], by=names,
            order=self.order, tables=self.tables, bins=bins, labels=people.labels[rows],
            metrics=self.metrics, min_cell=0,
        )  # fmt: skip

    def _protect(self, exact: FairnessReport, rng: np.random.Generator | int) -> FairnessReport:
        """The published report."""
        return exact.protect(
            min_cell=self.min_cell, min_group=self.min_group,
            complementary=self.complementary, protect_hidden=self.protect_hidden,
            sizes=self.sizes, decimals=self.decimals,
            round_to=self.round_to, rounding=self.rounding, cell_keys=self.cell_keys,
            noise=self.noise, epsilon=self.epsilon, rng=rng,
        )  # fmt: skip

    def _read(self, report: FairnessReport, context: Context, rows: NDArray[np.intp]) -> Facts:
        """Facts about some of the target people from a report about them."""
        people = context.target
        return report.facts(
            people.features.iloc[rows], people.predictions[rows], people.labels[rows]
        )


def _combine(reports: list[tuple[Facts, NDArray[np.intp]]]) -> Facts:
    """Facts about everybody; the first report is about all people, in their order."""
    if len(reports) == 1:
        return reports[0][0]
    return combine_facts(reports, names=["first report", "second report"]).facts


def _name_groups(context: Context) -> Any:
    """(n,) names of the groups, as a categorical whose order is that of the codes."""
    import pandas as pd

    people = context.target
    names = pd.Index(people.groups)
    return pd.Categorical.from_codes(people.sensitive.astype(np.int64), categories=names)


def is_dominated(
    numbers: NDArray[np.float64],
    dominance: Sequence[float] | None = None,
    p_percent: float | None = None,
) -> bool:
    """Whether rules of statistical offices refuse to publish the sum, or mean, of numbers.

    Parameters
    ----------
    numbers
        (N,) contributions of 0 or more.
    dominance
        n and k: the n largest must not make up more than k percent of the sum.
    p_percent
        Who knows the sum, and contributes the second largest number, must not be able to tell the
        largest to within this share of it, in percent: the others' sum must not be smaller.

    Notes
    -----
    Hundepool et al., Statistical Disclosure Control (2012), chapter 4. A sum of 0 is refused by
    either, too: everybody's number is 0 then.
    """
    ordered = np.sort(numbers)[::-1]
    total = ordered.sum()
    refused = total == 0 and (dominance is not None or p_percent is not None)
    if dominance is not None:
        refused |= ordered[: int(dominance[0])].sum() > dominance[1] / 100 * total
    if p_percent is not None:
        refused |= ordered[2:].sum() < p_percent / 100 * ordered[:1].sum()
    return bool(refused)


class Means(CountDisclosure):
    """Means of a number by group, as of what a regression predicts.

    An adversary who sees everybody's number reads each mean as a linear row of `Facts`: who belongs
    to the group must have it, up to rounding.

    `dominance` and `p_percent` suppress the mean of a group to which few people contribute much.
    They protect such people's numbers from each other, not from this adversary, who knows them, and
    they suppress no complements: the mean of all people, published elsewhere, gives a suppressed
    one away.
    """

    name = "means"
    summary = "means of a number by group"
    reference = "Hundepool et al. Statistical Disclosure Control. Wiley 2012, chapter 4"

    column: str = Field(
        "prediction in full",
        description="column of numbers; by default what a regression predicts that `attack` is "
        "given",
    )
    decimals: int = Field(2, ge=0, le=9, description="decimals of the published means")
    dominance: list[float] | None = Field(
        None,
        description="[n, k]: no mean of a group whose n largest numbers are more than k percent of "
        "its sum",
    )
    p_percent: float | None = Field(
        None, gt=0, le=100,
        description="no mean that tells the second largest contributor the largest number to "
        "within this percentage",
    )  # fmt: skip

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Means of a column that the example data have, with and without rules."""
        return [{"column": "income"}, {"column": "income", "dominance": [2, 80], "p_percent": 10}]

    @field_validator("dominance")
    @classmethod
    def _check_dominance(cls, rule: list[float] | None) -> list[float] | None:
        own = rule or [1, 1]
        if len(own) != 2 or own[0] not in range(1, 101) or not 0 < own[1] < 100:
            raise ValueError("must be [n, k]: 1 to 100 people, and a percentage below 100")
        return rule

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Publish the means of the groups that people are in.

        Raises InputError if there is no such column of numbers.
        """
        import pandas as pd

        people = context.target
        numeric = people.features.select_dtypes("number")
        if self.column not in numeric:
            raise InputError(
                f"disclosure {self.name!r}: no numeric column {self.column!r}; name one by "
                f"`column`: {', '.join(map(str, numeric)) or 'there is none'}"
            )
        numbers, rules = numeric[self.column], (self.dominance, self.p_percent)
        ruled = any(rule is not None for rule in rules)
        if ruled and not (numbers >= 0).all():
            raise InputError(
                f"disclosure {self.name!r}: dominance and p_percent are for numbers of 0 or more, "
                f"and column {self.column!r} has others; leave both out"
            )
        by_group = numbers.groupby(_name_groups(context), observed=True)
        means = by_group.mean().round(self.decimals)
        hidden = [is_dominated(own.to_numpy(float), *rules) for _, own in by_group]
        rows = pd.DataFrame({
            "group": means.index.astype(str), "metric": f"mean of {self.column}",
            "value": means.to_numpy(), "within": 0.5 * 10.0**-self.decimals,
        })[~np.array(hidden)]  # fmt: skip
        if len(rows):
            report = FairnessReport.from_frame(rows, groups=people.groups)
            facts = report.facts(people.features, people.predictions, people.labels)
        else:
            nothing = np.zeros((len(people), 0), np.bool_), np.zeros((0, len(people.groups)))
            facts = Facts.from_counts(*nothing)
        # Each mean is one of so many numbers, or suppressed.
        values = float(numbers.max() - numbers.min()) * 10.0**self.decimals + 2 + ruled
        return Claim(None, self.name, (facts,), nats=len(means) * math.log(values))


class Structure(CountDisclosure):
    """The trees of a model, with the numbers of training people in their leaves.

    A fitted tree or forest of scikit-learn has these numbers, and publishing the model publishes
    them. If the people's group was one of its features (learner `group-aware`), the numbers are
    counts of groups in sets of people, which the corrector `posterior` takes. The adversary
    knows labels and all features but the group. Without the group among the features the numbers
    reveal nothing about groups.

    For a random forest with bootstrap samples they are bounds and measurements; for a private tree,
    noisy counts.
    """

    name = "structure"
    summary = "the model's trees with the numbers of people in their leaves"
    reference = (
        "Ferry, Fukasawa, Pascal, Vidal. Trained Random Forests Completely Reveal your Dataset. "
        "ICML 2024"
    )
    shows = frozenset({"structure"})

    @property
    def needs_model(self) -> bool:
        """True: it reads the model's trees."""
        return True

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Read the model's trees.

        Raises InputError if the model was not trained on these people, or has no trees with groups.
        """
        people, model = context.target, context.model
        if not context.trained_on_target:
            raise InputError(
                f"disclosure {self.name!r} is about the model's training people: "
                'leave out [split] target = "held-out"'
            )
        trees: Any = getattr(model, "published_trees", ())
        add_group: Any = getattr(model, "add_group", None)
        if not trees or add_group is None:
            raise InputError(f"disclosure {self.name!r}: the model has no trees with groups")

        def take_group(code: int) -> Any:
            return add_group(people.features, np.full(len(people), code))

        facts = find_tree_facts(trees, take_group, len(people.groups), people.labels)
        # The choice of splits gives information too; without a guarantee nothing bounds it.
        nats = len(people) * math.log(len(people.groups))
        guarantee = getattr(model, "guarantee", None)
        if guarantee is None:
            return Claim(None, self.name, (facts,), nats=nats)
        nats = min(nats, limit_private_nats(guarantee, len(people)))
        return Claim(None, self.name, (facts,), {}, guarantee, "simulation", nats)
