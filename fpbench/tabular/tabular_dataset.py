"""Data sets that are one table: sensitive columns, dropped columns, declared domains."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from fpbench.base.errors import DataError, InputError
from fpbench.components.attack_kinds import Dataset
from fpbench.data.attributes import (
    Attribute,
    Dropped,
    Sensitive,
    check_column,
    check_drop,
    get_column_name,
    make_groups,
    measured_cuts,
)
from fpbench.data.data_files import DataHome
from fpbench.data.domain import Domain, DomainParameter, check_declared
from fpbench.data.sample import Codes
from fpbench.data.table import Table

if TYPE_CHECKING:
    from pandas import DataFrame

_SENSITIVE = (
    "sensitive attribute: a column, a table with a rule, or a list of them, which are crossed; "
    'rules: { column = "C", one_of = [...] }, { column = "C", cuts = [...] }, '
    '{ column = "C", quantile = 0.25 }'
)


_DOMAIN = (
    "public domain of features, which private learners need: a table, name = [low, high] "
    'of numbers, name = ["a", "b"] of categories'
)


def sensitive_field(*default: str | Attribute) -> Any:
    """The parameter `sensitive` of a tabular data set, with its default; required without one.

    Parameters
    ----------
    *default
        The default sensitive columns or attributes.
    """
    return Field(default, description=_SENSITIVE) if default else Field(description=_SENSITIVE)


def domain_field() -> Any:
    """The parameter `domain` of a data set."""
    return Field({}, validate_default=True, description=_DOMAIN)


@dataclass(frozen=True)
class LabelledColumns:
    """Everyone's columns and labels; the sensitive columns are among the columns.

    Attributes
    ----------
    columns
        n rows; numeric columns and pandas categoricals, without missing values.
    labels
        (n,) in {0, 1}.
    positive
        Meaning of label 1.
    test
        (n,) who is in the test set that the data's authors published; None if there is none.
    households
        (n,) number of each person's household; None: everybody lives alone.
    """

    columns: DataFrame
    labels: Codes
    positive: str
    test: NDArray[np.bool_] | None = None
    households: NDArray[np.int64] | None = None


class TabularDataset(Dataset):
    """A data set that is one table, any column of which may be the sensitive attribute.

    A subclass defines `read`, and a default for `sensitive` with `sensitive_field`; it has the
    parameters of every tabular data set.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    """Names of all columns but the label; empty if unknown before loading."""
    n_values: ClassVar[Mapping[str, int]] = {}
    """Numbers of distinct values, where known, by column."""
    declared: ClassVar[Domain] = Domain()
    """Public bounds and categories of its columns; the parameter `domain` adds to them."""

    sensitive: Sensitive = sensitive_field()
    drop: Dropped = Field((), description="columns to leave out of the features")
    domain: DomainParameter = domain_field()

    @field_validator("domain")
    @classmethod
    def _check_domain(cls, lists: dict[str, Any]) -> dict[str, Any]:
        return check_declared(lists, cls.columns)

    @field_validator("sensitive")
    @classmethod
    def _check_sensitive(
        cls, sensitive: tuple[str | Attribute, ...]
    ) -> tuple[str | Attribute, ...]:
        for item in sensitive if cls.columns else ():
            check_column(get_column_name(item), cls.columns)
        return sensitive

    @field_validator("drop")
    @classmethod
    def _check_drop(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for name in names if cls.columns else ():
            check_column(name, cls.columns)
        check_drop(names, info.data.get("sensitive", ()))
        return names

    @property
    def n_groups(self) -> int | None:
        """Number of groups, if rules or `n_values` determine it."""
        product = 1
        for item in self.sensitive:
            count = self.n_values.get(item) if isinstance(item, str) else len(item.groups)
            if count is None:
                return None
            product *= count
        return product

    @property
    def measured_cuts(self) -> dict[str, str]:
        """Groups that are cut at a quantile, and how."""
        return measured_cuts(self.sensitive)

    @abstractmethod
    def read(self, home: DataHome) -> LabelledColumns:
        """Read everyone's columns and labels.

        Raises
        ------
        DataError
            If a file is missing, or its content is not as expected.
        """

    def load(self, home: DataHome) -> Table:
        """Read the table, and separate the sensitive columns.

        Raises
        ------
        DataError
            If a file is missing, or its content is not as expected; if a rule does not fit its
            column.
        InputError
            If a named column does not exist.
        """
        people, own = self.read(home), Domain.of(self.domain)
        own.check_names(map(str, people.columns.columns))
        known = self.declared | own
        return tabulate(people, self.sensitive, drop=self.drop, domain=known, name=self.name)


def tabulate(
    people: LabelledColumns,
    sensitive: Iterable[str | Attribute],
    *,
    drop: Iterable[str] = (),
    domain: Domain | None = None,
    name: str = "table",
) -> Table:
    """A table with groups from some of its columns.

    These columns, and those of `drop`, are not features; several attributes are crossed, and the
    domain is restricted to the features. InputError if a column does not exist; DataError if a rule
    does not fit its column, or fewer than two groups have members.
    """
    import pandas as pd

    sensitive, drop, where = tuple(sensitive), tuple(drop), f"data set {name!r}"
    sensitive_columns = [get_column_name(item) for item in sensitive]
    present = list(people.columns.columns)
    try:
        for column in (*sensitive_columns, *drop):
            check_column(column, present)
        check_drop(drop, sensitive)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    features = people.columns.drop(columns=[*sensitive_columns, *drop])
    if not features.shape[1]:
        raise DataError(f"{where}: no column is left as a feature")
    groups = pd.DataFrame(make_groups(sensitive, people.columns, where))
    declared = (domain or Domain()).only(map(str, features.columns))
    return Table(
        name, features, people.labels, groups, people.positive, people.test, declared,
        measured_cuts(sensitive), households=people.households,
    )  # fmt: skip
