import numpy as np
import pandas as pd
import pytest

from fpbench import Sample, Table
from fpbench.errors import DataError

CHANCES = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5], [0.1, 0.9]])


def make(chances=CHANCES):
    return Table(
        "made up",
        pd.DataFrame({"x": np.arange(4)}),
        np.array([0, 1, 0, 1]),
        pd.DataFrame({"sex": pd.Categorical(["f", "f", "m", "m"])}),
        group_chances=chances,
    )


def test_a_table_hands_them_to_its_sample():
    sample = make().sample()
    np.testing.assert_array_equal(sample.group_chances, CHANCES)
    rows = np.array([3, 1])
    np.testing.assert_array_equal(sample.take(rows).group_chances, CHANCES[rows])
    assert not np.shares_memory(sample.take(rows).group_chances, CHANCES)
    again = sample.having(predictions=np.zeros(4, np.int8))
    np.testing.assert_array_equal(again.group_chances, CHANCES)
    assert make(None).sample().group_chances is None


def test_nobody_is_shown_them():
    """Whatever a component declares that it sees or needs."""
    sample = make().sample()
    for columns in (Sample.COLUMNS, ("group_chances",), ("features", "group_chances")):
        shown = sample.only(frozenset(columns))
        assert shown.group_chances is None
        assert shown.seen == (sample.seen & set(columns)) - {"group_chances"}


def test_they_are_part_of_the_digest_where_there_are_any():
    plain = make(None).digest()
    assert plain == make(None).digest() != make().digest() == make().digest()
    assert make(CHANCES[:, ::-1]).digest() != make().digest()


@pytest.mark.parametrize(
    ("chances", "says"),
    [
        (CHANCES[:3], r"group_chances must be \(4, 2\), .* not \(3, 2\)"),
        (np.full((4, 3), 1 / 3), r"group_chances must be \(4, 2\), .* not \(4, 3\)"),
        (CHANCES[:, 1], r"group_chances must be \(4, 2\), .* not \(4,\)"),
        (CHANCES * 0.9, "must be probabilities that add up to 1"),
        (CHANCES + np.array([0.5, -0.5]), "must be probabilities that add up to 1"),
        (CHANCES * [[np.nan, 1]], "must be probabilities that add up to 1"),
    ],
)
def test_what_is_no_probability_is_refused(chances, says):
    with pytest.raises(DataError, match=f"'made up': .*{says}"):
        make(chances)
