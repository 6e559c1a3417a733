"""A differentially private decision tree as a scikit-learn estimator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from fpbench import InputError
from fpbench.base.arguments import show_value
from fpbench.builtin.private_tree.fitted import PrivateTree, rules_within, to_categoricals
from fpbench.builtin.private_tree.growth import grow_trees
from fpbench.builtin.private_tree.recipe import Similarity, TreeRecipe
from fpbench.builtin.private_tree.split_candidates import SplitCandidates
from fpbench.builtin.private_tree.split_scores import Criterion, Selection
from fpbench.data import Domain
from fpbench.models import Rules, encode, encoded_names, tree_rules

if TYPE_CHECKING:
    from fpbench import Mechanism


Floats = NDArray[np.float64]
_WHO = "PrivateTreeClassifier"


class PrivateTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Decision tree that is epsilon-differentially private if one person is added or removed.

    Only the splits and the counts in the leaves come from the data, with noise: the possible values
    of features, and the labels, must be declared.

    Parameters
    ----------
    epsilon
        Of the whole tree, above 0; infinite for a tree without privacy.
    leaf_share
        Share of epsilon for the counts in the leaves; each level has an equal part of the rest.
    max_depth
        Number of levels of splits, 1 to 16. The tree is complete: data never stop it.
    criterion
        Impurity that a split minimises: `gini`, `entropy` or `max`.
        With noise `gini` is best: its sensitivity is below 1, that of `entropy` about log2 of
        `most_people`.
    selection
        `noisy-max` (Laplace noise) or `exponential` (the exponential mechanism) of the choice, or
        `reference`: of the impurities of every candidate, which share epsilon.
    thresholds
        Number of candidate thresholds of each number, regular between its bounds.
    similarity, tau
        `grid`: thresholds lie on borders of cells of width tau, of numbers scaled to [0, 1] by
        their bounds, so that people of one cell get one label. `ball`: while splits are chosen a
        person's mass is spread evenly over [z - tau, z + tau]. `none`: neither; tau is 0.
    bounds
        For arrays: (low, high), numbers or arrays (d,), publicly known. Values beyond count as the
        nearest bound.
    domain
        For frames: a `fpbench.data.Domain`, or what `Domain.of` takes. Categories become one-hot.
    classes
        Both labels, declared; the data would reveal whether both occur.
    most_people
        Public bound on the number of people.
    mechanism
        A mechanism component for the counts in the leaves; Laplace noise by default.
    random_state
        A seed, a `numpy.random.RandomState` or a `numpy.random.Generator`; None for fresh noise.

    Attributes
    ----------
    classes_
        (2,) the labels.
    guarantee_
        A `fpbench.Guarantee`; None at infinite epsilon.
    n_features_in_, feature_names_in_
        As always; names only of frames.
    tree_
        Of arrays: the nodes, under the names of scikit-learn's `tree_`. Of frames see `rules`.

    Notes
    -----
    Noise is simulated in floating point: for research, not for releases. Formulas, sensitivities
    and proofs are in docs/paper-private-fair-tree.md. There is no `sample_weight`: a heavy person
    would need more noise.

    References
    ----------
    Silva, Machado: Classificacao diferencialmente privada e nao discriminatoria utilizando arvore
    de decisao. SBBD 2021. Friedman, Schuster: Data Mining with Differential Privacy. KDD 2010.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(5000, 2))
    >>> tree = PrivateTreeClassifier(bounds=(0, 1), max_depth=2, random_state=0)
    >>> tree.fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5) > 0.9
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        leaf_share: float = 0.5,
        max_depth: int = 6,
        criterion: Criterion = "gini",
        selection: Selection = "noisy-max",
        thresholds: int = 64,
        similarity: Similarity = "none",
        tau: float = 0.0,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        domain: Domain | Mapping[str, Any] | None = None,
        classes: Sequence[Any] = (0, 1),
        most_people: int = 1_000_000,
        mechanism: Mechanism | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.leaf_share = leaf_share
        self.max_depth = max_depth
        self.criterion = criterion
        self.selection = selection
        self.thresholds = thresholds
        self.similarity = similarity
        self.tau = tau
        self.bounds = bounds
        self.domain = domain
        self.classes = classes
        self.most_people = most_people
        self.mechanism = mechanism
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> PrivateTreeClassifier:
        """Grow the tree of people X (n, d) with labels y (n,).

        Raises
        ------
        InputError
            If a parameter is out of range, bounds or a domain are not declared, or a label is not.
        """
        recipe = self._make_recipe()
        X, domain = self._check_features(X, first=True)
        labels = self._encode_labels(y, len(X))
        if domain is None:
            low, high = parse_bounds(self.bounds, X.shape[1])
            candidates = SplitCandidates.of_bounds(low, high, recipe)
            self._domain, self._columns = None, None
        else:
            candidates = SplitCandidates.of_domain(X, domain, recipe)
            self._domain = domain
            self._columns = encoded_names(domain.fit(X.iloc[:0]))
        self._candidates = candidates
        matrix = self._encode(X)
        rng = make_generator(self.random_state)
        grown = grow_trees(candidates, matrix, labels, 1, rng).tree(0)
        self._tree: PrivateTree = replace(grown, classes_=self.classes_)
        self.__dict__.pop("tree_", None)
        if domain is None:  # readers of tree_ assume that its columns are those of X
            self.tree_ = self._tree.tree_
        self.guarantee_ = recipe.guarantee
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, 2) of both labels, from noisy counts."""
        matrix = self._encode_new(X)
        return self._tree.proba(matrix)

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,); the first of both where they are equally likely."""
        likelier = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likelier])

    def apply(self, X: Any) -> NDArray[np.intp]:
        """The leaf (n,) of each person, a node of `tree_`."""
        matrix = self._encode_new(X)
        return self._tree.apply(matrix)

    def cells(self, X: Any) -> NDArray[np.int64]:
        """The cell (n, d) of each person under `grid`: people of one cell get one label.

        Raises
        ------
        InputError
            If there are no cells.
        """
        matrix = self._encode_new(X)
        return self._candidates.cells(matrix)

    @property
    def rules(self) -> Rules:
        """Its decision rules, for audits: `fpbench.models.Rules`.

        Raises
        ------
        InputError
            If its labels are not 0 and 1.
        """
        if not np.isin(self.classes_, (0, 1)).all():
            raise InputError("rules: the tree must predict 0 or 1")
        if self._columns is None or self._domain is None:
            return tree_rules(self)  # which converts to single precision
        return rules_within(tree_rules(self._tree, self._columns, "one-hot"), self._domain)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = math.isfinite(self.epsilon)
        return tags

    def _make_recipe(self) -> TreeRecipe:
        names = TreeRecipe.__dataclass_fields__
        return TreeRecipe(**{name: getattr(self, name) for name in names})

    def _check_features(self, X: Any, first: bool = False) -> tuple[Any, Domain | None]:
        """A matrix of single precision, as scikit-learn's trees have it, or a declared frame."""
        if self.domain is None:
            if self.bounds is None:
                raise InputError(
                    f"{_WHO} does not read the values that features may have off the data, which "
                    "are private; declare them: bounds=(low, high) for arrays, or domain="
                    '{"age": [17, 90], "job": ["a", "b"]} for a frame'
                )
            return validate_data(self, X, reset=first, dtype=np.float32), None
        if self.bounds is not None:
            raise InputError("give bounds, for arrays, or a domain, for frames, and not both")
        if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
            raise InputError(f"with a domain, X must be a DataFrame, not {type(X).__name__}")
        domain = self.domain if isinstance(self.domain, Domain) else Domain.of(self.domain)
        X = to_categoricals(X, domain)
        names = np.asarray([str(name) for name in X.columns], dtype=object)
        if first:
            domain.check(X, _WHO)
            if not len(names) or not len(X):
                raise InputError(f"{_WHO} needs at least one person and one feature")
            self.feature_names_in_, self.n_features_in_ = names, len(names)
        elif list(names) != list(self.feature_names_in_):
            raise InputError(
                f"X has features {', '.join(names)}, and the tree was fitted on "
                f"{', '.join(self.feature_names_in_)}"
            )
        return X, domain

    def _encode(self, X: Any) -> NDArray[np.float32]:
        """Features as trees take them."""
        if self._domain is None:
            matrix: NDArray[np.float32] = X
            return matrix
        return encode(self._domain.fit(X))

    def _encode_new(self, X: Any) -> NDArray[np.float32]:
        check_is_fitted(self)
        return self._encode(self._check_features(X)[0])

    def _encode_labels(self, y: ArrayLike, n: int) -> NDArray[np.int64]:
        """Labels as 0 and 1."""
        labels = check_array(
            column_or_1d(y, warn=True), ensure_2d=False, dtype=None, input_name="y"
        )
        check_classification_targets(labels)
        if len(labels) != n:
            raise InputError(f"y has {len(labels)} labels, and X {n} people")
        try:
            self.classes_ = np.asarray(self.classes)
        except ValueError:  # lists of different lengths
            self.classes_ = np.zeros(0)
        if self.classes_.shape != (2,) or self.classes_[0] == self.classes_[1]:
            raise InputError(
                f"classes must be two different labels, not {show_value(self.classes)}"
            )
        codes = (labels[:, None] == self.classes_).argmax(axis=1)
        odd = labels[self.classes_[codes] != labels]
        if len(odd):
            raise InputError(
                f"Only binary classification is supported: y has the label {odd[0]!r}, and the "
                f"declared ones are {self.classes_[0]!r} and {self.classes_[1]!r}; declare two "
                "labels with classes=(..., ...)"
            )
        return np.asarray(codes.astype(np.int64))


def parse_bounds(bounds: Any, d: int) -> tuple[Floats, Floats]:
    """Lower and upper bounds (d,) from numbers or arrays; InputError if they are not bounds."""
    try:
        low, high = (np.broadcast_to(np.asarray(e, np.float64), (d,)) for e in bounds)
    except (TypeError, ValueError):
        low = high = np.zeros(0)
    if len(low) != d or not np.isfinite([low, high]).all() or not (low < high).all():
        raise InputError(
            "bounds must be (low, high): finite numbers, or arrays with one for each of the "
            f"{d} features, the lower first; not {show_value(bounds)}"
        )
    return low, high


def make_generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, None, a `RandomState` or a generator.

    Raises InputError if it is none of these.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            "random_state must be a seed, a numpy.random.RandomState or Generator, or None, not "
            f"{show_value(random_state)}"
        ) from None
