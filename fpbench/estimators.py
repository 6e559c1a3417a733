"""What learners built on scikit-learn share: encoding, and the choice of a base model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench.components import Learner

if TYPE_CHECKING:
    from pandas import DataFrame

_LARGEST_SEED = 2**31 - 1


def encode(features: DataFrame) -> NDArray[np.float32]:
    """Features as a matrix: numeric columns as they are, categoricals one-hot.

    Parameters
    ----------
    features
        n rows. A pandas categorical gives one column for each of its categories, whether or not
        anyone here has it, so that parts of one table are encoded alike.

    Returns
    -------
    ndarray
        (n, columns), single precision, as scikit-learn's trees use it.
    """
    import pandas as pd

    return pd.get_dummies(features, dtype=np.float32).to_numpy(np.float32)


def random_state(rng: np.random.Generator) -> int:
    """A whole number for the `random_state` of scikit-learn, drawn from a generator."""
    return int(rng.integers(_LARGEST_SEED))


class SklearnLearner(Learner):
    """A learner around a scikit-learn classifier of the user's choice."""

    base: Literal["decision-tree", "random-forest", "logistic-regression"] = Field(
        "decision-tree", description="scikit-learn classifier that is trained underneath"
    )
    max_depth: int = Field(
        8,
        ge=1,
        le=1_000,
        description="greatest depth of a tree, of no effect on logistic regression",
    )

    def estimator(self, rng: np.random.Generator) -> Any:
        """The base model, not yet fitted."""
        if self.base == "decision-tree":
            from sklearn.tree import DecisionTreeClassifier

            return DecisionTreeClassifier(max_depth=self.max_depth, random_state=random_state(rng))
        if self.base == "random-forest":
            from sklearn.ensemble import RandomForestClassifier

            return RandomForestClassifier(max_depth=self.max_depth, random_state=random_state(rng))
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
