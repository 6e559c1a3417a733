"""ACSIncome of folktables: incomes above 50,000 USD a year."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fpbench.builtin.datasets._acs import Survey
from fpbench.data import Attribute, Sensitive
from fpbench.tabular import sensitive_field

if TYPE_CHECKING:
    from pandas import DataFrame, Series


class ACSIncome(Survey):
    """ACSIncome of folktables: working adults of one state; the label is a high income.

    People are above 16 years, earned more than 100 USD, work more than 0 hours a week, and have a
    weight of at least 1. Label 1 is an income (PINCP) above 50,000 USD. Ferry et al. report 135,924
    people for Texas, 2018; this loader was not run on the real file.

    Features: AGEP (age), SCHL (schooling, 24 levels in order) and WKHP (hours a week) as whole
    numbers; COW, MAR, OCCP, POBP, RELP (RELSHIPP from 2019 on), SEX and RAC1P as categoricals of
    the Census Bureau's codes, SEX and RAC1P in words. folktables gives all of them as numbers;
    occupation (OCCP) and place of birth (POBP) have hundreds of codes, and `drop = ["OCCP",
    "POBP"]` saves much memory. Missing values are -1 (folktables writes 0 instead of the
    intended -1: `numpy.nan_to_num(x, -1)` does not set the value).

    By default, groups are White and others, by RAC1P, as in Ferry et al.

    The file of people is read from folktables' path, `YEAR/HORIZON/psam_pNN.csv` (before 2017:
    `ssYYpXX.csv`) in a data directory, or without the folders. The state is checked, and the
    year if serial numbers have it. There is no standard 1-year file of 2020.

    Source: the Census Bureau's public use microdata; licence: its terms of service,
    https://www.census.gov/data/developers/about/terms-of-service.html.
    """

    name = "acs-income"
    summary = "ACSIncome of folktables: one state, income above 50,000; groups by race"
    reference = (
        "Frances Ding, Moritz Hardt, John Miller, Ludwig Schmidt. Retiring Adult: new datasets for "
        "fair machine learning. NeurIPS 2021."
    )
    task_columns = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P")
    other_columns = ("PINCP", "PWGTP")
    columns = (*task_columns, "RELSHIPP")

    sensitive: Sensitive = sensitive_field(Attribute(column="RAC1P", one_of=("White",)))

    def select_people(self, frame: DataFrame) -> Series:
        """Whether a person is an adult who earns and works."""
        return (
            (frame["AGEP"] > 16)
            & (frame["PINCP"] > 100)
            & (frame["WKHP"] > 0)
            & (frame["PWGTP"] >= 1)
        )

    def label_people(self, frame: DataFrame) -> tuple[Series, str]:
        """Whether the income is above 50,000."""
        return frame["PINCP"] > 50_000, "income above 50,000"
