"""A run on disk, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fpbench.base.argument_types import check_arguments, check_methods
from fpbench.base.arguments import to_path
from fpbench.base.errors import FpbenchError
from fpbench.base.sheet import write_html
from fpbench.base.text import show_lines
from fpbench.data.table import Table
from fpbench.execution.runner import Finished
from fpbench.execution.verification import Verification, verify
from fpbench.results.leaderboard import make_sheet
from fpbench.results.snapshot import Ranked, Snapshot, read_snapshot
from fpbench.store.differences import RunDifference, diff
from fpbench.store.merging import merge
from fpbench.store.results import Results
from fpbench.store.store import Store

if TYPE_CHECKING:
    from pandas import DataFrame


@check_methods
@dataclass(frozen=True)
class Run(Ranked):
    """A run on disk.

    Attributes
    ----------
    path
        The run directory.
    finished
        The cells that this session ran; empty for a run that was only loaded.
    """

    path: Path
    finished: tuple[Finished, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))  # a string is accepted too

    def rows(self) -> list[dict[str, Any]]:
        """The rows, one dictionary per cell, with comparisons to the run's strongest adversary."""
        return self.results().rows()

    def read(self, *, keys: bool = True) -> Snapshot:
        """A snapshot of the run: all its answers come from one reading.

        Parameters
        ----------
        keys
            Whether to read the keys of cells; without them, keys are empty and reading is faster.
        """
        with Store(self.path) as store:
            return read_snapshot(store, keys=keys)

    def _snapshot(self) -> Snapshot:
        return self.read(keys=False)

    def results(self, where: str | Iterable[str] | None = None, *, keys: bool = True) -> Results:
        """The rows as columns, also for a million rows.

        Parameters
        ----------
        where
            One or several filters for rows, such as `learner=pate*`; all rows if None.
        keys
            As for `read`.
        """
        return self.read(keys=keys).select(() if where is None else where)

    @property
    def rank_by(self) -> str:
        """The measure that the matrix ranks by."""
        with Store(self.path) as store:
            return store.rank_by

    def frame(self) -> DataFrame:
        """The rows: labels, seed, status, reason, seconds, and one column per measure."""
        return self.results().frame()

    def report(self, output: str | Path | None = None, *, by: str | None = None) -> Path:
        """Write the run as one HTML file, as `fpbench page` does.

        Parameters
        ----------
        output
            The file; `page.html` in the run directory if None.
        by
            The measure that leaderboards rank by; that of the matrix if None.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If no cell has that measure, plotly is not installed (extra `report`), or the file
            cannot be written.
        StoreError
            If no cell was run.
        """
        from fpbench.page.writing import write_report  # only reports need it

        return write_report(self, None if output is None else to_path("output", output), by)

    def figures(self, *, by: str | None = None, where: str | Iterable[str] = ()) -> dict[str, str]:
        """The figures that the run's results suffice for: titles by name.

        Parameters
        ----------
        by, where
            As for `leaderboards`.
        """
        from fpbench.page.writing import list_figures

        return list_figures(self, by, where)

    def figure(
        self,
        name: str,
        output: str | Path | None = None,
        *,
        width: float | None = None,
        by: str | None = None,
        where: str | Iterable[str] = (),
    ) -> Path:
        """Draw a figure for a paper, as `fpbench figure` does.

        Parameters
        ----------
        name
            One of `figures()`.
        output
            A .pdf, .svg or .png file; NAME.pdf if None.
        width
            Width in inches; by default the panels decide.
        by, where
            As for `leaderboards`.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If the run has no such figure, matplotlib is not installed (extra `figures`), or the
            file cannot be written.
        StoreError
            If no cell was run.
        """
        from fpbench.page.writing import write_figure

        file = None if output is None else to_path("output", output)
        return write_figure(self, name, file, width, by, where)

    def export(self, output: str | Path, *, format: str | None = None, long: bool = False) -> Path:
        """Write the rows as a tidy table, as `fpbench export` does.

        Parameters
        ----------
        output
            The file.
        format
            `csv`, `parquet` or `jsonl`; by the ending of the file if None.
        long
            Whether there is one row per measure instead of one per cell.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If the format is unknown, pyarrow is not installed, or the file cannot be written.
        """
        from fpbench.store.export import choose_format, export_rows

        file = to_path("output", output)
        export_rows(self.results(), choose_format(file, format), file, long=long)
        return file

    def verify(
        self,
        sample: int = 10,
        *,
        seed: int | None = None,
        jobs: int = 1,
        tables: Mapping[str, Table] = MappingProxyType({}),
        limits: Mapping[str, Any] = MappingProxyType({}),
    ) -> Verification:
        """Run a sample of the cells again and compare the results, as `fpbench verify` does.

        The run is only read, and none of its numbers is trusted.

        Parameters
        ----------
        sample
            Number of cells to draw from those that are done, and from those that failed; all if
            there are fewer.
        seed
            Seed of the sample; a new one each time if None.
        jobs
            Worker processes.
        tables
            Tables in memory that the run used.
        limits
            Limits on each step, as in `[limits]` of a matrix: `{"timeout": 600.0, "memory_limit":
            "4 GiB"}`, for a run of somebody else; the smaller of these and of the matrix's own
            count.

        Returns
        -------
        Verification
            The cells of the sample, compared; `same` says whether nothing contradicts the run.

        Raises
        ------
        StoreError
            If nothing is done, or the matrix of the run is not there.
        InputError
            If a limit is none.
        """
        return verify(self.path, sample, seed=seed, jobs=jobs, tables=tables, limits=limits)

    def diff(self, other: Run | str | Path, *, most: int = 1_000) -> RunDifference:
        """Compare with another run, of the same matrix or not, as `fpbench compare --cells` does.

        Parameters
        ----------
        other
            The other run, or its directory.
        most
            Greatest number of changes that are listed; all are counted.

        Returns
        -------
        RunDifference
            Changes of measures, of cells and of the environment; false if there are none.

        Raises
        ------
        StoreError
            If a directory holds no run.
        """
        return diff(self.path, _get_directory("other", other), most=most)

    def merge(self, others: Sequence[Run | str | Path], out: str | Path) -> Run:
        """Merge with runs of the same matrix, of other seeds or cells, as `fpbench merge` does.

        If one run did a cell and another skipped it or failed, the done result counts. The runs
        themselves stay unchanged.

        Parameters
        ----------
        others
            One or more other runs, or their directories.
        out
            The new run directory, missing or empty.

        Returns
        -------
        Run
            The new run.

        Raises
        ------
        StoreError
            If they are not runs of one matrix, or conflict: the same cell was made by other code or
            data, or measured differently. Every conflict is counted, the first ten are named, and
            nothing is written.
        """
        paths = [_get_directory("each of others", run) for run in others]
        return Run(merge([self.path, *paths], out).path)

    def __str__(self) -> str:
        """The results in a paragraph for each data set; or the number of finished cells."""
        try:
            snapshot = self.read(keys=False)
            boards = [board for board in snapshot.leaderboards() if board.sentences]
        except FpbenchError as error:  # print() should not raise
            return show_lines([str(error)])
        lines = [f"{snapshot.title or self.path.name} ({self.path})"]
        for board in boards:
            lines.append(
                " ".join(filter(None, [board.scope and f"{board.scope}:", *board.sentences]))
            )
        if not boards:
            done, _ = snapshot.results.finished()
            lines.append(f"{int(done.sum()):,} of {len(done):,} cells done")
        return show_lines(lines)

    def _repr_html_(self) -> str:
        """The HTML for notebooks: leaderboards and failures."""
        boards = self.leaderboards()
        if not boards:
            return f"<p>{escape(show_lines([str(self.path)]))}: no cell has been run yet</p>"
        return write_html([make_sheet(board) for board in boards])


def _get_directory(name: str, run: Run | str | Path) -> Path:
    return run.path if isinstance(run, Run) else to_path(name, run)


@check_arguments
def load(run_dir: str | Path) -> Run:
    """A saved run.

    Parameters
    ----------
    run_dir
        The directory that `fpbench run` or `fpbench.run` made.

    Raises
    ------
    StoreError
        If the directory has no run; `InputError` if it is not a path.
    """
    path = to_path("run_dir", run_dir)
    Store(path).close()
    return Run(path)
