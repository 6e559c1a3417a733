"""Twins: learners without the fairness of another learner."""

from __future__ import annotations

from collections.abc import Iterable

from fpbench import Component, Learner, component


def make_twin(learner: Learner, name: str, shared: Iterable[str]) -> Learner:
    """The learner of this name, with parameters of another.

    `learner`: a fair learner. `name`: of its twin. `shared`: names of their common parameters.
    """
    parameters = {}
    for field in shared:
        value = getattr(learner, field)
        if isinstance(value, Component):
            value = {"use": value.name, **value.model_dump(mode="json")}
        parameters[field] = value
    twin = component("learner", name, **parameters)
    assert isinstance(twin, Learner)
    return twin
