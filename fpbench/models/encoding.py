"""Features as a matrix of numbers: what scikit-learn's classifiers take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

Encoding: TypeAlias = Literal["one-hot", "ordinal"]
"""How categories become numbers: a column for each, or one column of their codes."""


def encode(features: DataFrame, encoding: Encoding = "one-hot") -> NDArray[np.float32]:
    """Features as a matrix: numeric columns as they are, then the categoricals.

    Parameters
    ----------
    features
        n rows. What a pandas categorical becomes depends on its categories and not on who is
        here, so that parts of one table are encoded alike.
    encoding
        `one-hot`: a column for each category, 1 for those who have it, as `pandas.get_dummies`
        makes them. `ordinal`: one column of codes, 0 for the first category and -1 for a missing
        value; for trees, as other models would read an order into it.

    Returns
    -------
    ndarray
        (n, columns), single precision, as scikit-learn's trees use it.

    Raises
    ------
    DataError
        If a column is neither numeric nor categorical.
    """
    import pandas as pd

    numbers, categoricals = [], []
    for position, dtype in enumerate(features.dtypes):
        if isinstance(dtype, pd.CategoricalDtype):
            categoricals.append(position)
        elif pd.api.types.is_numeric_dtype(dtype):
            numbers.append(position)
        else:
            raise DataError(
                f"the feature {features.columns[position]!r} is {dtype}, neither numeric nor "
                "categorical, and cannot be encoded"
            )
    columns = [features.iloc[:, position].cat for position in categoricals]
    widths = [len(c.categories) if encoding == "one-hot" else 1 for c in columns]
    matrix = np.zeros((len(features), len(numbers) + sum(widths)), dtype=np.float32)
    matrix[:, : len(numbers)] = features.iloc[:, numbers].to_numpy(np.float32)
    start = len(numbers)
    for column, width in zip(columns, widths, strict=True):
        codes = column.codes.to_numpy()
        if encoding == "one-hot":
            (present,) = np.nonzero(codes >= 0)
            matrix[present, start + codes[present].astype(np.intp)] = 1
        else:
            matrix[:, start] = codes
        start += width
    return matrix
