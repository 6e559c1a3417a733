"""Runs to report on: a real one with a label that is HTML, and toys that fail."""

import pytest
from runs import AUDITS, REAL, TOYS

import fpbench


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """A run of our own components."""
    return fpbench.run(REAL, out=tmp_path_factory.mktemp("real") / "small run")


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    """A run of private audits."""
    return fpbench.run(AUDITS, out=tmp_path_factory.mktemp("audited") / "run")


@pytest.fixture
def toy_run(toys, tmp_path):
    """A run of toys, one of which fails; keys of the matrix may be replaced."""

    def make(**keys):
        return fpbench.run({**TOYS, **keys}, out=tmp_path / "toys")

    return make
