"""Tables in every shape that people have: what is written is read back, or refused both ways."""

import io
import json
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, selection_rate, true_positive_rate
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import FairnessReport, InputError, assess
from fpbench.reports.fairness_report import read_by_names
from fpbench.reports.reading.cells import find_decimal_mark, read_cell
from fpbench.reports.reading.grids import parse_table
from fpbench.reports.reading.known_names import KnownNames
from fpbench.reports.reading.tables import read_tables

GROUPS = [
    ("Female", "Male"), ("Black", "White", "Asian-Pac-Islander"), ("f", "m"), ("Other", "White"),
    ("18-24", "25-64", "65+"), ("Hispanic or Latino", "Not Hispanic or Latino"), ("\u00c9", "\u00df"),
]  # fmt: skip
SLICES = [
    ("Sales", "R&D", "HR"), ("12th", "1st-4th"), ("a", "b", "c", "d"), ("HR, Legal", 'the "new" one'),
    ("yes", "no"), ("x", "s"),
]  # fmt: skip


@st.composite
def draw_people(draw, most):
    """People with an attribute, a column and predictions: (frame, names of groups)."""
    groups, slices = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(SLICES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(len(groups) * len(slices), most))
    frame = pd.DataFrame({
        "dept": rng.choice(slices, n), "who": rng.choice(groups, n),
        "hired": rng.integers(0, 2, n), "good": rng.integers(0, 2, n),
    })  # fmt: skip
    frame.loc[: len(groups) - 1, "who"] = groups
    frame.loc[: len(slices) - 1, "dept"] = slices
    return frame


def count(people, *by):
    """Size and number hired of each combination that people have."""
    own = people.groupby(list(by)).hired.agg(["size", "sum"]).reset_index()
    return own.rename(columns={"size": "Applicants", "sum": "Hired"})


def expect(people, metrics=("selection-rate",)):
    report = FairnessReport.from_predictions(
        people[["dept"]], people.hired, people.who, by=["dept"], tables=[["dept"]],
        labels=people.good, metrics=metrics, min_cell=0,
    )  # fmt: skip
    frame = report.to_frame()
    return frame[(frame.value != 0) | frame.metric.str.contains("rate")]


def read(source, people, **options):
    names = KnownNames(
        {"who": tuple(sorted(people.who.unique()))}, people[["dept"]], ("hired",),
        mapping=options.pop("mapping", {}),
    )  # fmt: skip
    return read_by_names(source, names, ("who",), **options)


def assert_same(report, people, metrics=("selection-rate",)):
    """The numbers of people behind each row are those of the people."""
    frame = report.to_frame()
    assert report.groups == tuple(sorted(people.who.unique()))
    told = {(r.dept, r.group, r.metric): (r.value, r.n) for r in frame.itertuples()}
    for row in expect(people, metrics).itertuples():
        key = (row.dept, row.group, row.metric)
        if row.n == 0 and row.metric.endswith("rate"):
            continue
        assert told[key][0] == pytest.approx(row.value, abs=1e-9), key
        if row.metric.endswith("rate"):
            assert told[key][1] == row.n
    assert set(frame.metric) <= set(metrics)


def to_csv(rows, separator=","):
    return pd.DataFrame(rows).to_csv(index=False, header=False, sep=separator)


def write_long(people):
    own = count(people, "dept", "who").rename(columns={"who": "group", "Applicants": "n"})
    own["metric"], own["value"] = "Hiring rate", own.Hired / own.n
    return own.drop(columns="Hired").to_csv(index=False)


def write_ll144(people):
    own = count(people, "dept", "who")
    rate = own.Hired / own.Applicants
    return own.assign(**{
        "# of Applicants": own.Applicants.map("{:,}".format), "# Selected": own.Hired,
        "Selection Rate": rate.map("{:.1%}".format), "Impact Ratio": (rate / rate.max()).round(3),
    }).drop(columns=["Applicants", "Hired"]).to_csv(index=False)  # fmt: skip


def spread(people):
    """Numbers with a column a group."""
    own = count(people, "dept", "who").pivot(index="dept", columns="who")
    return own.fillna(0).astype(int)


def write_wide(people):
    own = spread(people)
    own.columns = [f"{group} {metric.lower()}" for metric, group in own.columns]
    return own.to_csv()


def write_underscores(people):
    own = spread(people)
    own.columns = [f"{metric}_{group}" for metric, group in own.columns]
    return own.to_csv()


def write_two_headings(people):
    return spread(people).to_csv()


def write_groups_above(people):
    return spread(people).swaplevel(axis=1).sort_index(axis=1).to_csv()


def write_merged(people):
    own = spread(people)
    metrics, groups = zip(*own.columns, strict=True)
    shown = [m if not i or metrics[i - 1] != m else "" for i, m in enumerate(metrics)]
    return to_csv([["dept", *shown], ["", *groups], *([i, *row] for i, row in
                  zip(own.index, own.to_numpy().tolist(), strict=True))])  # fmt: skip


def write_totals(people):
    own = count(people, "dept", "who")
    total = [["Total", "Total", len(people), people.hired.sum()]]
    return pd.concat([own, pd.DataFrame(total, columns=own.columns)]).to_csv(index=False)


def write_titled(people):
    return "Hiring of our company\n\n" + write_ll144(people) + "\nSource: our own records of 2026\n"


def write_german(people):
    own = count(people, "dept", "who").rename(columns={"who": "Gruppe", "Applicants": "Anzahl"})
    own["Einstellungsquote"] = (own.Hired / own.Anzahl).map("{:.1%}".format).str.replace(".", ",")
    own["Eingestellt"] = own.pop("Hired")
    return own.to_csv(index=False, sep=";").encode("utf-16")


def write_fractions(people):
    own = count(people, "dept", "who")
    own["Selection rate"] = [f"{h}/{n} ({h / n:.0%})" for h, n in
                             zip(own.Hired, own.Applicants, strict=True)]  # fmt: skip
    return own.drop(columns=["Hired", "Applicants"]).to_csv(index=False)


def write_markdown(people):
    own = count(people, "dept", "who")
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [own.columns, *own.to_numpy()]]
    return "\n".join([lines[0], "|---|:--|--:|--:|", *lines[1:]])


def write_html(people):
    return count(people, "dept", "who").set_index(["dept", "who"]).to_html()


def write_records(people):
    return count(people, "dept", "who").to_json(orient="records")


def write_split(people):
    return count(people, "dept", "who").to_json(orient="split", index=False)


def write_measures(people):
    own = count(people, "dept", "who").rename(
        columns={"Applicants": "denominator", "Hired": "numerator"}
    )
    own.insert(0, "measure", "hired_by_who")
    own["ratio"] = own.numerator / own.denominator
    return own.to_csv(index=False)


def write_xlsx(people):
    file = io.BytesIO()
    count(people, "dept", "who").set_index(["dept", "who"]).to_excel(file)
    return file.getvalue()


def write_parquet(people):
    pytest.importorskip("pyarrow")
    return count(people, "dept", "who").to_parquet()


def write_stacked(people):
    """A block below the name of each slice."""
    blocks = (f"dept: {dept}\n{own.drop(columns='dept').to_csv(index=False)}"
              for dept, own in count(people, "dept", "who").groupby("dept"))  # fmt: skip
    return "\n".join(f'"{block.partition(chr(10))[0].replace(chr(34), chr(34) * 2)}"\n'
                     + block.partition("\n")[2] for block in blocks)  # fmt: skip


def write_compact(people):
    """As spreadsheets' pivot tables: groups below the sum of their slice."""
    rows = [["Row Labels", "Applicants", "Sum of hired"]]
    for dept, own in count(people, "dept", "who").groupby("dept"):
        rows.append([dept, own.Applicants.sum(), own.Hired.sum()])
        rows += own[["who", "Applicants", "Hired"]].to_numpy().tolist()
    return to_csv([*rows, ["Grand Total", len(people), people.hired.sum()]])


def write_sideways(people):
    return count(people, "dept", "who").set_index(["dept", "who"]).T.to_csv()


def write_latex(people):
    own = count(people, "dept", "who").astype(str)
    own = own.map(lambda text: text.replace("&", r"\&"))
    rows = [r"\textbf{" + r"} & \textbf{".join(own.columns) + "}",
            *(" & ".join(row) for row in own.to_numpy())]  # fmt: skip
    return "\\begin{tabular}{llrr}\n\\toprule\n" + " \\\\\n".join(rows) + " \\\\\n\\end{tabular}\n"


def write_marked(people):
    """Footnotes, bold names, and intervals."""
    own = count(people, "dept", "who")
    own["who"] = "**" + own.who + "**"
    own["Hiring rate\u00b9"] = [f"{100 * h / n:.1f} \u00b1 3.1" for h, n in
                            zip(own.Hired, own.Applicants, strict=True)]  # fmt: skip
    return own.to_csv(index=False, sep="\t") + "\n\u00b9 Of all applicants.\n"


EXACT = [
    write_long, write_ll144, write_wide, write_underscores, write_two_headings, write_groups_above,
    write_merged, write_totals, write_titled, write_german, write_fractions, write_markdown,
    write_html, write_records, write_split, write_measures, write_parquet, write_stacked,
    write_compact, write_sideways, write_latex, write_marked,
]  # fmt: skip


def check_shape(write, people, file):
    content = write(people)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    report = read(file, people)
    assert_same(report, people)
    return report


def check_facts(report, people):
    """Facts hold the true numbers of people of every group."""
    facts = report.facts(people[["dept"]], people.hired)
    truth = people.who.to_numpy()[:, None] == np.array(report.groups)
    counts = facts.count(truth.astype(float))
    assert (facts.low <= counts).all() and (counts <= facts.high).all()
    return facts


@pytest.mark.parametrize("write", EXACT)
@settings(max_examples=10, deadline=None)
@given(people=draw_people(300))
def test_a_table_of_any_shape_is_read_as_it_was_written(write, people, tmp_path_factory):
    check_shape(write, people, tmp_path_factory.getbasetemp() / f"{write.__name__}.txt")


@pytest.mark.slow
@pytest.mark.parametrize("write", [*EXACT, write_xlsx])
@settings(max_examples=200, deadline=None)
@given(people=draw_people(2000))
def test_its_facts_are_those_of_the_people(write, people, tmp_path_factory):
    if write is write_xlsx:
        pytest.importorskip("openpyxl")
        pytest.importorskip("python_calamine")
    report = check_shape(write, people, tmp_path_factory.getbasetemp() / f"{write.__name__}.slow")
    check_facts(report, people)


@settings(max_examples=6, deadline=None)
@given(people=draw_people(300), least=st.integers(2, 30), digits=st.integers(0, 3), data=st.data())
def test_suppressed_and_rounded_tables_say_nothing_false(people, least, digits, data):
    own = count(people, "dept", "who")
    rate = (own.Hired / own.Applicants).map(f"{{:.{digits}%}}".format)
    small = own.Applicants < least
    sizes = data.draw(st.booleans())
    table = own.assign(**{
        "Selection rate": rate.where(~small, data.draw(st.sampled_from(["*", f"n<{least}", "-"]))),
        "n": own.Applicants.astype(str).where(~small, f"<{least}"),
    }).drop(columns=["Applicants", "Hired", *([] if sizes else ["n"])])  # fmt: skip
    report = read_text(table.to_csv(index=False), people)
    check_facts(report, people)


COUNTS = ("true-positives", "false-positives", "false-negatives", "true-negatives")


@settings(max_examples=5, deadline=None)
@given(people=draw_people(300))
def test_counts_by_prediction_and_label_are_read_from_any_crosstab(people):
    keys = [people.who, people.hired, people.good]
    wide = pd.crosstab(people.dept, keys, dropna=False, margins=True)
    for table in (wide, wide.to_csv()):
        report = read_text(table, people, label="good")
        assert_same(report, people, COUNTS)
    long = people.groupby(["dept", "who", "hired", "good"]).size().reset_index(name="count")
    assert set(read_text(long, people, label="good").metric) <= set(COUNTS)


def read_text(source, people, label=None, secrets=("who",), **options):
    names = KnownNames(
        {name: tuple(sorted(people[name].unique())) for name in secrets},
        people[["dept"]], ("hired",), label, mapping=options.pop("mapping", {}),
    )  # fmt: skip
    if isinstance(source, str):
        source = [list_grid(source)]
    return (
        read_by_names(source, names, secrets, **options)
        if not isinstance(source, list)
        else FairnessReport._of(read_tables(source, names, secrets, **options).report)
    )


def list_grid(text):
    (grid,) = parse_table(text.encode(), "table")
    return grid


PEOPLE = pd.DataFrame(
    {"dept": ["a", "b"] * 50, "who": ["f"] * 40 + ["m"] * 60, "hired": [0, 1] * 50}
)
PEOPLE["race"] = ["w", "b"] * 20 + ["w"] * 60


@pytest.mark.parametrize(("table", "options", "told"), [
    ("who,Selection rate (%)\nf,0.5\nm,0.6\n", {}, "unit='percent' or unit='share'"),
    ("who,ppr\nf,0.5\nm,0.5\n", {}, "'ppr' may be selection-rate, or a group's share"),
    ("who,mean,n\nf,0.5,40\nm,0.5,60\n", {}, "may be selection-rate, or a mean .* --map 'mean'="),
    ("who,n,selected\nf,13.5,1\nm,4,\"1,5\"\n", {}, "'13.5' has a decimal point, and '1,5'"),
    ("who,Selection rate\nf,13%\nm,0.2\n", {}, "'0.2' has no sign of percent, and '13%' has"),
    ("who,Selection rate\nf,13.2\nm,<5\n", {}, "may be a rate below 5 percent, or hide one of few"),
    ("who,other,n\nf,m,3\nm,f,4\n", {}, "columns 'who', or 'other' may both be 'who'"),
    ("dept,f,m\na,1,2\nb,3,4\n", {}, "metric that is not named .* --map value=METRIC"),
    ("who,n,Impact ratio\nf,,0.5\nm,,1.0\n", {"strict": False}, None),
    ("who,n,AUC\nf,40,0.5\nm,60,1.0\n", {"strict": True}, "'AUC' is no number of people"),
    ("dept,who,n\na,f,3\n,m,4\n", {}, None),
    ("who,n\nf,40\nx,60\n", {}, "'x' is the group of none of the people; valid: f, m"),
    ("quarter,who,n\nQ1,f,3\nQ2,m,4\n", {}, "'quarter', of 'Q1', is none of the people's"),
    ("who,n,status\nf,40,s\nm,60,u\n", {}, "marked 'u', and holds '60'.*u=published.*u=suppressed"),
    ("who,n,selected,rate\nf,40,10,30.1%\nm,60,3,5%\n", {}, "30.1% of 40 is no whole number"),
    ("who,n,selected,rate\nf,40,10,30.0%\nm,60,3,5%\n", {}, "10 of 40 people, and the rate 30.0%"),
    ("who,selection rate,n\nf,0.1234,40\nm,0.4567,60\n", {}, "Are there weights of people"),
    ("who,n,selction rate\nf,40,0.5\nm,60,1\n", {}, "'selction rate'; did you mean 'selection-rate'"),
    ("who,n\nf,1.5\nm,2\n", {}, "'1.5' is no whole number of people"),
    ("who,hired,% of hired\nf,3,30%\nm,7,70%\n", {}, "may be selection-rate, or a group's share of all"),
    ("who,hired,Hired (%)\nf,3,30.0\nm,7,70.0\n", {}, "rates add up to 1, and may be selection rates"),
    ("Block 1\nwho,n\nf,3\nm,7\n\nBlock 2\nwho,n\nf,4\nm,7\n", {}, "below 'Block 1'.*below 'Block 2'"),
    ("who,Applicants\nf,?!\nm,7\nf,3\n", {}, "'\\?!' is not a number"),
    ("dept,who,n\na,f,~\na,m,~\nb,f,1\nb,m,2\n", {}, "'~' is not a number"),
    ("metric,f,m\nDisparate impact,0.8,1\n", {}, "compares groups .a metric of each group"),
])  # fmt: skip
def test_a_table_of_two_readings_is_refused_with_both(table, options, told):
    if told is None:
        read_text(table, PEOPLE, **options)
        return
    with pytest.raises(InputError, match=f"(?s){told}"):
        read_text(table, PEOPLE, **options)


@pytest.mark.parametrize(("table", "options", "rows"), [
    ("who,Selection rate (%)\nf,0.5\nm,0.6\n", {"unit": "percent"}, {("f", 0.005), ("m", 0.006)}),
    ("who,Selection rate (%)\nf,0.5\nm,0.6\n", {"unit": "share"}, {("f", 0.5), ("m", 0.6)}),
    ("who,ppr\nf,0.5\nm,0.5\n", {"mapping": {"ppr": "selection-rate"}}, {("f", 0.5), ("m", 0.5)}),
    ("who,f,m\nx,1,2\n", {"mapping": {"value": "selected", "who": "-"}}, {("f", 1), ("m", 2)}),
    ("sex,n hired\nwomen,1\nmen,2\n", {"mapping": {"women": "f", "men": "m"}}, {("f", 1), ("m", 2)}),
    ("who,n,status\nf,40,s\nm,60,u\n", {"mapping": {"u": "published"}}, {("f", 40), ("m", 60)}),
    ("who,hired\nf,<10\nm,1-9\n", {}, {("f", 4.5), ("m", 5)}),
    ("who,FNR,recall\nf,25%,75%\nm,50%,50%\n", {}, {("f", 0.75), ("m", 0.5)}),
    ("who,accuracy\nf,0.9\nm,0.8\nAll,0.85\n", {}, {("f", 0.9), ("m", 0.8)}),
    ("Hires of 2026\ndept,f,m\na,1,2\n", {}, {("f", 1), ("m", 2)}),
    ("who,Applicants\nfemale,1\nMen,2\n", {}, {("f", 1), ("m", 2)}),
    ("who\tApplicants (%)\nf\t4 (40.0)\nm\t6 (60.0)\n", {}, {("f", 4), ("m", 6)}),
    ("who,metric,score,count\nf,recall,.46,40\nm,recall,.5,60\n", {},
     {("f", 0.46), ("m", 0.5), ("f", 40), ("m", 60)}),
    ("     Applicants  Hired\nwho                   \nf            40     10\nm            60      6\n", {},
     {("f", 0.25), ("m", 0.1)}),
])  # fmt: skip
def test_an_option_decides(table, options, rows):
    report = read_text(table, PEOPLE, **options)
    told = {
        (report.groups[k], round(v, 9)) for k, v in zip(report.group, report.value, strict=True)
    }
    assert told == rows


def test_what_is_suppressed_and_what_is_shown_beside_it_are_facts():
    table = "dept,who,Applicants,Hired\na,f,20,*\na,m,30,<5\nb,f,n<50,3\nb,m,30,10\n"
    frame = read_text(table, PEOPLE).to_frame().set_index(["dept", "group", "metric"])
    assert frame.loc[("a", "f", "people"), "value"] == 20
    assert np.isnan(frame.loc[("a", "f", "selected"), "value"])
    assert tuple(frame.loc[("a", "m", "selected"), ["value", "within"]]) == (2, 2)
    assert tuple(frame.loc[("b", "f", "people"), ["value", "within"]]) == (24.5, 24.5)
    assert tuple(frame.loc[("b", "m", "selection-rate"), ["value", "n"]]) == (1 / 3, 30)


def test_rates_are_as_exact_as_they_are_written():
    exact = read_text("who,Selection rate,n\nf,12.5%,40\nm,50.0%,60\n", PEOPLE)
    assert (exact.within == 0).all()  # 5 of 40, and 30 of 60
    table = "who,Selection rate,n\nf,33.3%,39\nm,49.2%,61\n"
    assert read_text(table, PEOPLE).within == pytest.approx([0.0005, 0.0005])
    assert read_text(table, PEOPLE, decimals=2).within == pytest.approx([0.005, 0.005])


def test_rounded_numbers_of_people_are_ranges():
    rows = [f"{d},{w},{n},{s}" for d, w, n, s in
            (("a", "f", 20, 10), ("a", "m", 35, 15), ("b", "f", 25, 5), ("b", "m", 30, 20))]  # fmt: skip
    report = read_text("dept,who,n,selected\n" + "\n".join(rows), PEOPLE)
    assert set(report.metric) == {"people", "selected"}
    assert (report.within == 2).all()


def test_each_attribute_and_their_crossing_are_read_from_one_table():
    table = (
        "Audit\n\nSex categories\n,# of Applicants,# Selected\nf,40,20\nm,60,30\n\n"
        "Race\n,# of Applicants,# Selected\nw,80,50\nb,20,0\n\n"
        "Intersectional\n,# of Applicants,# Selected\nf x w,20,10\nm x w,60,30\nf x b,20,10\n"
    )
    people = PEOPLE.rename(columns={"who": "sex"})
    both = {"sex": ("f", "m"), "race": ("b", "w")}
    names = KnownNames(both, people[["dept"]], ("hired",))
    for secret, groups in (
        (("sex",), {"f", "m"}), (("race",), {"w", "b"}), (("sex", "race"), {"f x w", "m x w", "f x b"}),
    ):  # fmt: skip
        read = read_tables([list_grid(table)], names, secret)
        assert {read.report.groups[k] for k in read.report.group} == groups


SHEET = """<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/\
spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>"""
PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
    "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
    'officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
    'relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
    "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
    '<sheet name="A" sheetId="1" r:id="r1"/></sheets></workbook>',
}  # fmt: skip


def write_workbook(rows, file):
    """The smallest workbook that holds the rows."""
    lines = [
        "<row>" + "".join(
            f"<c><v>{cell}</v></c>" if isinstance(cell, int | float)
            else f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in row
        ) + "</row>" for row in rows
    ]  # fmt: skip
    with ZipFile(file, "w") as book:
        for name, content in PARTS.items():
            book.writestr(name, content)
        book.writestr("xl/worksheets/sheet1.xml", SHEET.format("".join(lines)))


def test_a_spreadsheet_with_a_title_and_merged_keys_is_read(tmp_path):
    pytest.importorskip("python_calamine")
    rows = [["Hires of 2026"], ["dept", "who", "Applicants", "Hired"],
            ["a", "f", 20, 5], ["", "m", 30, 10], ["b", "f", 20, "*"], ["", "m", 30, 20]]  # fmt: skip
    write_workbook(rows, tmp_path / "t.xlsx")
    frame = read_text(tmp_path / "t.xlsx", PEOPLE).to_frame()
    told = frame[frame.metric == "selection-rate"].set_index(["dept", "group"])["value"]
    assert told.to_dict() == {("a", "f"): 0.25, ("a", "m"): 1 / 3, ("b", "m"): 2 / 3}
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04\x00")
    with pytest.raises(InputError, match="cannot be read as a spreadsheet"):
        read_text(tmp_path / "bad.xlsx", PEOPLE)


NUMBERS = st.decimals(0, 10**7, allow_nan=False, places=3).map(float)


@given(number=NUMBERS, digits=st.integers(0, 3), mark=st.sampled_from(".,"), data=st.data())
def test_numbers_are_read_as_they_are_written(number, digits, mark, data):
    apart = data.draw(st.sampled_from(["", " ", "'", "\u00a0", "\u202f", ",."[mark == ","]]))
    unit = data.draw(st.sampled_from(["", "%", " %", " percent"]))
    text = f"{number:,.{digits}f}".replace(",", "_").replace(".", mark).replace("_", apart) + unit
    cell = read_cell(text, mark)
    assert cell.exact and cell.low == float(f"{number:.{digits}f}")
    assert (cell.decimals, cell.unit) == (digits, 0.01 if unit else None)
    told = find_decimal_mark([text])
    assert told in (None, mark)
    for word in ("<", "fewer than ", "under "):
        assert read_cell(word + text, mark).high == cell.low


@pytest.mark.parametrize(
    "text", ["Female", "12th", "1.2.3", "2026-01-31", "1,23,4", "a5", "True", "1" * 90]
)
def test_other_texts_are_no_numbers(text):
    assert read_cell(text, ".") is None


def test_a_metric_frame_of_two_features_with_accuracy_is_read(recwarn):
    from fairlearn.metrics import count as count_people
    from sklearn.metrics import accuracy_score

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 100)
    people = PEOPLE.assign(age=pd.cut(rng.integers(18, 70, 100), [0, 30, 45, 100]))
    frame = MetricFrame(
        metrics={
            "hire rate": selection_rate, "accuracy": accuracy_score, "count": count_people,
        },
        y_true=labels, y_pred=people.hired,
        sensitive_features=people[["who", "race"]], control_features=people[["age"]],
    )  # fmt: skip
    report = FairnessReport.read(frame)
    assert set(report.metric) == {"selection-rate", "accuracy"}
    assert report.columns[0].values == ("(0, 30]", "(30, 45]", "(45, 100]")
    assert "of 4 groups of who x race in 3 slices by age" in report.read_as
    # Assessed at once, by the groups of the people.
    verdict = assess(
        frame, people[["age"]], people.hired, labels, people[["who", "race"]], "shares"
    )
    assert verdict.groups == ("f x b", "f x w", "m x w")
    assert verdict.read_as[0].startswith("selection rate, accuracy of 3 groups of who x race")


def test_a_folder_of_an_acro_session_is_read(tmp_path):
    (tmp_path / "a.csv").write_text("who,f,m\n0,20,30\n1,20,30\n".replace("who", "hired"))
    record = {"version": "0.4", "results": {"output_0": {
        "type": "table", "title": "Counts", "files": [{"name": "a.csv", "sdc": {}}]}}}  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(record))
    report = read_text(tmp_path, PEOPLE, mapping={"value": "people"})
    assert dict(zip(report.metric, report.value, strict=False)).keys() == {"selected", "rejected"}
    record["results"]["output_0"]["files"] = [{"name": "../b.csv"}]
    (tmp_path / "results.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="outside of its folder"):
        read_text(tmp_path, PEOPLE)


@settings(max_examples=20)
@given(seed=st.integers(0, 9999))
def test_a_metric_frame_without_sizes_is_read_exactly(seed):
    """Its floats are nobody's rounded ones; a rate of 0 or 1 may be of nobody, so it says no size."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"job": rng.choice(["a", "b"], 12)})
    labels, predictions = rng.integers(0, 2, (2, 12))
    sex = pd.Series(rng.choice(["f", "m"], 12), name="sex")
    frame = MetricFrame(
        metrics={"tpr": true_positive_rate}, y_true=labels, y_pred=predictions,
        sensitive_features=sex, control_features=X,
    )  # fmt: skip
    read = FairnessReport.read(frame).facts(X, predictions, labels)
    plain = FairnessReport.read(frame).facts(X, predictions, labels)
    assert read.allows(pd.Categorical(sex, read.group_names).codes)
    for vector in np.random.default_rng(0).integers(0, 2, (200, 12)):
        assert not read.allows(vector) or plain.allows(vector)  # read knows who is not there


def test_a_short_float_of_a_metric_frame_is_no_rounded_one():
    """9 of 20 women are no half of them; and rates that add up to 1 are no shares here."""
    sex = np.repeat(["f", "m"], 20)
    predictions = np.tile([0, 1], 20)
    X = pd.DataFrame({"job": ["a"] * 40})
    frame = MetricFrame(
        metrics={"selection rate": selection_rate}, y_true=predictions, y_pred=predictions,
        sensitive_features=pd.Series(sex, name="sex"),
    )  # fmt: skip
    other = np.where(sex == "m", 1, 0)
    other[[1, 20]] = other[[20, 1]]  # a woman who is selected for a man who is not
    assert not FairnessReport.read(frame).facts(X, predictions).allows(other)


def test_a_rate_written_as_0_may_be_of_nobody():
    """Toolkits print 0 for a group that is not there; digits that are written leave that open."""
    X = pd.DataFrame({"job": ["a"] * 6 + ["b"] * 6})
    predictions = np.array([1, 1, 0, 0, 1, 0] + [0] * 6)
    sex = np.array(["f", "m", "f", "m", "f", "f"] + ["m"] * 6)
    table = pd.DataFrame({
        "job": list("aabb"), "sex": list("fmfm"), "selection rate": ["0.5", "0.5", "0.0", "0.0"],
    })  # fmt: skip
    facts = FairnessReport.read(table).facts(X, predictions)
    assert facts.allows((sex == "m").astype(int))


@pytest.mark.parametrize("heading", ["hired", "Passed"])
def test_a_heading_that_is_the_peoples_column_or_a_metric_is_asked_about(heading):
    """Predictions and the column of this name have other numbers of people."""
    people = pd.DataFrame({heading.casefold(): [0, 1] * 20})
    groups, predictions = pd.Series(["f", "m"] * 20), np.ones(40, int)
    table = pd.DataFrame({"sex": ["f", "m"], heading: [20, 20]})
    with pytest.raises(InputError, match="may be selected by prediction, or of the people's"):
        assess(table, people, predictions, groups=groups)
    names = {heading: "selected"}
    read = FairnessReport.read(table, X=people, group="sex", groups=["f", "m"], names=names)
    assert set(read.metric) == {"selected"}


def test_a_statistic_in_brackets_behind_a_number_is_read():
    people = pd.DataFrame({"age": range(20, 60)})
    table = pd.DataFrame({"sex": ["f", "m"], "age (mean)": ["39.0", "40.0"]})
    read = FairnessReport.read(table, X=people, group="sex")
    assert [one.metric for one in read.statistics] == ["mean of age"] * 2
