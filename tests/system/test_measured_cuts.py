"""Labels and groups cut at a statistic of everybody: no guarantee of privacy is given about them."""

import numpy as np
import pandas as pd
import pytest

import fpbench
from fpbench import InputError, Sample, Table
from fpbench.components.catalog import discover
from fpbench.execution.work.actions import ACTIONS
from fpbench.plugin import DataHome
from fpbench.testing.fixtures import make_step

QUANTILE = {"column": "age", "quantile": 0.25}
LAPLACE = {"use": "laplace"}
PAFER = {"use": "pafer", "epsilon": 1.0, "resamples": 40, "mechanism": LAPLACE}
OF_LABELS = ["private-tree", "private-fair-tree", "private-forest", "pate"]


def make(kind, use, **parameters):
    return fpbench.component(kind, use, **parameters)


def people(sensitive, n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "job": rng.choice(["clerk", "nurse"], n),
            "hours": rng.integers(1, 60, n),
            "paid": rng.integers(0, 2, n),
        }
    )
    domain = {"job": ["clerk", "nurse"], "hours": [0, 80], "age": [0, 120]}
    return fpbench.table(frame, label="paid", sensitive=sensitive, domain=domain)


def by_label(measured_cuts):
    table = people("job")
    return Table(
        table.name, table.features, table.labels, table.sensitive, domain=table.domain,
        measured_cuts=measured_cuts,
    )  # fmt: skip


def learner(use, **more):
    return make("learner", use, **({"teachers": 5, "public": 60} if use == "pate" else {}), **more)


REFUSED = {
    "pafer": lambda: make("auditor", **PAFER),
    "noisy": lambda: make("disclosure", "noisy", mechanism=LAPLACE, epsilon=1.0),
}
ALLOWED = {
    "plain": lambda: learner("plain"),
    "pate, which is not shown groups": lambda: learner("pate"),
    "published": lambda: make("disclosure", "published"),
    "group-fairness": lambda: make("auditor", "group-fairness"),
    "a1": lambda: make("adversary", "a1"),
}


@pytest.mark.parametrize("dataset", [{"use": "adult"}, {"use": "csv", "path": "p.csv",
                                                        "label_column": "paid"}])  # fmt: skip
@pytest.mark.parametrize("other", [*REFUSED, *ALLOWED])
def test_a_plan_refuses_private_components_of_groups_by_a_quantile(dataset, other):
    measured = make("dataset", **dataset, sensitive=QUANTILE)
    fixed = make("dataset", **dataset, sensitive={"column": "age", "cuts": [25]})
    component = {**REFUSED, **ALLOWED}[other]()
    assert fixed.incompatible(component) is None
    why = measured.incompatible(component)
    if other in ALLOWED:
        assert why is None
    else:
        assert "column 'age' is cut at its 0.25 quantile" in why
        assert "cuts = [...]" in why
        assert other in why


def test_steps_refuse_a_table_that_only_its_loading_shows(tmp_path):
    matrix = {
        "seeds": 1,
        "dataset": [{"use": "table", "table": "people"}],
        "learner": [{"use": "plain"}],
        "disclosure": [{"use": "noisy", "mechanism": LAPLACE, "epsilon": 1.0,
                        "metric": "statistical-parity"},
                       {"use": "hidden"}],
        "adversary": [{"use": "majority"}],
        "corrector": [{"use": "none"}],
        "auditor": [PAFER, {"use": "group-fairness"}],
    }  # fmt: skip
    expected = {True: 0, False: 0}
    for name, table in (("m", people(QUANTILE)), ("f", people({"column": "age", "cuts": [35]}))):
        rows = fpbench.run(matrix, tables={"people": table}, out=tmp_path / name).rows()
        for row in rows:
            parts = {row["learner"], row.get("disclosure"), row.get("auditor")}
            private = bool({"noisy", "pafer"} & parts)
            refused = name == "m" and private
            assert row["status"] == ("failed" if refused else "done"), row
            if refused:
                assert "cut at its 0.25 quantile of the people themselves" in row["reason"]
            expected[refused] += 1
    assert min(expected.values()) >= 2


@pytest.mark.parametrize("use", OF_LABELS)
def test_private_learners_refuse_labels_cut_at_a_median(use):
    table = by_label({"labels": "column 'score' is cut at its median"})
    chosen = learner(use)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="'score' is cut at its median of the people themselves"):
        chosen.fit(table.sample().only(chosen.needs), rng)
    chosen.fit(by_label({}).sample().only(chosen.needs), rng)


@pytest.mark.parametrize("use", ["private-tree", "pate"])
def test_without_noise_nothing_is_guaranteed_and_nothing_refused(use):
    more = {"sigma": 0.0} if use == "pate" else {"epsilon": float("inf")}
    chosen = learner(use, **more)
    sample = by_label({"labels": "x"}).sample().only(chosen.needs)
    assert chosen.fit(sample, np.random.default_rng(0)).guarantee is None


def test_a_learner_of_a_plugin_that_gives_a_guarantee_is_refused_by_the_step():
    class Plain:
        guarantee = fpbench.Guarantee(1.0)

    class Strange(type(learner("plain"))):
        def fit(self, sample, rng):
            return Plain()

    split = fpbench.plugin.Split(
        *[by_label({"labels": "column 'score' is cut at its mean"}).sample()] * 3
    )
    with pytest.raises(InputError, match="public constant"):
        ACTIONS["train"](Strange(), (split,), make_step(0))


def test_what_is_cut_goes_with_the_people_and_into_the_checksum():
    table = by_label({"labels": "x"})
    sample: Sample = table.sample()
    assert sample.take(np.arange(5)).only(frozenset({"labels"})).measured_cuts == {"labels": "x"}
    assert sample.having(predictions=sample.labels).measured_cuts == {"labels": "x"}
    assert table.digest() != by_label({}).digest()
    assert people(QUANTILE).measured_cuts.keys() == {"sensitive"}
    assert not people("job").measured_cuts


def test_no_data_set_of_ours_is_cut_at_a_statistic_by_default(tmp_path):
    catalog = discover()
    names = [entry.name for entry in catalog.of_kind("dataset")]
    assert {"parkinsons", "acs-public-coverage", "csv"} <= {*names}
    for name in names:
        for parameters in catalog.component("dataset", name).examples(tmp_path):
            assert not make("dataset", name, **parameters).measured_cuts, name


@pytest.mark.slow
def test_the_constant_of_parkinsons_is_the_median_of_the_file():
    home, dataset = DataHome.default(), make("dataset", "parkinsons")
    if reason := dataset.absent(home):
        pytest.skip(reason)
    scores = pd.read_csv(home.find(dataset.files[0]))["total_UPDRS"]
    assert (dataset.load(home).labels == (scores > np.median(scores))).all()
