"""Cells, the unique steps they share, and skips with reasons."""

import gc
import importlib
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from pages import names_package

from fpbench import run
from fpbench.base.errors import DataError, MatrixError
from fpbench.matrix.matrix import read
from fpbench.matrix.plan import make_plan
from fpbench.plugin import DataHome, discover

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

ATTACK = """
seeds = 2
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
number = { sweep = [0, 1, 2] }
[[disclosure]]
use = "oracle"
[[adversary]]
use = "coin"
[[adversary]]
use = "peek"
[[corrector]]
use = "flip"
[[corrector]]
use = "none"
"""
AUDIT = """
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
[[auditor]]
use = "counter"
[[mechanism]]
use = "hiss"
scale = { sweep = [1.0, 2.0] }
[[policy]]
use = "clamp"
"""


def by_action(counts):
    """Numbers of steps, whatever their component."""
    total = Counter()
    for (action, _), count in counts.items():
        total[action] += count
    return dict(total)


def plan_of(text):
    return make_plan(read(tomllib.loads(text)), discover(), DataHome.default())


@pytest.fixture(autouse=True)
def _toys(toys):
    pass


@pytest.mark.slow
def test_planning_does_not_look_for_garbage():
    """Which would look at all that was planned before, again and again."""
    matrix = read(tomllib.loads(ATTACK.replace("seeds = 2", "seeds = 200")))
    catalog, home = discover(), DataHome.default()
    make_plan(matrix, catalog, home)  # what is imported for it makes garbage
    collected = []
    gc.callbacks.append(lambda phase, info: collected.append(info["generation"]))
    try:
        plan = make_plan(matrix, catalog, home)
        during = len(collected)
    finally:
        gc.callbacks.pop()
    assert len(plan.cells) == 200 * 3 * 2 * 2
    assert during <= 2  # one, begun and ended, when it may look again
    assert gc.isenabled()


def test_every_combination_is_a_cell_and_every_shared_step_is_one():
    plan = plan_of(ATTACK)
    assert len(plan.cells) == 2 * 3 * 2 * 2
    assert by_action(plan.count_steps()) == {
        "load": 1,  # of all seeds
        "split": 2,  # a seed
        "train": 6,  # a learner and seed
        "predict": 6,
        "disclose": 6,
        "guess": 2 + 6,  # coin sees no model, so it guesses once a seed; peek once a model
        "correct": 24,
        "score": 24,
    }
    assert by_action(plan.count_alone()) == dict.fromkeys(by_action(plan.count_steps()), 24)
    assert plan.count_steps()["guess", "coin"] == 2
    assert plan.count_alone()["guess", "coin"] == 12


@pytest.mark.slow
def test_a_sweep_of_the_paper_runs_each_unique_step_once(monkeypatch, tmp_path):
    for name in ("adult.data", "adult.test"):
        (tmp_path / name).touch()
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))
    sweep = read(BENCHMARKS / "ferry-fig2.toml", seeds=2)
    plan = make_plan(sweep, discover(), DataHome.default())
    learners = 4 * 49
    assert len(plan.cells) == 2 * learners * 4
    assert plan.count_steps() == {
        ("load", "adult"): 1,
        ("split", ""): 2,
        ("train", "exponentiated-gradient"): 2 * learners,
        ("predict", "exponentiated-gradient"): 2 * learners,
        ("disclose", "published"): 2 * learners,
        ("tune", "a1-ferry"): 1,
        ("tune", "a2-ferry"): 1,
        ("guess", "a1-ferry"): 2,
        ("guess", "a2-ferry"): 2 * learners * 2,
        ("guess", "a2"): 2 * learners,
        ("correct", "exact"): 2 * learners * 4,
        ("score", ""): 2 * learners * 4,
    }
    alone = plan.count_alone()
    assert alone["guess", "a1-ferry"] == 2 * learners


OURS = [path for path in sorted(BENCHMARKS.glob("*.toml")) if not names_package(path.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_every_matrix_of_ours_can_be_planned(path, monkeypatch, tmp_path):
    for name in ("adult.data", "adult.test"):
        (tmp_path / name).touch()
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))
    plan = make_plan(read(path), discover(), DataHome.default())
    assert plan.cells
    there = {"adult", "census-synthetic"} & {choice.use for choice in read(path).axes["dataset"]}
    assert bool(plan.runnable) == bool(there) == (plan.lacking is None)


KEEN = ATTACK.replace('use = "peek"', 'use = "keen"')


def test_an_adversary_that_is_tuned_once_is_tuned_on_the_attack_set_of_the_first_seed():
    plan = plan_of(KEEN.replace("seeds = 2", "seeds = [7, 8]"))
    assert plan.count_steps()["tune", "keen"] == 1  # for all learners and seeds
    (tune,) = (step for step in plan.steps.values() if step.action == "tune")
    assert plan.steps[tune.parents[0]].action == "split"
    assert plan.count_steps()["split", ""] == 3  # seed 0's too
    assert keys(KEEN.replace("seeds = 2", "seeds = [1]")).items() <= keys(KEEN).items()


def test_scores_are_revealed_only_to_adversaries_that_see_them():
    counts = plan_of(KEEN).count_steps()
    assert (counts["reveal", "parrot"], counts["guess", "keen"]) == (6, 6)
    assert ("reveal", "parrot") not in plan_of(ATTACK).count_steps()


def test_scores_that_a_learner_does_not_give_are_refused(monkeypatch):
    monkeypatch.setattr(discover().component("learner", "parrot"), "gives_scores", False)
    (reason,) = plan_of(KEEN).count_skipped()
    assert reason == "adversary 'keen' sees scores, and learner 'parrot' gives none"


def test_the_plan_says_when_black_box_access_is_impossible():
    assert plan_of(ATTACK).remarks == []
    closed = ATTACK.replace('use = "parrot"', 'use = "threshold-optimizer"')
    closed = closed.replace("number = { sweep = [0, 1, 2] }", "")
    (remark,) = plan_of(closed).remarks
    assert remark == (
        "threshold-optimizer needs each person's group to predict, so a real attacker could only "
        "ask it about every group; its predictions are given to peek anyway"
    )
    assert plan_of(closed.replace('[[adversary]]\nuse = "peek"\n', "")).remarks == []


def test_a_step_needs_no_more_than_its_parents_before_it():
    plan = plan_of(ATTACK)
    order = plan.order_steps([cell.key for cell in plan.runnable])
    assert sorted(order) == sorted(plan.steps)
    before = set()
    for key in order:
        assert before.issuperset(plan.steps[key].parents)
        before.add(key)


def test_audits_cross_the_mechanisms_and_policies_they_take():
    plan = plan_of(AUDIT)
    assert [cell.labels["mechanism"] for cell in plan.cells] == ["hiss scale=1.0", "hiss scale=2.0"]
    assert {cell.labels["policy"] for cell in plan.cells} == {"clamp"}
    assert plan.count_steps()["audit", "counter"] == 2


def test_a_component_given_inline_is_not_crossed():
    inline = 'use = "counter"\nmechanism = { use = "hiss", scale = 3.0 }'
    plan = plan_of(AUDIT.replace('use = "counter"', inline))
    (cell,) = plan.cells
    assert "mechanism" not in cell.labels
    assert plan.steps[cell.key].spec.slots["mechanism"].parameters == {
        "noise": "simulation",
        "scale": 3.0,
    }


def test_what_makes_no_sense_is_skipped_with_the_reason():
    plan = plan_of(ATTACK.replace('use = "flock"', 'use = "flock"\ngroups = 3'))
    assert plan.count_skipped() == {"flip turns around two groups only": 12}
    assert {cell.labels["corrector"] for cell in plan.runnable} == {"none"}


def test_a_claim_that_nobody_makes_cannot_be_exploited():
    plan = plan_of(ATTACK.replace('use = "oracle"', 'use = "hidden"'))
    assert plan.count_skipped() == {
        "disclosure 'hidden' makes no claim, so there is nothing to correct with": 12
    }


def test_a_posterior_takes_any_number_of_groups():
    three = ATTACK.replace('use = "flock"', 'use = "flock"\ngroups = 3')
    assert plan_of(three.replace('use = "flip"', 'use = "posterior"')).count_skipped() == {}


def known(*facts, disclosure="oracle", corrector="exact"):
    """The attack with facts, and one corrector besides `none`."""
    text = ATTACK.replace('use = "flip"', f'use = "{corrector}"')
    also = ", ".join(facts)
    return text.replace('use = "oracle"', f'use = "{disclosure}"\nalso = [{also}]')


SHARE = '{ use = "share", group = "g1", margin = 0.01 }'
LINEAR = '{ use = "linear", group = "g1", column = "x" }'


def test_what_else_is_known_is_enough_for_a_corrector():
    assert plan_of(known(SHARE, disclosure="hidden")).count_skipped() == {}
    assert len(plan_of(known(SHARE, disclosure="hidden")).runnable) == 24


@pytest.mark.parametrize("disclosure", ["hidden", "oracle"])
def test_what_a_corrector_cannot_express_is_skipped_with_what_it_can(disclosure):
    plan = plan_of(known(SHARE, LINEAR, disclosure=disclosure))
    assert plan.count_skipped() == {
        "corrector 'exact' cannot express the constraint 'linear'; it can express: "
        "between-groups, known, positive-rate, ratio, share, to-overall, unfairness, "
        "unfairness between-groups, unfairness ratio": 12
    }
    assert {cell.labels["corrector"] for cell in plan.runnable} == {"none"}


def test_every_word_that_is_not_expressed_is_named():
    ratio = '{ use = "unfairness", metric = "statistical-parity", form = "ratio" }'
    for fact, corrector, word in (
        (ratio, "flip", "unfairness ratio"),
        (ratio.replace("ratio", "to-overall"), "flip", "unfairness"),
        (LINEAR, "exact", "linear"),
        (SHARE, "flip", "share"),
        ('{ use = "known", share = 0.1 }', "flip", "known"),
        ('{ use = "positive-rate", group = "g0" }', "flip", "positive-rate"),
    ):
        (reason,) = plan_of(known(fact, corrector=corrector)).count_skipped()
        assert reason.startswith(
            f"corrector {corrector!r} cannot express the constraint {word!r}; "
        )


def test_disclosures_that_lack_what_to_measure_are_skipped_with_what_to_write():
    plain = ATTACK.replace('use = "parrot"\nnumber = { sweep = [0, 1, 2] }', 'use = "plain"')
    asked = 'use = "estimated"\nmetric = "asked"'
    noisy = 'use = "noisy"\nepsilon = 1.0\nmechanism = { use = "laplace" }'
    for disclosure, words in (
        (asked, 'cannot know it: leave out `metric = "asked"`'),
        (noisy, 'must say which one its claim is about: add `metric = "statistical-parity"`'),
    ):
        (reason,) = plan_of(plain.replace('use = "oracle"', disclosure)).count_skipped()
        assert reason.startswith("learner 'plain' is trained for no fairness metric, so disclosure")
        assert words in reason
        parrots = plan_of(ATTACK.replace('use = "oracle"', disclosure))
        assert parrots.count_skipped() == {}
    for disclosure in ('use = "estimated"', noisy + '\nmetric = "equalized-odds"'):
        assert plan_of(plain.replace('use = "oracle"', disclosure)).count_skipped() == {}


def test_facts_are_part_of_what_a_disclosure_is():
    plain, fact = (plan_of(known(*facts)) for facts in ((), (SHARE,)))
    assert not {c.key for c in plain.runnable} & {c.key for c in fact.runnable}
    swept = known().replace("also = []", f"also = {{ sweep = [[], [{SHARE}]] }}")
    assert plan_of(swept).count_steps()["disclose", "oracle"] == 12


def test_excluded_cells_are_not_there():
    text = ATTACK + '[[exclude]]\nadversary = "peek"\nlearner = "parrot number=1"\n'
    assert len(plan_of(text).cells) == 24 - 4
    assert (
        len(plan_of(ATTACK + '[[exclude]]\nlearner = "parrot"\ncorrector = "none"\n').cells) == 12
    )
    with pytest.raises(MatrixError, match="leaves no cell"):
        plan_of(ATTACK + '[[exclude]]\nlearner = "parrot"\n')


def keys(text):
    return {(tuple(c.labels.values()), c.seed): c.key for c in plan_of(text).cells}


def test_a_cell_does_not_depend_on_what_else_is_in_the_matrix():
    alone = keys(ATTACK.replace("[0, 1, 2]", "[1, 0]").replace("seeds = 2", "seeds = [1]"))
    assert alone.items() <= keys(ATTACK).items()


def test_a_default_that_is_written_out_changes_nothing():
    written = ATTACK.replace('use = "flock"', 'use = "flock"\nrows = 60')
    assert keys(written) == keys(ATTACK)


SOURCE = """
from fpbench import Policy, hookimpl

class Mend(Policy):
    name = "mend"
    summary = "mends"

    def repair(self, answers, total, upper=None):
        return answers

@hookimpl
def fpbench_policies():
    return [Mend]
"""


def test_prose_does_not_change_a_key_and_code_does(install):
    text = AUDIT.replace("clamp", "mend")

    def key(source):
        module = site / "mender.py"
        module.write_text(source)
        sys.modules.pop("mender", None)
        importlib.invalidate_caches()
        discover.cache_clear()
        return plan_of(text).cells[0].key

    site = install("mender", "mender", SOURCE)
    original = key(SOURCE)
    prose = SOURCE.replace("rng):", 'rng):\n        """Do nothing."""').replace(
        "class", "# Why.\nclass"
    )
    assert key(prose) == original
    assert key(SOURCE.replace("return answers", "return answers + 1")) != original


def test_data_that_is_not_here_is_skipped_with_the_command_that_fetches_it(monkeypatch, tmp_path):
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    plan = plan_of(ATTACK + '[[dataset]]\nuse = "adult"\n')
    (reason,) = plan.count_skipped()
    assert "adult.data" in reason
    assert "fpbench data fetch adult" in reason
    assert plan.lacking is None


def test_if_no_data_is_here_that_is_an_error_unless_it_is_expected(monkeypatch, tmp_path):
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    matrix = tomllib.loads(ATTACK.replace('use = "flock"', 'use = "adult"'))
    with pytest.raises(DataError, match=r"nothing to run: .* fpbench data fetch adult"):
        run(matrix, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    rows = run(matrix, out=tmp_path / "run", skip_all=True).rows()
    assert {row["status"] for row in rows} == {"skipped"}


BAD = [
    ('use = "flock"', 'use = "flok"', "unknown dataset 'flok'; did you mean 'flock'?"),
    ('use = "flock"', 'use = "flock"\nrow = 3', "[[dataset]] no. 1 (flock): unknown key 'row'"),
    ('use = "flock"', 'use = "flock"\nrows = "3"', "rows: input should be a valid integer, not"),
    ('use = "flock"', 'use = "flock"\nrows = 1', "greater than or equal to 3, not 1"),
    ("number = {", 'fails = "rises"\nnumber = {', "fails: input should be 'never', 'raises' or"),
    ('use = "oracle"', 'use = "oracle"\nalso = [{ use = "shares", group = "g0" }]',
     "[[disclosure]] no. 1 (oracle): also.0: unknown use 'shares'; did you mean 'share'?"),
    ('use = "oracle"', 'use = "oracle"\nalso = [{ group = "g0" }]', "(oracle): also.0: needs use"),
    ('use = "oracle"', 'use = "oracle"\nalso = ["share"]', "also.0: must be a table, not 'share'"),
    ('use = "oracle"', 'use = "oracle"\nalso = { use = "share", group = "g0" }',
     "(oracle): also: input should be a valid list"),
    ('use = "oracle"', 'use = "oracle"\nalso = [{ use = "share", group = "g0", marign = 0.1 }]',
     "(oracle): unknown key 'also.0.marign'; did you mean 'margin'?"),
    ('use = "oracle"', 'use = "oracle"\nalso = [{ use = "known", share = 0.1, group = "g0" }]',
     "(oracle): unknown key 'also.0.group'; valid: share, use"),
    ('use = "oracle"',
     'use = "oracle"\nalso = [{ use = "share", group = "g0" }, { use = "linear", group = "g0" }]',
     "(oracle): needs a value for 'also.1.column'"),
    ('use = "oracle"',
     'use = "oracle"\nalso = [{ use = "positive-rate", group = "g0", margin = 1.5 }]',
     "(oracle): also.0.margin: input should be less than or equal to 1, not 1.5"),
    ('use = "oracle"',
     'use = "oracle"\nalso = [{ use = "linear", group = "g0", column = "x", margin = -1.0 }]',
     "(oracle): also.0.margin: input should be greater than or equal to 0, not -1.0"),
    ('use = "oracle"',
     'use = "oracle"\nalso = [{ use = "share", group = "g0", low = 0.5, high = 0.2 }]',
     "(oracle): also.0: low 0.5 is above high 0.2"),
    ('use = "oracle"', 'use = "oracle"\nalso = [{ use = "known", share = 2 }]',
     "(oracle): also.0.share: input should be less than or equal to 1, not 2"),
    ('use = "oracle"', 'use = "oracle"\nalso = [{ use = "unfairness", metric = "parity" }]',
     "not 'parity'; did you mean 'statistical-parity'?"),
    ('use = "oracle"', 'use = "noisy"\nepsilon = 1.0', "(noisy): takes a mechanism: name it with"),
    ('use = "oracle"', 'use = "noisy"\nepsilon = 1.0\nmechanism = { use = "laplce" }',
     "(noisy): unknown mechanism 'laplce'; did you mean 'laplace'?"),
    ('use = "oracle"', 'use = "noisy"\nepsilon = 0.0\nmechanism = { use = "laplace" }',
     "epsilon: input should be greater than or equal to 0.000000001, not 0.0"),
    ('use = "flip"', 'use = "exact"\non_infeasible = "relaxed"', "on_infeasible: input should be"),
    ('[[corrector]]\nuse = "none"', '[[corrector]]\nuse = "flip"\nlabel = "flop"',
     "'flop' is the same corrector with the same parameters as 'flip'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), BAD)
def test_bad_input_is_one_clear_error(old, new, expected):
    with pytest.raises(MatrixError) as error:
        plan_of(ATTACK.replace(old, new))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_slot_is_filled_with_a_table():
    with pytest.raises(MatrixError, match='mechanism: must be a table with use = "NAME"'):
        plan_of(AUDIT.replace('use = "counter"', 'use = "counter"\nmechanism = "hiss"'))
    inline = 'use = "counter"\nmechanism = { use = "hiss", scal = 1.0 }'
    with pytest.raises(MatrixError, match=r"\(counter\): mechanism: unknown key 'scal'"):
        plan_of(AUDIT.replace('use = "counter"', inline))


def test_a_file_that_two_datasets_read_is_looked_at_once(monkeypatch, tmp_path):
    for name in ("adult.data", "adult.test"):
        (tmp_path / name).touch()
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))
    both = (
        '[[dataset]]\nuse = "adult"\n[[dataset]]\nuse = "adult"\nlabel = "r"\nsensitive = "race"\n'
    )
    plan = plan_of(ATTACK + both)
    assert set(plan.data) == {"adult.data", "adult.test"}
    assert len(plan.warnings) == 2


def test_an_auditor_that_lacks_what_it_takes_says_what_to_write():
    lacking = AUDIT[: AUDIT.index("[[mechanism]]")]
    with pytest.raises(
        MatrixError, match=r"\(counter\): takes a mechanism: name some with \[\[mech"
    ):
        plan_of(lacking)


def test_what_an_auditor_may_do_without_is_not_crossed_if_nobody_names_it():
    (cell, _) = plan_of(AUDIT[: AUDIT.index("[[policy]]")]).cells
    assert "policy" not in cell.labels


def test_two_auditors_cross_the_same_mechanisms():
    text = AUDIT.replace(
        'use = "counter"', 'use = "counter"\n[[auditor]]\nuse = "counter"\nlabel = "b"'
    )
    with pytest.raises(MatrixError, match="'b' is the same auditor with the same parameters"):
        plan_of(text)
