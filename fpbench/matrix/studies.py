"""Paths of the matrices of the studies that `fpbench reproduce` knows by name."""

from __future__ import annotations

from pathlib import Path


def find_study_file(name: str) -> Path:
    """The matrix file of a study, which need not exist."""
    return find_studies_folder() / f"{name}.toml"


def find_studies_folder() -> Path:
    """The folder of all studies: in the package, or beside it in a checkout."""
    inside = Path(__file__).parents[1] / "benchmarks"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "benchmarks"
