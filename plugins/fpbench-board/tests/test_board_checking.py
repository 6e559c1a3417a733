"""What is found out about a run that somebody sent, honest or not."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fpbench_board.checking import CheckOptions, _Inspector, check

import fpbench


def words(checkup, name):
    return next(each.words for each in checkup.findings if each.name == name)


def outcomes(checkup):
    return {each.name: each.outcome for each in checkup.findings}


def test_an_honest_run_passes(run, quick):
    checkup = check(run, quick)
    assert outcomes(checkup) == dict.fromkeys(
        ("run", "data", "components", "kit", "recomputation", "seeds"), "passed"
    )
    assert words(checkup, "recomputation") == (
        "1 of 1 cells run again are the same to the last bit (4 are done)"
    )
    assert (checkup.verified, checkup.same, checkup.versions) == (True, 1, ())


def test_what_is_not_run_again_is_not_verified(run, unrun):
    checkup = check(run, unrun)
    assert not checkup.verified
    assert checkup.reason == "recomputation: no cell was run again"


def test_forged_numbers_are_found_and_named(run, quick, hands, tmp_path):
    forged = hands.copy(run, tmp_path / "forged")
    hands.forge(forged, "gain", 0.01)
    checkup = check(forged, quick)
    assert checkup.reason.startswith("recomputation: 1 of 1 cells: ")
    assert checkup.reason.endswith(" differs in gain")
    assert not checkup.verified


def test_a_seed_left_out_for_one_adversary_is_found(quick, hands, tmp_path):
    done = []
    with pytest.raises(KeyboardInterrupt):
        fpbench.run(
            hands.matrix, out=tmp_path / "chosen", on_cell=done.append, stop=lambda: len(done) > 2
        )
    reason = check(tmp_path / "chosen", quick).reason
    assert reason.startswith("recomputation: the run is not as its matrix: ")
    assert "1 of 2 cells have not been run" in reason


def test_another_matrix_than_that_of_the_run_is_found(run, quick, hands, tmp_path):
    other = hands.copy(run, tmp_path / "other")
    matrix = json.loads((other / "matrix.json").read_text())
    matrix["adversary"][1]["use"] = "a2"
    (other / "matrix.json").write_text(json.dumps(matrix))
    assert "is not the matrix that the run was made from" in words(
        check(other, quick), "recomputation"
    )


@pytest.mark.parametrize("content", [b"no store", b""])
def test_what_cannot_be_read_is_told_and_nothing_else_is_checked(
    content, run, quick, hands, tmp_path
):
    damaged = hands.copy(run, tmp_path / "damaged")
    (damaged / "store.sqlite").write_bytes(content)
    checkup = check(damaged, quick)
    assert outcomes(checkup)["run"] == "failed"
    assert {each.outcome for each in checkup.findings[1:]} == {"skipped"}
    assert str(tmp_path) not in checkup.reason


@pytest.mark.skipif(os.name != "posix", reason="no FIFOs here")
def test_a_file_of_the_one_who_checks_is_not_read(quick, hands, tmp_path):
    """Otherwise a page would publish what is measured of it."""
    file = tmp_path / "people.csv"
    rows = [f"{i % 2},{(i // 2) % 2},{i % 7}" for i in range(200)]
    file.write_text("\n".join(["sex,paid,x", *rows, ""]))
    data = {"use": "csv", "path": str(file), "label_column": "paid", "sensitive": "sex"}
    sent = fpbench.run({**hands.matrix, "dataset": [data]}, out=tmp_path / "sent").path
    file.unlink()
    os.mkfifo(file)  # who opens it waits for ever
    checkup = check(sent, quick)
    assert words(checkup, "data") == (
        "dataset 'csv' reads a file named by the matrix: nobody else can recompute it"
    )
    assert outcomes(checkup)["recomputation"] == "skipped"


def test_data_that_have_an_address_or_a_checksum_are_no_secret(run, unrun):
    assert look(run, unrun, "dataset", [("acs-income", {}), ("adult", {})]).check_data() == (
        "passed", "2 data sets, published or generated",
    )  # fmt: skip


def look(run, options, kind, components, **more):
    """The checks of a run as if its matrix had these components of a kind."""
    inspector = _Inspector(run, options)
    found = {str(i): SimpleNamespace(use=use, parameters=parameters)
             for i, (use, parameters) in enumerate(components)}  # fmt: skip
    vars(inspector)["_snapshot"] = SimpleNamespace(components={kind: found}, **more)
    return inspector


def test_classes_by_import_path_and_components_within_components_are_told(run, unrun):
    learners = [
        ("plain", {"of": "evil.models:Best"}),
        ("plain", {"of": ["sklearn.svm:SVC", "sklearnish:SVC"]}),
        ("plain", {"of": [{"use": "prior", "x": "a: b"}]}),
    ]
    inspector = look(run, unrun, "learner", learners)
    told = "'evil.models:Best' is imported, 'sklearnish:SVC' is imported"
    assert inspector.check_components() == (
        "note", f"third parties' code, which --no-third-party refuses: {told}"
    )  # fmt: skip
    assert {entry.name for entry in inspector._find_entries()} == {"plain", "prior"}
    strict = look(run, replace(unrun, third_party=False), "learner", learners)
    assert strict.check_components() == ("failed", f"third parties' code is refused here: {told}")
    with pytest.raises(fpbench.errors.NameUnknownError, match="unknown learner 'nobodys'"):
        look(run, unrun, "learner", [("nobodys", {})]).check_components()


def test_third_parties_components_are_tested(run, unrun, monkeypatch):
    """As if the built-in adversary came from another package."""
    inspector = look(run, unrun, "adversary", [("prior", {})])
    entry = fpbench.plugin.discover().entry("adversary", "prior")
    foreign = entry._replace(source=entry.source._replace(distribution="theirs"))
    monkeypatch.setattr(inspector, "_find_entries", lambda: iter([foreign]))
    assert inspector.check_components()[1].endswith(
        f"adversary 'prior' is from theirs {entry.source.version}"
    )
    outcome, said = inspector.check_kit()
    assert (outcome, said.split()[3]) == ("passed", "keep")
    broken = lambda: SimpleNamespace(outcome=fpbench.testing.Outcome.BROKEN, reason="it lies")  # noqa: E731
    monkeypatch.setattr("fpbench_board.checking.checks", lambda cls: [broken] * 9)
    outcome, said = inspector.check_kit()
    assert outcome == "failed" and said.endswith("(it lies) and 4 more")


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ("dd", ("passed", "2 of 2 cells are done")), ("ds", ("note", "1 of 2 cells are done")),
        ("df", ("note", "1 of 2 cells are done, 1 failed")),
        ("ff", ("failed", "0 of 2 cells are done")),
    ],
)  # fmt: skip
def test_cells_that_are_not_done_are_told(statuses, told, run, unrun):
    names = {"d": "done", "s": "skipped", "f": "failed"}
    results = SimpleNamespace(statuses=[names[each] for each in statuses])
    assert look(run, unrun, "learner", [], results=results).check_run() == told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "outcome", "told"),
    [
        ([{"seeds": 3}], "passed", "3 seeds, 0 to 2"),
        ([{"seeds": [4, 1]}], "note", "2 seeds, 1, 4; not the first 2, 0 to 1: chosen by somebody"),
        (
            [{"seeds": 3}, {"seeds": 2}],
            "note",
            "2 seeds, 0 to 1; left out: 1 other seed of the run",
        ),
    ],
)
def test_seeds_that_somebody_may_have_chosen_are_told(asked, outcome, told, quick, hands, tmp_path):
    for more in asked:
        sent = fpbench.run({**hands.matrix, **more}, out=tmp_path / "run").path
    checkup = check(sent, quick)
    assert (outcomes(checkup)["seeds"], words(checkup, "seeds")) == (outcome, told)


def recomputed(cells, **more):
    """What `Run.verify` gives: cells by what became of them."""
    change = SimpleNamespace(name="gain")
    kinds = {
        "same": SimpleNamespace(same=True, wrong=False),
        "other": SimpleNamespace(same=False, wrong=False),
        "wrong": SimpleNamespace(same=False, wrong=True, cell="c", problem=None,
                                 changes=[change] * 7),
        "lost": SimpleNamespace(same=False, wrong=True, cell="d", problem="it is gone", changes=[]),
    }  # fmt: skip
    usual = {"exact": False, "misplaced": (), "contradictions": (), "done": 9,
             "named_seeds": (0, 1, 2), "environment": (("python", "3.11", "3.12"),)}  # fmt: skip
    return SimpleNamespace(checked=[kinds[each] for each in cells], **{**usual, **more})


@pytest.mark.parametrize(
    ("again", "outcome", "told"),
    [
        (recomputed(["same", "other"]), "passed",
         "1 of 2 cells run again are the same within 1e-06 (9 are done)"),
        (recomputed(["same"], exact=True), "passed",
         "1 of 1 cells run again are the same to the last bit (9 are done)"),
        (recomputed(["other"] * 2), "note",
         "none of 2 cells can be compared here: they are not portable"),
        (recomputed(["same", "wrong", "lost"]), "failed",
         "2 of 3 cells: c differs in gain, gain, gain, gain, gain and 2 more, "
         "d could not be run again (it is gone)"),
        (recomputed(["same"], contradictions=tuple("abcdef")), "failed",
         "the run is not as its matrix: a; b; c; d; e and 1 more"),
        (recomputed(["same"], misplaced=("g\N{CYRILLIC SMALL LETTER A}in",)), "failed",
         "rows have measures that fpbench never gives to them: 'g\\u0430in'"),
    ],
)  # fmt: skip
def test_what_came_of_the_sample(again, outcome, told, run, monkeypatch):
    asked = []

    def verify(self, *args, **kwargs):
        asked.append((self.path, args, kwargs))
        return again

    monkeypatch.setattr(fpbench.Run, "verify", verify)
    options = CheckOptions(sample=7, seed=3, jobs=2, kit=False, timeout=5.0, memory=0.5)
    checkup = check(run, options)
    limits = {"timeout": 5.0, "memory_limit": 2**29}
    assert asked == [(run, (7,), {"seed": 3, "jobs": 2, "limits": limits})]
    assert (outcomes(checkup)["recomputation"], words(checkup, "recomputation")) == (outcome, told)
    assert checkup.verified is (outcome == "passed")
    assert checkup.versions == (("python", "3.11", "3.12"),)
    assert words(checkup, "seeds") == "2 seeds, 0 to 1; its matrix names 1 other, not run"


def test_a_step_that_takes_too_long_does_not_pass(run, quick):
    checkup = check(run, replace(quick, timeout=1e-3))
    assert checkup.reason.startswith("recomputation: 1 of 1 cells: ")
    assert "limit" in checkup.reason
