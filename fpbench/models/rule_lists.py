"""Rule lists: classifiers that are data."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError, suggest_name
from fpbench.data.sample import Codes
from fpbench.models.rules import Rules

if TYPE_CHECKING:
    from pandas import DataFrame

_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
    "in": lambda column, values: column.isin(values),
    "not in": lambda column, values: ~column.isin(values),
}


@dataclass(frozen=True)
class Clause:
    """A test of one feature.

    Attributes
    ----------
    feature
        Column of the design.
    test
        One of <, <=, >, >=, =, !=, in, not in.
    value
        What is compared with; a list for `in` and `not in`.

    Raises
    ------
    InputError
        If there is no such test.
    """

    feature: str
    test: str
    value: Any

    def __post_init__(self) -> None:
        if self.test not in _TESTS:
            raise InputError(f"unknown test {self.test!r}; {suggest_name(str(self.test), _TESTS)}")
        if self.test in ("in", "not in") and (
            isinstance(self.value, str) or not isinstance(self.value, Iterable)
        ):
            raise InputError(
                f"{self.feature} {self.test}: takes a list, not {show_value(self.value)}"
            )

    def holds(self, features: DataFrame) -> NDArray[np.bool_]:
        """Whether the clause holds, (n,) for each person.

        Raises
        ------
        InputError
            If there is no such feature, or its values cannot be compared with the value.
        """
        if self.feature not in features:
            hint = suggest_name(self.feature, map(str, features.columns))
            raise InputError(f"no feature {self.feature!r}; {hint}")
        try:
            return np.asarray(_TESTS[self.test](features[self.feature], self.value), dtype=np.bool_)
        except TypeError as error:
            raise InputError(f"{self}: {error}") from None

    def __str__(self) -> str:
        value = self.value
        if self.test in ("in", "not in"):
            value = f"{{{', '.join(map(str, self.value))}}}"
        return f"{self.feature} {self.test} {value}"


@dataclass(frozen=True)
class RuleList:
    """An ordered list of conditions: the first that holds decides. A classifier as data.

    Parameters
    ----------
    conditions
        Pairs of clauses, of which all must hold, and the label that they predict. A clause is a
        `Clause`, or its three parts.
    default
        The label if none holds.

    Examples
    --------
    >>> from fpbench.models import RuleList
    >>> model = RuleList([([("age", "<", 25), ("priors", ">", 2)], 1)], default=0)
    >>> model.rules.texts
    ('age < 25 and priors > 2', 'otherwise')
    """

    conditions: Sequence[tuple[Sequence[Clause | tuple[str, str, Any]], int]]
    default: int

    def __post_init__(self) -> None:
        parsed = [
            (tuple(c if isinstance(c, Clause) else Clause(*c) for c in clauses), label)
            for clauses, label in self.conditions
        ]
        object.__setattr__(self, "conditions", tuple(parsed))
        _ = self.rules  # which checks the labels

    @property
    def rules(self) -> Rules:
        """Its rules; the last conditions that predict the default are merged with it."""
        labels = [*(label for _, label in self.conditions), self.default]
        count = len(labels)
        while count > 1 and labels[count - 2] == self.default:
            count -= 1
        texts = [" and ".join(map(str, clauses)) for clauses, _ in self.conditions[: count - 1]]
        conditions = [text if not i else f"otherwise {text}" for i, text in enumerate(texts)]
        last = "otherwise" if conditions else "everyone"
        unpruned = labels.count(1)
        return Rules(
            np.array([*labels[: count - 1], self.default]), (*conditions, last), self._find_first,
            count - 1, unpruned,
        )  # fmt: skip

    def _find_first(self, features: DataFrame) -> NDArray[np.intp]:
        last = len(self.rules) - 1
        codes = np.full(len(features), last, dtype=np.intp)
        for code in range(last - 1, -1, -1):
            holds = np.ones(len(features), dtype=np.bool_)
            for clause in self.conditions[code][0]:
                assert isinstance(clause, Clause)
                holds &= clause.holds(features)
            codes[holds] = code
        return codes

    def predict(
        self,
        features: DataFrame,
        rng: np.random.Generator | None = None,
        sensitive: Codes | None = None,
    ) -> Codes:
        """Predict labels (n,) in {0, 1}."""
        rules = self.rules
        return rules.labels.take(rules.apply(features))
