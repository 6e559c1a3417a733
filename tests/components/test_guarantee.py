import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import Guarantee, InputError
from fpbench.components.guarantee import NEIGHBOURS
from fpbench.privacy import COUNT_SENSITIVITY, compose, compose_disjoint

DOCS = Path(__file__).parents[2] / "docs" / "privacy.md"

epsilons = st.floats(0.01, 10)
guarantees = st.builds(Guarantee, epsilons, st.floats(0, 0.01), rho=st.none() | st.floats(0.001, 5))


def test_one_person_moves_counts_by_the_sensitivity():
    """One leaves a cell for another, or just a cell."""
    change = {"attribute": [1, -1], "add-remove": [1]}
    for relation in NEIGHBOURS:
        assert COUNT_SENSITIVITY[relation].l1 == sum(map(abs, change[relation]))
        assert COUNT_SENSITIVITY[relation].l2 == math.hypot(*change[relation])


@pytest.mark.parametrize(("wrong", "message"), [
    ({"delta": 1.0}, "delta must be at least 0 and below 1, not 1.0"),
    ({"delta": -1e-9}, "delta must be at least 0"),
    ({"rho": -0.5}, "rho must be above 0 and finite, or None, not -0.5"),
    ({"rho": math.nan}, "rho must be"),
    ({"neighbours": "attributes"}, "did you mean 'attribute'?"),
])  # fmt: skip
def test_wrong_guarantees_are_refused(wrong, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Guarantee(1.0, **wrong)


def test_epsilons_add_up_as_they_are_written():
    total = compose([Guarantee(0.1, 1e-6, rho=0.005)] * 10)
    assert (total.epsilon, total.delta) == (1.0, 1e-5)
    assert total.rho == pytest.approx(0.05)
    assert compose([Guarantee(0.1, rho=0.005), Guarantee(0.2)]).rho is None


@given(st.lists(guarantees, min_size=1, max_size=6))
def test_together_is_worse_than_apart_and_order_does_not_matter(parts):
    total, apart = compose(parts), compose_disjoint(parts)
    for part in parts:
        assert total.epsilon >= apart.epsilon >= part.epsilon
        assert total.delta >= apart.delta >= part.delta
    assert apart.epsilon in [part.epsilon for part in parts]
    assert compose(parts[::-1]) == total
    assert compose_disjoint([total]) == compose([total]) == total
    assert (total.rho is None) == (apart.rho is None) == any(part.rho is None for part in parts)


@pytest.mark.parametrize("combine", [compose, compose_disjoint])
def test_guarantees_of_two_relations_do_not_compose(combine):
    with pytest.raises(InputError, match="do not compose: add-remove and attribute"):
        combine([Guarantee(1.0), Guarantee(1.0, neighbours="add-remove")])
    with pytest.raises(InputError, match="no guarantee"):
        combine([])


def test_too_many_deltas_guarantee_nothing():
    with pytest.raises(InputError, match="delta must be"):
        compose([Guarantee(1.0, 0.4)] * 3)


def test_the_code_of_the_docs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.M | re.S)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(block, names)  # they follow each other


def test_the_docs_name_every_mechanism():
    text = DOCS.read_text()
    for entry in fpbench.plugin.discover():
        if entry.kind == "mechanism" and entry.source.distribution == "fpbench-toolkit":
            assert f"`{entry.name}`" in text
