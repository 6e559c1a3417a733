import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier

from fpbench import InputError
from fpbench.models import FAMILIES, Recipe

pytestmark = pytest.mark.numeric

EXTRA = "sklearn.ensemble:ExtraTreesClassifier"
BAYES = "sklearn.naive_bayes:GaussianNB"
NEIGHBORS = "sklearn.neighbors:KNeighborsClassifier"


@pytest.fixture
def data(rng):
    matrix = rng.normal(size=(200, 3)).astype(np.float32)
    return matrix, (matrix[:, 0] + rng.normal(size=200) > 0.9).astype(np.int8)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("balanced", [None, False, True])
@pytest.mark.parametrize("family", [*FAMILIES, EXTRA, BAYES])
def test_every_family_is_made_and_trained(family, balanced, data):
    recipe = Recipe(family, {}, balanced)
    assert family != "hist-gradient-boosting" or recipe.classifier() is (
        HistGradientBoostingClassifier
    )
    recipe.check({"predict_proba", "sample_weight"})
    recipe.check_balance()
    matrix, classes = data
    one, same = (recipe.fit(matrix, classes, 5).predict_proba(matrix) for _ in range(2))
    assert one.shape == (200, 2)
    np.testing.assert_array_equal(one, same)
    travelled = pickle.loads(pickle.dumps(recipe))
    assert travelled == recipe


@pytest.mark.slow
@pytest.mark.parametrize("family", [*FAMILIES, EXTRA, BAYES])
def test_balance_makes_the_rare_class_more_frequent(family, data):
    matrix, classes = data
    small = {"max_depth": 2} if family not in ("logistic-regression", BAYES) else {}
    plain, unweighted, balanced = (
        Recipe(family, small, b).fit(matrix, classes, 5).predict(matrix).mean()
        for b in (None, False, True)
    )
    assert plain == unweighted < balanced


def test_what_is_set():
    made = Recipe(EXTRA, {"n_estimators": 7}, True).make(11)
    assert (made.n_estimators, made.random_state, made.n_jobs) == (7, 11, 1)
    assert made.class_weight == "balanced"
    assert Recipe(EXTRA, {"class_weight": "balanced"}).make(0).class_weight == "balanced"
    assert Recipe(EXTRA).make(0).class_weight is None
    assert Recipe(EXTRA, {"max_depth": "none", "max_features": "none"}).make(0).max_depth is None
    forest = Recipe("random-forest", {"max_depth": 3}).make(0)
    assert (forest.n_estimators, forest.max_depth, forest.min_samples_split) == (100, 3, 10)
    assert Recipe("random-forest", {"max_depth": "none"}).defaults()["max_depth"] is None
    _, scaler, classifier = Recipe("logistic-regression", {"C": 0.5}).make(0)
    assert classifier.C == 0.5
    assert classifier.max_iter == 1000
    assert type(scaler).__name__ == "StandardScaler"


@pytest.mark.parametrize(("recipe", "said"), [
    (Recipe("forest"), "no classifier 'forest'; did you mean 'random-forest'"),
    (Recipe("os"), "no classifier 'os'"),
    (Recipe("subprocess:Popen"), "part of Python itself"),
    (Recipe("os:system"), "part of Python itself"),
    (Recipe("antigravity:fly"), "part of Python itself"),
    (Recipe("builtins:exec"), "part of Python itself"),
    (Recipe("importlib.util:find_spec"), "part of Python itself"),
    (Recipe("numpy:load"), "'numpy' .* did not come with scikit-learn"),
    (Recipe("sklearn.datasets:load_iris"), "is not a classifier"),
    (Recipe("sklearn.tree:DecisionTreeRegressor"), "is not a classifier"),
    (Recipe("sklearn.cluster:KMeans"), "is not a classifier"),
    (Recipe("sklearn.base:BaseEstimator"), "is not a classifier"),
    (Recipe("sklearn.base:ClassifierMixin"), "is not a classifier"),
    (Recipe("sklearn.tree:DecisionTree"), "no 'DecisionTree'; valid: .*DecisionTreeClassifier"),
    (Recipe("sklearn.forest:X"), "cannot be imported: No module named 'sklearn.forest'"),
    (Recipe("no_such.module:X"), "no module 'no_such'; is it installed"),
    (Recipe("a b:c"), "not an import path"),
    (Recipe("sklearn.tree:a.b"), "not an import path"),
    (Recipe("sklearn.multiclass:OneVsRestClassifier"), "cannot be created: .*estimator"),
    (Recipe("random-forest", {"n_estimator": 3}), "'n_estimator'; did you mean 'n_estimators'"),
    (Recipe(EXTRA, {"n_estimator": 3}), "'n_estimator'; did you mean 'n_estimators'"),
    (Recipe("logistic-regression", {"max_depth": 3}), "no parameter 'max_depth'"),
    (Recipe("random-forest", {"max_depth": 0}), "cannot be created: .*'max_depth'"),
    (Recipe("random-forest", {"criterion": "accuracy"}), "cannot be created: .*'criterion'"),
    (Recipe("decision-tree", {"random_state": 3}), "'random_state' must not be set here"),
    (Recipe("random-forest", {"n_jobs": 3}), "'n_jobs' must not be set here"),
    (Recipe("random-forest", {"class_weight": "balanced"}, False),
     "'class_weight' must not be set"),
])  # fmt: skip
def test_what_is_refused(recipe, said, monkeypatch):
    ran = []
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: ran.append(a))
    with pytest.raises(InputError, match=said):
        recipe.check()
    if not recipe.parameters:
        with pytest.raises(InputError, match=said):
            recipe.make(0)
    assert not ran
    assert "antigravity" not in sys.modules


class Toy(ClassifierMixin, BaseEstimator):
    """Takes whatever it is given, and has nothing that may be needed."""

    made = 0

    def __init__(self, **anything):
        type(self).made += 1

    def fit(self, matrix, classes):
        return self


def test_what_is_needed(monkeypatch):
    monkeypatch.setenv("FPBENCH_IMPORTS", __name__)
    toy = Recipe(f"{__name__}:Toy", {"anything": 3})
    toy.check()
    assert Toy.made == 1
    with pytest.raises(InputError, match="gives no probabilities"):
        toy.check({"predict_proba"})
    with pytest.raises(InputError, match="cannot use weights"):
        toy.check({"sample_weight"})
    for family in (f"{__name__}:Toy", NEIGHBORS):
        with pytest.raises(InputError, match="cannot balance groups"):
            Recipe(family, {}, True).check_balance()
        for balanced in (None, False):
            Recipe(family, {}, balanced).check_balance()


def test_a_module_that_fails(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "fails_on_import.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "lacks_a_module.py").write_text("import no_such_thing\n")
    monkeypatch.setenv("FPBENCH_IMPORTS", "fails_on_import,lacks_a_module")
    with pytest.raises(InputError, match="'fails_on_import' cannot be imported: 3"):
        Recipe("fails_on_import:X").check()
    with pytest.raises(InputError, match="'lacks_a_module' cannot be imported: No module named"):
        Recipe("lacks_a_module:X").check()


def test_logistic_regression_by_import_path_does_not_warn(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Recipe("sklearn.linear_model:LogisticRegression").fit(*data, 0)


def test_nothing_is_imported_to_find_nothing():
    script = (
        "import sys, fpbench\n"
        "from fpbench.models import Recipe\n"
        "import fpbench.models.base_learners\n"
        f"for family in {list(FAMILIES)}:\n"
        "    Recipe(family, {}, True).check({'predict_proba', 'sample_weight'})\n"
        "    Recipe(family, {}, True).check_balance()\n"
        "    fpbench.component('learner', 'plain', base=family)\n"
        "    fpbench.component('adversary', 'a2', family=family, trials=3)\n"
        "print(sorted({'sklearn', 'pandas', 'optuna', 'scipy'} & {*sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_errors_say_where():
    import fpbench

    for kind, name, given, said in (
        ("learner", "plain", {"base": "tree"}, "learner 'plain': base: there is no classifier"),
        ("learner", "plain", {"base_parameters": {"depth": 3}}, "base_parameters: decision-tree"),
        ("adversary", "a1", {"family": "os:system"}, "'a1': family: os:system is refused"),
        (
            "adversary",
            "a1",
            {"parameters": {"depth": 3}},
            "parameters: hist-gradient-boosting has no",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            fpbench.component(kind, name, **given)
