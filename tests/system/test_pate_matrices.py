"""The matrices of Tran et al., and of PATE as a target: what their headers say is so."""

import math
import re
from itertools import product

import pytest
from pages import names_package

import fpbench
from fpbench.api import reproduce
from fpbench.matrix.plan import make_plan
from fpbench.plugin import DataHome, discover

NAMES = ("dp-sgd-pate", "fair-pate", "pate", "pate-attack", "pate-mlp", "pate-pafer", "pate-sweep")


def learners(matrix):
    return {choice.label: choice.parameters for choice in matrix.axes["learner"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_quick_profile_is_part_of_the_full_matrix(name):
    full, quick = reproduce.find(name, "full"), reproduce.find(name)
    assert set(quick.seeds) <= set(full.seeds)
    assert len(full.seeds) >= 20
    for kind in ("dataset", "learner", "adversary", "corrector", "mechanism", "policy"):
        labels = [choice.label for choice in quick.axes[kind]]
        assert set(labels) <= {choice.label for choice in full.axes[kind]}, kind


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("profile", ["quick", "full"])
def test_statements_are_about_what_is_there(name, profile):
    matrix = reproduce.find(name, profile)
    if not names_package(matrix.text):
        make_plan(matrix, discover(), DataHome.default())  # parameters are right
    there = {kind: {choice.label for choice in axis} for kind, axis in matrix.axes.items()}
    for said in matrix.expect:
        named = dict(said.where)
        if getattr(said, "of", None) in there:
            named[said.of + " "] = said.value
        for column, values in named.items():
            if column.strip() in there:
                wanted = {values} if isinstance(values, str) else set(values)
                assert wanted <= there[column.strip()], said.says


def test_the_sweep_is_lambda_by_k_by_sigma():
    for profile in ("quick", "full"):
        matrix = reproduce.find("pate-sweep", profile)
        found = {(p["penalty"], p["teachers"], p["sigma"]) for p in learners(matrix).values()}
        axes = [sorted(set(values)) for values in zip(*found, strict=True)]
        assert found == set(product(*axes))
        assert len(found) >= 60
        (auditor,) = matrix.axes["auditor"]
        assert auditor.parameters["repetitions"] == 100


def test_the_papers_settings_are_there():
    full = learners(reproduce.find("pate", "full"))
    papers = [own for own in full.values() if not {"encoding", "student"} & own.keys()]
    for k, labels in product((20, 150), ("hard", "soft", "equation-12")):
        assert len([p for p in papers if p.get("labels") == labels and p["teachers"] == k]) == 5
    datasets = [choice.use for choice in reproduce.find("pate").axes["dataset"]]
    assert datasets == ["credit-card", "bank", "adult", "parkinsons"]
    # Figure 14: k = 20, and lambda = 20 and 100 in the paper's sum over 200 people.
    at = {p["penalty"] * 200 for p in full.values() if p["teachers"] == 20 and p["sigma"] == 50}
    assert at == {20, 100}


def test_epsilons_of_headers_are_those_of_the_noise():
    text = reproduce.find("pate").text
    (said,) = re.findall(r"epsilon ([\d., and]+) at delta 1e-5", text)
    told = [float(number) for number in re.findall(r"\d*\.\d+", said)]
    for epsilon, sigma in zip(told, (10, 20, 50, 100, 200), strict=True):
        exact = fpbench.privacy.gaussian_epsilon(sigma, 1e-5, math.sqrt(2 * 200))
        assert epsilon == pytest.approx(exact, rel=0.02)
