"""What runner and store cost: 10,000 cells that do nothing, inline. Limit: 2 ms a cell.

The components are the toys of the tests, installed for this process only. Memory is what is
still allocated, read after every 1,000 cells: it must not grow with the cells that are done.
"""

import gc
import os
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

CELLS = 10_000
LIMIT_MS = 2.0
TOYS = Path(__file__).parents[2] / "tests" / "plugins"


def matrix(cells: int) -> dict[str, object]:
    """A matrix of attack cells with toy components: half as many seeds as cells."""
    return {
        "seeds": cells // 2,
        "dataset": [{"use": "flock", "rows": 90}],
        "learner": [{"use": "parrot"}],
        "disclosure": [{"use": "oracle"}],
        "adversary": [{"use": "coin"}],
        "corrector": [{"use": "flip"}, {"use": "none"}],
    }


def install_toys(site: Path) -> None:
    """Make the toys a plugin of this process."""
    info = site / "toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fpbench]\ntoys = toys\n")
    sys.path[:0] = [str(site), str(TOYS)]


def main() -> int:
    """Run, print, and say by the exit code whether the limits hold."""
    with tempfile.TemporaryDirectory() as place:
        install_toys(Path(place))
        import fpbench

        fpbench.run(matrix(20), out=Path(place) / "warm")
        begun = 0.0

        def planned(*_: object) -> None:
            nonlocal begun
            begun = time.perf_counter()

        start = time.perf_counter()
        fpbench.run(matrix(CELLS), out=Path(place) / "timed", on_plan=planned)
        end = time.perf_counter()
        spent = (end - begun) / CELLS * 1e3
        print(f"plan and store opened  {(begun - start) / CELLS * 1e3:6.3f} ms a cell")
        print(f"runner and store       {spent:6.3f} ms a cell, limit {LIMIT_MS}")
        grown = memory_growth(fpbench, Path(place))
    good = spent <= LIMIT_MS and grown < 0.1
    print("limits met" if good else "limits EXCEEDED")
    return int(not good)


def memory_growth(fpbench: object, place: Path) -> float:
    """Growth of memory from the first quarter of a run to its end, as a share."""
    held: list[int] = []
    seen = 0

    def count(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen % 1_000 == 0:
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    fpbench.run(matrix(CELLS), out=place / "memory", on_cell=count)  # type: ignore[attr-defined]
    tracemalloc.stop()
    print("memory after each 1,000 cells, MB:", *(f"{value / 1e6:.1f}" for value in held))
    return held[-1] / held[len(held) // 4] - 1


if __name__ == "__main__":
    sys.exit(main())
