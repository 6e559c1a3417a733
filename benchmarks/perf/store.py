"""What a leaderboard of a million rows costs, beside pandas and Parquet. Limit: 3 times.

The same rows lie in a run's store and in a Parquet file. Ours reads them, sets every row beside the
others of the run, and ranks: means, standard deviations, counts, reasons, warnings, and the
intervals of the measure that is ranked by. Theirs is `read_parquet` and `groupby(...).mean()`: no
deviations, no intervals. In turn, in one process, so that both meet the same machine; the ratio is
the median of the turns' ratios, after one that imports what both need. Processor time is beside it:
pandas reads with all cores, and other work on the machine does not count.

    python benchmarks/perf/store.py [ROWS]
"""

import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import fpbench
from fpbench.components.names import ATTACK, Status
from fpbench.matrix.plan import Cell
from fpbench.store.store import Store
from fpbench.store.tables import PAGE, CellRecord

ROWS = 1_000_000
SHAPES = (100, 1_000)
"""Seeds of a combination: many lines of few seeds, and few of many."""
TURNS = 5
LIMIT = 3.0
LABELS = {"dataset": 5, "learner": 10, "disclosure": 2, "adversary": 5, "corrector": 4}
STATUSES = ("optimal", "feasible", "infeasible")


def cells(rows: int, seeds: int) -> Iterator[Cell]:
    """A plan as a matrix gives it: all seeds of a combination beside each other."""
    for number in range(rows // seeds):
        labels, rest = {}, number
        for kind, count in LABELS.items():
            rest, which = divmod(rest, count)
            labels[kind] = f"{kind}-{which}" if kind != "learner" else f"{kind}-{which} {rest}"
        labels["learner"] += f" no={number // 2000}"
        for seed in range(seeds):
            yield Cell(f"{number:016x}{seed:016x}", labels, seed)


def measures(rng: np.random.Generator) -> dict[str, object]:
    """What an attack cell measures: the names, kinds of values and gaps of a real one."""
    share = rng.random(16).tolist()
    failed, leak = share[0] < 0.05, 0.01 * (share[4] - 0.5)
    return {
        "people": 16_000, "majority_accuracy": 0.67, "prior_accuracy": share[1],
        "initial_accuracy": share[2], "corrected_accuracy": None if failed else share[3],
        "gain": None if failed else share[3] - share[2], "n_groups": 2,
        "adversary_sees": "features, predictions", "without_accuracy": share[2],
        "with_accuracy": None if failed else share[2] + leak,
        "leak": None if failed else leak, "leak_expected": leak, "disclosure_bits": 12.3,
        "limit_covers": "disclosure", "asked_metric": "statistical-parity",
        "asked_tolerance": 0.01, "changes": None if failed else int(share[4] * 1e4),
        "change_precision": None if failed else share[5], "objective": share[6] * 1e5,
        "solver_status": STATUSES[2 if failed else int(share[7] * 2)],
        "solver_gap": 0.0, "proven": 1, "claim_metric": "statistical-parity",
        "claim_form": "to-overall", "claim_tolerance": 0.01, "claim_holds": int(share[8] < 0.9),
        "train_accuracy": share[9], "test_accuracy": share[10], "train_unfairness": share[11],
        "test_unfairness": share[12], "held_out_accuracy": share[13], "correct_seconds": share[14],
        "reconsidered_accuracy": share[15],
    }  # fmt: skip


def make(directory: Path, rows: int, seeds: int) -> None:
    """A run of so many rows, written by the store itself; one in a hundred failed."""
    rng = np.random.default_rng(0)
    with Store(directory, create=True) as store:
        about = {"matrix": json.dumps([]), "title": "a million rows", "rank_by": "with_accuracy"}
        session = store.begin(about, {}, cells(rows, seeds))
        with store.writing():
            for i, cell in enumerate(cells(rows, seeds)):
                if i % 100 == 99:
                    store.put(CellRecord(cell.key, session, Status.FAILED, 1.0, {}, "it broke"))
                else:
                    numbers = measures(rng)
                    store.put(CellRecord(cell.key, session, Status.DONE, 1.5, numbers))  # type: ignore[arg-type]
                if i % PAGE == PAGE - 1:  # as a run does
                    store.tidy()
            store.tidy()


def ours(directory: Path) -> tuple[float, float]:
    """Read, compare and rank; the intervals that are shown are computed when they are read.

    Returns
    -------
    tuple
        Seconds on the wall, and of the processor.
    """
    start = clocks()
    board = fpbench.load(directory).leaderboard()
    ranked = [line.measures["with_accuracy"] for line in board.lines]
    shown = [(value.mean, value.low) for value in ranked]
    spent = since(start)
    assert len(shown) > 1 and all(low <= mean for mean, low in shown if low is not None)
    return spent


def theirs(file: Path, names: list[str]) -> tuple[float, float]:
    """Read and group; the same seconds."""
    start = clocks()
    frame = pd.read_parquet(file)
    frame.groupby(list(ATTACK))[names].mean()
    return since(start)


def clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def since(start: tuple[float, float]) -> tuple[float, float]:
    wall, cpu = clocks()
    return wall - start[0], cpu - start[1]


def measure(place: Path, rows: int, seeds: int) -> float:
    """The ratio of both for one shape."""
    directory, file = place / "run", place / "rows.parquet"
    start = time.perf_counter()
    make(directory, rows, seeds)
    writing = time.perf_counter() - start
    frame = fpbench.load(directory).frame()
    names = [name for name in frame.columns[10:] if frame[name].dtype.kind in "fi"]
    frame.to_parquet(file, index=False)
    del frame
    pairs = []
    for _ in range(TURNS + 1):
        gc.collect()
        pairs.append((theirs(file, names), ours(directory)))
    size = (directory / "store.sqlite").stat().st_size / 1e6
    print(f"{rows:,} rows, {rows // seeds:,} lines of {seeds:,} seeds, {len(names)} numbers a row")
    print(f"  written          {writing:6.1f} s, {writing / rows * 1e6:.0f} us a row; "
          f"{size:,.0f} MB, Parquet {file.stat().st_size / 1e6:,.0f} MB")  # fmt: skip
    ratios = []
    for which, clock in enumerate(("on the wall", "of the processor")):
        turns = [(a[which], b[which]) for a, b in pairs[1:]]
        pandas, fpb = (statistics.median(column) for column in zip(*turns, strict=True))
        ratios.append(statistics.median(b / a for a, b in turns))
        print(f"  seconds {clock:17} pandas {pandas:6.2f}   leaderboard {fpb:6.2f}   "
              f"ratio {ratios[-1]:.2f}, limit {LIMIT}")  # fmt: skip
    return ratios[0]


def main() -> int:
    """Measure, print, and say by the exit code whether the limit holds."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    ratios = []
    for seeds in SHAPES:
        with tempfile.TemporaryDirectory() as place:
            ratios.append(measure(Path(place), rows, seeds))
            command = [str(Path(sys.executable).parent / "fpbench"), "leaderboard"]
            start = time.perf_counter()
            subprocess.run([*command, str(Path(place) / "run")], check=True, capture_output=True)
            print(f"  fpbench leaderboard, the whole command: {time.perf_counter() - start:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MB, pandas and Parquet included")
    print(f"limit {LIMIT}: {'met' if max(ratios) <= LIMIT else 'EXCEEDED'}")
    return int(max(ratios) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
