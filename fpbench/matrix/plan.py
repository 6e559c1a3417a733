"""What a matrix means here: cells, the unique steps they share, and what is skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fpbench.matrix.step import ORDER, Step


@dataclass(frozen=True)
class Cell:
    """One row of results to be."""

    key: str
    """Key of the step that measures it; of its labels, if it is skipped."""
    labels: Mapping[str, str]
    """Label of the component of each kind that it combines."""
    seed: int
    reason: str | None = None
    """Why it is skipped; None if it is to be run."""
    portable: bool = True
    """Whether all its components are, see `Component.portable`."""


@dataclass
class Plan:
    """What a matrix means here."""

    cells: list[Cell] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)
    """Every unique step by its key, parents before children."""
    data: dict[str, str] = field(default_factory=dict)
    """SHA-256 checksums of the files that datasets read, by name; they are part of the keys."""
    lacking: str | None = None
    """Why nothing can be run: none of the data is here."""
    warnings: list[str] = field(default_factory=list)
    """What is odd, but no reason not to run."""
    remarks: list[str] = field(default_factory=list)
    """What to know when reading the results."""

    @property
    def runnable(self) -> list[Cell]:
        """The cells that are not skipped."""
        return [cell for cell in self.cells if cell.reason is None]

    def count_steps(self) -> dict[tuple[str, str], int]:
        """Number of unique steps by action and component, in the order of the flow."""
        return _by_name(self.steps.values())

    def count_alone(self) -> dict[tuple[str, str], int]:
        """The same if every cell were evaluated on its own."""
        keys = (key for cell in self.runnable for key in self.ancestry(cell.key))
        return _by_name(self.steps[key] for key in keys)

    def count_skipped(self) -> dict[str, int]:
        """Number of skipped cells by reason."""
        return dict(Counter(cell.reason for cell in self.cells if cell.reason is not None))

    def ancestry(self, key: str) -> set[str]:
        """Keys of a step and of all that it rests on."""
        found: set[str] = set()
        waiting = [key]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += self.steps[current].parents
        return found


def _by_name(steps: Iterable[Step]) -> dict[tuple[str, str], int]:
    counted = Counter(step.name for step in steps)
    return dict(sorted(counted.items(), key=lambda item: ORDER.index(item[0][0])))


def needed(plan: Plan, finals: Iterable[str]) -> list[str]:
    """Keys of all steps that these rest on, each after its parents, a cell's steps together."""
    order: dict[str, None] = {}
    for final in finals:
        waiting = [final]
        while waiting:
            key = waiting[-1]
            missing = [p for p in plan.steps[key].parents if p not in order]
            if key in order or not missing:
                order.setdefault(waiting.pop())
            else:
                waiting += reversed(missing)
    return list(order)
