"""Figures as data: every point is a mean of rows, and stands where its components say."""

import json
import math
import re
from statistics import fmean

import pytest
from runs import HOSTILE, REAL

import fpbench
from fpbench.base.errors import InputError, StoreError
from fpbench.page.drawing import draw
from fpbench.page.figures import MOST_SERIES
from fpbench.page.gathered import gather
from fpbench.page.ideas import make_figure, make_figures
from fpbench.results.rows.labels import name_parameters, read_components


def named(run):
    return {one.name: one for one in make_figures(gather(run))}


def points(made):
    return [(panel, series, point) for panel in made.panels for series in panel.series
            for point in series.points]  # fmt: skip


MEASURES = {"guess": "initial_accuracy", "corrected": "corrected_accuracy",
            "largest group": "majority_accuracy"}  # fmt: skip


@pytest.mark.slow
def test_accuracy_before_and_after_is_that_of_the_rows(real):
    run = gather(real)
    made = make_figure(run, "accuracy")
    assert {series.name for panel in made.panels for series in panel.series} == {
        "largest group",
        *(f"{what}, {who}" for what in ("guess", "corrected") for who in (HOSTILE, "a2")),
    }
    assert made.caption.endswith(
        "Without such numbers, so not drawn: learner plain; corrector none."
    )
    for _, series, point in points(made):
        every = run.results.rows()
        rows = [every[i] for i in run.combinations[point.combination].rows]
        values = [row[MEASURES[series.name.partition(",")[0]]] for row in rows]
        assert math.isclose(point.y, 100 * fmean(values))
        if math.isclose(min(values), max(values)):  # seeds that agree have no interval
            assert (point.low, point.high) == (None, None)
        else:
            assert point.low <= point.y <= point.high
        assert point.seeds == 3
        assert {row["asked_tolerance"] for row in rows} == {point.x}
        assert series.dashed is not series.name.startswith("corrected")
    assert {point.x for *_, point in points(made)} == {0.0, 0.05, 0.1}


@pytest.mark.slow
def test_everybody_is_between_the_groups_guessed_most_and_least(tmp_path):
    matrix = {**REAL, "seeds": 1, "learner": [{"use": "plain"}], "corrector": [{"use": "posterior"}],
              "disclosure": [*REAL["disclosure"], {"use": "report"}]}  # fmt: skip
    made = make_figure(gather(fpbench.run(matrix, out=tmp_path / "run")), "by-group")
    shares = {}
    for _, series, point in points(made):
        shares.setdefault((series.name.partition(", ")[2], point.x), []).append(point.y)
    assert len(shares) == 4
    for everybody, most, least in shares.values():
        assert least < everybody < most


@pytest.mark.slow
def test_a_run_has_the_figures_that_it_has_enough_for(real, audited):
    ranked = [f"{name}-{by}" for name in ("with_accuracy",)
              for by in ("tolerance", "by-learner", "by-adversary")]  # fmt: skip
    assert list(named(real)) == ["waterfall", "accuracy", *ranked]
    assert list(named(audited)) == ["audit-error", "policies", "error-by-mechanism",
                                    "error-by-auditor"]  # fmt: skip


def test_audits_compare_mechanisms_against_epsilon(audited):
    made = named(audited)["audit-error"]
    assert {point.x for *_, point in points(made)} == {0.1, 1.0}
    for panel in made.panels:
        assert {series.name.partition(",")[0] for series in panel.series} == {
            "guessing", "laplace", "gaussian"}  # fmt: skip
    policies = named(audited)["policies"]
    assert {point.x for *_, point in points(policies)} == {"clip", "project"}
    assert not any(series.joined for panel in policies.panels for series in panel.series)


LEARNERS = {
    "lambda": ("penalty", [0.1, 1.0, 10.0]),
    "k": ("teachers", [10, 20]),
    "epsilon": ("sigma", [5.0, 50.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_risk_is_drawn_against_lambda_k_and_noise(name, tmp_path):
    parameter, values = LEARNERS[name]
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 400}],
        "learner": [{"use": "pate", "public": 40, "teachers": 10, parameter: {"sweep": values}}],
        "auditor": [{"use": "excessive-risk", "repetitions": 4}],
    }
    run = fpbench.run(matrix, out=tmp_path / "run")
    assert {row["status"] for row in run.rows()} == {"done"}
    made = named(run)[f"risk-{parameter}"]
    for panel in made.panels:
        assert [[point.x for point in series.points] for series in panel.series] == [values] * 2
        assert [series.dashed for series in panel.series] == [False, True]
    assert ("private-accuracy-sigma" in named(run)) is (parameter == "sigma")
    if parameter == "sigma":  # which is where its epsilon comes from
        spent = {point.x for *_, point in points(named(run)["risk-epsilon"])}
        assert spent == {float(f"{row['pate_epsilon']:.12g}") for row in run.rows()}


@pytest.mark.slow
def test_private_trees_are_drawn_against_epsilon(tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 400}],
        "learner": [{"use": "private-tree", "epsilon": {"sweep": [0.5, 5.0]}, "max_depth": 2}],
        "auditor": [{"use": "individual-fairness"}],
    }
    made = named(fpbench.run(matrix, out=tmp_path / "run"))
    for name in ("private-accuracy-epsilon", "consistency-epsilon"):
        assert {point.x for *_, point in points(made[name])} == {0.5, 5.0}
    names = {series.name for panel in made["consistency-epsilon"].panels for series in panel.series}
    assert names == {"pairs", "certified"}


@pytest.mark.slow
def test_many_series_stand_in_several_panels(toy_run):
    run = toy_run(
        learner=[{"use": "parrot", "number": {"sweep": list(range(5))}}],
        disclosure=[{"use": "oracle", "tolerance": {"sweep": [0.0, 0.1, 0.2, 0.3]}}],
    )
    made = named(run)["with_accuracy-number"]
    assert max(len(panel.series) for panel in made.panels) <= MOST_SERIES
    assert len({panel.title for panel in made.panels}) == len(made.panels)
    assert {panel.title for panel in made.panels} == {f"tolerance={i / 10}" for i in (0, 1, 2, 3)}
    drawn = [point.combination for _, series, point in points(made) if not series.dashed]
    assert sorted(drawn) == list(range(40))  # each once


def test_unknown_figures_are_named_with_the_nearest(real, toy_run):
    with pytest.raises(InputError, match=r"no figure 'acuracy'.*'accuracy'.*it has waterfall, acc"):
        make_figure(gather(real), "acuracy")
    one = {kind: [{"use": name}] for kind, name in (("adversary", "coin"), ("corrector", "none"))}
    alone = toy_run(learner=[{"use": "parrot"}], **one)
    with pytest.raises(InputError, match="no figure is possible"):
        make_figure(gather(alone), "accuracy")


def test_labels_are_taken_apart_as_sweeps_made_them():
    axes = {"learner": [
        ["pate", "p sigma=1.0 hard", {"sigma": 1.0, "labels": "hard", "public": 3}],
        ["pate", "p sigma=2.0 hard", {"sigma": 2.0, "labels": "hard", "public": 3}],
        ["pate", "p sigma=2.0 soft", {"sigma": 2.0, "labels": "soft", "public": 3}],
        ["plain", "my sigma=3", {"sigma": 3}],
        ["plain", "other", {"sigma": 4}],
    ]}  # fmt: skip
    found = name_parameters(read_components(json.dumps([{}, axes, []])))["learner"]
    assert found["p sigma=2.0 soft"].base == "p"
    assert dict(found["p sigma=2.0 soft"].swept) == {"sigma": 2.0, "labels": "soft"}
    assert (found["my sigma=3"].base, dict(found["my sigma=3"].swept)) == ("my sigma=3", {})


@pytest.mark.parametrize("matrix", [None, "", "{", "[]", "[1, 2]", '[1, {"learner": [1]}]', "null"])
def test_a_matrix_that_cannot_be_read_tells_nothing(matrix):
    assert not any(read_components(matrix).values())


@pytest.mark.slow
def test_pdf_holds_vectors_and_whole_fonts(real, tmp_path):
    made = make_figure(gather(real), "accuracy")
    draw(made, tmp_path / "a.pdf")
    text = (tmp_path / "a.pdf").read_bytes()
    assert text.startswith(b"%PDF")
    assert b"/FontFile2" in text  # TrueType, embedded
    assert b"/Type3" not in text
    assert b"/Subtype /Image" not in text
    draw(made, tmp_path / "b.pdf")
    assert (tmp_path / "b.pdf").read_bytes() == text


@pytest.mark.slow
def test_svg_holds_vectors_and_needs_no_font(real, tmp_path):
    made = make_figure(gather(real), "with_accuracy-by-adversary")
    draw(made, tmp_path / "a.svg", width=5)
    text = (tmp_path / "a.svg").read_text()
    assert "<path" in text
    assert "<text" not in text
    assert "<image" not in text
    assert "onerror=alert(1)>" not in re.sub(r"<!--.*?-->", "", text, flags=re.S)
    assert 'width="360' in text  # points
    draw(made, tmp_path / "b.svg", width=5)
    assert (tmp_path / "b.svg").read_text() == text


@pytest.mark.slow
def test_every_figure_can_be_drawn(real, audited, tmp_path):
    for run in (real, audited):
        for made in make_figures(gather(run)):
            draw(made, tmp_path / f"{made.name}.png")
            assert (tmp_path / f"{made.name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("output", "said"), [
    ("a.gif", "unknown format '.gif'"), ("a", "must end in pdf, svg, png"),
    ("none/a.pdf", "cannot be written: No such file"),
])  # fmt: skip
def test_files_that_cannot_be_drawn(real, output, said, tmp_path):
    with pytest.raises(InputError, match=said):
        draw(make_figure(gather(real), "accuracy"), tmp_path / output)
    with pytest.raises(InputError, match="out of range"):
        draw(make_figure(gather(real), "accuracy"), tmp_path / "a.pdf", width=0.5)


def test_without_matplotlib_the_command_that_installs_it_is_said(real, monkeypatch, tmp_path):
    monkeypatch.setattr("fpbench.page.drawing.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'fpbench-toolkit\[figures\]'"):
        draw(make_figure(gather(real), "accuracy"), tmp_path / "a.pdf")


def test_a_run_that_was_not_run_has_no_figures(toy_run, tmp_path):
    with pytest.raises(StoreError, match="not a run directory"):
        gather(fpbench.Run(tmp_path / "none"))


@pytest.mark.slow
def test_the_waterfall_is_that_of_the_rows(real):
    run = gather(real)
    made = make_figure(run, "waterfall")
    (panel,) = made.panels
    (series,) = panel.series
    assert series.bars and not series.joined
    assert [point.x for point in series.points] == [
        "largest group", "features", "predictions", "claim",
    ]  # fmt: skip
    rows = [row for row in run.results.rows() if row["learner"] in panel.title]
    for point in series.points:
        mine = [rows[i] for i in range(len(rows)) if rows[i]["adversary"] in (HOSTILE, "a2")]
        seen = {"features": HOSTILE}.get(point.x)  # who sees predictions may do without
        name = {"largest group": "majority_accuracy", "claim": "with_accuracy"}.get(
            point.x, "without_accuracy"
        )
        by = {}
        for row in mine:
            if row[name] is not None and (seen is None or row["adversary"] == seen):
                by.setdefault((row["adversary"], row["corrector"]), []).append(row[name])
        assert math.isclose(point.y, 100 * max(map(fmean, by.values())))
        assert point.seeds == 3
        of = run.combinations[point.combination]
        assert of.label("learner") in panel.title
        assert seen is None or of.label("adversary") == seen
    assert "Not in this run: attacks that see scores at most" in made.caption
    assert (
        "Of 4 learners, the one where the disclosure adds most to the best attack is shown"
        in made.caption
    )


@pytest.mark.slow
def test_filters_choose_what_a_figure_draws(real, tmp_path, command):
    for learner in ("plain", "exponentiated-gradient tolerance=0.1"):
        run = gather(real, where=[f"learner={learner}"])
        made = make_figure(run, "waterfall")
        assert made.panels[0].title == f"learner {learner}, disclosure constructor"
        assert "Of 4" not in made.caption
    done = command("figure", real.path, "waterfall", "--where", "learner=plain", "-o",
                   tmp_path / "w.svg")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "w.svg").read_text().startswith("<?xml")
    done = command("figure", real.path, "waterfall", "--where", "leaner=plain")
    assert done.returncode == 2 and "did you mean 'learner'" in done.stderr
