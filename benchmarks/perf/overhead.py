"""What a run of nothing costs, beside benchopt, which is installed in an environment of its own.

Both are given a data set and a model that do next to nothing, N times: as N repetitions of one
model (seeds, with us), and as N values of a parameter of it. Both write down one result for each,
and show none of them: benchopt is told to draw nothing, we are called from Python. Whole processes,
in turn, so that the machine's mood is the same for both: with one run, and with many. The first is
what it costs to start; the difference, divided by their number, is what each further run costs.
Limit: 3 times less than benchopt. (`runner.py` measures 10,000 cells in one process.)
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 200
TURNS = 3
LIMIT = 3.0
VERSION = "1.10.0"
TOYS = Path(__file__).parents[2] / "tests" / "plugins"
SCRIPT = "import sys, fpbench; fpbench.run(sys.argv[1], out=sys.argv[2])"

OBJECTIVE = """
from benchopt import BaseObjective

class Objective(BaseObjective):
    name = "null"
    sampling_strategy = "run_once"

    def set_data(self, x):
        self.x = x

    def get_one_result(self):
        return {"x": self.x}

    def evaluate_result(self, x):
        return {"value": x}

    def get_objective(self):
        return {"x": self.x}
"""
DATASET = """
from benchopt import BaseDataset

class Dataset(BaseDataset):
    name = "null"

    def get_data(self):
        return {"x": 1.0}
"""
SOLVER = """
from benchopt import BaseSolver

class Solver(BaseSolver):
    name = "null"
    sampling_strategy = "run_once"
    parameters = {"number": list(range(%d))}

    def set_objective(self, x):
        self.x = x

    def run(self, _):
        pass

    def get_result(self):
        return {"x": self.x}
"""
MATRIX = """
seeds = %d
[[dataset]]
use = "flock"
rows = 90
[[learner]]
use = "parrot"
number = { sweep = [%s] }
[[auditor]]
use = "counter"
mechanism = { use = "hiss" }
[leaderboard]
rank_by = "members"
"""

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def install_benchopt(place: Path) -> Path:
    """Its command, in a new environment."""
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    command = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", f"benchopt=={VERSION}"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return place / "bin" / "benchopt"


def install_toys(site: Path) -> dict[str, str]:
    """An environment in which the toys of the tests are a plugin."""
    info = site / "toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fpbench]\ntoys = toys\n")
    path = [os.environ.get("PYTHONPATH", ""), str(site), str(TOYS)]
    return {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def timed(words: list[str], environment: dict[str, str]) -> float:
    """Seconds that a command takes."""
    start = time.perf_counter()
    done = subprocess.run(words, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - start


def benchopt(command: Path, place: Path, values: int, repetitions: int) -> float:
    """Seconds of so many runs, from a benchmark without a cache."""
    for name, text in (("objective", OBJECTIVE), ("datasets/null", DATASET),
                       ("solvers/null", SOLVER % values)):  # fmt: skip
        file = place / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    words = [str(command), "run", str(place), "--no-plot", "--no-html", "-r", str(repetitions)]
    seconds = timed(words, ENVIRONMENT)
    (result,) = (place / "outputs").glob("*.parquet")
    script = "import sys, pandas; print(len(pandas.read_parquet(sys.argv[1])))"
    python = command.parent / "python"
    done = subprocess.run([python, "-c", script, result], check=True, capture_output=True)
    assert int(done.stdout) == values * repetitions
    return seconds


def fpbench(environment: dict[str, str], place: Path, values: int, seeds: int) -> float:
    """Seconds of so many cells, in a run directory that is not there yet."""
    import fpbench as ours

    place.mkdir(parents=True)
    matrix = place / "null.toml"
    matrix.write_text(MATRIX % (seeds, ", ".join(map(str, range(values)))))
    words = [sys.executable, "-c", SCRIPT, str(matrix), str(place / "run")]
    seconds = timed(words, environment)
    rows = ours.load(place / "run").rows()
    assert [row["status"] for row in rows] == ["done"] * values * seeds
    return seconds


def compare(what: str, command: Path, environment: dict[str, str], place: Path) -> float:
    """How many times less a further run costs with fpbench; prints what was measured."""
    start: dict[str, list[float]] = {"benchopt": [], "fpbench": []}
    each: dict[str, list[float]] = {"benchopt": [], "fpbench": []}
    for turn in range(TURNS + 1):
        for name in ("benchopt", "fpbench"):
            spent = []
            for runs in (1, RUNS + 1):
                counts = (1, runs) if what == "repetitions" else (runs, 1)
                where = place / f"{name}-{what}-{turn}-{runs}"
                spent.append(
                    benchopt(command, where, *counts)
                    if name == "benchopt"
                    else fpbench(environment, where, *counts)
                )
            if turn:  # the first fills the caches
                start[name].append(spent[0])
                each[name].append((spent[1] - spent[0]) / RUNS)
    for name, seconds in start.items():
        print(f"{what:12} {name:10} {statistics.median(seconds):6.2f} s to start and run once, "
              f"{statistics.median(each[name]) * 1e3:7.3f} ms each further run")  # fmt: skip
    pairs = zip(each["benchopt"], each["fpbench"], strict=True)
    return statistics.median(theirs / ours for theirs, ours in pairs)


def main() -> int:
    """Measure, print, and say by the exit code whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchopt", type=Path, help="the command, if it is installed somewhere")
    executable = parser.parse_args().benchopt
    worst = float("inf")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        command = executable or install_benchopt(place / "environment")
        environment = install_toys(place / "site")
        for what in ("repetitions", "values"):
            ratio = compare(what, command, environment, place)
            print(f"{what:12} {ratio:.1f} times less a run")
            worst = min(worst, ratio)
    print(f"limit {LIMIT}: {'met' if worst >= LIMIT else 'MISSED'}")
    return int(worst < LIMIT)


if __name__ == "__main__":
    sys.exit(main())
