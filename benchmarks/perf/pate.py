"""Speed of PATE: all teachers and all students at once, beside a loop of scikit-learn.

    python benchmarks/perf/pate.py [--teachers K] [--students R] [--repeats N] [--quick]

One thread, on Credit card (FPBENCH_DATA). Both are given the same people, parts and noisy votes.
First, logistic regression: the loop fits `LogisticRegression(solver="newton-cholesky", tol=1e-10)`
for each teacher, asks it about the public people, does the same for each student, and computes the
risk of each group by `log_loss`, on the public people and in the test part. Then teachers that are
networks: the loop trains an `MLPClassifier` each, which begins where ours does. Alternatives take
turns, and medians of processor time are compared. Exits with 1 if a limit is not kept, or answers
differ: parameters by more than 1e-6, a single vote, or a risk by more than 1e-8.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

import fpbench
from fpbench.auditing import VoteLabels
from fpbench.builtin.batched.logistic import fit_logistic, fit_logistic_apart, logistic_proba
from fpbench.builtin.batched.mlp import MLPTraining, Networks, fit_networks_apart
from fpbench.builtin.pate.excessive_risk.draws import People, RiskSums
from fpbench.builtin.pate.learner import deal_parts
from fpbench.builtin.pate.model import StandardizedFeatures, encode_finite
from fpbench.builtin.pate.noisy_votes import count_votes, vote_labels
from fpbench.plugin import DataHome

LEAST = {"teachers": 12.0, "students": 20.0, "risks": 15.0, "total": 15.0, "MLP teachers": 5.0}
"""How many times faster each part must be."""
PARAMETERS, RISKS = 1e-6, 1e-8
"""Greatest differences between answers that count as the same."""
PUBLIC, SIGMA, LABELS = 200, 50.0, "hard"
TEACHER_PENALTY, PENALTY = 0.01, 0.1

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """People, and who teaches whom."""

    design: Floats
    labels: Floats
    dealt: list[NDArray[np.intp]]
    evaluations: list[tuple[Floats, NDArray[np.intp]]]
    """Of the public people and of the test part: design and groups."""
    truth: Floats
    """Labels of the test part."""

    @property
    def public(self) -> Floats:
        """What students learn from."""
        return self.design[:PUBLIC]


def credit_card(teachers: int) -> Task:
    """22,500 private people, 200 public ones, and 7,300 to test."""
    everyone = fpbench.component("dataset", "credit-card").load(DataHome.default()).sample()
    rows = np.random.default_rng(0).permutation(len(everyone))
    train, test = everyone.take(rows[: 22_500 + PUBLIC]), everyone.take(rows[22_500 + PUBLIC :])
    matrix = encode_finite(train.features, "pate")
    scaled = StandardizedFeatures.of(matrix[:PUBLIC])
    design = scaled(matrix)
    private = np.arange(PUBLIC, len(train))
    dealt = deal_parts("hash", matrix, train.labels, private, teachers, np.random.default_rng(1))
    return Task(
        design, train.labels.astype(np.float64), dealt,
        [(design[:PUBLIC], train.sensitive[:PUBLIC].astype(np.intp)),
         (scaled(encode_finite(test.features, "pate")), test.sensitive.astype(np.intp))],
        test.labels.astype(np.float64),
    )  # fmt: skip


def regression(people: Floats, labels: Floats, penalty: float) -> LogisticRegression:
    """scikit-learn's, of the same objective."""
    return LogisticRegression(
        C=1 / (2 * penalty * len(people)), fit_intercept=False, solver="newton-cholesky",
        tol=1e-10, max_iter=1000,
    ).fit(people, labels)  # fmt: skip


def teachers_in_a_loop(task: Task) -> tuple[Floats, NDArray[np.int64]]:
    """Parameters and votes."""
    theta, answers = [], []
    for rows in task.dealt:
        one = regression(task.design[rows], task.labels[rows], TEACHER_PENALTY)
        theta.append(one.coef_[0])
        answers.append(one.predict(task.public) == 1)
    return np.array(theta), count_votes(np.array(answers))


def teachers_at_once(task: Task) -> tuple[Floats, NDArray[np.int64]]:
    """Parameters and votes."""
    theta = fit_logistic_apart(task.design, task.labels, task.dealt, TEACHER_PENALTY)
    return theta, count_votes(logistic_proba(theta, task.public) > 0.5)


def risks_in_a_loop(
    task: Task, students: list[LogisticRegression], labels: list[Floats]
) -> list[Floats]:
    """Mean loss of each group, student and evaluation: (R, K) each."""
    risks = []
    for (design, groups), truth in zip(task.evaluations, labels, strict=True):
        losses = np.empty((len(students), 2))
        for i, student in enumerate(students):
            proba = student.predict_proba(design)
            for group in range(2):
                members = groups == group
                losses[i, group] = log_loss(truth[members], proba[members], labels=[0, 1])
        risks.append(losses)
    return risks


def risks_at_once(task: Task, theta: Floats, labels: list[Floats]) -> list[Floats]:
    """The same, as the auditor excessive-risk has it: with the risk of every person."""
    risks = []
    for (design, groups), truth in zip(task.evaluations, labels, strict=True):
        people = People("", None, truth, groups, np.arange(len(truth)))  # type: ignore[arg-type]
        tally = RiskSums.of(people, np.zeros(len(truth)))
        tally.add(theta @ design.T, logits=True, paired=False)
        risks.append(tally.group_risks)
    return risks


class Begun(MLPClassifier):  # type: ignore[misc]
    """scikit-learn's network, which begins where it is told."""

    def _init_coef(self, fan_in: int, fan_out: int, dtype: Any) -> Any:
        return next(self.begin)


def networks_in_a_loop(task: Task, training: MLPTraining, begun: Networks) -> NDArray[np.int64]:
    """Votes."""
    answers = []
    for i, rows in enumerate(task.dealt):
        network = Begun(
            training.hidden, alpha=0.0, batch_size=min(training.batch, len(rows)),
            learning_rate_init=training.rate, max_iter=training.epochs, shuffle=False, tol=0.0,
            n_iter_no_change=10**6,
        )  # fmt: skip
        first, second, bias, third, last = (layer[i].copy() for layer in begun.layers)
        network.begin = iter([(first[:-1], first[-1]), (second, bias), (third[:, None], last)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(task.design[rows, :-1], task.labels[rows])
        answers.append(network.predict(task.public[:, :-1]) == 1)
    return count_votes(np.array(answers))


def networks_at_once(task: Task, training: MLPTraining) -> NDArray[np.int64]:
    """Votes."""
    rng = np.random.default_rng(2)
    networks = fit_networks_apart(task.design, task.labels, task.dealt, training, rng)
    return count_votes(networks.proba(task.public) > 0.5)


def in_turns(repeats: int, *alternatives: Callable[[], object]) -> list[float]:
    """Median processor seconds of each alternative; they take turns, the first is not counted."""
    seconds: list[list[float]] = [[] for _ in alternatives]
    for _ in range(repeats + 1):
        for taken, alternative in zip(seconds, alternatives, strict=True):
            started = time.process_time()
            alternative()
            taken.append(time.process_time() - started)
    return [statistics.median(taken[1:]) for taken in seconds]


def of_logistic(task: Task, students: int, repeats: int) -> list[tuple[str, float, float, str]]:
    """Parts with the seconds of both, and what differs in their answers, if anything does."""
    theta, votes = teachers_at_once(task)
    reference, their_votes = teachers_in_a_loop(task)
    wrong = _apart(theta, reference, PARAMETERS, "parameters")
    wrong += "" if (votes == their_votes).all() else "votes"
    rows = [("teachers", *in_turns(
        repeats, lambda: teachers_in_a_loop(task), lambda: teachers_at_once(task)), wrong)
    ]  # fmt: skip
    noise = SIGMA * np.random.default_rng(3).standard_normal((students, PUBLIC, 2))
    labels: VoteLabels = LABELS  # type: ignore[assignment]
    targets = vote_labels(votes + noise, labels, len(task.dealt))
    clean = vote_labels(votes, labels, len(task.dealt))

    def loop() -> list[LogisticRegression]:
        return [regression(task.public, own, PENALTY) for own in targets]

    def batch() -> Floats:
        star = fit_logistic(task.public, clean[None], PENALTY)[0]
        return fit_logistic(task.public, targets, PENALTY, start=star)

    one_by_one, together = loop(), batch()
    reference = np.array([student.coef_[0] for student in one_by_one])
    wrong = _apart(together, reference, PARAMETERS, "parameters")
    rows.append(("students", *in_turns(repeats, loop, batch), wrong))
    truths = [clean, task.truth]
    wrong = "".join(
        _apart(a, b, RISKS, "risks")
        for a, b in zip(risks_at_once(task, together, truths),
                        risks_in_a_loop(task, one_by_one, truths), strict=True)
    )  # fmt: skip
    rows.append(("risks", *in_turns(
        repeats, lambda: risks_in_a_loop(task, one_by_one, truths),
        lambda: risks_at_once(task, together, truths)), wrong))  # fmt: skip
    rows.append(("total", sum(row[1] for row in rows), sum(row[2] for row in rows), ""))
    return rows


def of_networks(task: Task, epochs: int, repeats: int) -> tuple[str, float, float, str]:
    """The same of teachers that are networks."""
    training = MLPTraining(epochs=epochs, rate=2e-3, shuffle=False)
    rngs = np.random.default_rng(2).spawn(len(task.dealt))
    begun = Networks.random(task.design.shape[1], training.hidden, rngs)
    same = networks_at_once(task, training) == networks_in_a_loop(task, training, begun)
    loop, batch = in_turns(
        repeats, lambda: networks_in_a_loop(task, training, begun),
        lambda: networks_at_once(task, training),
    )  # fmt: skip
    return "MLP teachers", loop, batch, "" if same.all() else "votes"


def _apart(one: Floats, other: Floats, most: float, what: str) -> str:
    away = float(np.abs(one - other).max())
    return "" if away <= most else f"{what} differ by {away:.1e} "


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--teachers", type=int, default=150)
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=20, help="of networks")
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    parser.add_argument("--quick", action="store_true", help="compare answers, and time once")
    chosen = parser.parse_args()
    repeats, epochs = (1, 3) if chosen.quick else (chosen.repeats, chosen.epochs)

    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn "
        f"{sklearn.__version__}, {platform.machine()}, one thread; medians of {repeats}",
        highlight=False,
    )
    task = credit_card(chosen.teachers)
    rows = of_logistic(task, chosen.students, repeats)
    rows.append(of_networks(task, epochs, 1 if chosen.quick else min(repeats, 3)))
    table = Table(
        title=f"Credit card: {chosen.teachers} teachers of {len(task.labels) - PUBLIC:,} people, "
        f"{chosen.students} students of {PUBLIC}"
    )
    for column in ("part", "loop, ms", "fpbench, ms", "ratio", "least", "answers"):
        table.add_column(column, justify="right")
    failed = 0
    for part, loop, batch, wrong in rows:
        fast = chosen.quick or loop / batch >= LEAST[part]
        failed += bool(wrong) or not fast
        table.add_row(
            part, f"{loop * 1e3:,.0f}", f"{batch * 1e3:,.1f}",
            f"{loop / batch:.1f}" + ("" if fast else " !"), f"{LEAST[part]:g}", wrong or "same",
        )  # fmt: skip
    console.print(table)
    console.print(f"{failed} rows beyond their limits" if failed else "all within the limits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
