"""Components as data."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import discover
from fpbench.specs import _code_hash, build, specify


def test_every_component_survives_the_trip_to_a_worker(toys):
    for entry in discover():
        needed = {"mechanism": {"use": "hiss"}} if entry.name == "counter" else {}
        component, spec = specify(discover(), entry.kind, entry.name, needed, "here")
        assert json.loads(spec.identity())[:2] == [entry.kind, entry.name]
        assert build(spec, discover()) == component


@given(st.sampled_from([["sex"], ["race"], ["sex", "race"], "sex", "race"]))
def test_lists_of_a_matrix_survive_it_too(sensitive):
    component, spec = specify(discover(), "dataset", "adult", {"sensitive": sensitive}, "here")
    assert build(spec, discover()) == component


def test_components_inside_components_survive_it(toys):
    inline = {"mechanism": {"use": "hiss", "scale": 2.0}}
    component, spec = specify(discover(), "auditor", "counter", inline, "here")
    assert component.mechanism.scale == 2.0
    assert build(spec, discover()) == component
    assert "hiss" in spec.identity()


def test_the_code_hash_follows_base_classes_and_private_modules_of_the_kind(monkeypatch):
    from fpbench import specs

    read = []
    parsed = specs._parsed
    monkeypatch.setattr(specs, "_parsed", lambda name: read.append(name) or parsed(name))
    _code_hash.__wrapped__(discover().component("adversary", "a2"))
    assert "fpbench.builtin.adversaries._forest" in read
    read.clear()
    _code_hash.__wrapped__(discover().component("learner", "plain"))
    assert {"fpbench.builtin.learners._fitted", "fpbench.estimators", "fpbench.components"} <= {
        *read
    }


def test_components_by_name():
    assert fpbench.component("corrector", "exact", exponents=3).exponents == 3
    with pytest.raises(fpbench.InputError, match="corrector 'exact': unknown key 'exponent'; did"):
        fpbench.component("corrector", "exact", exponent=3)
    with pytest.raises(fpbench.InputError, match="exponents: input should be .* 99, not 100"):
        fpbench.component("corrector", "exact", exponents=100)
    with pytest.raises(fpbench.InputError, match="did you mean 'census-synthetic'"):
        fpbench.dataset("census")
    assert len(fpbench.dataset("census-synthetic", rows=100)) == 100
