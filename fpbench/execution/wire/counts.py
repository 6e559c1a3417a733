"""`Facts` as plain arrays, and back: their sparse matrix as rows and members, and all names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.count_laws import CountLaws
from fpbench.claims.set_counts import Facts
from fpbench.execution.wire.message import Message, Unreadable
from fpbench.execution.wire.values import read_texts, write_texts


def write_facts(facts: Facts) -> list[NDArray[Any]]:
    """Facts as arrays: members of the sets, the end of each set, both bounds, noise, and names."""
    names = (" ".join(facts.name(number).split()) for number in range(len(facts)))
    return [
        facts.sets.indices, facts.sets.indptr, facts.low, facts.high, *facts.laws, facts.derived,
        *write_texts(names),
    ]  # fmt: skip


def read_facts(message: Message, people: int, groups: int) -> Facts:
    """Facts about numbers of people and groups; Unreadable if the arrays are not facts."""
    from scipy.sparse import csr_array

    members = message.array("the members of sets", "iu", None)
    ends = message.array("the ends of sets", "iu", None)
    m = len(ends) - 1
    low, high = (message.array("counts", "f", m, groups) for _ in range(2))
    laws = CountLaws(
        message.array("laws of counts", "i", m), message.array("widths of laws", "f", m),
        message.array("rounded counts", "f", m, groups),
    )  # fmt: skip
    derived = message.array("which counts are derived", "b", m)
    names = read_texts(message, max(m, 0))
    whole = m >= 0 and ends[0] == 0 and ends[-1] == len(members) and (ends[1:] >= ends[:-1]).all()
    if not whole or len(names) != m:
        raise Unreadable("the sets of its facts do not end where they should")
    if len(members) and not (members.min() >= 0 and members.max() < people):
        raise Unreadable(f"the members of its facts must be in 0..{people - 1}")
    order = np.diff(members.astype(np.int64)) > 0
    order[ends[1:-1][(ends[1:-1] > 0) & (ends[1:-1] < len(members))] - 1] = True
    if not order.all():
        raise Unreadable("the members of its facts must ascend in each set")
    if np.isnan(low).any() or np.isnan(high).any():
        raise Unreadable("the counts of its facts must be numbers")
    sets = csr_array((np.ones(len(members), np.int8), members, ends), shape=(m, people))
    return Facts.from_counts(sets.T.tocsr(), low, high, laws=laws, derived=derived, names=names)
