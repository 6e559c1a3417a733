"""A row: fpbench's own measures, and components' reports beside them, never instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fpbench.base.errors import PluginError
from fpbench.components.guarantee import Guarantee
from fpbench.components.measures import fold_name
from fpbench.components.own_measures import MEASURED, RESERVED, why_not_a_note
from fpbench.components.records import MeasureValues
from fpbench.store.packing import is_identical

_EPSILON = "epsilon"
_BESIDE_EPSILON = ("delta", "neighbours", "rho")
_LONGEST_QUOTE = 60


class ComponentWords(NamedTuple):
    """A component's report on its own work: its notes, or its measures."""

    kind: str
    name: str
    """The name of the component; empty if unknown."""
    values: Any
    """A dictionary, if the component keeps its contract."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}" if self.name else self.kind

    def own(self, name: str) -> str:
        """A name that would be the component's own."""
        return f"{re.sub(r'[^a-z0-9]+', '_', self.name.lower()) or 'my'}_{name}"


def make_row(
    measured: Mapping[str, object], words: Iterable[ComponentWords], guarantee: Guarantee | None
) -> MeasureValues:
    """A row of fpbench's measures and components' reports.

    `measured`: fpbench's measures. `words`: each component's report, in the order of the row.
    `guarantee`: the guarantee of the row's model.

    Raises PluginError if a component gives a name that is fpbench's, or that another component
    gave with another value; or an epsilon that is not of the model's guarantee.
    """
    row: dict[str, Any] = dict(measured)
    assert row.keys() <= MEASURED, f"measures that no table names: {row.keys() - MEASURED}"
    givers: dict[str, tuple[str, ComponentWords]] = {}
    for part in words:
        if not isinstance(part.values, Mapping):
            raise PluginError(
                f"{part}: its notes and measures must be dictionaries, not "
                f"{type(part.values).__name__}"
            )
        for name, value in part.values.items():
            read = _check_name(part, name)
            other, giver = givers.setdefault(read, (name, part))
            if other != name or (giver is not part and not is_identical(row[name], value)):
                raise PluginError(
                    f"{part}: {_quote_name(name)} is given by {giver} as well"
                    f"{', with another value' if other == name else ', as ' + _quote_name(other)}; "
                    f"choose another name, such as {part.own(read)!r}"
                )
            row[name] = value
        _check_promises(part, guarantee)
    return row


def _check_name(part: ComponentWords, name: Any) -> str:
    """The name without capitals and signs; refuse one of fpbench's own."""
    if not isinstance(name, str):
        raise PluginError(f"{part}: the name of a measure must be a text, not {_quote_name(name)}")
    read = fold_name(name)
    if (why := why_not_a_note(name)) is not None:
        other = part.own(RESERVED.get(read, "value"))
        raise PluginError(
            f"{part}: {_quote_name(name)} {why}, and no component may give it; choose another "
            f"name, such as {other!r}"
        )
    return read


def _check_promises(part: ComponentWords, guarantee: Guarantee | None) -> None:
    """Refuse the epsilon of a guarantee that is not the model's.

    Readers take a measure whose name ends in epsilon for the model's. An auditor may measure an
    epsilon, so its measures are not checked.
    """
    if part.kind == "auditor":
        return
    reads = {
        fold_name(name): (name, value)
        for name, value in part.values.items()
        if isinstance(name, str)
    }
    for owner in [read.removesuffix(_EPSILON) for read in reads if read.endswith(_EPSILON)]:
        for promise in (_EPSILON, *_BESIDE_EPSILON):
            name, value = reads.get(owner + promise, ("", None))
            if value is None or (guarantee and value == getattr(guarantee, promise)):
                continue
            truth = "None" if guarantee is None else repr(getattr(guarantee, promise))
            what = f"the {promise} of a guarantee"
            whose = "the model has none" if guarantee is None else f"the model's is {truth}"
            raise PluginError(
                f"{part}: {_quote_name(name)} reads as {what}, and {whose}: give the model its "
                f"`guarantee`, or choose a name that does not end so, such as "
                f"{f'{promise}_of_{part.own(part.kind)}'!r}"
            )


def _quote_name(name: Any) -> str:
    """A name in quotes, with unprintable characters escaped."""
    text = name if isinstance(name, str) else type(name).__name__
    return repr(text[:_LONGEST_QUOTE]) if text.isprintable() else ascii(text[:_LONGEST_QUOTE])
