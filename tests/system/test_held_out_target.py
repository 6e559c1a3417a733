"""Claims and attacks about the people on whom the model is tested, not trained."""

import numpy as np
import pandas as pd
import pytest

import fpbench
from fpbench.matrix.matrix import read
from fpbench.matrix.plan import make_plan

pytestmark = pytest.mark.slow

MATRIX = """
seeds = 2
[split]
target = "{target}"
train = 0.25
test = 0.45
attack = 0.3
[[dataset]]
use = "census-synthetic"
rows = 1_500
[[learner]]
use = "plain"
[[learner]]
use = "threshold-optimizer"
metric = "statistical-parity"
[[disclosure]]
use = "published"
metric = "statistical-parity"
[[disclosure]]
use = "noisy"
metric = "statistical-parity"
epsilon = 1.0
mechanism = {{ use = "laplace" }}
also = [{{ use = "share", group = "A" }}]
[[adversary]]
use = "a1"
family = "logistic-regression"
[[adversary]]
use = "a2-proba"
family = "logistic-regression"
[[corrector]]
use = "exact"
[[corrector]]
use = "posterior"
{limits}
"""
LIMITS = "[limits]\ntimeout = 300\n"


def run(path, target, limits=""):
    matrix = path / f"{target}{len(limits)}.toml"
    matrix.write_text(MATRIX.format(target=target, limits=limits), encoding="utf-8")
    return fpbench.run(matrix, out=path / matrix.stem).frame()


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    path = tmp_path_factory.mktemp("targets")
    return {target: run(path, target) for target in ("training", "held-out")} | {
        "limited": run(path, "held-out", LIMITS)
    }


def test_rows_are_about_the_test_people(frames):
    about, before = frames["held-out"], frames["training"]
    assert (about["status"] == "done").all()
    assert set(about["people"]) == {675}
    assert set(before["people"]) == {375}
    # A claim about predictions tells these, too, to who did not guess from them.
    unseen = np.where(about["adversary"] == "a1", ", not predictions", "")
    assert (about["limit_covers"] == "disclosure" + unseen).all()
    model = np.where(before["learner"] == "threshold-optimizer", ", not model", "")
    assert (before["limit_covers"] == "disclosure" + model + unseen).all()
    published = about[about["disclosure"] == "published"]
    assert (published["claim_holds"] == 1).all()  # of the people whom it is about
    # The tolerance is that of the test people: of statistical parity, measured, rounded up.
    gap = published["claim_tolerance"] - published["test_unfairness"]
    assert ((gap > -1e-12) & (gap < 0.001)).all()
    # The model is the same; only whom it is asked about differs.
    for name in ("test_accuracy", "train_accuracy"):
        np.testing.assert_array_equal(about[name], before[name])


def test_the_best_guess_is_known_where_predictions_tell_nothing_more(frames):
    about, before = frames["held-out"], frames["training"]
    known = about["bayes_accuracy"].notna()
    assert (known == ((about["learner"] == "plain") | (about["adversary"] == "a1"))).all()
    np.testing.assert_array_equal(known, before["bayes_accuracy"].notna())
    assert (about["without_accuracy"][known] < about["bayes_accuracy"][known] + 0.04).all()


def test_processes_of_their_own_measure_the_same(frames):
    about, limited = frames["held-out"], frames["limited"]
    for name in about.columns.difference(["cell", "seconds", "correct_seconds"]):
        left, right = about[name], limited[name]
        assert ((left == right) | (left.isna() & right.isna())).all(), name


HOUSEHOLDS = """
[split]
target = "held-out"
[[dataset]]
use = "csv"
path = "{path}"
label_column = "paid"
sensitive = "sex"
drop = ["home"]
[[dataset]]
use = "csv"
label = "together"
path = "{path}"
label_column = "paid"
sensitive = "sex"
household = "home"
[[learner]]
use = "plain"
[[disclosure]]
use = "noisy"
metric = "statistical-parity"
epsilon = 0.2
mechanism = {{ use = "laplace" }}
[[adversary]]
use = "a1"
family = "logistic-regression"
[[corrector]]
use = "posterior"
"""


def test_who_lives_together_widens_the_limits(tmp_path):
    rng = np.random.default_rng(0)
    n = 900
    home = rng.permutation(n) // 3
    people = pd.DataFrame({
        "home": [f"home {number}" for number in home], "age": rng.integers(18, 90, n),
        "sex": np.where((home % 2 == 0) ^ (rng.random(n) < 0.3), "f", "m"),
        "paid": rng.integers(0, 2, n),
    })  # fmt: skip
    path = tmp_path / "people.csv"
    people.to_csv(path, index=False)
    matrix = tmp_path / "households.toml"
    matrix.write_text(HOUSEHOLDS.format(path=path), encoding="utf-8")
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    alone, together = frame.iloc[0], frame.iloc[1]
    assert (alone["household_size"], together["household_size"]) == (1, 3)
    assert alone["disclosure_bits"] == together["disclosure_bits"]
    assert 1.3 * alone["limit"] < together["limit"] < 4 * alone["limit"]
    assert alone["limit_exact"] > 0
    assert np.isnan(together["limit_exact"])  # it is proven for independent people
    assert (pd.Series([alone["limit"], together["limit"]]) <= 0.5).all()


@pytest.mark.parametrize(
    ("household", "says"),
    [("hom", "household: no column 'hom'"), ("paid", "household: 'paid' is the label"),
     ("sex", "household: 'sex' is in `sensitive` as well")],
)  # fmt: skip
def test_a_household_is_a_column_of_its_own(household, says):
    frame = pd.DataFrame({"home": list("aabb"), "age": [1, 2, 4, 9], "sex": list("fmfm"),
                          "paid": [0, 1, 0, 1]})  # fmt: skip
    with pytest.raises(fpbench.InputError, match=says):
        fpbench.table(frame, label="paid", sensitive="sex", household=household)


def test_cells_about_other_people_are_other_cells(tmp_path):
    """With the same people to train on, so that two runs are compared and never mixed up."""
    plans = []
    for target in ("training", "held-out"):
        matrix = tmp_path / f"{target}.toml"
        matrix.write_text(MATRIX.format(target=target, limits=""), encoding="utf-8")
        plans.append(
            make_plan(read(matrix), fpbench.plugin.discover(), fpbench.plugin.DataHome.default())
        )
    keys = [{cell.key for cell in plan.cells} for plan in plans]
    assert not keys[0] & keys[1]
    splits = [
        {step.stream for step in plan.steps.values() if step.action == "split"} for plan in plans
    ]
    assert splits[0] == splits[1]
