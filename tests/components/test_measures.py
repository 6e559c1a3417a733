"""The table of measures: what fpbench's own are called, and what components may add."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from fpbench import Auditor, InputError, Measure, PluginError
from fpbench.components.catalog import Entry, Source, _check_class, discover
from fpbench.components.measures import Glossary, read_measures
from fpbench.components.own_measures import DERIVED, GLOSSARY, MEASURED, OWN
from fpbench.plugin import MeasureFigure

FIGURE = MeasureFigure("leak", "Leak", "Bits of a group.", "bits", (("leak_bits", ""),))
LEAK = Measure("leak_bits", "bits leaked", "less", "bits", "what the model tells of a group")


class Teller(Auditor):
    """Tells nothing."""

    name = "odd"
    summary = "odd"
    sees = frozenset()

    def audit(self, subject, rng):
        return {}


def test_the_table_has_every_measure_of_fpbench_once():
    assert Counter(one.name for one in OWN) == Counter({*MEASURED, *DERIVED, "seconds"})
    for one in OWN:
        one.check()
        assert one.meaning


def test_no_heading_reads_as_another_measure():
    names = [one.name for one in OWN]
    for one in OWN:
        for text in (one.name, one.heading):
            assert GLOSSARY.name_of(text, names) == one.name


@pytest.mark.parametrize(
    "text", ["gain_over_best", "over best", "Over Best", "overbest", "OVER  BEST"]
)
def test_a_heading_can_be_typed_as_well_as_the_name(text):
    assert GLOSSARY.find(text, ["gain", "gain_over_best"], "measure") == "gain_over_best"


def test_what_is_mistyped_is_told_the_nearest_name_or_heading():
    with pytest.raises(
        InputError, match=r"unknown measure to rank by: 'over bset'; did you mean 'over best'"
    ):
        GLOSSARY.find("over bset", ["gain", "gain_over_best"], "measure to rank by")
    with pytest.raises(InputError, match=r"'gain_over_bets'; did you mean 'gain_over_best'"):
        GLOSSARY.find("gain_over_bets", ["gain", "gain_over_best"], "measure")


def test_a_heading_of_two_measures_must_be_given_as_a_name():
    twice = Glossary((), [Measure("a", "leak"), Measure("b", "leak")])
    with pytest.raises(InputError, match=r"'Leak' may be a or b: give the name"):
        twice.find("Leak", ["a", "b"], "measure")


def test_components_add_measures_but_change_none():
    known = GLOSSARY.declaring([LEAK, Measure("gain", better="less")])
    assert known["leak_bits"] is LEAK
    assert known["gain"].better == "greater"
    assert known["never_heard_of"] == Measure("never_heard_of", column="asked")
    assert known["fit_seconds"].unit == "s"
    assert known["fit_seconds"].better == "less"


def test_a_star_stands_for_groups():
    known = Glossary(
        (), [Measure("risk_gap_*", better="less"), Measure("risk_*", better="greater")]
    )
    assert known["risk_gap_test"] == Measure("risk_gap_test", "risk gap test", "less")
    assert known["risk_f"].better == "greater"
    assert known["rest"].better == "neither"


def test_measures_go_through_json_and_back():
    drawn = replace(LEAK, if_no="Not private.", figure=FIGURE)
    assert read_measures(json.loads(json.dumps([LEAK.as_data(), drawn.as_data()]))) == [LEAK, drawn]
    for odd in (
        *([{"name": "a", "figure": odd}] for odd in (0, "x", {}, {"name": "x"}, [1])),
        3,
        [3],
        [{"name": "a", "odd": ""}],
        [{"name": "A b"}],
        [{"name": "a", "decimals": "1"}],
        [{}],
        ["x"],
    ):
        with pytest.raises(ValueError, match="not a table of measures"):
            read_measures(odd)


@pytest.mark.parametrize(("measures", "why"), [
    ((Measure("gain"),), r"'gain' is a measure of fpbench itself, 'gain'"),
    ((Measure("my_gain", "over best"),), r"'my_gain': 'over best' is a measure of fpbench itself, 'gain_over_best'"),
    ((Measure("tree_size", "Accuracy"),), r"'Accuracy' is a measure of fpbench itself, 'test_accuracy'"),
    ((LEAK, LEAK), r"'leak_bits' is declared twice"),
    ((Measure("leak_bits", better="lesser"),), r"measure 'leak_bits': unknown 'lesser'; did you mean 'less'"),
    ((Measure("leak_bits", column="never"),), r"'never'"),
    ((Measure("fit_time", unit="s"),), r"'fit_time': has the unit s, so its name must end in _seconds"),
    ((Measure("Leak bits"),), r"must be snake_case"),
    ((Measure("leak", "a\nb"),), r"heading: must be a text of one line"),
    ((Measure("leak_bits", unit=3),), r"unit: must be a text of one line, not 3"),
    ((Measure(3),), r"name: must be a text"),
    ((Measure("leak", decimals=10),), r"decimals: must be a whole number, 0 to 9"),
    ((Measure("leak", if_no="a\nb"),), r"if_no: must be a text of one line"),
    ((Measure("leak", figure="leak"),), r"figure: must be a fpbench.plugin.MeasureFigure"),
    ((replace(LEAK, figure=replace(FIGURE, axis=3)),), r"figure: axis: must be a text of one line, not 3"),
    ((replace(LEAK, figure=replace(FIGURE, series=[("leak_bits", 3)])),), r"figure: series: must be a text"),
    ((replace(LEAK, figure=replace(FIGURE, against="noise")),), r"unknown 'noise'"),
    ([LEAK], r"must be a tuple of fpbench.Measure"),
    (("leak_bits",), r"must be a tuple of fpbench.Measure"),
    (LEAK, r"must be a tuple of fpbench.Measure"),
])  # fmt: skip
def test_a_component_that_declares_what_it_may_not_is_refused(measures, why):
    odd = type("Odd", (Teller,), {"measures": measures, "__module__": __name__})
    with pytest.raises(PluginError, match=f"auditor 'odd' of odd-plugin 1: measures: .*{why}"):
        _check_class(odd, Entry("auditor", "odd", Source("odd-plugin", "1"), odd))


def test_built_in_components_agree_on_measures_that_they_share():
    """Otherwise a matrix with both would be refused."""
    declared = {}
    for kind, name in discover().entries:
        if discover().entries[kind, name].source.distribution == "fpbench-toolkit":
            try:
                component = discover().component(kind, name)
            except InputError:  # its extra is not installed
                continue
            for measure in component.measures:
                declared.setdefault(measure.name, set()).add((measure.better, measure.unit))
    assert len(declared) > 20
    assert {name: ways for name, ways in declared.items() if len(ways) > 1} == {}


def test_a_table_holds_one_measure_a_line():
    first, second = Measure.table("varying", """
        leak_bits, leak | less bits:1 | what an answer
            tells of a person
        audit_private | greater yes or no | whether the audit is private itself
    """)  # fmt: skip
    assert first == Measure(
        "leak_bits", "leak", "less", "bits", "what an answer tells of a person", "varying",
        decimals=1,
    )  # fmt: skip
    assert [first.write(bits) for bits in (0.04, 12.34, 250.5, None)] == ["0.0", "12.3", "250", "-"]
    assert (second.heading, second.unit) == ("audit private", "yes or no")
