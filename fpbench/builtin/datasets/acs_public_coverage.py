"""ACSPublicCoverage of folktables: public health insurance of people with low incomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fpbench.builtin.datasets._acs import Survey
from fpbench.data import Attribute, Sensitive
from fpbench.tabular import sensitive_field

if TYPE_CHECKING:
    from pandas import DataFrame, Series


class ACSPublicCoverage(Survey):
    """ACSPublicCoverage of folktables: people of one state with a low income, and their insurance.

    People are below 65 years with an income of at most 30,000 USD (incomes of people below 15 are
    unknown). Label 1 is public health coverage (PUBCOV is 1). Ferry et al. report 98,928 people for
    Texas, 2018; this loader was not run on the real file.

    Features: AGEP (age), SCHL (schooling, 24 levels in order) and PINCP (income) as whole numbers;
    MAR, SEX, DIS, ESP, CIT, MIG, MIL, ANC, NATIVITY, DEAR, DEYE, DREM, ESR, ST, FER and RAC1P as
    categoricals of the Census Bureau's codes, SEX and RAC1P in words. ST, the state, is the
    same for everyone. Missing values are -1 (folktables writes 0 instead of the
    intended -1: `numpy.nan_to_num(x, -1)` does not set the value).

    By default, groups are people below 25 years and others: the United Nations count ages 15 to 24
    as youth, and the cut is the same for every state and year. Ferry et al. cut at the first
    quartile of the table, which they do not print: `sensitive = { column = "AGEP", quantile = 0.25
    }`. Private learners and audits refuse that cut, since every person moves a quartile.

    The file of people is read from folktables' path, `YEAR/HORIZON/psam_pNN.csv` (before 2017:
    `ssYYpXX.csv`) in a data directory, or without the folders. The state is checked, and the
    year if serial numbers have it. There is no standard 1-year file of 2020.

    Source: the Census Bureau's public use microdata; licence: its terms of service,
    https://www.census.gov/data/developers/about/terms-of-service.html.
    """

    name = "acs-public-coverage"
    summary = "ACSPublicCoverage of folktables: one state, low incomes; groups by age"
    reference = (
        "Frances Ding, Moritz Hardt, John Miller, Ludwig Schmidt. Retiring Adult: new datasets for "
        "fair machine learning. NeurIPS 2021."
    )
    task_columns = (
        *("AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY"),
        *("DEAR", "DEYE", "DREM", "PINCP", "ESR", "ST", "FER", "RAC1P"),
    )
    other_columns = ("PUBCOV",)
    columns = task_columns

    sensitive: Sensitive = sensitive_field(Attribute(column="AGEP", cuts=(25,)))

    def select_people(self, frame: DataFrame) -> Series:
        """Whether a person is below 65 with a low income."""
        return (frame["AGEP"] < 65) & (frame["PINCP"] <= 30_000)

    def label_people(self, frame: DataFrame) -> tuple[Series, str]:
        """Whether a person is covered."""
        return frame["PUBCOV"] == "1", "public health coverage"
