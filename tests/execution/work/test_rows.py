"""Rows: what components say stands beside what fpbench measures, and never instead of it."""

import pytest
from toy_runs import ATTACK, COUNTER

import fpbench
from fpbench import Guarantee, PluginError
from fpbench.components.names import FIXED, KINDS
from fpbench.components.own_measures import COMPUTED, DERIVED, MEASURED, MEASURES, list_misplaced
from fpbench.execution.work.rows import ComponentWords, make_row

SPEAKERS = ("disclosure", "corrector", "adversary", "learner", "auditor")
LIARS = """
from dataclasses import replace
from pydantic import Field
from fpbench import hookimpl
from fpbench.plugin import Weighing
from toys import Coin, Counter, Flip, Oracle, Parrot

class LiarAdversary(Coin):
    name = "liar-adversary"
    note: str = Field("gain", description="the name of its note")
    def guess(self, view, rng):
        return replace(super().guess(view, rng), notes={self.note: 99.0})

class LiarCorrector(Flip):
    name = "liar-corrector"
    note: str = Field("gain", description="the name of its note")
    def correct(self, problem):
        return replace(super().correct(problem), measures={self.note: 99.0})

class LiarWeigher(Flip):
    name = "liar-weigher"
    note: str = Field("gain", description="the name of its note")
    def weigh(self, guess, held_out, truth):
        return Weighing(None, {self.note: 99.0})

class LiarDisclosure(Oracle):
    name = "liar-disclosure"
    note: str = Field("gain", description="the name of its note")
    def claim(self, context, rng):
        return replace(super().claim(context, rng), notes={self.note: 99.0})

class LiarAuditor(Counter):
    name = "liar-auditor"
    note: str = Field("gain", description="the name of its note")
    def audit(self, subject, rng):
        return super().audit(subject, rng) | {self.note: 99.0}

class LiarLearner(Parrot):
    name = "liar-learner"
    note: str = Field("gain", description="the name of its note")
    def fit(self, sample, rng):
        model = super().fit(sample, rng)
        model.notes = {self.note: 99.0}
        return model

@hookimpl
def fpbench_learners():
    return [LiarLearner]
@hookimpl
def fpbench_disclosures():
    return [LiarDisclosure]
@hookimpl
def fpbench_adversaries():
    return [LiarAdversary]
@hookimpl
def fpbench_correctors():
    return [LiarCorrector, LiarWeigher]
@hookimpl
def fpbench_auditors():
    return [LiarAuditor]
"""
HONEST = ATTACK | {"auditor": COUNTER}


def said(values, kind="adversary", name="a-1"):
    return ComponentWords(kind, name, values)


def refusal(*words, guarantee=None, measured=()):
    with pytest.raises(PluginError) as error:
        make_row(dict(measured), words, guarantee)
    return str(error.value)


@pytest.mark.parametrize("kind", SPEAKERS)
def test_no_component_names_what_fpbench_measures(kind):
    """Whatever cell has it, and whether or not this row does."""
    for name in MEASURED | DERIVED | FIXED | {"guarantee"}:
        message = refusal(said({name: 1.0}, kind))
        assert message.startswith(f"{kind} 'a-1': {name!r} is ")
        assert message.endswith(f"choose another name, such as 'a_1_{name}'")
        assert make_row({}, [said({f"a_1_{name}": None}, kind)], None)


def test_all_that_is_measured_is_known():
    assert {"gain", "initial_accuracy", "train_unfairness", "people", "correct_seconds",
            "reconsidered_accuracy", "true_ratio", "error", "epsilon", "delta", "claim_epsilon",
            "model_epsilon", "asked_metric", "proven"} <= MEASURED  # fmt: skip
    assert {"advantage", "mean_advantage", "strongest_accuracy", "best_initial_accuracy",
            "gain_over_best", "limit", "repair", "uar", "uar_minus_error"} <= DERIVED  # fmt: skip
    assert {"gain_over_best", "gain"} <= MEASURES
    assert {"status", "cell", "seed", "seconds", *KINDS} <= FIXED
    assert {"gain", "error", "true_ratio", "claim_holds", "test_accuracy"} <= COMPUTED
    assert not {"objective", "solver_status", "epsilon", "model_epsilon", "claim_metric"} & COMPUTED
    with pytest.raises(AssertionError, match="measures that no table names"):
        make_row({"leakage": 1.0}, [], None)


@pytest.mark.parametrize("name", ["Gain", "GAIN", "ga_in", "_gain_"])
def test_capitals_and_signs_do_not_make_another_name(name):
    message = refusal(said({name: 99.0}))
    assert f"{name!r} reads as 'gain', which is what fpbench measures itself" in message
    assert list_misplaced([name, "gain", "error"], audit=False) == [name, "error"]


@pytest.mark.parametrize(
    "name", ["", " gain", "ga-in", "ga in", "g\u0430in", "ga\u200bin", "gr\u00f6\u00dfe", "\u6e96\u78ba", "2x", "a" * 9 + "\n"]
)  # fmt: skip
def test_other_letters_are_refused(name):
    message = refusal(said({name: 99.0}))
    assert "is not a name in ASCII letters, digits and _" in message
    assert message.isprintable()
    assert list_misplaced([name], audit=False) == [name]


def test_other_names_are_a_components_own():
    values = {"gains": 1.0, "my_gain": 2.0, "accuracy_delta": 0.1, "k_neighbours": 3,
              "gain_2": 3, "l1_norm": 4, "r2": 5, "ga1n": 6}  # fmt: skip
    assert make_row({"gain": 0.5}, [said(values)], None) == {"gain": 0.5, **values}


def test_two_components_do_not_share_a_name_unless_they_agree():
    one, other = said({"fidelity": 0.5}, "learner", "l"), said({"fidelity": 0.6}, "auditor", "a")
    assert refusal(one, other) == (
        "auditor 'a': 'fidelity' is given by learner 'l' as well, with another value; choose "
        "another name, such as 'a_fidelity'"
    )
    assert "as 'fidelity'" in refusal(one, said({"Fidelity": 0.5}, "auditor", "a"))
    assert make_row({}, [one, said({"fidelity": 0.5})], None) == {"fidelity": 0.5}
    nan = [said({"x": float("nan")}), said({"x": float("nan")}, "learner")]
    assert make_row({}, nan, None).keys() == {"x"}
    # One corrector speaks twice: of its weights and of its correction.
    assert "with another value" in refusal(said({"x": 1}, "corrector"), said({"x": 2}, "corrector"))


@pytest.mark.parametrize("values", [None, [("gain", 1.0)], "gain", 7])
def test_words_are_dictionaries(values):
    assert "must be dictionaries, not " in refusal(said(values))
    assert "must be a text, not 'int'" in refusal(said({3: 1.0}))


PROMISE = Guarantee(0.5, 1e-5, "add-remove", 0.01)
TRUE = {"x_epsilon": 0.5, "x_delta": 1e-5, "x_neighbours": "add-remove", "x_rho": 0.01}


@pytest.mark.parametrize("kind", SPEAKERS[:-1])
@pytest.mark.parametrize("name", ["x_epsilon", "X_Epsilon", "xepsilon"])
def test_an_epsilon_is_that_of_the_models_guarantee(kind, name):
    for value in (0.4, 0.0, float("nan"), "0.5", True):
        for guarantee, why in ((None, "the model has none"), (PROMISE, "the model's is 0.5")):
            message = refusal(said({name: value}, kind), guarantee=guarantee)
            assert "reads as the epsilon of a guarantee" in message
            assert why in message
    assert "the model has none" in refusal(said({name: 0.5}, kind))
    assert make_row({}, [said({name: 0.5}, kind)], PROMISE)
    assert make_row({}, [said({name: None}, kind)], None)


def test_delta_relation_and_rho_of_an_epsilon_are_those_of_the_guarantee():
    assert make_row({}, [said(TRUE, "learner")], PROMISE) == TRUE
    wrong = {"x_delta": 0.0, "x_neighbours": "attribute", "x_rho": 0.1}
    for name, value in wrong.items():
        assert f"{name!r} reads as the" in refusal(said(TRUE | {name: value}), guarantee=PROMISE)
        assert f"{name!r} reads" in refusal(said({"x_epsilon": None, name: value}))
    # What says whose it is does not end so, and an auditor measures what it likes.
    assert make_row({}, [said({"x_epsilon_paper": 0.4})], None)
    assert make_row({}, [said({"found_epsilon": 0.4}, "auditor")], PROMISE)


def matrix(use, note):
    kind = {"liar-weigher": "corrector"}.get(use, use.removeprefix("liar-"))
    liar = {"use": use, "note": note}
    if kind == "auditor":
        liar["mechanism"] = {"use": "hiss"}
    return kind, HONEST | {kind: [*HONEST[kind], liar]}


@pytest.mark.slow
@pytest.mark.parametrize("use", ["liar-weigher", *(f"liar-{kind}" for kind in SPEAKERS)])
@pytest.mark.parametrize("note", ["gain", "true_ratio", "test_accuracy"])
def test_a_component_that_names_a_measure_of_ours_fails_its_own_cells(
    tmp_path, toys, install, use, note
):
    install("liars", "liars", LIARS)
    kind, crossed = matrix(use, note)
    honest = {row["cell"]: row for row in fpbench.run(HONEST, out=tmp_path / "honest").rows()}
    rows = fpbench.run(crossed, out=tmp_path / "crossed").rows()
    for row in rows:
        if row[kind].startswith("liar"):
            assert row["status"] == "failed"
            assert f"{kind} {use!r}: {note!r} is what fpbench measures itself" in row["reason"]
        else:
            times = {"seconds", "correct_seconds"}
            assert {**row, **dict.fromkeys(times)} == {
                **honest[row["cell"]],
                **dict.fromkeys(times),
            }
    assert {row["status"] for row in rows} == {"done", "failed"}


@pytest.mark.slow
def test_a_note_of_ones_own_is_shown(tmp_path, toys, install):
    install("liars", "liars", LIARS)
    for use in ("liar-weigher", *(f"liar-{kind}" for kind in SPEAKERS)):
        kind, crossed = matrix(use, "my_gain")
        rows = fpbench.run(crossed, out=tmp_path / use).rows()
        found = {(row[kind].startswith("liar"), row.get("my_gain")) for row in rows if row[kind]}
        assert found == {(True, 99.0), (False, None)}


GUARANTEES = """
from fpbench import Guarantee, hookimpl
from toys import Model, Parrot
from pydantic import Field

class Sly(Guarantee):
    def __post_init__(self):
        pass

class Sworn(Parrot):
    name = "sworn"
    what: str = Field("good", description="what it guarantees")
    def fit(self, sample, rng):
        model = Model()
        model.guarantee = {"good": Guarantee(0.5, 1e-6, "replace-one", 0.1), "none": None,
                           "text": "epsilon 0.5", "sly": Sly(-1.0)}[self.what]
        return model

@hookimpl
def fpbench_learners():
    return [Sworn]
"""


def test_rows_have_the_guarantee_of_the_model(tmp_path, toys, install):
    install("sworn", "sworn", GUARANTEES)
    whats = ("good", "none", "text", "sly")
    sworn = [{"use": "sworn", "what": what, "label": what} for what in whats]
    found = fpbench.run(HONEST | {"learner": sworn}, out=tmp_path / "run").rows()
    for row in found:
        what = row["learner"]
        if what == "text":
            assert "must be an fpbench.Guarantee or None, not str" in row["reason"]
        elif what == "sly":
            assert "epsilon must be above 0 and finite, not -1.0" in row["reason"]
        elif what == "none":
            assert (row["model_epsilon"], row.get("model_delta")) == (None, None)
        else:
            names = ("model_epsilon", "model_delta", "model_neighbours", "model_rho")
            assert [row[name] for name in names] == [0.5, 1e-6, "replace-one", 0.1]
