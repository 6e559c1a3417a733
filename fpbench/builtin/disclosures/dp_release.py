"""The disclosure of what a differentially private audit released."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from fpbench import (
    Auditor,
    Claim,
    Component,
    Context,
    Curator,
    Disclosure,
    InputError,
    KnownUnfairness,
    Measures,
    PluginError,
    RateConstraint,
    Release,
    Subject,
)
from fpbench.builtin.disclosures._rounding import rounded_down, rounded_up


class DPRelease(Disclosure):
    """A differentially private audit of the target on its training people, and what it released.

    A curator who owns the groups of the training people answers the auditor, who never sees them.
    What the auditor releases is an estimate of the ratio of the least to the greatest group rate,
    with an interval. An adversary takes it for a claim of the form `ratio`: with `says =
    "interval"`, that the ratio is at least the lower end and at most the upper end; with `lower`
    the first of these only; with `estimate`, that it is at least the estimate. Ends are rounded
    outwards to multiples of 0.001. Everything after the curator's answers is post-processing, so
    the claim is as private as these.

    The claim may be false, even impossible (see `on_infeasible` of the correctors): a row says
    whether its lower end is true (`claim_holds`), and the whole interval (`claim_interval_holds`),
    and which epsilon it cost (`claim_epsilon`). Of an auditor that repeats its audit the first one
    is released.

    An upper end makes the corrector's problem harder: the exact one took a second for 10,000 people
    of two groups, five for 5,000 of four, and for 10,000 of five groups a minute was not enough.
    `says = "lower"` leaves it out.

    Notes
    -----
    van der Steen et al. audit the test set, for an auditor who is trusted. Whoever audits the
    people that a model was trained on, and makes it known, tells an adversary something of them;
    how much that helps is what a run with this disclosure measures. Epsilon bounds what is learnt
    of one person by those who know everybody else; how well all groups can be guessed from
    features, and from one number about the whole, it does not bound.

    References
    ----------
    van der Steen, Vink, Kaya: Privacy Constrained Fairness Estimation for Decision Trees.
    arXiv:2312.08413, 2023.
    """

    name = "dp-release"
    summary = "what a differentially private audit released: an estimate, or an interval"
    reference = (
        "van der Steen, Vink, Kaya. Privacy Constrained Fairness Estimation for Decision Trees. "
        "arXiv:2312.08413, 2023"
    )

    auditor: Auditor = Field(
        description='who audits: { use = "pafer", epsilon = 0.1, mechanism = { use = "laplace" } }'
    )
    says: Literal["interval", "lower", "estimate"] = Field(
        "interval",
        description="what is claimed of the ratio of the groups' rates: that it lies in the "
        "interval, that it is at least its lower end, or at least the estimate",
    )

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """A release of an auditor that asks a curator."""
        auditor = {"use": "pafer", "epsilon": 1.0, "resamples": 40, "mechanism": {"use": "laplace"}}
        return [{"auditor": auditor, "says": says} for says in ("interval", "estimate")]

    @field_validator("auditor")
    @classmethod
    def _is_private(cls, auditor: Auditor) -> Auditor:
        if "curator" not in auditor.sees:
            raise ValueError(
                f"auditor {auditor.name!r} asks no curator, so what it finds is not private; "
                'choose one that does, { use = "pafer", ... } for instance'
            )
        if auditor.needs_rules:
            raise ValueError(
                f"auditor {auditor.name!r} reads the rules of the model, and a disclosure knows "
                "its predictions only; choose a mode that needs no rules"
            )
        return auditor

    @property
    def protects(self) -> frozenset[str]:
        """What the auditor does."""
        return self.auditor.protects

    def incompatible(self, other: Component) -> str | None:
        """What does not go with the auditor does not go with what it releases."""
        return super().incompatible(other) or self.auditor.incompatible(other)

    def forms(self) -> tuple[str, ...]:
        """Ratios only: an audit knows no other form."""
        return ("ratio",)

    def words(self) -> list[str]:
        """The ratio, and what binds it from above."""
        both = ["unfairness ratio"] if self.says == "interval" else []
        return [*super().words(), *both]

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Audit the training people, and claim what the audit released.

        Raises
        ------
        InputError
            If the auditor gives no release, or no interval where one is to be claimed.
        PluginError
            If what it releases are no ratios.
        """
        train = context.train
        curator = Curator(
            train.sensitive, train.groups, neighbours=self.auditor.relation, rng=rng.spawn(1)[0]
        )
        people = train.only(self.auditor.sees - {"sensitive"})
        found = self.auditor.audit(Subject(people, people, None, curator), rng)
        if not isinstance(found, Release):
            raise InputError(
                f"disclosure {self.name!r}: auditor {self.auditor.name!r} gives no release"
            )
        estimate, low, high = (float(each[0]) for each in (found.values, found.low, found.high))
        ends = self._ends(estimate, low, high)
        constraint = RateConstraint(found.metric, rounded_up(1 - Fraction(ends[0])), "ratio")
        above = KnownUnfairness(found.metric, rounded_down(1 - Fraction(ends[1])), 1.0, "ratio")
        truth = 1 - constraint.unfairness(
            train.sensitive, train.predictions, train.labels, len(train.groups)
        )
        whole = not np.isnan(low)
        notes: Measures = {
            "claim_estimate": estimate,
            "claim_low": low if whole else None,
            "claim_high": high if whole else None,
            "claim_interval_holds": int(low <= truth <= high) if whole else None,
        }
        also = (above,) if ends[1] < 1 else ()
        return Claim(constraint, self.name, also, notes, found.guarantee, found.noise)

    def _ends(self, estimate: float, low: float, high: float) -> tuple[float, float]:
        """Between what the ratio is claimed to lie."""
        no_ends = np.isnan(low) and np.isnan(high)
        if no_ends and self.says != "estimate":
            raise InputError(
                f"disclosure {self.name!r}: auditor {self.auditor.name!r} gives no interval: have "
                'it make one, or disclose with says = "estimate"'
            )
        if not (0 <= estimate <= 1 and (no_ends or 0 <= low <= high <= 1)):
            raise PluginError(
                f"auditor {self.auditor.name!r} released {estimate} in [{low}, {high}], which are "
                "no ratios"
            )
        if self.says == "estimate":
            return estimate, 1.0
        return low, high if self.says == "interval" else 1.0
