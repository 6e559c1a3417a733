"""Notes of a model that another learner's model is made of."""

from __future__ import annotations

from typing import Any

from fpbench.plugin import MeasureValues

_PRIVACY_WORDS = {"epsilon", "delta", "rho", "neighbours"}
"""Words in names of notes about a guarantee."""


def take_notes(model: Any, *, keep_privacy: bool) -> MeasureValues:
    """The notes of an inner model; those about privacy only with `keep_privacy`."""
    return {
        name: value
        for name, value in getattr(model, "notes", {}).items()
        if keep_privacy or not _PRIVACY_WORDS & set(name.split("_"))
    }
