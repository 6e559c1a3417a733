"""The report of an audit of excessive risk, as tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fpbench.base import drop_last_bits
from fpbench.base.text import show_lines
from fpbench.builtin.pate.excessive_risk.draws import People, RiskSums, estimate_error
from fpbench.plugin import MeasureValues

if TYPE_CHECKING:
    from pandas import DataFrame

_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RiskReport:
    """Excessive risks of groups and of people. Not private: for research, not for release.

    The baseline, votes, flip probabilities and risks are functions of the private data without any
    noise. Only the model itself has a guarantee, and this report is no part of it.

    Risk is expected loss minus the loss by the baseline. Errors are standard errors; in closed
    form, differences to the delta method. Unknown values are NaN: norms if the learner does not
    expose the inputs of its students, and the error of a single draw. `on` is `train` (what the
    model learnt from: for votes the public people and their clean majority votes, which are the
    labels of the private objective without noise; else the training people and their labels) or
    `test` (the test people and their labels).

    Attributes
    ----------
    overall
        A row for each `on`: `people`, `risk` and its standard error `risk_error`, `risk_gap`
        (greatest minus least group risk) and `risk_gap_error`, `loss` and `baseline_loss`,
        `accuracy` (expected) and `baseline_accuracy`, `accuracy_gap` (greatest minus least
        accuracy that a group loses), `risk_bound` (Theorem 3, mean) and
        `risk_bound_holds` (for everybody: 1 or 0), and Spearman's `rank_...` correlations of
        people's input norm, gradient norm, closeness to the boundary, flip probability and
        risk.
    groups
        A row for each `on` and `group`: `people`, and means of what people have.
    people
        A row for each `on` and person: `row` in the sample, `group`, `label`, `risk`,
        `risk_error`, `loss`, `baseline_loss`, `accuracy_lost`, `risk_bound`, `closeness`
        (1 - f^2 - (1 - f)^2, f by the baseline), `input_norm` and `gradient_norm` (intercept
        included), `flip_probability` and `flip_drawn`.
    bounds
        A row for each bound on the model sensitivity: `bound`, what it is `of`, `measured` with
        its `error`, `value`, and whether it `holds`: 1 or 0, three standard errors allowed for;
        None if there is no such error and the measured value is above it.
    ranges
        A row for each of six `range`s of the input norm, the least first, of equally many public
        people: `people`, their mean `input_norm` and `flip_probability`, and the `sensitivity`
        (with its `sensitivity_error`) of a student that learns from them alone. Logistic students
        that learn from all labels only, and sampled ones; else no rows.
    model
        `method`, `repetitions`, `antithetic`, `sensitivity` (expected distance of parameters to
        the baseline's) and `sensitivity_squared`, with their `..._error`, `flip_probability`
        and `flip_drawn` (means), `flip_deviation` (greatest difference of the two in standard
        errors, by binomial tails), `students_not_convex` (labels `equation-12`: share of the
        students whose objective is shown not to be convex).
    """

    private: ClassVar[bool] = False

    overall: DataFrame
    groups: DataFrame
    people: DataFrame
    bounds: DataFrame
    ranges: DataFrame
    model: MeasureValues

    def __str__(self) -> str:
        lines = []
        for row in self.overall.itertuples():
            mine = self.groups[self.groups["on"] == row.on]
            parts = ", ".join(
                f"{group} {risk:.4f}" for group, risk in zip(mine.group, mine.risk, strict=True)
            )
            lines.append(f"excessive risk on {row.on}: {parts}; gap {row.risk_gap:.4f}")
        return show_lines(["; ".join(lines) + " (not private)"])

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class EvaluationRisks:
    """Measured risks of the n people of one evaluation; NaN where unknown."""

    people: People
    base: _Floats
    """(n,) losses by the baseline."""
    chance: _Floats
    """(n,) probabilities of label 1 by the baseline, or its values, of least squares."""
    risk: _Floats
    """(n,) excess losses."""
    risk_error: _Floats
    """(n,) their standard errors."""
    accuracy: _Floats
    """(n,) probabilities that the private model predicts the label."""
    units: _Floats
    """(units, K) group risks of independent units; (0, K) if none was drawn."""
    lengths: _Floats
    """(n,) norms of the students' inputs."""
    gradients: _Floats
    """(n,) norms of gradients at theta*."""
    bound: _Floats
    """(n,) bounds of Theorem 3."""
    flips: _Floats
    flips_drawn: _Floats

    @classmethod
    def of_draws(cls, tally: RiskSums, chance: _Floats) -> EvaluationRisks:
        """Risks from the sums over many models."""
        risks = cls.exact(tally.people, tally.base, chance, tally.risk, tally.accuracy)
        return risks.having(risk_error=tally.risk_error, units=tally.group_risks)

    @classmethod
    def exact(
        cls, people: People, base: _Floats, chance: _Floats, risk: _Floats, accuracy: _Floats
    ) -> EvaluationRisks:
        """Risks without errors, and without norms, bounds and flips."""
        unknown, k = np.full(len(base), np.nan), int(people.sensitive.max()) + 1
        lengths = unknown if people.design is None else np.linalg.norm(people.design, axis=1)
        return cls(people, base, chance, risk, unknown, accuracy, np.zeros((0, k)), lengths,
                   unknown, unknown, unknown, unknown)  # fmt: skip

    def with_errors(self, errors: _Floats) -> EvaluationRisks:
        """The same risks with errors (n,) that people share."""
        risks = np.bincount(self.people.sensitive, weights=errors) / self.members
        # Two units, this much above and below the mean, have it as their standard error.
        return self.having(risk_error=np.abs(errors), units=np.stack([risks, -risks]))

    def having(self, **values: _Floats) -> EvaluationRisks:
        """The same risks with some fields replaced."""
        return replace(self, **values)  # type: ignore[arg-type]

    @property
    def members(self) -> NDArray[np.intp]:
        """(K,) numbers of people of the groups."""
        return np.bincount(self.people.sensitive)

    def find_right(self) -> NDArray[np.bool_]:
        """(n,) whether the baseline predicts the label."""
        return np.asarray((self.chance > 0.5) == (self.people.labels == 1))

    def table(self, groups: tuple[str, ...]) -> DataFrame:
        """The rows of `RiskReport.people` of this evaluation."""
        import pandas as pd

        return pd.DataFrame(
            {
                "on": self.people.name,
                "row": self.people.rows,
                "group": pd.Categorical.from_codes(self.people.sensitive, pd.Index(groups)),
                "label": self.people.labels.astype(np.int8),
                "risk": self.risk,
                "risk_error": self.risk_error,
                "loss": self.base + self.risk,
                "baseline_loss": self.base,
                "accuracy_lost": self.find_right() - self.accuracy,
                "risk_bound": self.bound,
                "closeness": 2 * self.chance * (1 - self.chance),
                "input_norm": self.lengths,
                "gradient_norm": self.gradients,
                "flip_probability": self.flips,
                "flip_drawn": self.flips_drawn,
            }
        )


_MEANS = ("risk", "loss", "baseline_loss", "accuracy_lost", "risk_bound", "closeness", "input_norm",
          "gradient_norm", "flip_probability", "flip_drawn")  # fmt: skip
_RANGE = ("range", "people", "input_norm", "flip_probability", "sensitivity", "sensitivity_error")
_PAIRS = {
    "rank_norm_gradient": ("input_norm", "gradient_norm"),
    "rank_norm_risk": ("input_norm", "risk"),
    "rank_gradient_risk": ("gradient_norm", "risk"),
    "rank_closeness_risk": ("closeness", "risk"),
    "rank_closeness_flip": ("closeness", "flip_probability"),
    "rank_flip_risk": ("flip_probability", "risk"),
}


def make_report(
    risks: list[EvaluationRisks],
    groups: tuple[str, ...],
    bounds: list[dict[str, Any]],
    model: MeasureValues,
    ranges: list[dict[str, Any]],
) -> RiskReport:
    """The report, from the measured risks of each evaluation."""
    import pandas as pd

    people = [evaluation.table(groups) for evaluation in risks]
    by_group, overall = [], []
    for evaluation, table in zip(risks, people, strict=True):
        means = table.groupby("group", observed=False)[list(_MEANS)].mean()
        by_group.append(
            pd.DataFrame(
                {
                    "on": evaluation.people.name,
                    "group": list(groups),
                    "people": evaluation.members,
                    "risk_error": estimate_error(evaluation.units),
                }
            ).join(means.reset_index(drop=True))
        )
        overall.append(_summarise(evaluation, table, means))
    return RiskReport(
        pd.DataFrame(overall),
        pd.concat(by_group, ignore_index=True),
        pd.concat(people, ignore_index=True),
        pd.DataFrame(bounds, columns=["bound", "of", "measured", "error", "value", "holds"]),
        pd.DataFrame(ranges, columns=list(_RANGE)),
        model,
    )


def _summarise(evaluation: EvaluationRisks, table: DataFrame, means: DataFrame) -> dict[str, Any]:
    group_risks = means["risk"].to_numpy()
    bounded = not np.isnan(evaluation.bound).any()
    fine = evaluation.risk <= evaluation.bound + 1e-9 * (1 + np.abs(evaluation.bound))
    most, least = int(group_risks.argmax()), int(group_risks.argmin())
    # Without noise, risks are the last bits of a difference of equal losses: these have no rank.
    scale = float(np.abs(evaluation.base).max()) or 1.0
    ranked = table.assign(risk=drop_last_bits(evaluation.risk, scale))
    return {
        "on": evaluation.people.name,
        "people": len(table),
        "risk": float(evaluation.risk.mean()),
        "risk_error": float(
            estimate_error(evaluation.units @ evaluation.members / evaluation.members.sum())
        ),
        "risk_gap": float(group_risks[most] - group_risks[least]),
        "risk_gap_error": float(
            estimate_error(evaluation.units[:, most] - evaluation.units[:, least])
        ),
        "loss": float(table["loss"].mean()),
        "baseline_loss": float(evaluation.base.mean()),
        "accuracy": float(evaluation.accuracy.mean()),
        "baseline_accuracy": float(evaluation.find_right().mean()),
        "accuracy_gap": float(np.ptp(means["accuracy_lost"])),
        "risk_bound": float(evaluation.bound.mean()),
        "risk_bound_holds": float(fine.all()) if bounded else np.nan,
        **{name: rank_correlation(ranked[a], ranked[b]) for name, (a, b) in _PAIRS.items()},
    }


def rank_correlation(one: Any, other: Any) -> float:
    """Spearman's correlation, with mean ranks for ties; NaN if a value is NaN or all are equal."""
    from scipy.stats import rankdata

    values = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if any(np.isnan(v).any() or np.ptp(v) == 0 for v in values):
        return float("nan")
    return float(np.corrcoef(rankdata(values[0]), rankdata(values[1]))[0, 1])
