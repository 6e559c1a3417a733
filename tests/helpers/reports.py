"""People, reports about them, and what is asked of assessments."""

import numpy as np
import pandas as pd

from fpbench import FairnessReport


def make_people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = pd.DataFrame({name: rng.integers(0, 3, n).astype(str) for name in "abcd"})
    X["likely"] = np.where(rng.random(n) < 0.7, group, rng.integers(0, 2, n)).astype(str)
    predictions = (rng.random(n) < 0.5).astype(int)
    return X, predictions, np.array(["f", "m"])[group]


def make_report(X, predictions, groups, **options):
    return FairnessReport.from_predictions(
        X, predictions, groups, **({"by": list(X), "order": 3, "min_cell": 0} | options)
    )
