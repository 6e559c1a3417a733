"""What each thing that a run publishes gives away, and whether it may be published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from fpbench.base.text import format_percent, format_points

if TYPE_CHECKING:
    from fpbench.results.intervals import Interval

MOST_LEAK = 0.01
"""Greatest rise of the share guessed right that `fpbench assess` allows by default, too."""
_SEEN_ERROR = 0.0005
"""Least error of rates that is worth a word."""


class Verdict(StrEnum):
    """Whether a thing is within the default limits of `fpbench assess`."""

    WITHIN = "may be published"
    BEYOND = "do not publish"
    OPEN = "too few seeds to tell"


@dataclass(frozen=True)
class PublishedThing:
    """What the best attack gains from one thing that is published, averaged over seeds."""

    name: str
    labels: Mapping[str, str] = field(repr=False)
    """The components that it was measured with."""
    without: float
    """Share of people guessed right before."""
    added: Interval
    """What is added to it, with its 95 % interval."""
    proven: float = 0.0
    """Share of people whose group is proven."""
    sure: float = 0.0
    """Share of people whose group is as good as proven."""
    rate_error: float | None = None
    """Mean absolute error of published rates; None if none are published."""

    @property
    def verdict(self) -> Verdict:
        """Beyond the limits if anybody is proven, or more is added, at 95 %."""
        low, high = (self.added.mean if end is None else end
                     for end in (self.added.low, self.added.high))  # fmt: skip
        if self.proven + self.sure > 0 or low > MOST_LEAK:
            return Verdict.BEYOND
        return Verdict.WITHIN if high <= MOST_LEAK and self.added.count > 1 else Verdict.OPEN

    @property
    def words(self) -> str:
        """What it gives away, and how true its rates are."""
        added, parts = self.added, []
        if self.proven > 0:
            parts.append(f"{_count_people(self.proven)} proven")
        elif self.sure > 0:
            parts.append(f"{_count_people(self.sure)} as good as proven")
        if not parts and self.rate_error is not None:
            parts.append("nobody is proven")
        points = format_points(added.mean)
        if added.low is not None and added.high is not None and added.low <= 0 <= added.high:
            parts.append(f"adds nothing that {added.count} seeds can tell")
        elif points.strip("+-0."):
            more = "fewer" if points.startswith("-") else "more"
            at = " at one seed" if added.count == 1 else ""
            parts.append(f"{points.lstrip('+-')} points {more} guessed right{at}")
        else:
            parts.append("adds nothing")
        if self.rate_error is not None and self.rate_error >= _SEEN_ERROR:
            parts.append(f"rates off by {format_percent(self.rate_error)} points")
        return ", ".join(parts)

    def to_data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "name": self.name, "verdict": self.verdict.value, "words": self.words,
            "without": self.without, "added": self.added.mean, "low": self.added.low,
            "high": self.added.high, "proven": self.proven, "sure": self.sure,
            "rate_error": self.rate_error,
        }  # fmt: skip


def _count_people(share: float) -> str:
    """A share of people in words."""
    if share > 0.4:
        return f"{format_percent(share)} % of people"
    return f"1 in {round(1 / share):,} people"


@dataclass(frozen=True)
class Findings:
    """What a run found about the things that are published about the people of a data set."""

    scene: str
    """Who is attacked, what is secret, who attacks, and what is guessed before."""
    baseline: float | None
    """Share of the largest group."""
    things: tuple[PublishedThing, ...]
    """In the order of the matrix."""
    unshown: int = 0
    """Number of further things, which add less."""

    @property
    def summary(self) -> str:
        """A sentence: whose group, and of what is published, what gives most away."""
        worst = max(self.things, key=lambda one: (one.proven + one.sure, one.added.mean))
        whom, _, _ = self.scene.partition(" is secret")
        many = len(self.things) + self.unshown
        most = f"of {many} things published, {worst.name} gives most away" * (many > 1)
        return f"{whom}: {most or worst.name}: {worst.verdict}, {worst.words}."
