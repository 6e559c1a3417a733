"""What workers on other machines must have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_runs import COUNTER, PARROTS

from fpbench.execution.engines.requirements import list_mismatches, list_requirements, read_versions
from fpbench.matrix.matrix import read
from fpbench.matrix.plan import make_plan
from fpbench.plugin import DataHome, discover

MATRIX = {"dataset": [{"use": "flock"}], "learner": PARROTS, "auditor": COUNTER}


@pytest.fixture
def needs(toys):
    plan = make_plan(read(MATRIX), discover(), DataHome.default())
    return list_requirements(plan.steps.values(), discover())


def test_needs_are_those_of_the_matrix_and_of_what_its_components_hold(needs):
    assert needs.uses == (
        ("auditor", "counter"), ("dataset", "flock"), ("learner", "parrot"), ("mechanism", "hiss")
    )  # fmt: skip
    assert needs.here["learner 'parrot'"].startswith("fpbench-toys 1.0/")
    assert {"Python", "fpbench-toolkit", "numpy", "scikit-learn"} < set(needs.here)


def test_who_has_the_same_lacks_nothing(needs):
    assert list_mismatches(needs.here, read_versions(needs.uses)) == []


@pytest.mark.parametrize(("name", "has", "said"), [
    ("numpy", "1.0", "numpy: 1.0 there, "),
    ("numpy", "", "numpy: missing there, "),
    ("learner 'parrot'", "fpbench-toys 2.0/0", "learner 'parrot': fpbench-toys 2.0/0 there, fpb"),
    ("learner 'parrot'", "!no solver", "learner 'parrot': no solver there, fpbench-toys 1.0/"),
])  # fmt: skip
def test_each_difference_is_named_with_both_sides(needs, name, has, said):
    (told,) = list_mismatches(needs.here, {**needs.here, name: has})
    assert told.startswith(said)


versions = st.dictionaries(
    st.sampled_from("abc"), st.sampled_from(["", "1", "2", "d 1/x", "d 1/y"])
)


@given(versions, versions)
def test_whoever_differs_is_told_so_and_nobody_else(here, there):
    differ = [name for name, version in here.items() if there.get(name, "") != version]
    assert len(list_mismatches(here, there)) == len(differ)


def test_what_cannot_be_used_here_is_no_reason_to_refuse_a_worker():
    assert list_mismatches({"x": "!no solver"}, {"x": "d 1/x"}) == []
