"""The disclosure of a differentially private audit: its release, or its noisy counts."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from fpbench import Auditor, Claim, Component, Disclosure, InputError, Measure, PluginError, Release
from fpbench.claims import (
    Facts,
    KnownUnfairness,
    RateConstraint,
    limit_claim_nats,
    limit_fact_nats,
)
from fpbench.plugin import Context, MeasureValues, Subject
from fpbench.privacy import Curator, RecordingCurator, limit_private_nats

_STEPS = 1000
"""Disclosed tolerances are integer multiples of 1 / 1000."""


class DPRelease(Disclosure):
    """The release, or noisy counts, of a differentially private audit of the training people.

    A curator with the groups of the training people answers the auditor, who never sees them.
    The auditor releases an estimate of the ratio of the least to the greatest group rate, with an
    interval. An adversary reads it as a claim of the form `ratio`: with `says = "interval"`, that
    the ratio is between the lower and the upper end; with `lower`, that it is at least the lower
    end; with `estimate`, that the ratio is at least the estimate. Ends are rounded outwards to
    multiples of 0.001. Everything after the curator's answers is post-processing, so the claim is
    as private as the answers.

    The claim may be false or even impossible (see `on_infeasible` of the correctors): a row says
    whether its lower end is true (`claim_holds`), whether the whole interval is
    (`claim_interval_holds`), and its epsilon (`claim_epsilon`). If an auditor repeats its audit,
    the first release is used.

    With `says = "counts"` the auditor is the adversary: it has the curator's answers, noisy counts
    of the groups in cells of its choice, and knows the noise distribution. They are facts
    (`fpbench.claims.Facts`), like those of `report`, and the corrector `posterior` reads them. For
    an auditor that queries the model's rules (`pafer` with `per_rule`) the rules are the cells.

    An upper end makes the corrector's problem harder: `exact` took one second for 10,000 people of
    two groups and five seconds for 5,000 people of four; for 10,000 people of five groups it took
    over a minute. `says = "lower"` leaves the upper end out.

    Notes
    -----
    van der Steen et al. audit the test set for a trusted auditor. A published audit of the training
    people gives an adversary information about them; a run with this disclosure measures how much.
    Epsilon bounds what someone who knows everybody else learns about one person; it does not bound
    the accuracy of guesses of all groups from features and one number about all people.
    """

    name = "dp-release"
    summary = "the release of a differentially private audit, or its noisy counts"
    reference = (
        "van der Steen, Vink, Kaya. Privacy Constrained Fairness Estimation for Decision Trees. "
        "arXiv:2312.08413, 2023"
    )
    measures = Measure.table("asked", """
        claim_estimate | neither ratio | the ratio that the private audit estimated
        claim_low | neither ratio | lower end of its interval
        claim_high | neither ratio | upper end of its interval
        claim_interval_holds | greater yes or no | whether its interval contains the true ratio
    """)  # fmt: skip

    auditor: Auditor = Field(
        description='who audits: { use = "pafer", epsilon = 0.1, mechanism = { use = "laplace" } }'
    )
    says: Literal["interval", "lower", "estimate", "counts"] = Field(
        "interval",
        description="claim that the ratio of the groups' rates is in the interval, is at least "
        "its lower end, or is at least the estimate; or all noisy counts of the auditor instead "
        "of a ratio",
    )

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """An interval, an estimate and the counts of `pafer`."""
        auditor = {"use": "pafer", "epsilon": 1.0, "resamples": 40, "mechanism": {"use": "laplace"}}
        return [{"auditor": auditor, "says": says} for says in ("interval", "estimate", "counts")]

    @field_validator("auditor")
    @classmethod
    def _check_private(cls, auditor: Auditor) -> Auditor:
        if "curator" not in auditor.sees:
            raise ValueError(
                f"auditor {auditor.name!r} queries no curator, so its result is not private; "
                'choose one with a curator, such as { use = "pafer", ... }'
            )
        return auditor

    @model_validator(mode="after")
    def _check_rules(self) -> DPRelease:
        if self.auditor.needs_rules and self.says != "counts":
            raise ValueError(
                f"auditor {self.auditor.name!r} reads the rules of the model, but readers of a "
                "ratio know only its predictions; choose a mode that needs no rules, or says = "
                '"counts"'
            )
        return self

    @property
    def needs_model(self) -> bool:
        """Whether the auditor queries the model's rules."""
        return self.auditor.needs_rules

    @property
    def portable(self) -> bool:
        """Not with counts: their beliefs depend on time limits."""
        return self.says != "counts"

    @property
    def protects(self) -> frozenset[str]:
        """Columns that the auditor protects."""
        return self.auditor.protects

    def incompatible(self, other: Component) -> str | None:
        """Why the auditor cannot be combined with the other component."""
        return super().incompatible(other) or self.auditor.incompatible(other)

    def forms(self) -> tuple[str, ...]:
        """The form `ratio`, unless it publishes counts."""
        return () if self.says == "counts" else ("ratio",)

    def words(self) -> list[str]:
        """Words for a ratio and its upper end, or for counts."""
        more = {"interval": ["unfairness ratio"], "counts": [Facts.word]}
        return [*super().words(), *more.get(self.says, [])]

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Audit the training people, and claim its release or its counts.

        Raises InputError if the auditor gives no release, or no interval where one is needed;
        PluginError if its numbers are not ratios.
        """
        people = context.target
        curator = RecordingCurator(
            Curator(
                people.sensitive, people.groups, neighbours=self.auditor.relation,
                rng=rng.spawn(1)[0],
            )
        )  # fmt: skip
        seen = people.only(self.auditor.sees - {"sensitive"})
        model = context.model if self.needs_model else None
        release = self.auditor.audit(Subject(seen, seen, model, curator), rng)
        if not isinstance(release, Release):
            raise InputError(
                f"disclosure {self.name!r}: auditor {self.auditor.name!r} gives no release"
            )
        if self.says == "counts":
            facts = curator.facts(repetition=0)
            limits = limit_fact_nats(facts), limit_private_nats(release.guarantee, len(people))
            return Claim(
                None, self.name, (facts,), {}, release.guarantee, release.noise, min(limits)
            )
        estimate, low, high = (float(e[0]) for e in (release.values, release.low, release.high))
        least, most = self._read_interval(estimate, low, high)
        # The digits of the nearest floats are those of the multiples.
        tolerance = math.ceil((1 - Fraction(least)) * _STEPS) / _STEPS
        constraint = RateConstraint(release.metric, tolerance, "ratio")
        least_unfairness = math.floor((1 - Fraction(most)) * _STEPS) / _STEPS
        upper_end = KnownUnfairness(release.metric, least_unfairness, 1.0, "ratio")
        truth = 1 - constraint.unfairness(
            people.sensitive, people.predictions, people.labels, len(people.groups)
        )
        has_interval = not np.isnan(low)
        notes: MeasureValues = {
            "claim_estimate": estimate,
            "claim_low": low if has_interval else None,
            "claim_high": high if has_interval else None,
            "claim_interval_holds": int(low <= truth <= high) if has_interval else None,
        }
        also = (upper_end,) if most < 1 else ()
        nats = min(
            math.log(_STEPS + 1) * (2 if self.says == "interval" else 1),
            limit_claim_nats(release.metric, people),
            limit_private_nats(release.guarantee, len(people)),
        )  # fmt: skip
        return Claim(constraint, self.name, also, notes, release.guarantee, release.noise, nats)

    def _read_interval(self, estimate: float, low: float, high: float) -> tuple[float, float]:
        """The least and the greatest claimed ratio."""
        no_interval = np.isnan(low) and np.isnan(high)
        if no_interval and self.says != "estimate":
            raise InputError(
                f"disclosure {self.name!r}: auditor {self.auditor.name!r} gives no interval; "
                'let it compute one, or set says = "estimate"'
            )
        if not (0 <= estimate <= 1 and (no_interval or 0 <= low <= high <= 1)):
            raise PluginError(
                f"auditor {self.auditor.name!r} released {estimate} in [{low}, {high}], which "
                "are not ratios"
            )
        if self.says == "estimate":
            return estimate, 1.0
        return low, high if self.says == "interval" else 1.0
