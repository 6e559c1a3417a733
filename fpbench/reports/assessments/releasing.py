"""A table that may be published: with a guarantee, the attack that was tried on it, and its use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_type, to_generator
from fpbench.base.errors import InputError, check_choice
from fpbench.base.text import show_lines
from fpbench.claims.set_counts import ContradictionError
from fpbench.components.guarantee import check_epsilon
from fpbench.components.mechanism import Mechanism
from fpbench.components.spec import resolve_component
from fpbench.data.people import read_people
from fpbench.privacy.ledger import Ledger
from fpbench.reports.assessments.assessing import assess
from fpbench.reports.assessments.assessment import Assessment
from fpbench.reports.assessments.least_change import Progress
from fpbench.reports.defences.fitted_counts import read_earlier, release_secret_sizes
from fpbench.reports.defences.protecting import parse_metrics
from fpbench.reports.fairness_report import FairnessReport
from fpbench.reports.rows import DIFFERENCES
from fpbench.reports.slices import check_bits, check_people
from fpbench.reports.utility import ReportUtility, compare_rates, measure_nothing

if TYPE_CHECKING:
    from pandas import DataFrame

_EPSILONS = (10.0, 5.0, 3.0, 2.0, 1.0, 0.5, 0.2, 0.1)
"""More than 10 guarantees nothing worth the name."""
_SAME = 1e-6
"""Difference of a share at which it counts as recounted."""
_CHOSEN = (
    "epsilon was chosen by attacks on these people's true groups, which the guarantee does not "
    "cover: give epsilon, and it does"
)
_GIVEN = "epsilon was given, so that the guarantee covers everything that is published"
PUBLIC = {
    "sizes": "everybody's columns, predictions and labels",
    "nothing": "columns, their values and the names of groups; no number of people. The attack is "
    "that of a reader who knows everybody's columns all the same",
}
"""What may be public, and what that is in words."""
_KEEP = (
    "leak, proven and utility are measured on true groups, and a seed gives the noise away: the "
    "certificate is for those who hold the data, not for readers of the table"
)


def _count_tables(earlier: Sequence[str]) -> str:
    return f"{len(earlier)} earlier table{'s' * (len(earlier) != 1)}"


@dataclass(frozen=True, eq=False)
class ReportRelease:
    """A table that is made to be published.

    Attributes
    ----------
    report
        What may be published.
    assessment
        The attack of `fpbench.assess` on exactly this report; `passes` says whether it is within
        the limits.
    utility
        How near its rates are to the true ones, of all tables.
    tables
        The same of each table, by its columns; "everybody" crosses none.
    nothing
        Mean error of who takes the rate of each slice for that of its groups; None if these rates
        are not public.
    columns, order
        Columns that slices were to be cut by, with the edges between bins of numbers; and the most
        that are crossed.
    chosen
        Whether epsilon was chosen by attacks.
    seed
        Of the noise; None if it was drawn from the operating system.
    public
        What was taken to be public: "sizes" of slices by prediction and label, or "nothing".
    earlier
        Checksums of the tables that were published before, whose readers are those attacked.
    """

    report: FairnessReport
    assessment: Assessment
    utility: ReportUtility
    tables: Mapping[str, ReportUtility]
    nothing: float | None
    columns: Mapping[str, tuple[float, ...] | None]
    order: int
    chosen: bool
    seed: int | None
    public: str = "sizes"
    earlier: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether the attack stayed within the limits."""
        return self.assessment.passes

    def to_json(self) -> dict[str, Any]:
        """The certificate, as plain data."""
        own = self.report.stated
        assert own is not None
        return {
            "passes": self.passes,
            "table": self.report.hash_values(),
            "columns": dict(self.columns),
            "order": self.order,
            "guarantee": {
                "epsilon": own.guarantee.epsilon,
                "delta": own.guarantee.delta,
                "rho": own.guarantee.rho,
                "neighbours": DIFFERENCES[own.guarantee.neighbours],
                "public": PUBLIC[self.public],
                "mechanism": own.mechanism,
                "choice": _CHOSEN if self.chosen else _GIVEN,
            },
            "limit": self.assessment.private_limit,
            "attack": self.assessment.to_json(),
            "utility": asdict(self.utility),
            "tables": {name: asdict(utility) for name, utility in self.tables.items()},
            "nothing": self.nothing,
            "seed": self.seed,
            "earlier": list(self.earlier),
            "note": _KEEP,
        }

    def __str__(self) -> str:
        own, told = self.report.stated, self.assessment
        error, seen = self.utility.rate_error, self.utility.disparities_visible
        near = "no group has 10 people in a slice"
        if error is not None:
            near = f"rates are off by {100 * error:.1f} points on average"
            if self.nothing is not None:
                near += f", by {100 * self.nothing:.1f} if nothing is published"
        if seen is not None:
            near += f"; {100 * seen:.0f} % of the disparities are seen"
        worse = error is not None and self.nothing is not None and error > self.nothing
        verdict = "May be published" if self.passes else "Must not be published"
        limit = told.private_limit
        most = "" if limit is None else f", whoever reads it by {100 * limit:.2f} at most"
        return show_lines([
            f"{verdict}: {len(self.report):,} rows in {len(self.tables):,} tables; {near}.",
            *["Publishing nothing is nearer: cross fewer columns, or raise epsilon."] * worse,
            f"Guaranteed: {own}; nobody's group can be proven.",
            *["Public: names of columns, values and groups alone."] * (self.public == "nothing"),
            *[f"Read with {_count_tables(self.earlier)}, to which it was fitted, too."]
            * bool(self.earlier),
            f"Attacked: {int(told.proven.sum()):,} proven, {int(told.sure.sum()):,} sure; the "
            f"share guessed right changes by {100 * told.leak:+.2f} points{most}.",
            f"{(_CHOSEN if self.chosen else _GIVEN).capitalize()}.",
        ])  # fmt: skip

    __repr__ = __str__


@check_arguments
def release(
    X: Any,
    predictions: Any,
    groups: Any,
    *,
    by: str | Iterable[Any],
    order: int = 1,
    epsilon: float | None = None,
    max_leak: float | str | None = None,
    max_proven: int = 0,
    labels: Any = None,
    metrics: Sequence[str] = ("selection-rate",),
    bins: int | Mapping[str, int | Sequence[float]] = 5,
    min_cell: int = 10,
    noise: str = "discrete-laplace",
    public: str = "sizes",
    positive: Any = None,
    threshold: float | None = None,
    households: ArrayLike | None = None,
    ledger: Ledger | None = None,
    horizon: int | None = None,
    earlier: Sequence[FairnessReport] | Mapping[str, FairnessReport] = (),
    seed: int | None = None,
    seconds: float = 120.0,
    tell: Progress | None = None,
) -> ReportRelease:
    """The table with the most epsilon that is within the limits, and a certificate.

    Everybody's columns, predictions and labels are public, groups are not, unless `public` says
    otherwise. Noisy counts are fitted
    to that (`FairnessReport.protect`), so that all numbers are those of one table of people.

    Parameters
    ----------
    X, predictions, groups, by, order, labels, metrics, bins, min_cell, positive, threshold
        As in `FairnessReport.from_predictions`.
    epsilon
        Privacy parameter of the whole table. By default the greatest of .1 to 10 at which the
        attack stays within the limits: a choice that looks at the data.
    max_leak, max_proven, households
        As in `fpbench.assess`.
    noise
        Name of a mechanism.
    public
        The "sizes" of slices by prediction and label; or "nothing" but columns, their values and
        the names of groups. Then sizes are as noisy as groups, the guarantee is for one person
        added, removed or replaced, numbers need edges in `bins`, rates are much farther off, and
        all columns together may have 65,536 combinations of values at most, predictions included.
    ledger
        Of everything that is published about these people; the table is paid from it if it is
        within the limits. Needs epsilon or a horizon.
    horizon
        Number of tables still to be paid from the ledger, this one included: epsilon is the
        greatest that it pays for each of them.
    earlier
        Tables that were made so before, about the same people and sizes. Their noisy numbers are
        fitted to, too: that costs nothing, and rates are nearer. The attack is that of a reader of
        all tables, and so is the limit of its leak; the guarantee is that of the new table alone.
    seed
        Of simulated noise, for benchmarks; by default noise is drawn from the operating system.
    seconds
        Time limit of each attack.
    tell
        Called with each epsilon that is tried, and the number tried so far.

    Raises
    ------
    InputError
        As of `FairnessReport.from_predictions` and `fpbench.assess`; if a ledger has no epsilon, a
        horizon no ledger, an earlier table other people or no noisy numbers, or bins of numbers
        would follow people although nothing is public.
    BudgetError
        If the table costs more than remains in the ledger.
    """
    check_choice("public", public, PUBLIC)
    mechanism = {"use": noise, "noise": "secure" if seed is None else "simulation"}
    own = resolve_component("mechanism", mechanism)
    assert isinstance(own, Mechanism)
    if ledger is not None or horizon is not None:
        epsilon = _find_epsilon(epsilon, horizon, ledger, own)
    if len(earlier) and public == "nothing":
        raise InputError(
            'earlier tables (--earlier) are fitted to public sizes: leave out public = "nothing"'
        )
    if epsilon is not None:
        check_epsilon(epsilon)
    X, groups, given = read_people(
        X, groups, predictions=predictions, labels=labels, households=households
    )
    labels, households = given["labels"], given["households"]
    check_people(X)
    bits = check_bits(
        given["predictions"], len(X), "predictions", positive, threshold=threshold, nameable=True
    )
    if labels is not None:
        labels = check_bits(labels, len(X), "labels", positive, nameable=True)
    exact = FairnessReport.from_predictions(
        X, bits, groups, by=by, order=order, bins=bins, labels=labels, metrics=metrics, min_cell=0
    )
    before = _name_earlier(earlier, exact)
    if public == "nothing":
        _check_edges(exact, bins)
    attacks = 0

    def draw(value: float) -> tuple[FairnessReport, Assessment]:
        nonlocal attacks
        if tell is not None:
            tell(f"epsilon {value:g}", attacks)
        attacks += 1
        if public == "nothing":
            assert exact.people is not None
            report = FairnessReport._of(release_secret_sizes(
                exact.columns, exact.groups, exact.people, own, value, to_generator("rng", seed),
                order=order, metrics=parse_metrics(metrics), min_cell=min_cell,
            ))  # fmt: skip
        else:
            report = exact.protect(
                min_cell=min_cell,
                noise=mechanism,
                epsilon=value,
                rng=seed,
                earlier=list(before.values()),
            )
        told: Any = {**before, "this table": report} if before else report
        return report, assess(
            told, X, bits, labels, groups, households=households, max_leak=max_leak,
            max_proven=max_proven, seconds=seconds,
        )  # fmt: skip

    steps = _EPSILONS if epsilon is None else (epsilon,)
    made = draw(steps[0])
    if not made[1].passes:
        # Less noise gives more away: `low` fails, and `high` is the least that is left.
        low, high = 0, len(steps)
        while high - low > 1:
            middle = (low + high) // 2
            tried = draw(steps[middle])
            if tried[1].passes or not made[1].passes:
                made = tried
            low, high = (low, middle) if tried[1].passes else (middle, high)
    report, assessment = made
    columns = {column.name: column.edges for column in exact.columns}
    if ledger is not None and assessment.passes:
        assert report.stated is not None
        # Whoever is replaced as a whole may be so in its group alone.
        paid = replace(report.stated.guarantee, neighbours="attribute")
        ledger.spend(paid, f"table {report.hash_values()[:12]}")
    nothing = measure_nothing(exact) if public == "sizes" else None
    return ReportRelease(
        report, assessment, compare_rates(report, exact), _compare_tables(report, exact), nothing,
        columns, order,
        epsilon is None, seed, public, tuple(one.hash_values() for one in before.values()),
    )  # fmt: skip


def _compare_tables(report: FairnessReport, exact: FairnessReport) -> dict[str, ReportUtility]:
    """How near the rates of each table are to the true ones, by the columns that it crosses."""
    utilities, used = {}, exact.cells >= 0
    for view in np.unique(used, axis=0):
        name = " x ".join(c.name for c, cut in zip(exact.columns, view, strict=True) if cut)
        utilities[name or "everybody"] = compare_rates(
            report, exact.take((used == view).all(axis=1))
        )
    return utilities


def _find_epsilon(
    epsilon: float | None, horizon: int | None, ledger: Ledger | None, mechanism: Mechanism
) -> float:
    """The epsilon of a table that a ledger pays: as given, or one part of what remains."""
    if horizon is not None and (ledger is None or epsilon is not None):
        raise InputError(
            "a horizon (--horizon) shares out what remains in a ledger (--ledger), and takes the "
            "place of epsilon (--epsilon)"
        )
    if horizon is not None and ledger is not None:
        return ledger.find_share(horizon, lambda one: mechanism.guarantee(one, "attribute"))
    if epsilon is None:
        raise InputError(
            "a ledger needs epsilon (--epsilon), the part of its budget that this table may cost, "
            "or a horizon (--horizon), the number of tables that share what remains"
        )
    return epsilon


def _name_earlier(
    earlier: Sequence[FairnessReport] | Mapping[str, FairnessReport], exact: FairnessReport
) -> dict[str, FairnessReport]:
    """Earlier tables by name, which are about the people of the exact one."""
    assert exact.people is not None
    if not isinstance(earlier, Mapping):
        earlier = {f"earlier table {number}": one for number, one in enumerate(earlier, 1)}
    for name, report in earlier.items():
        check_type(name, report, FairnessReport, "a FairnessReport; from_file reads one")
    return {
        name: read_earlier(name, report, exact.people, exact.groups)
        for name, report in earlier.items()
    }


def _check_edges(exact: FairnessReport, bins: int | Mapping[str, int | Sequence[float]]) -> None:
    """Refuse columns of numbers whose bins follow the people."""
    edges = bins if isinstance(bins, Mapping) else {}
    for column in exact.columns:
        if column.edges is not None and not isinstance(edges.get(column.name), Sequence):
            raise InputError(
                f"column {column.name!r}: its bins follow the people, of whom nothing is public: "
                f"give their edges, bins = {{{column.name!r}: [...]}}, or cut it into named values "
                "before"
            )


@check_arguments
def check_release(
    certificate: Mapping[str, Any],
    report: FairnessReport,
    X: DataFrame,
    predictions: ArrayLike,
    groups: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    households: ArrayLike | None = None,
    earlier: Sequence[FairnessReport] = (),
    seconds: float = 120.0,
) -> dict[str, bool]:
    """Whether each line of a certificate holds, recounted from the table and its people.

    Parameters
    ----------
    certificate
        As `ReportRelease.to_json` makes it.
    report
        The table.
    X, predictions, groups, labels, households, earlier, seconds
        As in `fpbench.release`; predictions and labels in {0, 1}.

    Raises
    ------
    InputError
        If it is no certificate, people have not the columns of the table, or earlier tables are not
        those of the certificate.
    """
    try:
        own, attacked = certificate["guarantee"], certificate["attack"]
        limits, measured = attacked["criteria"], attacked["measures"]
        told = [certificate["table"], own["epsilon"], own["delta"], measured["proven"]]
        stated = measured["leak"], certificate["utility"]["rate_error"]
        max_leak, max_proven = limits["max_leak"], limits["max_proven"]
        columns, order = certificate["columns"], certificate["order"]
        before = list(certificate.get("earlier", ()))
    except (KeyError, TypeError):
        raise InputError("the certificate is none of `fpbench release`") from None
    if [one.hash_values() for one in earlier] != before:
        raise InputError(
            f"the certificate is about readers of {_count_tables(before)}: "
            "give these (earlier, --earlier), in the same order"
        )
    guarantee = report.stated
    secret = guarantee is not None and guarantee.guarantee.neighbours == "replace-one"
    exact_law = replace(
        report, law=np.zeros_like(report.law), width=np.zeros_like(report.width), guarantee=None
    )
    try:
        exact_law.facts(X, predictions, labels)
        consistent = True
    except (InputError, ContradictionError):
        consistent = False
    wanted = FairnessReport.from_predictions(
        X, predictions, groups, by=list(columns), order=order, labels=labels, min_cell=0,
        bins={name: edges for name, edges in columns.items() if edges},
        metrics=np.unique(report.metric).tolist(),
    )  # fmt: skip
    attack = assess(
        [*earlier, report] if before else report, X, predictions, labels, groups,
        households=households, max_leak=max_leak, max_proven=max_proven, seconds=seconds,
    )  # fmt: skip
    error = compare_rates(report, wanted).rate_error
    line = "all numbers are consistent with each other and with these people"
    return {
        "the table is the one that was certified": report.hash_values() == told[0],
        "the table states the guarantee": guarantee is not None
        and [guarantee.guarantee.epsilon, guarantee.guarantee.delta] == told[1:3],
        **({} if secret else {line: consistent}),
        "the attack proves as many people": int(attack.proven.sum()) == told[3],
        "the leak is the same": abs(attack.leak - stated[0]) < _SAME,
        "it is within the limits": attack.passes,
        "rates are as near to the true ones": error == stated[1]
        or (error is not None and stated[1] is not None and abs(error - stated[1]) < _SAME),
    }
