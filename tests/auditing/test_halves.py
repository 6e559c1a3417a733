"""Halves of people, on which shadow models are trained, and the step that trains them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import InputError
from fpbench.auditing import draw_halves
from fpbench.builtin.learners.exponentiated_gradient import ExponentiatedGradient
from fpbench.builtin.learners.plain import Plain
from fpbench.execution.work.actions import ACTIONS
from fpbench.matrix.step import Step
from fpbench.plugin import Split


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 5), st.integers(0, 2**32)
)
def test_everybody_is_in_exactly_half_of_the_halves(cells, pairs, seed):
    members = draw_halves(cells, 2 * pairs, np.random.default_rng(seed))
    assert (members.sum(axis=0) == pairs).all()
    assert (members[::2] == ~members[1::2]).all()
    sizes = members.sum(axis=1)
    assert sizes.max() - sizes.min() <= 1
    for cell in set(cells):
        inside = members[:, np.array(cells) == cell]
        shares = inside.sum(axis=1)
        assert np.abs(2 * shares - inside.shape[1]).max() <= 1


def test_halves_are_drawn_anew_in_each_pair():
    members = draw_halves(np.zeros(40), 20, np.random.default_rng(0))
    assert len(np.unique(members, axis=0)) == 20
    with pytest.raises(InputError, match="even and at least 2, not 3"):
        draw_halves([0, 1], 3, np.random.default_rng(0))


@pytest.mark.slow
def test_halves_of_all_learners_are_the_same_and_each_half_trains_a_model():
    people = fpbench.dataset("census-synthetic", rows=200).sample()
    split = Split(*(people.take(rows) for rows in (range(100), range(100, 200), range(0))))
    options = Step("shadow", "shadow", "shadow", None, (), (4, "7"))
    results = []
    for learner in (Plain(), ExponentiatedGradient(max_iter=3)):
        trained = ACTIONS["train"](learner, (split,), Step("train", "train", "train", None, ()))
        results.append(ACTIONS["shadow"](learner, (trained, split), options))
    assert (results[0].members == results[1].members).all()
    assert (results[0].members.sum(axis=0) == 2).all()
    assert results[0].scores.shape == (4, 200)
    assert results[0].target.shape == (200,)
