"""People of every library of data frames, in every door alike."""

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fpbench
from fpbench import FairnessReport, InputError

N = 200
RNG = np.random.default_rng(1)
PEOPLE = pd.DataFrame(
    {
        "job": RNG.choice(["cook", "nurse"], N),
        "age": RNG.integers(20, 60, N),
        "sex": RNG.choice(["f", "m"], N),
        "race": RNG.choice(["a", "b"], N),
        "hired": RNG.integers(0, 2, N),
        "good": RNG.integers(0, 2, N),
        "home": np.arange(N) // 2,
    },
    index=np.arange(N) + 7,
)
X, SEX = PEOPLE[["job", "age"]], PEOPLE["sex"]
REPORT = FairnessReport.from_predictions(X, PEOPLE["hired"], SEX, by=["job"])


def to_arrow(value):
    if isinstance(value, pd.DataFrame):
        return pa.Table.from_pandas(value, preserve_index=False)
    return pa.chunked_array([pa.array(value.tolist())])


def to_polars(value):
    return pytest.importorskip("polars").from_pandas(value)


def to_lazy(value):
    polars = to_polars(value)
    return polars.lazy() if isinstance(value, pd.DataFrame) else polars


def to_duckdb(value):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(to_arrow(value)) if isinstance(value, pd.DataFrame) else value


LIBRARIES = [to_arrow, to_polars, to_lazy, to_duckdb]


def attack(X, groups, predictions, labels, **options):
    asked = {"adversary": "prior", "seeds": 1} | options
    return fpbench.attack(predictions, X, labels, groups, **asked).people.reset_index(drop=True)


def audit(X, groups, predictions, labels, **options):
    return fpbench.audit(predictions, X, groups, labels=labels, resamples=0, **options).by_group


def assess(X, groups, predictions, labels, **options):
    asked = {"report": REPORT, "seconds": 60.0} | options
    result = fpbench.assess(
        X=X, predictions=predictions, labels=labels, groups=groups, beliefs="shares", **asked
    )
    return pd.DataFrame(result.posterior)


def publish(X, groups, predictions, labels, **options):
    asked = {"by": ["job", "age"], "metrics": ["selection-rate", "true-positive-rate"]} | options
    return FairnessReport.from_predictions(
        X, predictions, groups, labels=labels, **asked
    ).to_frame()


def release(X, groups, predictions, labels, **options):
    made = fpbench.release(
        X,
        predictions,
        groups,
        labels=labels,
        by=["job"],
        epsilon=1.0,
        seed=0,
        seconds=60.0,
        **options,
    )
    return made.report.to_frame()


DOORS = [attack, audit, assess, publish, release]
SLOW = pytest.param(release, marks=pytest.mark.slow)
QUICK = [attack, audit, assess, publish, SLOW]


@pytest.mark.parametrize("door", QUICK)
@pytest.mark.parametrize("library", LIBRARIES)
def test_people_of_any_library_are_the_same_people(door, library):
    expected = door(X, SEX, PEOPLE["hired"], PEOPLE["good"])
    given = [library(value) for value in (X, SEX, PEOPLE["hired"], PEOPLE["good"])]
    pd.testing.assert_frame_equal(door(*given), expected)
    # A frame without an index says nothing about the order of one that has one.
    pd.testing.assert_frame_equal(door(given[0], SEX, *given[2:]), expected)


@pytest.mark.parametrize("door", QUICK)
def test_groups_are_a_column_several_or_names_of_columns(door):
    said = PEOPLE["hired"], PEOPLE["good"]
    expected = door(X, SEX, *said)
    for groups in (SEX.to_numpy(), SEX.tolist(), SEX.astype("category"), PEOPLE[["sex"]]):
        pd.testing.assert_frame_equal(door(X, groups, *said), expected)
    named = PEOPLE[["job", "sex", "age"]]
    pd.testing.assert_frame_equal(door(named, "sex", *said), expected)
    pd.testing.assert_frame_equal(door(to_arrow(named), ["sex"], *said), expected)


@pytest.mark.parametrize("door", [attack, audit, publish, SLOW])
def test_several_attributes_are_crossed_alike(door):
    said = PEOPLE["hired"], PEOPLE["good"]
    both = PEOPLE[["sex", "race"]]
    crossed = (PEOPLE["sex"] + " x " + PEOPLE["race"]).to_numpy()
    expected = door(X, crossed, *said)
    pd.testing.assert_frame_equal(door(X, both, *said), expected)
    pd.testing.assert_frame_equal(door(PEOPLE[["job", "age", "sex", "race"]], ["sex", "race"], *said),
                                  expected)  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda column: [[1], [1, 2]] * (N // 2), "must hold one value a person, not .1. in row 0"),
        (lambda column: pd.Series([[1, 2], [3]] * (N // 2), PEOPLE.index), "not .1, 2. in row 0"),
        (lambda column: [{"a": 1}] * N, "must hold one value a person, not {'a': 1} in row 0"),
        (lambda column: (X, SEX, SEX), "one value a person|one row per person|one name a person"),
        (
            lambda column: np.zeros((N, 2, 2)),
            r"dimension|\(n, d\)|of shape|one name a person|frame",
        ),
    ],
)
def test_nested_values_are_one_error_in_every_door(door, place, wrong, message):
    given = [X, SEX, PEOPLE["hired"], PEOPLE["good"]]
    value = wrong(given[place])
    if place == 0 and isinstance(value, list):
        value = X.assign(job=value)
    given[place] = value
    if door is audit and place == 0:  # which takes people as the model does
        return
    with pytest.raises(InputError, match=message) as error:
        door(*given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("door", DOORS)
def test_rows_in_another_order_are_refused_in_every_door(door):
    with pytest.raises(InputError, match="groups: its rows are named differently from those of X"):
        door(X, SEX[::-1], PEOPLE["hired"], PEOPLE["good"])


def test_known_people_households_and_what_is_known_are_read_alike():
    known = X.assign(group=SEX, prediction=PEOPLE["hired"])
    ask = partial(
        fpbench.assess, REPORT, X, PEOPLE["hired"], groups=SEX, seconds=60.0,
        households=PEOPLE["home"],
    )  # fmt: skip
    assert (ask(known_people=known).posterior == ask(known_people=to_arrow(known)).posterior).all()
    told = pa.array(np.arange(N) % 2 == 0)
    expected = attack(X, SEX, PEOPLE["hired"], PEOPLE["good"], known=np.arange(N) % 2 == 0)
    got = attack(X, SEX, PEOPLE["hired"], PEOPLE["good"], known=told)
    pd.testing.assert_frame_equal(got, expected)
    with pytest.raises(
        InputError, match="known: must hold one value a person, not|known must hold"
    ):
        attack(X, SEX, PEOPLE["hired"], PEOPLE["good"], known=(X, PEOPLE["good"], SEX))
    with pytest.raises(InputError, match="households must be 200 values, one a person of X"):
        fpbench.assess(REPORT, X, PEOPLE["hired"], groups=SEX, households=X)


@pytest.mark.parametrize("door", [audit, assess, publish, SLOW])
def test_scores_and_a_threshold_are_predictions(door):
    scores = PEOPLE["hired"] * 0.3 + np.linspace(0, 0.3, N)
    cut = (scores >= 0.3).astype(int)
    report = FairnessReport.from_predictions(X, cut, SEX, by=["job"])
    more = {"report": report} if door is assess else {}
    expected = door(X, SEX, cut, PEOPLE["good"], **more)
    for given in (scores, scores.tolist(), to_arrow(scores)):
        got = door(X, SEX, given, PEOPLE["good"], threshold=0.3, **more)
        pd.testing.assert_frame_equal(got, expected)
    texts = PEOPLE["good"].map({0: "no", 1: "yes"})
    got = door(X, SEX, scores, texts, threshold=0.3, positive="yes", **more)
    pd.testing.assert_frame_equal(got, expected)
    with pytest.raises(InputError, match="to turn scores into predictions, give threshold=0.5"):
        door(X, SEX, scores, PEOPLE["good"], **more)
    with pytest.raises(
        InputError, match="threshold cuts scores, not .'f'.|threshold must be a num"
    ):
        door(X, SEX, SEX, PEOPLE["good"], threshold=0.3, **more)
