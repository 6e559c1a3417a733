"""What fpbench adds to the libraries it calls, on real UCI Adult. Needs FPBENCH_DATA.

1. One cell (statistical parity, tolerance 0, `a2-ferry`, all exponents searched, `exact`)
   against its parts, called directly: the fit of fairlearn's algorithm and of the attack's forest,
   and the forest's predictions. Limit: 1.3 times their time, loading the data included.
2. A sweep (4 metrics, a few of the 49 tolerances, `a1-ferry`, `a2-ferry`, three correctors): the
   share of time that is not spent in fits of fairlearn and scikit-learn. Limit: 10 %.
3. What the plan of the whole sweep shares: trainings of adversaries, against each cell alone.
4. A guess of `a2` as it comes (encoding, training, beliefs about everyone), against the fit and the
   predictions of scikit-learn's HistGradientBoostingClassifier at the same parameters, on columns
   that are encoded already. Limit: 1.3 times.

One thread. The parts are timed in the same run, on the same people, several times in turn.
"""

# ruff: noqa: E402

import os
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np

import fpbench
from fpbench.execution.work.execute import execute
from fpbench.matrix.matrix import read
from fpbench.matrix.plan import make_plan

CELL_LIMIT, SWEEP_LIMIT, SHARING_LIMIT, GUESS_LIMIT = 1.3, 0.10, 3.0, 1.3
ROUNDS = 5
FIGURE = Path(__file__).parents[1] / "ferry-fig2.toml"
METRICS = ["statistical-parity", "predictive-equality", "equal-opportunity", "equalized-odds"]
LEARNER = {"use": "exponentiated-gradient", "metric": "statistical-parity", "tolerance": 0.0}
CELL = {
    "dataset": [{"use": "adult"}],
    "learner": [LEARNER],
    "disclosure": [{"use": "published"}],
    "adversary": [{"use": "a2-ferry"}],
    "corrector": [{"use": "exact"}],
}
CORRECTORS = [{"use": "none"}, {"use": "exact"}, {"use": "exact", "weights": "calibrated",
                                                  "label": "calibrated"}]  # fmt: skip
SWEEP = CELL | {
    "learner": [
        LEARNER | {"metric": {"sweep": METRICS}, "tolerance": {"sweep": [0.0, 0.01, 0.05]}}
    ],
    "adversary": [{"use": "a1-ferry"}, {"use": "a2-ferry"}],
    "corrector": CORRECTORS,
}


def timed(what: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def split_of(seed: int) -> fpbench.plugin.Split:
    """The people of a cell, as fpbench splits them."""
    home = fpbench.plugin.DataHome.default()
    plan = make_plan(read(CELL | {"seeds": [seed]}), fpbench.plugin.discover(), home)
    load, split = list(plan.steps.values())[:2]
    return execute(split, (execute(load, (home,)).value,)).value


def parts_alone(seed: int) -> float:
    """Seconds of the fits and predictions of one cell, called as a user of the libraries would."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    split = split_of(seed)
    train, attack = split.train, split.attack
    known, target = fpbench.models.encode(attack.features), fpbench.models.encode(train.features)
    kept = len(known) * 3 // 10
    reduction = ExponentiatedGradient(
        DecisionTreeClassifier(max_depth=8, random_state=0), DemographicParity(difference_bound=0.0)
    )
    forest = RandomForestClassifier(
        n_estimators=100, max_depth=6, min_samples_split=10, class_weight="balanced",
        random_state=0, n_jobs=1,
    )  # fmt: skip
    seen, targets = (
        np.hstack([m, s.labels[:, None], s.labels[:, None]]).astype(np.float32)
        for m, s in ((known, attack), (target, train))
    )

    def work() -> None:
        reduction.fit(target, train.labels, sensitive_features=train.sensitive)
        forest.fit(seen[kept:], attack.sensitive[kept:])
        forest.predict_proba(seen[:kept])
        forest.predict_proba(targets)

    return timed(work)


def guess_and_boosting(seed: int) -> tuple[float, float, float]:
    """Seconds of a guess of `a2`, of scikit-learn's fit, and of its fit and predictions."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    split = split_of(seed)
    train, attack = (s.having(predictions=s.labels) for s in (split.train, split.attack))
    adversary = fpbench.component("adversary", "a2")
    view = fpbench.View(train.only(adversary.sees), attack)
    whole = timed(lambda: adversary.guess(view, np.random.default_rng(seed)))
    known, target = (
        np.hstack([fpbench.models.encode(s.features, "ordinal"),
                   s.labels[:, None], s.predictions[:, None]]).astype(np.float32)
        for s in (attack, train)
    )  # fmt: skip
    numbers = sum(dtype.kind in "iuf" for dtype in attack.features.dtypes)
    chosen = dict(adversary.recipe.parameters)
    trees = HistGradientBoostingClassifier(
        categorical_features=list(range(numbers, known.shape[1] - 2)), early_stopping=False,
        random_state=0, **chosen,
    )  # fmt: skip
    kept = len(known) * 3 // 10
    fit = timed(lambda: trees.fit(known[kept:], attack.sensitive[kept:]))
    predictions = timed(lambda: (trees.predict_proba(known[:kept]), trees.predict_proba(target)))
    return whole, fit, fit + predictions


def whole_cell(place: Path, number: int) -> float:
    """Seconds of the same cell as fpbench runs it, from the matrix to the stored row."""
    return timed(lambda: fpbench.run(CELL | {"seeds": [number]}, out=place / f"cell{number}"))


def inside_libraries() -> Counter[str]:
    """Count the seconds spent in fits and predictions of fairlearn and scikit-learn from now on.

    Only the outermost call counts: what fairlearn spends in scikit-learn is its own.
    """
    from fairlearn.reductions import ExponentiatedGradient
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    spent: Counter[str] = Counter()
    depth = 0

    def watch(cls: type, name: str, kind: str) -> None:
        original = getattr(cls, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            start = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                depth -= 1
                if depth == 0:
                    spent[kind] += time.perf_counter() - start

        setattr(cls, name, watched)

    for cls in (ExponentiatedGradient, RandomForestClassifier, DecisionTreeClassifier):
        watch(cls, "fit", f"fit of {cls.__name__}")
    watch(RandomForestClassifier, "predict_proba", "predictions")
    watch(DecisionTreeClassifier, "predict", "predictions")
    return spent


def sharing() -> float:
    """How many times fewer trainings of `a1-ferry` the whole figure takes than its cells alone."""
    data = tomllib.loads(FIGURE.read_text())
    data.pop("profile", None)
    correctors = {"corrector": CORRECTORS, "seeds": 1}
    plan = make_plan(
        read(data | correctors), fpbench.plugin.discover(), fpbench.plugin.DataHome.default()
    )
    unique, alone = plan.count_steps(), plan.count_alone()
    print(f"\nthe plan of {FIGURE.name}, one seed, {len(plan.cells):,} cells")
    print(f"{'step':30s} {'unique':>8s} {'alone':>8s} {'fewer':>8s}")
    for step, count in unique.items():
        ratio = alone[step] / count
        print(f"{' '.join(step):30s} {count:8,} {alone[step]:8,} {ratio:7.1f}x")
    return alone["guess", "a1-ferry"] / unique["guess", "a1-ferry"]


def main() -> int:
    """Run, print, and say by the exit code whether the limits hold."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        whole_cell(place, 99)  # imports and caches
        rounds = [(parts_alone(n), whole_cell(place, n)) for n in range(ROUNDS)]
        parts, whole = (sum(times) / ROUNDS for times in zip(*rounds, strict=True))
        print(f"one cell, means of {ROUNDS} splits")
        print(f"libraries alone {parts:.2f} s, fpbench {whole:.2f} s")
        print(f"ratio {whole / parts:.3f}, limit {CELL_LIMIT}")
        fewer = sharing()
        print(f"trainings of a1-ferry: {fewer:.0f} times fewer, limit {SHARING_LIMIT:g}")
        spent = inside_libraries()
        total = timed(lambda: fpbench.run(SWEEP, out=place / "sweep"))
    guess_and_boosting(99)
    guesses = [guess_and_boosting(n) for n in range(2 * ROUNDS)]
    guess, fit, alone = (sum(times) / len(times) for times in zip(*guesses, strict=True))
    print(f"\na guess of a2 {guess:.3f} s; scikit-learn's fit {fit:.3f} s, with predictions "
          f"{alone:.3f} s\nratio {guess / alone:.3f}, limit {GUESS_LIMIT}")  # fmt: skip
    ours = 1 - (spent.total() - spent["predictions"]) / total
    print(f"\nsweep of {12 * 2 * 3} cells: {total:.1f} s")
    for kind, seconds in spent.most_common():
        print(f"{kind:40s} {seconds:7.1f} s {seconds / total:6.1%}")
    rest = total - spent.total()
    print(f"{'all else, fpbench':40s} {rest:7.1f} s {rest / total:6.1%}")
    print(f"not spent in fits: {ours:.1%}, limit {SWEEP_LIMIT:.0%}")
    good = whole / parts <= CELL_LIMIT and ours <= SWEEP_LIMIT and fewer >= SHARING_LIMIT
    good = good and guess / alone <= GUESS_LIMIT
    print("limits met" if good else "limits EXCEEDED")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
