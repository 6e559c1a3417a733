"""Runs a matrix that states what is expected of it, and compares."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fpbench.api.run import default_directory, run
from fpbench.api.saved_run import Run
from fpbench.base.errors import FpbenchError, InputError, suggest_name
from fpbench.base.toml_files import read_toml
from fpbench.execution.runner import Finished
from fpbench.execution.verification import read_stored_matrix
from fpbench.matrix.axes import MAX_CELLS
from fpbench.matrix.matrix import Matrix, read
from fpbench.matrix.plan import Plan
from fpbench.results.rows.groups import RowGroup
from fpbench.results.sheet import Sheet
from fpbench.results.verdicts.paper_tables import make_sheet, summarise
from fpbench.results.verdicts.standings import describe_outcomes
from fpbench.results.verdicts.verdicts import Outcome, Verdict, evaluate, evaluate_strongest
from fpbench.store.results import Results
from fpbench.store.store import Store

FULL = "full"
"""The profile that is no profile: the matrix as it stands."""


@dataclass(frozen=True)
class Reproduction:
    """A run beside what was stated of it."""

    run: Run
    title: str
    scale: str
    """With which profile and how many seeds, where the whole matrix has others; or empty."""
    tables: list[Sheet]
    """The tables that the matrix asks for."""
    verdicts: list[Verdict]
    """What is stated, one by one."""
    tables_of_strongest: list[Sheet]
    """What the paper does not show: tables of the strongest adversaries of the run."""
    verdicts_on_strongest: list[Verdict]

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many statements hold, in plain English."""
        strongest = self.verdicts_on_strongest
        beside = f"With the strongest adversary only: {describe_outcomes(strongest)}"
        parts = (describe_outcomes(self.verdicts), beside if strongest else "", self.scale)
        return tuple(filter(None, parts))

    @property
    def deviates(self) -> bool:
        """Whether anything that is stated deviates from what was measured."""
        return any(verdict.outcome == Outcome.DEVIATES for verdict in self.verdicts)


def known() -> dict[str, str]:
    """Titles of the matrices that state what is expected of them, by name."""
    titles = {}
    for path in sorted(_folder().glob("*.toml")):
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
    """The matrix of that name, or in a file.

    Parameters
    ----------
    name
        A key of `known()`, or the path of a matrix file.
    profile
        A profile of the matrix; `full` for the matrix as it stands; by default `quick`, if it has
        that.
    seeds
        How many seeds, instead of what the matrix says.
    max_cells
        How many cells it may make.
    settings
        What to choose and override; see `fpbench.run`.

    Raises
    ------
    InputError
        If there is no such matrix or profile, or nothing is expected of it.
    """
    path = Path(name)
    if path.suffix != ".toml":
        names = known()
        if name not in names:
            begin = [known_name for known_name in names if known_name.startswith(name)]
            several = f"{', '.join(begin)} begin so" if len(begin) > 1 else ""
            raise InputError(f"no study {name!r}; {several or suggest_name(name, names)}")
        path = _folder() / f"{name}.toml"
    chosen = profile or ("quick" if _has_quick(path) else FULL)
    return read_stated(path, None if chosen == FULL else chosen, seeds, max_cells, settings)


def read_stated(
    path: Path, profile: str | None, seeds: int | None, max_cells: int, settings: Iterable[str] = ()
) -> Matrix:
    """A matrix file that states what is expected of it; InputError if it states nothing."""
    matrix = read(path, profile, seeds, max_cells, settings)
    if not matrix.expect:
        raise InputError(f"{path}: states nothing to compare with: it has no [[expect]]")
    return matrix


def _has_quick(path: Path) -> bool:
    """Whether it has that profile; nothing is expanded to find out, for the whole may be large."""
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
    """Run what is not yet done of a matrix, and compare the rows with what it states.

    Parameters are those of `fpbench.run`.
    """
    result = run(
        matrix, out=out or default_directory(matrix), jobs=jobs, skip_all=True, on_plan=on_plan,
        on_cell=on_cell, stop=stop,
    )  # fmt: skip
    return judge(result, matrix)


def judge(run: Run, matrix: Matrix, results: Results | None = None) -> Reproduction:
    """A run compared with what its matrix states.

    Parameters
    ----------
    run, matrix
        The run, and its matrix.
    results
        The rows of the run; read from it if None.
    """
    results = run.results() if results is None else results
    rows = RowGroup(results)
    tables = [(table, make_sheet(table, summarise(table, rows))) for table in matrix.summaries]
    return Reproduction(
        run,
        matrix.title,
        _describe_scale(matrix, len({*results.seeds})),
        [sheet for table, sheet in tables if not table.strongest],
        evaluate(matrix.expect, rows),
        [sheet for table, sheet in tables if table.strongest],
        evaluate_strongest(matrix.expect, rows),
    )


def judge_saved(run: Run, results: Results) -> Reproduction | None:
    """A run that was made before, compared with what its matrix states.

    Parameters
    ----------
    run
        The run; its directory holds the matrix, whatever profile it was run with.
    results
        The rows of the run.

    Returns
    -------
    Reproduction or None
        None if the matrix states nothing, or cannot be read.
    """
    with suppress(FpbenchError), Store(run.path) as store:
        matrix = read_stored_matrix(store, max(MAX_CELLS, len(results)), {*results.seeds})
        return judge(run, matrix, results) if matrix.expect else None
    return None


def _describe_scale(matrix: Matrix, seeds: int) -> str:
    """How a run is smaller or larger than its whole matrix; empty if it is not."""
    profile = f"profile {matrix.profile}" if matrix.profile else ""
    instead = f"{seeds} seed{'s' * (seeds != 1)} instead of {matrix.seeds_in_full}"
    chosen = (f"{kind} {', '.join(sorted(own)) or '-'}" for kind, own in matrix.chosen.items())
    parts = [profile, instead if seeds != matrix.seeds_in_full else "", *chosen]
    words = ", ".join(filter(None, parts))
    return f"Not the whole matrix: {words}." if words else ""


def _folder() -> Path:
    """Where the matrices are: in the package, or beside it in a checkout."""
    inside = Path(__file__).parents[1] / "benchmarks"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "benchmarks"
