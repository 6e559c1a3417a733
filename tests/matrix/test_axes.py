"""What the axes of a matrix are left without, and how large they may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.base.errors import MatrixError
from fpbench.components.names import ATTACK, AUDIT
from fpbench.matrix.axes import ComponentChoice, expand_axes
from fpbench.matrix.matrix import read
from fpbench.matrix.plan import is_excluded, sort_rules

names = st.sampled_from(["a", "b", "c"])
rules = st.lists(
    st.dictionaries(st.sampled_from([*ATTACK, *AUDIT]), names, min_size=1, max_size=4), max_size=5
)


@given(rules, st.sampled_from([ATTACK, AUDIT, AUDIT[:4]]), st.data())
def test_a_combination_is_left_out_if_all_of_a_rule_is_so(exclude, kinds, data):
    chosen = [ComponentChoice(k, data.draw(names), data.draw(names), {}, "") for k in kinds]
    by_kind = {choice.kind: (choice.use, choice.label) for choice in chosen}
    wanted = any(
        all(kind in by_kind and name in by_kind[kind] for kind, name in rule.items())
        for rule in exclude
    )
    assert is_excluded(sort_rules(exclude), chosen) == wanted


def tables(**counts):
    made = {"dataset": [{"use": "d"}], "learner": [{"use": "l"}], "auditor": [{"use": "a"}]}
    for kind, count in counts.items():
        made[kind] = [{"use": "x", "p": {"linspace": [0, 1, count]}}]
    return made


@pytest.mark.parametrize("limit", [5, 1000, 10**7])
def test_the_limit_is_on_cells(limit):
    assert len(expand_axes(tables(), limit, "m", limit)["dataset"]) == 1
    with pytest.raises(MatrixError, match=f"m: is too large: {limit + 1:,} comb.*than {limit:,}$"):
        expand_axes(tables(), limit + 1, "m", limit)
    with pytest.raises(MatrixError, match=f"is too large: {2 * limit:,} combinations"):
        expand_axes(tables(dataset=2), limit, "m", limit)


def test_nothing_is_expanded_before_it_is_counted(monkeypatch):
    import fpbench.matrix.axes as axes

    def never(*_):
        raise AssertionError("expanded")

    monkeypatch.setattr(axes, "_expand", never)
    monkeypatch.setattr(axes._Space, "__getitem__", never)
    for counts in (
        {"dataset": 10**6, "learner": 10**6},
        {"dataset": 10**18},
        {"mechanism": 10**5, "policy": 10**5},
    ):
        with pytest.raises(MatrixError, match="too large: "):
            expand_axes(tables(**counts), 1, "m", 10**6)
    many = {**tables(), "dataset": tables(dataset=10**5)["dataset"] * 1000}
    with pytest.raises(MatrixError, match="too large: 100,000,000 combinations"):
        expand_axes(many, 1, "m", 10**6)
    # Where a kind is lacking the product is 0, and still nothing is expanded.
    lacking = {"learner": tables(learner=10**6)["learner"], "corrector": [{"use": "c"}]}
    with pytest.raises(MatrixError, match="needs at least one"):
        expand_axes(lacking, 1, "m", 10**6)


@pytest.mark.parametrize(("table", "message"), [
    ({"use": "x", "q": {"sweep": list(range(9000))}, "text": "y" * 10 ** 5}, "repeated too often"),
    ({"use": "x", "label": "y" * 2000}, "too long for a label"),
    ({"use": "x", "q": {"sweep": ["y" * 2000, "z"]}}, "too long for a label"),
    ({"use": "x", "q": {"linspace": [0, 10 ** 400, 3]}}, "out of range"),
    ({"use": "x", "q": {"geomspace": [1e-300, 1e+300, 3]}}, "out of range"),
    ({"use": "x", "q": {"linspace": [float("nan"), 1, 3]}}, "out of range"),
    ({"use": "x", "q": {"linspace": [float("-inf"), 1, 3]}}, "out of range"),
])  # fmt: skip
def test_tables_that_are_too_large_are_refused(table, message):
    with pytest.raises(MatrixError, match=message):
        expand_axes({**tables(), "dataset": [table]}, 1, "m")


def test_read_takes_the_limit():
    data = {**tables(), "seeds": 1000}
    assert len(read(data, max_cells=1000).seeds) == 1000
    with pytest.raises(MatrixError, match="1,000 combinations, more than 999"):
        read(data, max_cells=999)
    assert len(read({**data, "seeds": 1}, seeds=7, max_cells=7).seeds) == 7
