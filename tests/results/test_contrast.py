"""Two runs side by side."""

import json

import numpy as np
import pytest

from fpbench.base.errors import InputError
from fpbench.components.names import KINDS
from fpbench.results.contrast import compare, contrast_data, contrast_sheet, read_pairs
from fpbench.store.results import Results


def rows(adversary, gains, learner="l", seeds=range(12), **more):
    labels = dict.fromkeys(KINDS, "") | {"dataset": "d", "learner": learner, "adversary": adversary}
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, size=100)  # what a seed does to both runs alike
    return [
        {"cell": "", **labels, "seed": seed, "status": "done", "reason": None, "seconds": 1.0,
         "gain": float(gains + noise[seed]), **more}
        for seed in seeds
    ]  # fmt: skip


def contrast(old, new, measure="gain", **options):
    return compare(Results.of(old), Results.of(new), measure, **options)


def test_a_run_against_itself_did_not_move():
    mine = rows("a", 0.1) + rows("b", 0.2)
    (found,) = contrast(mine, mine)
    assert {move.word for move in found.moves} == {"the same"}
    assert (found.only_old, found.only_new, found.notes) == (0, 0, ())


def test_pairs_of_seeds_tell_what_means_do_not():
    old = rows("a", 0.1) + rows("b", 0.2)
    new = rows("a", 0.11) + rows("b", 0.19, seeds=range(7, 30))
    (found,) = contrast(old, new)
    words = {move.labels["adversary"]: move.word for move in found.moves}
    assert words == {"a": "more", "b": "not significant"}  # 5 shared seeds
    a = next(move for move in found.moves if move.labels["adversary"] == "a")
    assert a.difference.mean == pytest.approx(0.01)
    assert a.p == pytest.approx(2 / 2**12)  # five differences cannot be significant
    b = next(move for move in found.moves if move.labels["adversary"] == "b")
    assert (b.old.count, b.new.count, b.difference.count) == (5, 5, 5)


def outvoted(lower_at=11):
    """A run that is lower at most seeds, and much higher at the others: its mean is higher."""
    old = rows("a", 0.5) + rows("b", 0.5)
    new = [row | {"gain": row["gain"] - 0.05 - row["seed"] * 1e-5} for row in old]
    return old, [row | {"gain": row["gain"] + 9} if row["seed"] >= lower_at else row for row in new]


def test_nothing_is_said_where_ranks_and_means_contradict_each_other():
    (found,) = contrast(*outvoted())
    for move in found.moves:
        assert move.difference.mean > 0
        assert (move.word, move.p) == ("not significant", 1)
    assert found.notes == (
        "2 pairs of lines: means and signed ranks point in opposite directions, so they count as "
        "not significant",
    )
    (found,) = contrast(*outvoted(lower_at=12))
    assert [move.word for move in found.moves] == ["less", "less"]
    assert found.notes == ()


def test_a_new_attack_stands_for_the_old_one():
    old = rows("old", 0.1, "x") + rows("old", 0.2, "y")
    new = rows("new", 0.3, "x") + rows("new", 0.1, "y") + rows("new", 0.1, "z")
    (found,) = contrast(old, new)
    assert found.swaps == {"adversary": ("old", "new")}
    words = {move.labels["learner"]: move.word for move in found.moves}
    assert words == {"x": "more", "y": "less"}
    assert (found.only_old, found.only_new) == (0, 1)
    made = contrast_sheet(found)
    assert made.about.startswith("adversary old and then new")
    assert made.notes[0] == "1 combination only in the second run"
    assert "signed ranks, not means" in made.notes[1]
    json.dumps(contrast_data(found), allow_nan=False)


def test_labels_may_be_paired_by_hand():
    old = rows("a", 0.1) + rows("old", 0.2)
    new = rows("a", 0.1) + rows("new", 0.3)
    (found,) = contrast(old, new)
    assert (found.only_old, found.only_new) == (1, 1)
    (found,) = contrast(old, new, pairs=read_pairs(["old=new"]))
    assert {m.labels["adversary"]: m.word for m in found.moves} == {"a": "the same", "new": "more"}
    assert read_pairs(["x tolerance=0.1=x tolerance=0.2"]) == {"x tolerance=0.1": "x tolerance=0.2"}


def test_runs_with_other_guarantees_are_not_compared():
    (found,) = contrast(rows("a", 0.1, claim_delta=0.0), rows("a", 0.2, claim_delta=1e-6))
    assert found.moves[0].word == "not comparable (claim: delta: 0, then 1e-06)"
    assert found.moves[0].p is None


def test_few_or_no_shared_seeds_are_said():
    (found,) = contrast(rows("a", 0.1, seeds=range(3)), rows("a", 0.2, seeds=range(3)))
    assert found.moves[0].word == "not significant"
    assert found.notes == (
        "3 seeds are too few for any significant difference, use at least 6 "
        "(signed ranks, Holm, 5 %)",
    )
    (found,) = contrast(rows("a", 0.1, seeds=[0, 1]), rows("a", 0.2, seeds=[2, 3]))
    assert found.moves[0].word == "no shared seed"


@pytest.mark.slow
def test_under_the_null_runs_differ_as_rarely_as_they_may():
    rng = np.random.default_rng(2)
    told = 0
    for _ in range(200):
        old = [row | {"gain": rng.normal()} for name in "abcd" for row in rows(name, 0)]
        new = [row | {"gain": rng.normal()} for row in old]
        told += any(move.word in ("more", "less") for move in contrast(old, new)[0].moves)
    assert told / 200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize(("old", "new", "options", "words"), [
    (rows("a", 0) + rows("b", 0), rows("c", 0) + rows("d", 0), {}, "no combination in common"),
    (rows("a", 0), rows("a", 0), {"measure": "gian"}, "did you mean 'gain'?"),
    (rows("a", 0), rows("bb", 0), {"pairs": {"a": "b"}},
     "no label 'b' in that run; did you mean 'bb'?"),
])  # fmt: skip
def test_bad_comparisons(old, new, options, words):
    with pytest.raises(InputError) as told:
        contrast(old, new, **options)
    assert words in str(told.value)
    with pytest.raises(InputError, match="'old' is not a pair of labels"):
        read_pairs(["old"])
