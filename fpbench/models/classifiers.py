"""Construction of scikit-learn classifiers from a name or an import path."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError, suggest_name
from fpbench.base.trust import why_not_importable

_LARGEST_SEED = 2**31 - 1


class ClassifierFamily(NamedTuple):
    """A scikit-learn classifier that can be named without its import path."""

    path: str
    """Import path of its class."""
    defaults: dict[str, Any]
    """Parameters that differ from those of scikit-learn."""
    standardised: bool = False
    """Whether features are scaled to mean 0 and variance 1, in double precision."""


FAMILIES = {
    # The base learner of Ferry et al., section IV-A.
    "decision-tree": ClassifierFamily("sklearn.tree:DecisionTreeClassifier", {"max_depth": 8}),
    # The attack model in the script of Ferry et al.
    "random-forest": ClassifierFamily(
        "sklearn.ensemble:RandomForestClassifier",
        {"n_estimators": 100, "max_depth": 6, "min_samples_split": 10},
    ),
    # Early stopping sets people of every class aside, which fails for a class of one.
    "hist-gradient-boosting": ClassifierFamily(
        "sklearn.ensemble:HistGradientBoostingClassifier", {"early_stopping": False}
    ),
    # Newton's method to convergence: where lbfgs stops depends on the processor.
    "logistic-regression": ClassifierFamily(
        "fpbench.models.portable_logistic:LogisticRegression",
        {"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 1000},
        standardised=True,
    ),
}
"""Classifiers by name."""

FAMILY_CHOICE = f"{', '.join(FAMILIES)}, or a class by import path, package.module:Class"
"""What a `family` may be, for descriptions of parameters."""

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_RESERVED = ("random_state", "n_jobs")
"""Parameters that fpbench sets wherever a class takes them."""


def random_state(rng: np.random.Generator) -> int:
    """A whole number for the `random_state` of scikit-learn, drawn from a generator.

    Parameters
    ----------
    rng
        A number is drawn from it.
    """
    return int(rng.integers(_LARGEST_SEED))


@dataclass(frozen=True)
class Recipe:
    """How to make a scikit-learn classifier. Nothing is imported before `check` or `make`.

    Attributes
    ----------
    family
        A key of `FAMILIES`, or an import path `package.module:Class`.
    parameters
        Arguments of its constructor, plain data, over the defaults of the family. The word
        "none" stands for `None`, which a matrix file cannot say.
    balanced
        Whether all groups weigh the same in training; None leaves that to the parameters.
    """

    family: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    balanced: bool | None = None

    def check(self, needs: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        """Refuse a recipe that is not a valid classifier; imports scikit-learn only if needed.

        A class by import path is imported, which runs its module, only from packages that
        `fpbench.base.trust` allows, and is constructed only if it is a subclass of scikit-learn's
        classifiers.

        Parameters
        ----------
        needs
            `predict_proba`, if the classifier must give probabilities; `sample_weight`, if its
            `fit` must take weights of people.
        names
            Further names of parameters that it must take.

        Raises
        ------
        InputError
            If the family is unknown, the class is missing or not a classifier, a parameter is
            unknown or refused by the class, or something needed is missing.
        """
        names = [*self.parameters, *names]
        if self.family in FAMILIES and not names:
            return
        cls = self.classifier()
        reserved = {*_RESERVED, *(["class_weight"] if self.balanced is not None else [])}
        valid = _list_arguments(cls)
        for name in names:
            if name in reserved:
                raise InputError(f"{name!r} must not be set here: fpbench sets it")
            if valid is not None and name not in valid:
                hint = suggest_name(name, valid - reserved)
                raise InputError(f"{self.family} has no parameter {name!r}; {hint}")
        estimator = self._construct(cls, 0)
        if self.family in FAMILIES:  # these meet all needs
            return
        if "predict_proba" in needs and not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"{self.family} gives no probabilities (predict_proba), which are needed here"
            )
        if "sample_weight" in needs and not _accepts_weights(estimator):
            raise InputError(
                f"{self.family} cannot use weights (its fit takes no sample_weight), which is "
                "needed here"
            )

    def check_balance(self) -> None:
        """Refuse to balance the classes of a classifier that takes no weights.

        Raises
        ------
        InputError
            If it takes neither weights of classes nor weights of people, or is not a classifier.
        """
        if not self.balanced or self.family in FAMILIES:
            return
        cls = self.classifier()
        if not (_accepts(cls, "class_weight") or _accepts_weights(cls)):
            raise InputError(
                f"{self.family} cannot balance groups: it takes neither class_weight nor "
                "sample_weight"
            )

    def make(self, state: int) -> Any:
        """The classifier, not yet fitted, or a pipeline that ends in it.

        Raises
        ------
        InputError
            If it cannot be made.
        """
        estimator = self._construct(self.classifier(), state)
        if self.family in FAMILIES and FAMILIES[self.family].standardised:
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import FunctionTransformer, StandardScaler

            double = FunctionTransformer(np.asarray, kw_args={"dtype": np.float64})
            return make_pipeline(double, StandardScaler(), estimator)
        return estimator

    def fit(self, matrix: NDArray[Any], classes: NDArray[Any], state: int) -> Any:
        """The fitted classifier; classes are balanced by weights of people if need be."""
        estimator = self.make(state)
        if not self.balanced or _accepts(self.classifier(), "class_weight"):
            return estimator.fit(matrix, classes)
        from sklearn.utils.class_weight import compute_sample_weight

        return estimator.fit(
            matrix, classes, sample_weight=compute_sample_weight("balanced", classes)
        )

    def classifier(self) -> type:
        """The class of the classifier, imported on first use.

        Raises
        ------
        InputError
            If there is no such family or class, or it is not a classifier.
        """
        if self.family in FAMILIES:
            module, _, name = FAMILIES[self.family].path.partition(":")
            cls: type = getattr(importlib.import_module(module), name)
            return cls
        if ":" not in self.family:
            raise InputError(
                f"there is no classifier {self.family!r}; {suggest_name(self.family, FAMILIES)} "
                "Or name a class by import path: package.module:Class"
            )
        cls = _import_object(self.family)
        from sklearn.base import BaseEstimator, ClassifierMixin

        declares_classifier = (
            isinstance(cls, type) and getattr(cls, "_estimator_type", "") == "classifier"
        )
        if not (isinstance(cls, type) and issubclass(cls, BaseEstimator)) or not (
            issubclass(cls, ClassifierMixin) or declares_classifier
        ):
            raise InputError(
                f"{self.family} is not a classifier: it must be a subclass of sklearn's "
                "BaseEstimator and ClassifierMixin"
            )
        return cls

    def defaults(self) -> dict[str, Any]:
        """All parameters of the classifier, scikit-learn's defaults included."""
        return dict(self._construct(self.classifier(), 0).get_params(deep=False))

    def _construct(self, cls: type, state: int) -> Any:
        defaults = FAMILIES[self.family].defaults if self.family in FAMILIES else {}
        chosen = {name: None if v == "none" else v for name, v in self.parameters.items()}
        try:
            estimator = cls(**{**defaults, **chosen, **self._choose_arguments(cls, state)})
            # `fit` calls this private method, too; without it, errors appear when fitting.
            if hasattr(estimator, "_parameter_constraints"):
                getattr(estimator, "_validate_params", lambda: None)()
        except Exception as error:  # whatever a constructor of a stranger's class raises
            raise InputError(f"{self.family} cannot be created: {_to_line(error)}") from error
        return estimator

    def _choose_arguments(self, cls: type, state: int) -> dict[str, Any]:
        """The arguments that fpbench sets."""
        # One thread: several would add up in an order that changes last digits.
        reserved: dict[str, Any] = {"random_state": state, "n_jobs": 1}
        if self.balanced is not None:
            reserved["class_weight"] = "balanced" if self.balanced else None
        if cls.__name__ == "LogisticRegression":  # takes n_jobs, but warns that it has no effect
            del reserved["n_jobs"]
        return {name: value for name, value in reserved.items() if _accepts(cls, name)}


def _import_object(path: str) -> Any:
    """The object of an import path `package.module:Name`."""
    module, _, name = path.partition(":")
    if not _PATH.fullmatch(path):
        raise InputError(f"{path!r} is not an import path: package.module:Class")
    if reason := why_not_importable(module):
        raise InputError(f"{path} is refused: {reason}")
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever a stranger's module raises
        raise InputError(f"{path}: {module!r} cannot be imported: {_to_line(error)}") from error
    try:
        return getattr(imported, name)
    except AttributeError:
        classes = [key for key, value in vars(imported).items() if isinstance(value, type)]
        raise InputError(
            f"{path}: {module!r} has no {name!r}; {suggest_name(name, classes)}"
        ) from None
    except (Exception, SystemExit) as error:  # a module may import its classes lazily
        raise InputError(f"{path}: {module!r} cannot give {name!r}: {_to_line(error)}") from error


def _to_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _list_arguments(cls: type) -> set[str] | None:
    """Names that a constructor takes; None if it takes any."""
    parameters = inspect.signature(cls).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _accepts(cls: type, name: str) -> bool:
    """Whether a constructor takes an argument, by its signature or its parameter names."""
    named = set(inspect.signature(cls).parameters)
    names = getattr(cls, "_get_param_names", None)
    return name in named or (names is not None and name in names())


def _accepts_weights(estimator: Any) -> bool:
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(estimator, "sample_weight"))
