"""Runs a matrix with expectations, and compares."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from fpbench.api.run import choose_directory, run
from fpbench.api.saved_run import Run
from fpbench.base.errors import InputError, suggest_name
from fpbench.base.toml_files import read_toml
from fpbench.execution.runner import Finished
from fpbench.matrix.axes import MAX_CELLS
from fpbench.matrix.matrix import Matrix, read
from fpbench.matrix.plan import Plan
from fpbench.results.judging import Judgement, judge_results

FULL = "full"
"""Name for the matrix without any profile."""


@dataclass(frozen=True, kw_only=True)
class Reproduction(Judgement):
    """A run compared with its matrix's expectations."""

    run: Run


def list_studies() -> dict[str, str]:
    """Titles of the built-in matrices with expectations, by name."""
    titles = {}
    for path in sorted(find_studies_folder().glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        if "expect" in data:
            titles[path.stem] = str(data.get("title", ""))
    return titles


def find(
    name: str,
    profile: str | None = None,
    seeds: int | None = None,
    max_cells: int = MAX_CELLS,
    settings: Iterable[str] = (),
) -> Matrix:
    """The matrix of a name, or of a file.

    `name`: a key of `list_studies()`, or the path of a matrix file. `profile`: a profile of the
    matrix; `full` for the matrix itself; by default `quick`, if it exists. `seeds`: number of
    seeds, instead of the matrix's. `settings`: what to choose and override; see `fpbench.run`.

    Raises InputError if the matrix or profile does not exist, or has no expectations.
    """
    path = Path(name)
    if path.suffix != ".toml":
        names = list_studies()
        if name not in names:
            begin = [known_name for known_name in names if known_name.startswith(name)]
            several = f"{', '.join(begin)} begin with it" if name and len(begin) > 1 else ""
            raise InputError(f"no study {name!r}; {several or suggest_name(name, names)}")
        path = find_study_file(name)
    chosen = profile or ("quick" if _has_quick(path) else FULL)
    return read_stated(path, None if chosen == FULL else chosen, seeds, max_cells, settings)


def read_stated(
    path: Path, profile: str | None, seeds: int | None, max_cells: int, settings: Iterable[str] = ()
) -> Matrix:
    """The matrix in a file with expectations; InputError if it has none."""
    matrix = read(path, profile, seeds, max_cells, settings)
    if not matrix.expect:
        raise InputError(f"{path}: has nothing to compare with: no [[expect]]")
    return matrix


def _has_quick(path: Path) -> bool:
    """Whether it has the profile `quick`, without expanding the matrix, which may be large."""
    profiles = read_toml(path)[1].get("profile")
    return isinstance(profiles, dict) and "quick" in profiles


def reproduce(
    matrix: Matrix,
    *,
    out: Path | None = None,
    jobs: int = 1,
    on_plan: Callable[[Plan, set[str]], None] | None = None,
    on_cell: Callable[[Finished], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Reproduction:
    """Run the missing cells of a matrix, and compare the rows with its expectations.

    Parameters are those of `fpbench.run`.
    """
    result = run(
        matrix, out=out or choose_directory(matrix), jobs=jobs, skip_all=True, on_plan=on_plan,
        on_cell=on_cell, stop=stop,
    )  # fmt: skip
    return judge(result, matrix)


def judge(run: Run, matrix: Matrix) -> Reproduction:
    """A run compared with its matrix's expectations."""
    return Reproduction(run=run, **vars(judge_results(matrix, run.results())))


def find_study_file(name: str) -> Path:
    """The matrix file of a study, which need not exist."""
    return find_studies_folder() / f"{name}.toml"


def find_studies_folder() -> Path:
    """The folder of all studies: in the package, or beside it in a checkout."""
    inside = Path(__file__).parents[1] / "benchmarks"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "benchmarks"
