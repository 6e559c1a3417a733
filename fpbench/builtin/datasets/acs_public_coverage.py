"""ACSPublicCoverage of folktables: who of the poor has public health insurance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fpbench.builtin.datasets._acs import Survey
from fpbench.data import Attribute, Sensitive
from fpbench.tabular import sensitive_field

if TYPE_CHECKING:
    from pandas import DataFrame, Series


class ACSPublicCoverage(Survey):
    """ACSPublicCoverage of folktables: people of one state with a low income, and their insurance.

    Kept are people below 65 years with an income of at most 30,000 USD (people below 15 have none
    that is known). Label 1 is public health coverage (PUBCOV is 1). For Texas, 2018, that is 98,928
    people by Ferry et al.; this loader was not run on the real file.

    Features: AGEP (age), SCHL (schooling, 24 levels in order) and PINCP (income) as whole numbers;
    MAR, SEX, DIS, ESP, CIT, MIG, MIL, ANC, NATIVITY, DEAR, DEYE, DREM, ESR, ST, FER and RAC1P as
    categoricals of the Census Bureau's codes, but SEX and RAC1P in words. ST, the state, is the
    same for everyone. What is missing is -1 (folktables writes 0, though it means -1:
    `numpy.nan_to_num(x, -1)` does not say what to put there).

    By default, groups are people below 25 years and others: the United Nations count those of 15 to
    24 as youth, and the cut is the same for every state and year. Ferry et al. cut at the first
    quartile of the table and do not print it; `sensitive = { column = "AGEP", quantile = 0.25 }`
    is theirs, which private learners and audits refuse, since every person moves a quartile.

    The file of people is read as folktables keeps it, `YEAR/HORIZON/psam_pNN.csv` (before 2017:
    `ssYYpXX.csv`) in a data directory, or without the folders. State and, as far as serial numbers
    tell it, year are checked. There is no standard 1-year file of 2020.

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
        """People below 65 with a low income."""
        return (frame["AGEP"] < 65) & (frame["PINCP"] <= 30_000)

    def label_people(self, frame: DataFrame) -> tuple[Series, str]:
        """Who is covered."""
        return frame["PUBCOV"] == "1", "public health coverage"
