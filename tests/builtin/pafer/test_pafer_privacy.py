"""Whole audits under attack: all that a curator answers in one is as private as it says, no more.

The budget of an audit is split over answers, labels and rules. Each mechanism may be private, and
the audit is not if a part of the budget is used twice; nor should a part of it be wasted.
"""

import numpy as np
import pandas as pd
import pytest

from fpbench import Sample, component
from fpbench.builtin.pafer.auditor import Pafer
from fpbench.models import RuleList
from fpbench.plugin import Subject
from fpbench.privacy import Curator
from fpbench.testing import epsilon_lower_bound

MODEL = RuleList([([("x", "=", 1)], 1), ([("x", "=", 2)], 0), ([("x", "=", 3)], 1)], 0)
X = pd.DataFrame({"x": [1, 1, 1, 3, 3, 0, 0, 2, 2, 1, 3, 0]})
LABELS = np.array([1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1], dtype=np.int8)
GROUPS = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
DRAWS = {"partition": 60_000, "reference": 200_000}
"""As many as it takes to prove most of epsilon."""


class Overheard:
    """A curator, and everything it answered."""

    def __init__(self, groups, neighbours, rng):
        self.source = Curator(groups, ("a", "b"), neighbours=neighbours, rng=rng)
        self.groups, self.people = self.source.groups, self.source.people
        self.neighbours, self.answers = neighbours, []

    def histogram(self, cells, n_cells, **asked):
        answer = self.source.histogram(cells, n_cells, **asked)
        self.answers.append(answer.reshape(len(answer), -1))
        return answer


def transcript(rows, groups, neighbours, seed, draws, **chosen):
    """All noisy counts (draws, m) of as many audits of these people, and what they guarantee."""
    features = X.iloc[rows].reset_index(drop=True)
    people = Sample(
        ("a", "b"), features=features, labels=LABELS[rows],
        predictions=MODEL.predict(features),
    )  # fmt: skip
    curator = Overheard(groups[rows], neighbours, seed)
    auditor = Pafer(epsilon=1.0, repetitions=draws, resamples=0, **chosen)
    subject = Subject(Sample(("a", "b")), people, MODEL, curator)
    found = auditor.audit(subject, np.random.default_rng(0))
    return np.concatenate(curator.answers, axis=1), found.guarantee


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("mechanism", ["laplace", "discrete-laplace"])
@pytest.mark.parametrize("metric", ["statistical-parity", "equalized-odds"])
@pytest.mark.parametrize(
    "mode", [{}, {"per_rule": True}, {"mode": "reference"}], ids=["partition", "rules", "reference"]
)
@pytest.mark.parametrize("neighbours", ["attribute", "add-remove"])
def test_an_audit_has_the_epsilon_that_it_says(mode, metric, mechanism, neighbours):
    everyone, changed = np.arange(len(X)), GROUPS.copy()
    changed[0] = 1  # accepted, of label 1: asked about in every query
    draws = DRAWS[mode.get("mode", "partition")]
    chosen = {
        "draws": draws,
        "metric": metric,
        "mechanism": component("mechanism", mechanism),
        **mode,
    }
    one, claimed = transcript(everyone, GROUPS, neighbours, 1, **chosen)
    if neighbours == "attribute":
        other, _ = transcript(everyone, changed, neighbours, 2, **chosen)
    else:
        other, _ = transcript(everyone[1:], GROUPS, neighbours, 2, **chosen)
    assert (claimed.epsilon, claimed.delta, claimed.neighbours) == (1.0, 0.0, neighbours)
    transcripts = iter([one, other])
    proven = epsilon_lower_bound(
        lambda counts, rng: next(transcripts), 0, 1, draws=draws, rng=np.random.default_rng(0)
    )
    assert 0.8 < proven <= 1.0
