"""Components as data."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench.components.spec import build_component, hash_code, specify
from fpbench.plugin import discover

NEEDED = {
    "counter": {"mechanism": {"use": "hiss"}},
    "noisy": {"mechanism": {"use": "laplace"}, "epsilon": 1.0},
    "group-aware": {"base": {"use": "plain"}},
    "pafer": {"mechanism": {"use": "laplace"}, "epsilon": 1.0},
    "csv": {"path": "people.csv", "label_column": "y", "sensitive": "s"},
    "parquet": {"path": "people.parquet", "label_column": "y", "sensitive": "s"},
    "table": {"table": "people"},
}


def test_every_component_survives_the_trip_to_a_worker(toys):
    for entry in discover():
        if entry.source.distribution != "fpbench-toolkit":
            continue
        needed = NEEDED.get(entry.name, {})
        component, spec = specify(discover(), entry.kind, entry.name, needed, "here")
        assert json.loads(spec.identity())[:2] == [entry.kind, entry.name]
        assert build_component(spec, discover()) == component


@given(st.sampled_from([["sex"], ["race"], ["sex", "race"], "sex", "race"]))
def test_lists_of_a_matrix_survive_it_too(sensitive):
    component, spec = specify(discover(), "dataset", "adult", {"sensitive": sensitive}, "here")
    assert build_component(spec, discover()) == component


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
    assert build_component(spec, discover()) == component
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
    assert build_component(spec, discover()) == component
    assert "hiss" in spec.identity()
    inline = {"mechanism": {"use": "laplace"}, "epsilon": 0.5}
    component, spec = specify(discover(), "disclosure", "noisy", inline, "here")
    assert component.mechanism.name == "laplace"
    assert build_component(spec, discover()) == component
    with pytest.raises(
        fpbench.InputError, match=r'takes a mechanism: name it with mechanism = \{ use = "NAME" \}'
    ):
        specify(discover(), "disclosure", "noisy", {"epsilon": 0.5}, "here")


def test_the_code_hash_follows_base_classes_and_private_modules_of_the_kind(monkeypatch):
    from fpbench.components import spec as specs

    read = []
    code = specs._hash_module
    monkeypatch.setattr(
        specs, "_hash_module", lambda name, module: read.append(name) or code(name, module)
    )
    hash_code.__wrapped__(discover().component("adversary", "a2"))
    assert {
        "fpbench.builtin.ferry.adversaries", "fpbench.models.classifiers", "fpbench.models.encoding"
    } <= {*read}  # fmt: skip
    read.clear()
    hash_code.__wrapped__(discover().component("learner", "plain"))
    assert {
        "fpbench.builtin.learners._fitted",
        "fpbench.models.classifiers",
        "fpbench.components.attack_kinds",
    } <= {*read}


@pytest.mark.parametrize(
    ("kind", "name", "module"),
    [
        ("corrector", "exact", "fpbench.base.text"),
        ("corrector", "exact", "fpbench.claims.conditions"),
        ("corrector", "exact", "fpbench.correction.exact.two_group_moves"),
        ("learner", "pate", "fpbench.builtin.batched.logistic"),
        ("learner", "pate", "fpbench.builtin.pate.noisy_votes"),
        ("learner", "private-tree", "fpbench.builtin.private_tree.growth"),
        ("adversary", "a2", "fpbench.components.records"),
        ("dataset", "adult", "fpbench.tabular.tabular_dataset"),
        ("mechanism", "discrete-gaussian", "fpbench.privacy.accounting"),
    ],
)
def test_a_change_in_any_room_changes_the_keys_of_what_uses_it(monkeypatch, kind, name, module):
    """Through names that rooms load lazily, which hide where they are defined."""
    from fpbench.components import spec as specs

    cls, code = discover().component(kind, name), specs._hash_module
    before = hash_code.__wrapped__(cls)

    def changed(read, loaded):
        text, imported = code(read, loaded)
        return text + "changed" * (read == module), imported

    monkeypatch.setattr(specs, "_hash_module", changed)
    assert hash_code.__wrapped__(cls) != before


CODE = """
import fpbench
import fpbench.privacy as accounting
import strange.deep.helper
from fpbench import Guess, models
from fpbench.claims import METRICS
from fpbench.correction import solve_exact as solve
from . import sibling
from .deep import helper, nothing
from .deep.other import thing
from strange import aside

def use():
    from fpbench.auditing import RiskReport
    return fpbench.auditing.excessive_risk, fpbench.data.Domain, accounting.Ledger, models.encode, aside.x
"""


def test_the_code_of_a_strangers_package_is_followed_however_it_imports(tmp_path, monkeypatch):
    from fpbench.components.spec import _hash_module

    package = tmp_path / "strange"
    (package / "deep").mkdir(parents=True)
    for name in ("__init__", "sibling", "aside", "deep/__init__", "deep/helper", "deep/other"):
        (package / f"{name}.py").write_text("")
    (package / "component.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    import strange  # its modules are not imported: keys do not depend on what is

    assert strange.__path__
    found = set(_hash_module("strange.component", None)[1])
    assert found == {
        "fpbench.components.records", "fpbench.claims.rates", "fpbench.correction.exact.solve",
        "fpbench.builtin.pate.excessive_risk.report", "fpbench.builtin.pate.excessive_risk.measure",
        "fpbench.data.domain", "fpbench.privacy.ledger", "fpbench.models.encoding",
        "strange.sibling", "strange.deep", "strange.deep.helper", "strange.deep.other",
        "strange.aside",
    }  # fmt: skip


def test_components_by_name():
    assert fpbench.component("corrector", "exact", exponents=3).exponents == 3
    with pytest.raises(fpbench.InputError, match="corrector 'exact': unknown key 'exponent'; did"):
        fpbench.component("corrector", "exact", exponent=3)
    with pytest.raises(fpbench.InputError, match="exponents: input should be .* 99, not 100"):
        fpbench.component("corrector", "exact", exponents=100)
    with pytest.raises(fpbench.InputError, match="did you mean 'census-synthetic'"):
        fpbench.dataset("census")
    assert len(fpbench.dataset("census-synthetic", rows=100)) == 100


@pytest.mark.parametrize(
    "wrong", [fpbench.component("dataset", "adult"), fpbench.Dataset, None, 5, ["adult"], b"adult"]
)
def test_what_is_no_name_is_one_error(wrong):
    """A component, above all, which is taken where one is asked for, and not where a name is."""
    for call in (
        lambda: fpbench.dataset(wrong),
        lambda: fpbench.component("dataset", wrong),
        lambda: fpbench.component(wrong, "adult"),
    ):
        with pytest.raises(
            fpbench.errors.NameUnknownError, match=r"must be the name of|unknown kind"
        ):
            call()
