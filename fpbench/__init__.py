"""Measure what fair machine-learning models give away about people.

Nothing is imported until it is used, so that `import fpbench` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fpbench.api import Run, component, correct, dataset, load, run
    from fpbench.components import (
        Adversary,
        Auditor,
        Classifier,
        Component,
        Context,
        Corrector,
        Dataset,
        Disclosure,
        Learner,
        Mechanism,
        Policy,
    )
    from fpbench.errors import (
        DataError,
        FpbenchError,
        HiddenError,
        InputError,
        MatrixError,
        NameUnknownError,
        PluginError,
        StoreError,
    )
    from fpbench.estimators import SklearnLearner, encode
    from fpbench.home import DataHome, RemoteFile
    from fpbench.hookspecs import hookimpl
    from fpbench.plugins import Catalog, Lazy, discover
    from fpbench.rates import FORMS, METRICS, Form, Metric, RateConstraint, group_counts, unfairness
    from fpbench.records import (
        Claim,
        Codes,
        Correction,
        Guess,
        Measures,
        Predictions,
        Problem,
        Sample,
        SolverStatus,
        Split,
        Status,
        Subject,
        Table,
        View,
    )
    from fpbench.two_groups import solve_two_groups
    from fpbench.weights import best_exponent, scale_confidence, sharpen

__version__ = "0.1.0"

_HOMES = {
    "api": "Run component correct dataset load run",
    "components": "Adversary Auditor Classifier Component Context Corrector Dataset Disclosure "
    "Learner Mechanism Policy",
    "errors": "DataError FpbenchError HiddenError InputError MatrixError NameUnknownError "
    "PluginError StoreError",
    "estimators": "SklearnLearner encode",
    "home": "DataHome RemoteFile",
    "hookspecs": "hookimpl",
    "plugins": "Catalog Lazy discover",
    "rates": "FORMS METRICS Form Metric RateConstraint group_counts unfairness",
    "records": "Claim Codes Correction Guess Measures Predictions Problem Sample SolverStatus "
    "Split Status Subject Table View",
    "two_groups": "solve_two_groups",
    "weights": "best_exponent scale_confidence sharpen",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*sorted(_HOME), "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    try:
        module = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'fpbench' has no attribute {name!r}") from None
    return getattr(import_module(f"fpbench.{module}"), name)


def __dir__() -> list[str]:
    return __all__
