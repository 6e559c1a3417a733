"""What a second worker is worth, and what dask costs beside loky: the quick matrix of Adult.

Whole commands, start-up included, each in a new run directory, in turn; the first turn has one seed
and fills the caches. Work is cells a second. Limits: two workers do at least 1.8 times the work of
one, and dask is within 15 % of loky. Results must be the same to the last digit on all engines.
What a further seed takes is printed too: the longer a run, the nearer it comes to that. How busy
the processors were with other things is printed beside: with a neighbour, a second worker is worth
less, and what two workers could do at most is told by the processor time alone.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

MATRIX = Path(__file__).parents[1] / "disclosures-adult-quick.toml"
FPBENCH = str(Path(sys.executable).parent / "fpbench")
ENGINES = {
    "one worker": ["--engine", "inline"],
    "loky, two": ["--engine", "loky", "--jobs", "2"],
    "dask, two": ["--engine", "dask", "--jobs", "2"],
}
LIMIT_WORKERS = 1.8
LIMIT_DASK = 1.15
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Cost(NamedTuple):
    """What a run took."""

    seconds: float
    cpu: float
    """Seconds of processors, of all its processes that were waited for."""
    others: float
    """Processors that were busy with something else, on average."""


def busy() -> float:
    """Seconds that all processors together have been busy since the machine started."""
    words = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    idle = words[3] + words[4]
    return (sum(words[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def ours() -> float:
    """Seconds of processors that our children have had."""
    used = os.times()
    return used.children_user + used.children_system


def run(options: list[str], seeds: int, out: Path) -> Cost:
    """One run."""
    words = [FPBENCH, "run", str(MATRIX), "--seeds", str(seeds), "--out", str(out), *options]
    before, mine, start = busy(), ours(), time.perf_counter()
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
    cpu = ours() - mine
    return Cost(seconds, cpu, max(busy() - before - cpu, 0) / seconds)


def results(out: Path) -> list[dict[str, Any]]:
    """Rows without what differs from run to run: seconds."""
    import fpbench

    rows = fpbench.load(out).rows()
    assert {row["status"] for row in rows} == {"done", "skipped"}
    return [{n: v for n, v in row.items() if "seconds" not in n} for row in rows]


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--without-dask", action="store_true")
    arguments = parser.parse_args()
    engines = {n: o for n, o in ENGINES.items() if not (arguments.without_dask and "dask" in n)}
    costs: dict[str, list[Cost]] = {name: [] for name in engines}
    start: dict[str, float] = {}
    same = True
    with tempfile.TemporaryDirectory() as place:
        for turn in range(arguments.turns + 1):
            rows_of_each = []
            for name, options in engines.items():
                out = Path(place) / f"{turn}-{name.split(',')[0].replace(' ', '-')}"
                cost = run(options, 1 if turn == 0 else arguments.seeds, out)
                rows_of_each.append(results(out))
                if not turn:
                    start[name] = cost.seconds
                else:
                    costs[name].append(cost)
                    print(f"{name:10} {cost.seconds:6.1f} s (CPU {cost.cpu:.1f} s) for "
                          f"{len(rows_of_each[-1])} cells, others had {cost.others:.2f} processors",
                          flush=True)  # fmt: skip
            same &= all(rows == rows_of_each[0] for rows in rows_of_each)
    middle = {n: statistics.median(cost.seconds for cost in spent) for n, spent in costs.items()}
    for name, seconds in middle.items():
        each = (seconds - start[name]) / (arguments.seeds - 1)
        print(f"{name:10} {start[name]:6.1f} s with one seed, {each:.2f} s for each further one")
    gain = middle["one worker"] / middle["loky, two"]
    print(f"two workers do {gain:.2f} times the work of one, limit {LIMIT_WORKERS}")
    used = {n: statistics.median(cost.cpu for cost in spent) for n, spent in costs.items()}
    most = 2 * used["one worker"] / used["loky, two"]
    print(f"by processor time, two workers of a machine of their own do at most {most:.2f} times")
    good = same and gain >= LIMIT_WORKERS
    if "dask, two" in middle:
        share = middle["dask, two"] / middle["loky, two"]
        print(f"dask takes {share:.2f} times as long as loky, limit {LIMIT_DASK}")
        good &= share <= LIMIT_DASK
    print(f"results on all engines: {'the same' if same else 'DIFFERENT'}")
    print("limits met" if good else "limits MISSED")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
