"""Dictionaries that were written to are told, whether or not Python counts writes."""

import sys

import numpy as np
import pytest

from fpbench.execution.work import process_watch
from fpbench.execution.work.process_watch import Versions, Watch, names_of


class Owner:
    value = 1


WRITES = {
    "replaced": lambda table: table.update(old=object()),
    "added": lambda table: table.update(new=1),
    "deleted": lambda table: table.pop("old"),
    "cleared": dict.clear,
}


@pytest.mark.parametrize("write", WRITES)
def test_only_what_was_written_to_is_told(write):
    tables = [{"old": number} for number in range(3)]
    watched = Versions()
    for table in tables:
        watched.add(table)
    if process_watch.KEPT:
        assert watched.written() == []
    WRITES[write](tables[1])
    assert 1 in watched.written()
    if process_watch.KEPT:
        assert watched.written() == []


@pytest.mark.skipif(
    sys.implementation.name != "cpython" or sys.version_info >= (3, 14),
    reason="this Python does not count writes",
)
def test_pythons_that_count_writes_are_known(monkeypatch):
    """Otherwise each look compares all names: right, but too dear."""
    assert process_watch.KEPT
    monkeypatch.setattr(process_watch, "_number", lambda table: process_watch.ctypes.c_uint64(7))
    assert not process_watch._is_kept()


def test_names_of_a_class_are_its_own():
    watched = Versions()
    watched.add(names_of(Owner))
    Owner.value = 2
    assert watched.written() == [0]
    assert names_of(Owner)["value"] == 2
    assert names_of(np) is vars(np)


def test_changes_are_found_where_writes_are_not_counted(monkeypatch):
    monkeypatch.setattr(process_watch, "KEPT", False)
    watch = Watch()
    assert watch.look().words == ""
    monkeypatch.setattr(np, "mean", sum)
    assert watch.look().replaced == ("numpy.mean",)
    assert watch.look().replaced == ()


def test_what_nobody_wrote_to_is_not_compared(monkeypatch):
    """A look costs what was written since the last one, not what there is."""
    watch = Watch()
    compared = []
    monkeypatch.setattr(Watch, "_changed", lambda _, place: compared.append(place) or [])
    watch.look()  # the line above has written to a class that is watched
    compared.clear()
    watch.look()
    if process_watch.KEPT:
        assert compared == []
    monkeypatch.setattr(np, "mean", sum)
    watch.look()
    assert compared
