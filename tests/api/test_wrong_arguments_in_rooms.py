"""Everything that a room exports, called with wrong arguments: one error that says so.

The callables are found by themselves, and wrong values by annotations; only right arguments are
listed here, and a name without any fails.
"""

import functools
import importlib
import math
from types import FunctionType

import numpy as np
import pandas as pd
import pytest
from wrong_arguments import HUGE, list_unclear

import fpbench
from fpbench import Guarantee, Problem, claims, privacy
from fpbench.claims import Facts, RateConstraint

ROOMS = ("auditing", "claims", "correction", "privacy", "reports")
NEVER = {
    "float": (None, "1", b"x", [], [1.0], {}, object(), print, HUGE, math.nan, np.zeros(2)),
    "int": (None, "1", b"x", [], [1], {}, object(), print, HUGE, math.nan, 1.5, True, np.zeros(2)),
    "bool": (None, "1", [], {}, object(), 2.0, np.zeros(2)),
    "str": (None, 1, b"x", [], {}, object(), np.zeros(2)),
    "Metric": (None, 1, "nobody", [], np.zeros(2)),
    "Form": (None, 1, "nobody", [], np.zeros(2)),
    "Neighbours": (None, 1, "nobody", [], np.zeros(2)),
    "ArrayLike": (None, object(), print, {"a": 1}, [[1], [1, 2]]),
    "Facts": (None, 1, "nobody", [], np.zeros(2)),
    "Problem": (None, 1, "nobody", [], np.zeros(2)),
    "Guarantee": (None, 1, "nobody", [], np.zeros(2)),
}
"""What is wrong for an annotation."""

BELIEFS = np.full((4, 2), 0.5)
GROUPS, PREDICTIONS, LABELS = (np.array(row) for row in ([0, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 0]))
FACTS = Facts.from_counts(np.ones((4, 1), bool), [[2, 2]])
PROVEN = Facts.from_counts(np.ones((4, 1), bool), [[4, 0]])
PROBLEM = Problem(GROUPS, 2, PREDICTIONS, LABELS, (RateConstraint(),))
X = pd.DataFrame({"age": [20, 30, 40, 50] * 3, "job": pd.Categorical(list("abcd") * 3)})
REPORT = fpbench.FairnessReport.from_predictions(
    X, [1, 0, 0] * 4, [0, 1] * 6, by=["job"], min_cell=0
)
OUTPUTS = np.random.default_rng(0).random((60, 1))
PEOPLE = fpbench.Sample(("a", "b"), labels=LABELS, predictions=PREDICTIONS)
FULL = fpbench.dataset("census-synthetic", rows=100).sample()
PRIVATE = fpbench.component("learner", "private-tree").fit(FULL, np.random.default_rng(0))
EPSILON, DELTA, SIGMA = {"epsilon": 1.0}, {"delta": 1e-6}, {"sigma": 2.0}
BOUNDS = {"group": 0, "low": 0.1, "high": 0.9}
LAPLACE = fpbench.component("mechanism", "laplace")

RIGHT = {
    "auditing": {
        "bound_epsilon": {"one": OUTPUTS, "other": OUTPUTS},
        "excessive_risk": {"model": PRIVATE, "train": FULL, "test": FULL, "repetitions": 2},
        "individual_fairness": {"model": np.array([1, 0, 0] * 4), "X": X, "tau": 0.1},
        "unfairness": {"groups": GROUPS, "predictions": PREDICTIONS},
        "draw_halves": {"cells": GROUPS, "number": 2, "rng": np.random.default_rng(0)},
        "find_most_provable": {"draws": 50, "delta": 0.0, "confidence": 0.9},
        "make_suffixes": {"groups": ["a", "b"]},
    },
    "claims": {
        "Facts.check": {"self": FACTS, "people": 4, "groups": 2},
        "Facts.contradiction": {"self": FACTS, "sets": [0]},
        "Facts.count": {"self": FACTS, "of": None},
        "Facts.from_counts": {"members": np.ones((4, 1), bool), "low": [[2, 2]]},
        "Facts.from_tables": {"tables": [(np.zeros(4, int), 1)], "low": [[2, 2]]},
        "Facts.join": {"parts": [FACTS, FACTS]},
        "Facts.list_sums": {"self": FACTS},
        "Facts.name": {"self": FACTS, "number": 0},
        "Facts.over": {"self": FACTS, "rows": [0, 1, 2, 3], "people": 5},
        "Facts.remove_people": {"self": FACTS, "possible": np.ones((4, 2), bool)},
        "Facts.rename": {"self": FACTS, "describe": str.upper},
        "Facts.take": {"self": FACTS, "which": [0]},
        "KnownPeople": {"rows": [0], "groups": [1]},
        "KnownPeople.check": {"self": claims.KnownPeople([0], [1]), "people": 4, "groups": 2},
        "KnownPeople.pairs": {"self": claims.KnownPeople([0], [1])},
        "KnownUnfairness": {"metric": "statistical-parity", "low": 0.1, "high": 0.2},
        "LinearConstraint": {"group": 0, "coefficients": [1.0, 2.0]},
        "LinearConstraint.array": {"self": claims.LinearConstraint(0, [1.0])},
        "LinearConstraint.check": {
            "self": claims.LinearConstraint(0, [1.0]), "people": 1, "groups": 2
        },
        "RateBounds": BOUNDS,
        "RateConstraint": {},
        "RateConstraint.holds": {
            "self": RateConstraint(), "groups": GROUPS, "predictions": PREDICTIONS,
            "labels": LABELS, "k": 2,
        },
        "RateConstraint.slices": {"self": RateConstraint("equal-opportunity"), "labels": LABELS},
        "RateConstraint.unfairness": {
            "self": RateConstraint(), "groups": GROUPS, "predictions": PREDICTIONS,
            "labels": LABELS, "k": 2,
        },
        "ShareBounds": BOUNDS,
        "compare_rates": {"members": np.array([2, 2]), "positives": np.array([1, 2])},
        "combine_facts": {"reports": [(FACTS, [1, 2, 3, 4]), (FACTS, [3, 4, 5, 6])]},
        "group_counts": {"groups": GROUPS, "predictions": PREDICTIONS, "k": 2},
        "limit_claim_nats": {"metric": "equalized-odds", "people": PEOPLE},
        "limit_fact_nats": {"facts": FACTS},
    },
    "correction": {
        "compute_count_leak": {"beliefs": BELIEFS[:, 1], "cells": GROUPS},
        "compute_posterior": {"beliefs": BELIEFS, "problem": PROBLEM},
        "condition_beliefs": {"facts": FACTS, "beliefs": BELIEFS},
        "explain_proof": {"facts": PROVEN, "person": 0, "seconds": 1.0},
        "find_likeliest_groups": {"facts": FACTS},
        "find_possible": {"problem": PROBLEM, "seconds": 1.0},
        "limit_leak": {"beliefs": BELIEFS, "nats": 1.0},
        "limit_leak_by_error": {"error": 0.3, "nats": 1.0, "people": 10},
        "limit_realised_gain": {"beliefs": BELIEFS, "nats": 1.0},
        "propagate": {"facts": FACTS},
        "prove": {"facts": PROVEN},
        "solve_exact": {"problem": PROBLEM},
    },
    "privacy": {
        "Curator": {"sensitive": GROUPS},
        "Curator.histogram": {
            "self": privacy.Curator(GROUPS), "cells": GROUPS, "n_cells": 2, "epsilon": 1.0,
            "mechanism": LAPLACE,
        },
        "Ledger": {"epsilon": 1.0},
        "Ledger.find_share": {
            "self": privacy.Ledger(1.0), "releases": 2, "guarantee": functools.partial(Guarantee, delta=0.0),
        },
        "Ledger.spend": {"self": privacy.Ledger(math.inf), "guarantee": Guarantee(1.0)},
        "RecordingCurator": {"curator": privacy.Curator(GROUPS)},
        "RecordingCurator.facts": {"self": privacy.RecordingCurator(privacy.Curator(GROUPS))},
        "RecordingCurator.histogram": {
            "self": privacy.RecordingCurator(privacy.Curator(GROUPS)), "cells": GROUPS,
            "n_cells": 2, "epsilon": 1.0, "mechanism": LAPLACE,
        },
        "check_epsilon": EPSILON,
        "compose": {"guarantees": [Guarantee(1.0)]},
        "compose_disjoint": {"guarantees": [Guarantee(1.0)]},
        "check_answers": {"answers": [[1.0, 2.0]], "total": 3.0},
        "compose_gaussians": {"sigmas": [1.0, 2.0]},
        "epsilon_to_rho": {**EPSILON, **DELTA},
        "find_invalid_answers": {"answers": [[1.0, 2.0]], "total": 3.0},
        "gaussian_delta": {**EPSILON, **SIGMA},
        "gaussian_epsilon": {**SIGMA, **DELTA},
        "gaussian_rho": SIGMA,
        "gaussian_sigma": {**EPSILON, **DELTA},
        "limit_private_leak": {"beliefs": BELIEFS, "guarantee": Guarantee(1.0)},
        "limit_private_nats": {"guarantee": Guarantee(1.0), "people": 4},
        "project_counts": {"answers": [[1.0, 2.0]], "total": 3.0},
        "rho_to_epsilon": {"rho": 0.5, **DELTA},
        "sampled_gaussian_sigma": {**EPSILON, **DELTA, "share": 0.1, "steps": 3},
    },
    "reports": {
        "measure_utility": {"report": REPORT, "exact": REPORT},
        "parse_report_metric": {"name": "tpr"},
        "reconstruct_people": {
            "report": REPORT, "X": X, "predictions": [1, 0, 0] * 4, "groups": [0, 1] * 6,
            "worlds": 2, "seconds": 5.0, "rng": 0,
        },
    },
}  # fmt: skip
"""Right arguments of every callable of a room."""
INNER = {
    "auditing": {"RiskReport", "SimilarityReport",
                 "PrivateModel", "RedrawnModels", "VotedModel"},
    "claims": {"AnyOf", "Condition", "ContradictionError", "Facts",
               "Gap", "Occupied", "Part", "Proportional", "RatesApart", "RatesWithin", "Row",
               "Facts.allows", "Facts.conditions", "Facts.draw_numbers", "Facts.find_broken",
               "Facts.drop_derived", "Facts.settle_noise", "Facts.soften", "Facts.weigh", "Facts.weigh_sets",
               "KnownUnfairness.conditions", "RateBounds.conditions", "RateConstraint.conditions",
               "ShareBounds.conditions"},
    "correction": {"ConditionedBeliefs", "CountedProblem", "LikeliestGroups", "OptimalCorrector"},
    "privacy": {"Balance", "HistogramSource", "Sensitivity"},
    "reports": {"ReportUtility"},
}  # fmt: skip
"""What only fpbench makes and calls: parts of constraints, answers of functions, base classes."""
MADE = {"Facts"}
"""Of them, those whose methods others call."""


def list_callables(room):
    """Functions, constructors and methods of a room, by name."""
    module = importlib.import_module(f"fpbench.{room}")
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, FunctionType) or hasattr(value, "__wrapped__"):
            yield name, value
        elif isinstance(value, type):
            if name not in INNER[room]:
                yield name, value
            for method, function in vars(value).items():
                if method[0] != "_" and isinstance(function, FunctionType | classmethod):
                    full = f"{name}.{method}"
                    if full not in INNER[room] and (name not in INNER[room] or name in MADE):
                        yield full, getattr(value, method)


CALLABLES = {
    f"{room}.{name}": function for room in ROOMS for name, function in list_callables(room)
}  # fmt: skip


def test_every_callable_is_called():
    assert set(CALLABLES) == {f"{room}.{name}" for room, names in RIGHT.items() for name in names}


def list_never(annotation):
    """Values that are wrong for an annotation in any case."""
    members = annotation.split(" | ")
    if all(member in NEVER for member in members if member != "None"):
        for values in (NEVER[member] for member in members if member != "None"):
            yield from (v for v in values if v is not None or "None" not in members)


@pytest.mark.quick_cases(32)
@pytest.mark.parametrize("name", CALLABLES)
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_argument_is_one_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    room, _, rest = name.partition(".")
    CALLABLES[name](**RIGHT[room][rest])
    unclear = list_unclear(CALLABLES[name], RIGHT[room][rest], list_never)
    assert not unclear, "\n".join(unclear)
