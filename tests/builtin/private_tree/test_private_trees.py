"""The learners private-tree and private-fair-tree, and their models."""

import io
import math
import pickle
import re
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from scipy import stats

from fpbench import Classifier, Guarantee, InputError
from fpbench.builtin.mechanisms.gaussian import Gaussian
from fpbench.builtin.mechanisms.laplace import DiscreteLaplace
from fpbench.builtin.private_tree.learners import PrivateFairTree, PrivateTree
from fpbench.data import Domain
from fpbench.errors import DataError
from fpbench.models.rules import RuleBased

DOMAIN = Domain.of({"skill": [-3, 3], "income": [-3000, 6000], "job": ["job 0", "job 1"]})
INF = math.inf
BOTH = pytest.mark.parametrize("kind", [PrivateTree, PrivateFairTree])
EACH = pytest.mark.parametrize(
    "learner",
    [
        PrivateTree(max_depth=3),
        PrivateTree(max_depth=3, criterion="entropy", selection="exponential"),
        PrivateTree(max_depth=3, mechanism=DiscreteLaplace()),
        PrivateFairTree(max_depth=3),
        PrivateFairTree(max_depth=3, similarity="ball", tau=0.2, criterion="max"),
        PrivateFairTree(max_depth=3, similarity="none"),
    ],
    ids=lambda learner: f"{learner.name}-{learner.criterion}-{learner.recipe().similarity}",
)


@pytest.fixture
def sample(make_people):
    people = make_people(1500)
    people.domain = DOMAIN
    return people


def fit(learner, sample, seed=0):
    return learner.fit(sample.only(learner.needs), np.random.default_rng(seed))


@pytest.mark.slow
@EACH
def test_a_model_is_all_that_is_asked_of_one(learner, sample, rng):
    model = fit(learner, sample)
    assert isinstance(model, Classifier)
    assert isinstance(model, RuleBased)
    predictions, proba = (m(sample.features, rng) for m in (model.predict, model.predict_proba))
    assert predictions.dtype == np.int8
    assert ((proba > 0) & (proba < 1)).all()  # so that no loss is infinite
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (predictions == (proba[:, 1] > 0.5)).all()
    assert (model.rules.predict(sample.features) == predictions).all()
    assert model.guarantee.epsilon == 1
    assert (model.guarantee.delta, model.guarantee.neighbours) == (0, "add-remove")
    baseline = model.baseline.predict(sample.features, rng)
    assert np.mean(baseline == sample.labels) > 0.7
    assert (fit(learner, sample).predict_proba(sample.features, rng) == proba).all()
    assert (fit(learner, sample, 1).predict_proba(sample.features, rng) != proba).any()
    travelled = pickle.loads(pickle.dumps(model))
    assert (travelled.predict_proba(sample.features, rng) == proba).all()


@EACH
def test_at_infinite_epsilon_it_is_its_own_baseline(learner, sample, rng):
    learner = learner.model_copy(update={"epsilon": INF})
    model = fit(learner, sample)
    assert model.guarantee is None
    assert model.notes["tree_epsilon"] is None
    proba = model.predict_proba(sample.features, rng)
    assert (model.baseline.predict_proba(sample.features, rng) == proba).all()
    # The baseline of a private one is the same, whatever its epsilon.
    private = fit(learner.model_copy(update={"epsilon": 0.1}), sample)
    assert (private.baseline.predict_proba(sample.features, rng) == proba).all()
    assert (model.redraw(3, rng).proba(sample.features) == proba[:, 1]).all()


@pytest.mark.slow
@EACH
def test_redrawn_trees_are_trees_trained_again(learner, sample, rng):
    """The same distribution: of one person's chance, and of how often label 1 is said."""
    again = fit(learner, sample).redraw(400, np.random.default_rng(3)).proba(sample.features)
    assert again.shape == (400, 1500)
    few = sample.features.iloc[:300]
    trained = np.array(
        [fit(learner, sample, seed).predict_proba(few, rng)[:, 1] for seed in range(60)]
    )
    for one, other in ((again[:, 7], trained[:, 7]), (again[:, :300].mean(1), trained.mean(1))):
        assert stats.ks_2samp(one, other).pvalue > 1e-4


def test_people_of_one_cell_get_one_label(sample, rng):
    model = fit(PrivateFairTree(tau=0.15), sample)
    cells = model.cells(sample.features)
    _, cell = np.unique(cells, axis=0, return_inverse=True)
    labels = pd.Series(model.predict(sample.features, rng)).groupby(cell.ravel())
    assert cell.max() + 1 < len(sample) / 2
    assert (labels.nunique() == 1).all()
    with pytest.raises(InputError, match="cells exist only"):
        fit(PrivateFairTree(similarity="ball"), sample).cells(sample.features)


def test_without_similarity_both_are_the_same_tree(sample, rng):
    proba = [
        fit(learner, sample).predict_proba(sample.features, rng)
        for learner in (PrivateTree(), PrivateFairTree(similarity="none"), PrivateFairTree(tau=0.0))
    ]
    assert (proba[0] == proba[1]).all()
    assert (proba[0] == proba[2]).all()


@BOTH
def test_missing_domains_are_named(kind, make_people, rng):
    people = make_people(50)
    says = re.escape('domain = { skill = [low, high], income = [low, high], job = ["...", "..."] }')
    with pytest.raises(
        InputError, match=f"learner {kind.name!r} needs the public range of features, .* {says}"
    ):
        kind().fit(people, rng)
    people.domain = Domain.of({"skill": [-3, 3], "job": ["job 0", "job 1"]})
    with pytest.raises(InputError, match=re.escape("domain = { income = [low, high] }")):
        kind().fit(people, rng)


def test_a_domain_may_know_more_than_there_is(sample, rng):
    sample.domain = DOMAIN | Domain.of({"nose": [0, 1], "job": ["job 1", "job 0", "job 7"]})
    model = fit(PrivateTree(epsilon=INF), sample)
    assert np.mean(model.predict(sample.features, rng) == sample.labels) > 0.7
    # Categories in another order than the frame's: rules know.
    assert (model.rules.predict(sample.features) == model.predict(sample.features, rng)).all()


@BOTH
def test_values_that_are_missing_and_bounds_that_are_too_large(kind, sample, rng):
    features = sample.features.assign(
        skill=sample.features["skill"].where(sample.features.index > 5)
    )
    with pytest.raises(DataError, match="'skill' has missing values"):
        kind().fit(sample.having(features=features), rng)
    # Whoever is there: an error about somebody's value would tell of it.
    sample.domain = DOMAIN | Domain.of({"skill": [0, 1e300]})
    with pytest.raises(InputError, match="'skill': 0 to 1e\\+300 is beyond the numbers of single"):
        kind().fit(sample, rng)
    sample.domain = DOMAIN
    kind().fit(sample.having(features=sample.features.assign(skill=1e299)), rng)


@BOTH
def test_one_class_and_few_people_are_no_errors(kind, sample, rng):
    few = sample.take(np.arange(3)).having(labels=np.zeros(3, np.int8))
    few.domain = DOMAIN
    model = fit(kind(epsilon=INF), few)
    assert (model.predict(sample.features, rng) == 0).all()
    assert model.notes["tree_warning"] == "the tree predicts 0 for everybody"
    assert len(model.rules) == 1
    fit(kind(epsilon=0.5), few)


def test_more_people_than_said(sample, rng):
    with pytest.raises(InputError, match="there are 1,500 people, and most_people = 1,000"):
        fit(PrivateTree(most_people=1000), sample)


@pytest.mark.parametrize(("kind", "given", "says"), [
    (PrivateTree, {"mechanism": DiscreteLaplace(noise="secure")}, "protects nothing"),
    (PrivateTree, {"mechanism": Gaussian(calibration="classic"), "epsilon": 9.0}, "epsilon"),
    (PrivateTree, {"tau": 0.1}, "Extra inputs"),
    (PrivateFairTree, {"tau": 1e-12}, "tau must be 0 or at least 1e-09"),
    (PrivateFairTree, {"similarity": "none", "tau": 0.1}, "tau has an effect only with"),
])  # fmt: skip
def test_bad_parameters(kind, given, says):
    with pytest.raises(ValidationError, match=says):
        kind(**given)


def test_notes_of_a_row(sample):
    notes = fit(PrivateFairTree(mechanism=Gaussian(delta=1e-6), epsilon=0.7), sample).notes
    assert (notes["tree_epsilon"], notes["tree_delta"]) == (0.7, 1e-6)
    assert notes["tree_neighbours"] == "add-remove"
    assert notes["tree_candidates"] == 19 + 19 + 2
    assert notes["tree_leaves"] == 64
    assert 1 <= notes["tree_rules"] <= notes["tree_rules_unpruned"]
    assert notes["tree_height"] <= 6
    assert notes["tree_warning"] is None


def test_the_guarantee_is_composed():
    given = PrivateTree(epsilon=2.0, leaf_share=0.25, max_depth=3).recipe()
    assert (given.leaf_epsilon, given.level_epsilon) == (0.5, 0.5)
    assert given.guarantee == Guarantee(2.0, 0.0, "add-remove", 4 * 0.5**2 / 2)


PAGE = Path(__file__).parents[3] / "docs" / "paper-private-fair-tree.md"


def test_the_docs_run():
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    found = {}
    with redirect_stdout(io.StringIO()) as out:
        exec(compile(code, str(PAGE), "exec"), found)
    score, guarantee, *_, baseline = out.getvalue().splitlines()
    assert f"# {float(score):.2f}" in code
    assert guarantee.startswith("Guarantee(epsilon=1.0, delta=0.0, neighbours='add-remove'")
    assert float(baseline) > 0.95
    assert found["chances"].shape == (100, 5000)
