"""What is publicly known of features."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import InputError
from fpbench.data import Domain
from fpbench.plugin import DataHome

FRAME = pd.DataFrame(
    {"age": [3, 40, 200], "job": pd.Categorical(["b", "a", "z"], categories=["a", "b", "z"])}
)


def test_lists_of_two_numbers_are_bounds_and_lists_of_texts_categories():
    domain = Domain.of({"age": [17, 90], "job": ["a", "b"]})
    assert domain.bounds == {"age": (17.0, 90.0)} and domain.categories == {"job": ("a", "b")}
    assert Domain.of(domain.to_lists()) == domain
    assert domain and not Domain() and "age" in domain and "pay" not in domain


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([1], "must be [low, high]"), (3, "must be [low, high]"), ([], "must be [low, high]"),
        ([2, 1], "the lower first"), ([1, 1], "the lower first"), ([0, float("inf")], "finite"),
        ([float("nan"), 1], "finite"), ([True, False], "finite"), ([1, "a"], "must be [low"),
        (["a", "a"], "'a' is named twice"), ([None, None], "finite"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(said, message):
    with pytest.raises(InputError) as caught:
        Domain.of({"x": said})
    assert "'x'" in str(caught.value) and message in str(caught.value)


def test_a_feature_has_bounds_or_categories():
    with pytest.raises(InputError, match="both"):
        Domain({"x": (0, 1)}, {"x": ("a",)})


def test_what_is_not_declared_is_named_with_the_way_to_declare_it():
    with pytest.raises(InputError) as caught:
        Domain().check(FRAME.rename(columns={"job": "the job"}), "learner 'x'")
    assert str(caught.value).startswith("learner 'x' needs the public range of features")
    assert 'domain = { age = [low, high], "the job" = ["...", "..."] }' in str(caught.value)
    Domain.of({"age": [0, 1], "job": ["a"]}).check(FRAME, "x")
    with pytest.raises(InputError, match="job"):  # bounds are not categories
        Domain.of({"age": [0, 1], "job": [0, 1]}).check(FRAME, "x")


@pytest.mark.parametrize("given", [["x"], "x", 3, {0: [0, 1]}])
def test_a_domain_is_lists_by_the_names_of_features(given):
    with pytest.raises(InputError, match="domain: must be lists by feature"):
        Domain.of(given)


def test_names_that_are_no_texts_are_known_by_their_text():
    frame = FRAME.set_axis([0, 1], axis=1)
    domain = Domain.of({"0": [17, 90], "1": ["a", "b"]})
    domain.check(frame, "x")
    assert domain.fit(frame)["0"].tolist() == [17, 40, 90]


@pytest.mark.parametrize(("frame", "says"), [
    (FRAME[["age", "age"]], "x: two features are called 'age'"),
    (FRAME.assign(job=[1, 2, 3]), "'job' is int64, but categories are declared"),
    (FRAME.assign(job=pd.Categorical([1, 2, 3])), "'job' are int64, but declared ones are texts"),
    (FRAME.assign(job=pd.cut([1, 2, 3], 2)), "'job' are interval.*, but declared ones are text"),
    (FRAME.assign(age=["1", "2", "3"]), "'age' is .*, but bounds are declared"),
    (FRAME.assign(age=[1j, 2, 3]), "'age' is complex128, but bounds are declared"),
])  # fmt: skip
def test_types_that_what_is_declared_does_not_fit(frame, says):
    """Silently nobody would have a category, or an error would quote somebody's value."""
    with pytest.raises(InputError, match=says):
        Domain.of({"age": [17, 90], "job": ["1", "2"]}).check(frame, "x")


def test_features_are_made_to_fit():
    made = Domain.of({"age": [17, 90], "job": ["b", "c", "a"]}).fit(FRAME)
    assert made["age"].tolist() == [17, 40, 90]
    assert list(made["job"].cat.categories) == ["b", "c", "a"]
    assert made["job"].cat.codes.tolist() == [0, 2, -1]
    assert FRAME["age"].tolist() == [3, 40, 200]  # not touched
    with pytest.raises(
        InputError, match="no bounds or categories are declared for the feature 'pay'"
    ):
        Domain.of({"age": [17, 90], "job": ["a"]}).fit(FRAME.assign(pay=1))


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.floats(-1e6, 1e6), st.floats(0.1, 1e6))
def test_fitting_twice_changes_nothing_and_all_are_within(values, low, width):
    domain = Domain.of({"x": [low, low + width]})
    once = domain.fit(pd.DataFrame({"x": values}))
    assert once["x"].between(low, low + width).all()
    pd.testing.assert_frame_equal(domain.fit(once), once)


def test_the_later_of_two_wins():
    both = Domain.of({"a": [0, 1], "b": ["x"], "c": [0, 1]}) | Domain.of({"a": ["u"], "c": [2, 3]})
    assert both == Domain({"c": (2.0, 3.0)}, {"b": ("x",), "a": ("u",)})


def test_a_table_of_ones_own_declares_and_parts_of_it_know():
    frame = pd.DataFrame({"job": list("abab"), "age": [20, 70, 30, 60], "paid": [0, 1, 0, 1],
                          "sex": list("mfmf")})  # fmt: skip
    table = fpbench.table(
        frame, label="paid", sensitive="sex", domain={"age": [0, 99], "job": ["a", "b", "c"]}
    )
    part = table.sample().take(np.array([0, 2])).only(frozenset({"features"}))
    assert part.domain == table.domain == part.having(labels=np.zeros(2)).domain
    assert table.domain.categories == {"job": ("a", "b", "c")}
    bare = fpbench.table(frame, label="paid", sensitive="sex")
    assert not bare.domain and bare.digest() != table.digest()
    with pytest.raises(InputError, match="'agee'; did you mean 'age'"):
        fpbench.table(frame, label="paid", sensitive="sex", domain={"agee": [0, 1]})


def test_a_csv_file_declares_in_the_matrix(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,sex,job,paid\n20,m,a,0\n40,f,b,1\n30,m,b,1\n70,f,a,0\n")
    given = {"path": str(path), "label_column": "paid", "sensitive": "sex"}
    table = fpbench.dataset("csv", **given, domain={"age": [0, 99], "job": ["a", "b"]})
    assert table.domain.bounds == {"age": (0.0, 99.0)}
    with pytest.raises(InputError, match="domain: 'age': must be"):
        fpbench.dataset("csv", **given, domain={"age": [1]})
    with pytest.raises(InputError, match="no column 'pay'"):
        fpbench.dataset("csv", **given, domain={"pay": [1, 2]})


def test_numbers_with_declared_categories_are_codes(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("code,sex,paid\n20,m,0\n40,f,1\n20,m,1\n40,f,0\n")
    table = fpbench.dataset("csv", path=str(path), label_column="paid", sensitive="sex",
                            domain={"code": ["20", "40", "60"]})  # fmt: skip
    assert list(table.features["code"].cat.categories) == ["20", "40"]
    table.domain.check(table.features, "x")
    assert table.domain.fit(table.features)["code"].tolist() == ["20", "40", "20", "40"]


def test_what_the_user_declares_comes_before_what_we_do():
    made = fpbench.component("dataset", "adult", domain={"age": [0, 50]})
    assert (made.declared | Domain.of(made.domain)).bounds["age"] == (0.0, 50.0)
    with pytest.raises(InputError, match="domain: no column 'aeg'"):
        fpbench.component("dataset", "adult", domain={"aeg": [0, 50]})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult", "bank", "compas", "credit-card", "german", "parkinsons"])
def test_everything_that_is_in_published_data_is_declared(name):
    if (missing := fpbench.component("dataset", name).absent(DataHome.default())) is not None:
        pytest.skip(missing)
    for more in ({}, {"jail": "years"}) if name == "compas" else ({},):
        table = fpbench.dataset(name, **more)
        table.domain.check(table.features, name)
        fitted = table.domain.fit(table.features)
        for column, values in table.features.items():
            if column in table.domain.bounds:
                assert (fitted[column] == values).all(), column
            else:
                assert (fitted[column].astype(str) == values.astype(str)).all(), column


def test_everything_that_is_made_up_is_declared():
    table = fpbench.dataset("census-synthetic", rows=2_000)
    fitted = table.domain.fit(table.features)
    table.domain.check(table.features, "x")
    assert (fitted.astype(str) == table.features.astype({"age": float, "hours": float,
            "capital_gain": float}).astype(str)).all().all()  # fmt: skip
