"""Tables that are made to be published, and their certificates."""

import numpy as np
import pytest
from reports import make_people

import fpbench
from fpbench import InputError
from fpbench.errors import BudgetError
from fpbench.privacy import Ledger
from fpbench.reports.assessments.releasing import check_release

X, PREDICTIONS, GROUPS = make_people(300)
OPTIONS = {"by": list(X), "order": 2, "seed": 0}


@pytest.fixture(scope="module")
def made():
    return fpbench.release(X, PREDICTIONS, GROUPS, epsilon=2.0, **OPTIONS)


def test_a_release_tells_guarantee_attack_and_use(made):
    assert made.passes
    assert made.report.stated.guarantee.epsilon == 2.0
    certificate = made.to_json()
    assert certificate["guarantee"]["choice"].startswith("epsilon was given")
    assert certificate["limit"] == made.assessment.private_limit > made.assessment.leak
    assert set(certificate["tables"]) >= {"everybody", *X}
    assert certificate["attack"]["measures"]["proven"] == 0
    assert str(made).startswith("May be published: ")


@pytest.mark.parametrize("tells", ["value", "certificate", "epsilon", "nothing"])
def test_a_certificate_holds_of_its_table_alone(made, tells):
    report, certificate = made.report, made.to_json()
    if tells == "value":
        value = report.value.copy()
        value[0] += 0.1
        report = fpbench.FairnessReport._of(report.take(np.arange(len(report))))
        report.value[:] = value
    elif tells == "certificate":
        certificate["attack"]["measures"]["leak"] += 0.01
    elif tells == "epsilon":
        certificate["guarantee"]["epsilon"] = 1.0
    lines = check_release(certificate, report, X, PREDICTIONS, GROUPS)
    wrong = {name for name, holds in lines.items() if not holds}
    assert {
        "value": "the table is the one that was certified" in wrong,
        "certificate": wrong == {"the leak is the same"},
        "epsilon": wrong == {"the table states the guarantee"},
        "nothing": not wrong,
    }[tells]


def test_a_series_of_tables_is_paid_from_one_budget(tmp_path):
    """Of those within the limits; opened again, the file knows what was spent."""
    for paid in range(2):
        ledger = Ledger(2.0, path=tmp_path / "sex.db")
        assert ledger.spent.epsilon == paid
        refused = fpbench.release(
            X, PREDICTIONS, GROUPS, epsilon=1000.0, max_leak=0.0, ledger=ledger, **OPTIONS
        )
        assert not refused.passes
        assert fpbench.release(X, PREDICTIONS, GROUPS, epsilon=1.0, ledger=ledger, **OPTIONS).passes
    with pytest.raises(BudgetError, match="epsilon"):
        fpbench.release(X, PREDICTIONS, GROUPS, epsilon=1.0, ledger=ledger, **OPTIONS)
    with pytest.raises(InputError, match="a ledger needs epsilon"):
        fpbench.release(X, PREDICTIONS, GROUPS, ledger=ledger, **OPTIONS)


def test_a_horizon_shares_out_what_remains():
    ledger = Ledger(3.0)
    options = OPTIONS | {"order": 1, "max_leak": 0.5}
    for horizon, epsilon in ((4, 0.75), (3, 0.75), (1, 1.5)):
        made = fpbench.release(X, PREDICTIONS, GROUPS, ledger=ledger, horizon=horizon, **options)
        assert made.report.stated.guarantee.epsilon == epsilon
        assert not made.chosen
    assert ledger.remaining.epsilon == 0
    with pytest.raises(BudgetError):
        fpbench.release(X, PREDICTIONS, GROUPS, ledger=ledger, horizon=1, **options)
    for own in ({}, {"ledger": ledger, "epsilon": 1.0}):
        with pytest.raises(InputError, match="a horizon"):
            fpbench.release(X, PREDICTIONS, GROUPS, horizon=2, **own, **options)


def test_what_is_no_certificate_is_refused(made):
    with pytest.raises(InputError, match="none of `fpbench release`"):
        check_release({}, made.report, X, PREDICTIONS, GROUPS)


@pytest.mark.parametrize("most", [0.0, 0.02, 1.0])
def test_the_greatest_epsilon_within_the_limits_is_chosen(monkeypatch, most):
    """By bisection, with a leak that grows with epsilon."""
    from fpbench.reports.assessments import releasing

    tried = []

    def assess(report, *_, **__):
        tried.append(report.stated.guarantee.epsilon)
        return type("Told", (), {"passes": tried[-1] / 100 <= most, "private_limit": None})

    monkeypatch.setattr(releasing, "assess", assess)
    made = fpbench.release(X, PREDICTIONS, GROUPS, **OPTIONS)
    passing = [e for e in releasing._EPSILONS if e / 100 <= most]
    assert made.passes == bool(passing)
    assert made.chosen
    if passing:
        assert made.report.stated.guarantee.epsilon == passing[0]
    assert len(tried) <= 5


def test_noise_without_a_seed_is_drawn_exactly():
    options = {**OPTIONS, "seed": None, "order": 1, "epsilon": 1.0}
    one, two = (fpbench.release(X, PREDICTIONS, GROUPS, **options).report for _ in range(2))
    assert one.stated.mechanism["noise"] == "secure"
    assert (one.value != two.value).any()
