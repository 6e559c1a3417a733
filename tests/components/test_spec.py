"""Components as data."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import discover
from fpbench.components.spec import _code_hash, build, specify

NEEDED = {
    "counter": {"mechanism": {"use": "hiss"}},
    "noisy": {"mechanism": {"use": "laplace"}, "epsilon": 1.0},
    "dp-release": {"auditor": {"use": "pafer", "epsilon": 0.1, "mechanism": {"use": "laplace"}}},
    "distilled": {"teacher": {"use": "pate"}},
    "pafer": {"mechanism": {"use": "laplace"}, "epsilon": 1.0},
    "csv": {"path": "people.csv", "label_column": "y", "sensitive": "s"},
    "parquet": {"path": "people.parquet", "label_column": "y", "sensitive": "s"},
    "table": {"table": "people"},
}


def test_every_component_survives_the_trip_to_a_worker(toys):
    for entry in discover():
        needed = NEEDED.get(entry.name, {})
        component, spec = specify(discover(), entry.kind, entry.name, needed, "here")
        assert json.loads(spec.identity())[:2] == [entry.kind, entry.name]
        assert build(spec, discover()) == component


@given(st.sampled_from([["sex"], ["race"], ["sex", "race"], "sex", "race"]))
def test_lists_of_a_matrix_survive_it_too(sensitive):
    component, spec = specify(discover(), "dataset", "adult", {"sensitive": sensitive}, "here")
    assert build(spec, discover()) == component


FACTS = [
    {"use": "share", "group": "Female", "margin": 0.01},
    {"use": "positive-rate", "group": "Female", "low": 0.1, "metric": "equalized-odds"},
    {"use": "unfairness", "metric": "statistical-parity", "form": "ratio", "high": 0.5},
    {"use": "known", "share": 0.25},
    {"use": "linear", "group": "Male", "column": "age"},
]


@given(st.lists(st.sampled_from(FACTS)))
def test_facts_survive_it(facts):
    component, spec = specify(discover(), "disclosure", "hidden", {"also": facts}, "here")
    assert [fact.use for fact in component.also] == [fact["use"] for fact in facts]
    assert build(spec, discover()) == component
    # What is known is part of what a step is; a default that is written out is not.
    written = [{"margin": 0.0, **fact} if fact["use"] != "known" else fact for fact in facts]
    same = specify(discover(), "disclosure", "hidden", {"also": written}, "here")[1]
    assert same.identity() == spec.identity()
    other = specify(discover(), "disclosure", "hidden", {"also": [*facts, FACTS[0]]}, "here")[1]
    assert other.identity() != spec.identity()


def test_components_inside_components_survive_it(toys):
    inline = {"mechanism": {"use": "hiss", "scale": 2.0}}
    component, spec = specify(discover(), "auditor", "counter", inline, "here")
    assert component.mechanism.scale == 2.0
    assert build(spec, discover()) == component
    assert "hiss" in spec.identity()
    inline = {"mechanism": {"use": "laplace"}, "epsilon": 0.5}
    component, spec = specify(discover(), "disclosure", "noisy", inline, "here")
    assert component.mechanism.name == "laplace"
    assert build(spec, discover()) == component
    with pytest.raises(
        fpbench.InputError, match=r'takes a mechanism: name it with mechanism = \{ use = "NAME" \}'
    ):
        specify(discover(), "disclosure", "noisy", {"epsilon": 0.5}, "here")


def test_the_code_hash_follows_base_classes_and_private_modules_of_the_kind(monkeypatch):
    from fpbench.components import spec as specs

    read = []
    code = specs._code
    monkeypatch.setattr(
        specs, "_code", lambda name, module: read.append(name) or code(name, module)
    )
    _code_hash.__wrapped__(discover().component("adversary", "a2"))
    assert {
        "fpbench.builtin.adversaries.ferry", "fpbench.models.classifiers", "fpbench.models.encoding"
    } <= {*read}  # fmt: skip
    read.clear()
    _code_hash.__wrapped__(discover().component("learner", "plain"))
    assert {
        "fpbench.builtin.learners._fitted",
        "fpbench.models.classifiers",
        "fpbench.components.attack_kinds",
    } <= {*read}


def test_components_by_name():
    assert fpbench.component("corrector", "exact", exponents=3).exponents == 3
    with pytest.raises(fpbench.InputError, match="corrector 'exact': unknown key 'exponent'; did"):
        fpbench.component("corrector", "exact", exponent=3)
    with pytest.raises(fpbench.InputError, match="exponents: input should be .* 99, not 100"):
        fpbench.component("corrector", "exact", exponents=100)
    with pytest.raises(fpbench.InputError, match="did you mean 'census-synthetic'"):
        fpbench.dataset("census")
    assert len(fpbench.dataset("census-synthetic", rows=100)) == 100
