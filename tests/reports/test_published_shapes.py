"""Tables as statistical programs, spreadsheets, PDFs and audits print them: read, or refused."""

import numpy as np
import pandas as pd
import pytest

from fpbench import InputError
from fpbench.reports.fairness_report import FairnessReport
from fpbench.reports.reading.grids import parse_table
from fpbench.reports.reading.known_names import KnownNames
from fpbench.reports.reading.tables import read_tables

RNG = np.random.default_rng(3)
N = 2400
PEOPLE = pd.DataFrame({
    "sex": RNG.choice(["Female", "Male"], N, p=[0.45, 0.55]),
    "department": RNG.choice(["Sales", "Legal", "R&D"], N),
})  # fmt: skip
PEOPLE["hired"] = (RNG.random(N) < np.where(PEOPLE.sex == "Male", 0.6, 0.35)).astype(int)
PEOPLE["good"] = (RNG.random(N) < 0.5).astype(int)
BY_SEX = PEOPLE.groupby("sex").hired.agg(["size", "sum", "mean"])
BY_BOTH = PEOPLE.groupby(["department", "sex"]).hired.agg(["size", "sum", "mean"])
COUNTS = pd.crosstab(PEOPLE.sex, PEOPLE.hired)
CROSSED = pd.crosstab([PEOPLE.department, PEOPLE.sex], PEOPLE.hired)


def read(text, secret=("sex",), **mapping):
    columns = PEOPLE[["department"]]
    names = KnownNames({"sex": ("Female", "Male")}, columns, ("hired",), "good", mapping=mapping)
    return FairnessReport._of(read_tables(parse_table(text.encode(), "t"), names, secret).report)


def write_rows(line, table=BY_SEX):
    """A line for each row of counts: formatted by its key, size, number hired and rate."""
    rows = table.itertuples(name=None)
    return "".join(line.format(*([k] if isinstance(k, str) else k), *own) for k, *own in rows)


PDF = "Bias Audit Results\n\n{}\n" + write_rows("{} {:,} {:,} {:.1%} 0.70\n")
CODES = [COUNTS.loc[sex, bit] for sex in COUNTS.index for bit in (0, 1)]
SUMS = [number for sex in COUNTS.index for number in (*COUNTS.loc[sex], COUNTS.loc[sex].sum())]
SHAPES = {
    "a PDF, a blank apart": PDF.format("Sex # of Applicants # Selected Selection Rate Impact Ratio"),
    "a PDF, blanks apart": "Audit of 2026\n\nSex    # Applicants    Number selected    Impact\n"
    + write_rows("{}   {:,}  {:,}    0.70\n") + "Note: of 2 groups\n",
    "SPSS": "sex * hired\n\t\t\thired\t\tTotal\n\t\t\t0\t1\t\n"
    "sex\tFemale\tCount\t{}\t{}\t{}\n\t\t% within hired\t3%\t4%\t100%\n"
    "\tMale\tCount\t{}\t{}\t{}\n\t\t% within hired\t3%\t4%\t100%\n".format(*SUMS),
    "Stata": "       |     hired\n   sex |    0      1 |  Total\n-------+-------------+------\n"
    "Female | {:>5} {:>6} | {:,}\n  Male | {:>5} {:>6} | {:,}\n".format(*SUMS),
    "R xtabs": "        hired\nsex         0    1\n  Female {:4d} {:4d}\n  Male   {:4d} {:4d}\n".format(*CODES),
    "pandas crosstab": COUNTS.to_string(),
    "R ftable": CROSSED.to_string(),
    "R tibble": "# A tibble: 6 \u00d7 4\n  department sex        n   rate\n  <chr>      <chr>  <int>  <dbl>\n"
    + "".join(f"{i} {d:<10} {s:<6} {size:>5} {rate:.3f}\n" for i, ((d, s), size, _, rate) in
              enumerate(BY_BOTH.itertuples(name=None), 1)),
    "R aggregate": BY_BOTH["mean"].rename("hired").reset_index().to_string(),
    "a mean of groups": BY_BOTH["mean"].rename("hired").reset_index().to_csv(index=False),
    "a two-way pivot": "Sum of hired,Column Labels,,\nRow Labels,Female,Male,Grand Total\n"
    + "".join(f"{d},{BY_BOTH.loc[(d, 'Female'), 'sum']},{BY_BOTH.loc[(d, 'Male'), 'sum']},9\n"
              for d in ("Sales", "Legal", "R&D")),
    "a pivot with subtotals": "department,sex,Count of hired,Sum of hired\n" + "".join(
        f"{d if s == 'Female' else ''},{s},{BY_BOTH.loc[(d, s), 'size']},{BY_BOTH.loc[(d, s), 'sum']}\n"
        + (f"{d} Total,,800,9\n" if s == "Male" else "") for d, s in BY_BOTH.index),
    "a compact pivot": "Row Labels,Count of hired,Sum of hired\n" + "".join(
        (f"{d},800,9\n" if s == "Female" else "")
        + f"{s},{BY_BOTH.loc[(d, s), 'size']},{BY_BOTH.loc[(d, s), 'sum']}\n" for d, s in BY_BOTH.index),
    "names before values": "slice,FPR,positive_rate\n" + write_rows("sex:{0},,{3:.4f}\n") + "Overall,,0.5\n",
    "Aequitas": "attribute_name,attribute_value,ppr,ppr_ref_group_value,pp,group_size,4/5ths Rule\n"
    + write_rows("sex,{0},0.5,Male,{2},{1},Yes\n"),
    "LaTeX": "\\begin{tabular}{lrr}\n & \\multicolumn{2}{c}{Female} & \\multicolumn{2}{c}{Male} \\\\\n"
    "Department & $n$ & Selection\\ rate (\\%) & $n$ & Selection\\ rate (\\%) \\\\\n\\midrule\n"
    + "".join("\\multirow[t]{2}{*}{" + d.replace("&", "\\&") + "} & " + " & ".join(
        f"{BY_BOTH.loc[(d, s), 'size']} & {100 * BY_BOTH.loc[(d, s), 'mean']:.1f}"
        for s in ("Female", "Male")) + " \\\\\n" for d in ("Sales", "Legal", "R&D")) + "\\end{tabular}",
    "units in brackets": "sex,Recall (TPR),n (%),Hired (n = 9)\n" + write_rows("{},,{} (50.0%),{}\n"),
    "percentages in brackets": 'sex,N (%),"Hired, n (%)"\n' + write_rows("{},{} (50),{} ({:.1%})\n"),
    "groups in brackets": "department,Hire rate (Female) [%],Hire rate (Male) [%]\n" + "".join(
        f"{d},{100 * BY_BOTH.loc[(d, 'Female'), 'mean']:.1f},{100 * BY_BOTH.loc[(d, 'Male'), 'mean']:.1f}\n"
        for d in ("Sales", "Legal", "R&D")),
    "lines of JSON": write_rows('{{"sex": "{0}", "n": {1}, "hired": {2}}}\n'),
    "slices in headings": "sex," + ",".join(f"{d} n,hired ({d})" for d in ("Sales", "Legal", "R&D")) + "\n"
    + "".join(f"{s}," + ",".join(f"{BY_BOTH.loc[(d, s), 'size']},{BY_BOTH.loc[(d, s), 'sum']}"
                                 for d in ("Sales", "Legal", "R&D")) + "\n" for s in ("Female", "Male")),
    "sizes beside names": "Hire rate\ndepartment,Female (n={}),\"Male, N = {:,}\"\n".format(*BY_SEX["size"])
    + "".join(f"{d} (n={size})," + ",".join(f"{BY_BOTH.loc[(d, s), 'mean']:.1%}" for s in ("Female", "Male"))
              + "\n" for d, size in PEOPLE.department.value_counts().items()),
    "sizes beside names of rows": "sex,hired\n" + write_rows("{0} (N={1}),{2}\n"),
    "women": "department,Women (hired),Women applied,Men (hired),Men applied\n" + "".join(
        f"{d}," + ",".join(f"{BY_BOTH.loc[(d, s), 'sum']},{BY_BOTH.loc[(d, s), 'size']}"
                           for s in ("Female", "Male")) + "\n" for d in ("Sales", "Legal", "R&D")),
    "totals of groups": "sex,hired,total\n" + write_rows("{0},{2},{1}\n"),
    "totals below groups": "department,Female,,Male,\n,hired,All,hired,All\n" + "".join(
        f"{d}," + ",".join(f"{BY_BOTH.loc[(d, s), 'sum']},{BY_BOTH.loc[(d, s), 'size']}"
                           for s in ("Female", "Male")) + "\n" for d in ("Sales", "Legal", "R&D")),
    "totals beside a metric": "metric,Female,Male\nhired,{},{}\ntotal,{},{}\n".format(
        *BY_SEX["sum"], *BY_SEX["size"]),
    "totals over slices, rates": "Selection rates\nsex,Legal,R&D,Sales,Total\n" + "".join(
        f"{s}," + ",".join(f"{BY_BOTH.loc[(d, s), 'mean']:.4f}" for d in ("Legal", "R&D", "Sales"))
        + f",{BY_SEX.loc[s, 'mean']:.4f}\n" for s in ("Female", "Male")),
    "totals over slices": "Hired\nsex,Legal,R&D,Sales,Total\n" + "".join(
        f"{s}," + ",".join(str(BY_BOTH.loc[(d, s), "sum"]) for d in ("Legal", "R&D", "Sales"))
        + f",{BY_SEX.loc[s, 'sum']}\n" for s in ("Female", "Male")),
    "a grid with rules": "+--------+-----+-------+\n| sex    |   n | hired |\n+========+=====+=======+\n"
    + write_rows("| {} | {} | {} |\n+--------+-----+-------+\n"),
    "MySQL": "+------+----------+------------+\n| sex  | COUNT(*) | AVG(hired) |\n+------+----------+------------+\n"
    + write_rows("| {0} | {1} | {3:.4f} |\n") + "+------+----------+------------+\n2 rows in set (0.00 sec)\n",
    "polars": "shape: (2, 3)\n\u250c\u2500\u252c\u2500\u252c\u2500\u2510\n\u2502 sex \u2506 n \u2506 hired \u2502\n"
    "\u2502 --- \u2506 --- \u2506 --- \u2502\n\u2502 str \u2506 i64 \u2506 i64 \u2502\n\u255e\u2550\u256a\u2550\u256a\u2550\u2561\n"
    + write_rows("\u2502 {} \u2506 {} \u2506 {} \u2502\n") + "\u2514\u2500\u2534\u2500\u2534\u2500\u2518\n",
    "SQL rollup": "department,sex,cnt,hired\n" + "".join(f"{d},{s},{size},{hired}\n" for (d, s), size, hired, _ in
        BY_BOTH.itertuples(name=None)) + write_rows("NULL,{},{},{}\n") + f"Sales,NULL,7,3\nNULL,NULL,{N},9\n",
    "flat columns": "sex,hired_mean,department_count\n" + write_rows("{0},{3:.4f},{1}\n"),
    "Power BI": "sex,Count of sex,Sum of hired\n" + write_rows("{},{},{}\n"),
    "names of scikit-learn": "sex,y_true,y_pred,count\n" + "".join(
        f"{s},{y},{p},{size}\n" for (s, y, p), size in PEOPLE.value_counts(["sex", "good", "hired"]).items()),
    "numbered rows": "  sex        n mean_pay  rate\n" + "".join(
        f"{i} {s:<6} {size:>5}   53600. {rate:.3f}\n" for i, (s, size, _, rate) in
        enumerate(BY_SEX.itertuples(name=None), 1)),
    "intervals": 'sex,n,"Selection rate (95% CI)"\n' + write_rows('{0},{1},"{3:.1%} (30.1%, 40.2%)"\n'),
    "numbered footnotes": "sex[1],Applicants[2],Hired %\n" + write_rows("{0},{1},{3:.1%}[3]\n"),
    "an unweighted base": "sex,Unweighted n,hired\n" + write_rows("{},{},{}\n"),
    "a titled half": "Department: Sales\nSelection rates, 2026\nsex,rate,n\n" + "".join(
        f"{s},{BY_BOTH.loc[('Sales', s), 'mean']:.4f},{BY_BOTH.loc[('Sales', s), 'size']}\n"
        for s in ("Female", "Male")),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_what_programs_print_is_read_as_the_peoples_numbers(shape):
    report = read(SHAPES[shape])
    facts = report.facts(PEOPLE[["department"]], PEOPLE.hired, PEOPLE.good)
    belongs = np.eye(2)[(PEOPLE.sex == "Male").astype(int)]
    true = facts.membership.T @ belongs
    assert (facts.low <= true).all()
    assert (true <= facts.high).all()
    assert (facts.low == facts.high).all(axis=1).any()  # numbers, and not ranges, are told


@pytest.mark.parametrize(
    ("shape", "column", "by"),
    [
        ("sizes beside names", "value", BY_SEX),
        ("sizes beside names of rows", "n", BY_SEX),
        ("women", "n", BY_BOTH),
    ],
)
def test_sizes_beside_names_are_read(shape, column, by):
    sizes = getattr(read(SHAPES[shape]), column)
    assert sorted(sizes[sizes > 1]) == sorted(by["size"])


@pytest.mark.parametrize("heading", ["total", "All", "Female total", "gesamt"])
def test_totals_of_groups_are_their_people(heading):
    other = heading.replace("Female", "Male")
    rows = write_rows("{0},{2},{1}\n")
    if "Female" in heading:
        rows = f",{heading},Female hired,{other},Male hired\n,"
        rows += ",".join(f"{size},{hired}" for size, hired, _ in BY_SEX.itertuples(index=False))
        rows += "\n"
    report = read(rows if "Female" in heading else f"sex,hired,{heading}\n{rows}")
    assert report.n.tolist() == BY_SEX["size"].tolist()


NAMED = "".join(f"{sex},{n}\n" for sex, n in zip(BY_SEX.index, BY_SEX["sum"], strict=True))


@pytest.mark.parametrize(("text", "told"), [
    ("Hires in Sales\nsex,hired\n" + NAMED, "title 'Hires in Sales' may say .* 'Sales' by 'department'"),
    ("Hires by sex\nsex,n\n" + NAMED, "'n' below 'Hires by sex' may be people, or selected"),
    ("sex,Reference,n\nFemale,Male,3\nFemale,Male,4\n", "tell different numbers"),
    ("sex,other,hired Female\nMale,1,3\n", "is of 'Male' and 'Female' by 'sex'"),
    ("sex,Sales hired,Legal hired,Total\nFemale,1,0,2\nMale,1,0,3\n", "'Total' may be people, or selected"),
    ('sex,hired\n"Female (n = 8.0)",4\nMale,4\n', "is the group of none of the people"),
    ("sex,0,1\nFemale,0.6,0.4\nMale,0.2,0.8\n", "may be predictions, or labels"),
    (COUNTS.div(COUNTS.sum(axis=1), axis=0).to_string(), "no whole number of people .if it is a rate"),
    ("sex,Hired\nFemale,30%\nMale,44%\n", "'30%' is a share, and no number of people"),
    ("sex,Hires (of qualified),n [18-29]\nFemale,30,9\nMale,44,9\n", "no number of it could be read"),
    ("sex,n,hired\nFemale,1,234,567\nMale,9,8\n", "line 2: has 4 fields below 3 headings"),
    ("sex,decile,n,rate\nFemale,1,9,50%\nMale,1,8,50%\nFemale,2,9,50%\n",
     "rows 0 and 2 are of the same people, as far as they are read, but not by 'decile': say"),
    ("sex,n,hired\nFemale,3,1\nUnknown,4,2\n", "--map 'Unknown'=- leaves its numbers out"),
    ("year,Women hired,Men hired\n2023,9,8\n2024,9,8\n", "rows 0 and 1 are of the same people"),
    ('{"sex": "Female", "n": 3, "n": 4}\n{"sex": "Male", "n": 3}', "an object has two values of 'n'"),
    ('{"facets": {"sex": [{"value": "Female", "DPPL": 0.1}]}}', "a value is an object or a list"),
])  # fmt: skip
def test_what_may_mean_another_thing_is_refused(text, told):
    with pytest.raises(InputError, match=told):
        read(text)


def test_a_mapped_title_is_settled():
    text = "Hires in Sales\nsex,hired\n" + NAMED
    assert not read(text, **{"Hires in Sales": "-"}).columns
    (column,) = read(text, **{"Hires in Sales": "Sales"}).columns
    assert column.values == ("Sales",)
    assert set(read("Hires by sex\nsex,n\n" + NAMED, n="selected").metric) == {"selected"}


def test_rows_are_left_out_as_asked():
    report = read("sex,n,hired\nFemale,3,1\nMale,4,1\nUnknown,4,2\n", Unknown="-")
    assert report.n.tolist() == [3, 4]


@pytest.mark.parametrize(("n", "within"), [(40, 0), (1000, 0.005)])
def test_rounded_rates_that_fit_are_exact_only_if_no_other_number_fits(n, within):
    report = read(f"sex,n,Selection rate\nFemale,{n},35%\nMale,{n},45%\n")
    assert report.within == pytest.approx(within)


def test_numbers_of_one_group_before_those_of_slices_are_no_heading():
    report = read("department,sex,n\n,Female,7\nSales,Female,4\n")
    assert report.value.tolist() == [7, 4]


@pytest.mark.parametrize(("text", "unread"), [
    ("metric,Female precision,Female n\nprecision,.5,8\naccuracy,.7,8\n",
     "accuracy Female precision: names two metrics"),
    ("sex,metric,numerator,denominator\nFemale,TPR,3,4\nFemale,selection rate,6,8\n",
     "TPR numerator: names two metrics"),
    ("sex,n,Impact ratio\nFemale,3,0.5\nMale,4,1\n", ""),
    ("sex,n,selection rate,Impact ratio\nFemale,4,0.5,0.5\nMale,4,1,1\n", ""),
    ("sex,n,hired,4/5ths rule\nFemale,4,2,no\nMale,4,4,yes\n", ""),
    ("sex,n,hired,TPR difference\nFemale,4,2,0.2\nMale,4,4,0\n", "TPR difference: compares"),
    ("metric,Female,Male\nprecision,0.5,0.7\nFDR ratio,1.67,\nequal opportunity difference,,0.1\n",
     "equal opportunity difference: compares groups"),
    ("attribute,level,n,impact ratio\nsex,Female,3,1\nsex,Male,4,.75\ndepartment,Sales,3,1\n"
     "department,Legal,4,.75\n", "impact ratio: compares groups"),
    ("attribute,level,n,impact ratio\nsex,Female,3,1\nsex,Male,4,.75\ndepartment,Sales,3,1\n"
     "department,Legal,4,1\n", "impact ratio: compares groups"),
    ("sex,true positives,impact ratio\nFemale,4,.5\nMale,9,1\n", "impact ratio: compares groups"),
    ("sex,n,impact ratio\nFemale,4,6.00\nMale,6,1.00\n", "impact ratio: compares groups"),
    ("sex,n\nFemale,6\nMale,2\n\ndepartment,selection rate difference\nSales,0.5\nLegal,0.5\n",
     "selection rate difference: compares groups"),
    ("sex,n,Not Sales hired\nFemale,4,0\nMale,4,2\n", "unknown metric 'Not Sales hired'"),
    ("department,Women + Men hired,Women n\nSales,2,1\n", "unknown metric 'Women + Men hired'"),
    ("sex,n,mean age (hired)\nFemale,4,69.0\nMale,5,67\n", "mean age (hired): is no number"),
    ("sex,n,Mean age at hire\nFemale,2,30.0\nMale,3,30.0\n", "Mean age at hire: is no number"),
    ('department,"Women hired (n = 2)"\nSales,1\n', "may be of the group, or of those counted"),
    ("sex,n,F1,AUC\nFemale,4,0.5,0.6\nMale,4,0.5,0.7\n", "not read: 1 of 4 columns (AUC: is no number"),
])  # fmt: skip
def test_what_tells_more_and_is_not_read_is_listed(text, unread):
    names = KnownNames({"sex": ("Female", "Male")}, PEOPLE[["department"]], ("hired",), "good")
    warning = read_tables(parse_table(text.encode(), "t"), names, ("sex",)).warning
    assert unread in warning
    assert bool(unread) == bool(warning)


def test_a_heading_with_a_value_of_two_columns_is_not_read():
    columns = PEOPLE[["department"]].assign(last=PEOPLE.department)
    names = KnownNames({"sex": ("Female", "Male")}, columns, ("hired",), "good")
    text = "sex,n,Sales hired\nFemale,4,2\nMale,4,4\n"
    warning = read_tables(parse_table(text.encode(), "t"), names, ("sex",)).warning
    assert "Sales hired: names a value of 'department', or 'last'" in warning


def test_sizes_beside_names_are_read_where_nobodys_group_is_known():
    text = 'sex,hired\n"Female (n = 2)",2\n"Male (n = 5)",1\n'
    names = KnownNames({}, PEOPLE[["department"]], ("hired",))
    assert read_tables(parse_table(text.encode(), "t"), names, ("sex",)).report.n.tolist() == [2, 5]
