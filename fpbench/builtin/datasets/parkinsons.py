"""UCI Parkinsons telemonitoring: voice recordings of people with Parkinson's disease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from fpbench.builtin.datasets._published import (
    Codes,
    ColumnKind,
    Layout,
    Number,
    PublishedDataset,
    Whole,
    derive_domain,
)
from fpbench.data import DatasetFacts, Sensitive
from fpbench.plugin import DataFile, DataHome
from fpbench.tabular import LabelledColumns, sensitive_field

_CUT = 27.576
"""The median of the published file, as a public constant: no recording changes it."""
_POSITIVE = f"total UPDRS above {_CUT}"
_KINDS: dict[str, ColumnKind] = {
    "age": Whole(),
    "sex": Codes({"0": "male", "1": "female"}),
    **{
        name: Number()
        for name in (
            *("test_time", "Jitter(%)", "Jitter(Abs)", "Jitter:RAP", "Jitter:PPQ5", "Jitter:DDP"),
            *("Shimmer", "Shimmer(dB)", "Shimmer:APQ3", "Shimmer:APQ5", "Shimmer:APQ11"),
            *("Shimmer:DDA", "NHR", "HNR", "RPDE", "DFA", "PPE"),
        )
    },
}


class Parkinsons(PublishedDataset):
    """UCI Parkinsons telemonitoring: 5,875 voice recordings of 42 people, at home over six months.

    Label 1 is a total UPDRS (a score of the severity of the disease) above 27.576, its median over
    the 5,875 recordings (49.9 % are above). The number is a constant of this loader:
    computed from the loaded people it would depend on each of them, and no private learner could
    give a guarantee. `subject#`, an identifier, and both scores (`motor_UPDRS`, `total_UPDRS`), the
    target, are dropped. Features are age, the days since the person's start, and 16 voice measures,
    all of them numbers.

    Groups: male (68.2 %) and female.

    **Rows are not people.** Each person has about 140 rows, with the same age and sex, which are
    not independent. Privacy for one record does not protect a person with 140 records, and a random
    split puts the same person into the training part and the attack set.
    """

    name = "parkinsons"
    summary = "Parkinsons telemonitoring: 5,875 recordings of 42 people, severity; groups by sex"
    reference = (
        "Athanasios Tsanas, Max Little, Patrick McSharry, Lorraine Ramig. Accurate telemonitoring "
        "of Parkinson's disease progression by noninvasive speech tests. IEEE Transactions on "
        "Biomedical Engineering 57, 2010. https://doi.org/10.24432/C5ZS3N"
    )
    about = DatasetFacts(
        rows=5_875,
        features=18,
        label=_POSITIVE,
        label_rate=0.4994,
        groups=("male", "female"),
        source="UCI Machine Learning Repository, https://doi.org/10.24432/C5ZS3N",
        licence="CC BY 4.0",
        dropped=(
            "subject#, an identifier, and both scores, the target; note that rows are recordings, "
            "about 140 of each of 42 people, and so not independent: privacy for one record does "
            "not protect a person"
        ),
    )
    published = (
        DataFile(
            "parkinsons_updrs.data",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/parkinsons/telemonitoring/"
            "parkinsons_updrs.data",
            "f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39",
        ),
    )
    layout = Layout(
        what="Parkinsons telemonitoring",
        columns={**_KINDS, "subject#": Whole(), "motor_UPDRS": Number(), "total_UPDRS": Number()},
        check="`fpbench data verify parkinsons` compares it with the original",
    )
    columns = tuple(_KINDS)
    n_values: ClassVar[Mapping[str, int]] = {"sex": 2}

    declared = derive_domain(
        _KINDS,
        {
            "age": (30, 90), "test_time": (-5, 220), "Jitter(%)": (0, 0.1),
            "Jitter(Abs)": (0, 0.0005), "Jitter:RAP": (0, 0.06), "Jitter:PPQ5": (0, 0.07),
            "Jitter:DDP": (0, 0.18), "Shimmer": (0, 0.3), "Shimmer(dB)": (0, 2.5),
            "Shimmer:APQ3": (0, 0.2), "Shimmer:APQ5": (0, 0.2), "Shimmer:APQ11": (0, 0.3),
            "Shimmer:DDA": (0, 0.5), "NHR": (0, 0.8), "HNR": (0, 40), "RPDE": (0, 1),
            "DFA": (0.5, 1), "PPE": (0, 1),
        },
    )  # fmt: skip

    sensitive: Sensitive = sensitive_field("sex")

    def read(self, home: DataHome) -> LabelledColumns:
        """Read the file, and cut the score at the constant.

        Raises DataError if the file is missing, or has an unexpected row.
        """
        scored = super().read(home)
        features = scored.columns[list(_KINDS)]
        return LabelledColumns(features, (scored.labels > _CUT).astype(np.int8), _POSITIVE)
