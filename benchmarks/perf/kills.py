"""What SIGKILL costs: nothing that was committed. 100 kills of coordinators and their processes.

A matrix of toys is run by the installed command, over and over, until enough has been killed: at
random moments either the coordinator or one of the processes under it. What had been committed
before a kill must be there after it, to the last digit and second (a cell that is run again takes
another time); no process may outlive its coordinator; and what is left in the end must be what a
run gives that nobody touched.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

TOYS = Path(__file__).parents[2] / "tests" / "plugins"
FPBENCH = str(Path(sys.executable).parent / "fpbench")
MATRIX = """
seeds = 150
[[dataset]]
use = "flock"
rows = 90
[[learner]]
use = "parrot"
[[disclosure]]
use = "oracle"
[[adversary]]
use = "coin"
[[corrector]]
use = "flip"
sleep = 0.01
[[corrector]]
use = "none"
{limits}
"""
LIMITED = "[limits]\ntimeout = 60\n"
"""With limits, every step runs in a process of its own."""
ALIVE = 15.0
"""Seconds in which what a killed coordinator has started must have ended."""

Rows = dict[str, dict[str, Any]]


def environment(site: Path) -> dict[str, str]:
    """An environment in which the toys are a plugin."""
    info = site / "toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fpbench]\ntoys = toys\n")
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(filter(None, [*before, str(site), str(TOYS)]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def committed(run: Path) -> Rows:
    """The finished cells of a run, by key; none if it has no store yet."""
    import fpbench

    try:
        rows = fpbench.load(run).rows()
    except fpbench.InputError:
        return {}
    done: Rows = {}
    for row in rows:
        if row["status"] == "done":
            if row["cell"] in done:
                raise AssertionError(f"{row['cell']} is there twice")
            done[row["cell"]] = row
    return done


def results(rows: Rows) -> Rows:
    """Rows without what differs from run to run: seconds."""
    return {k: {n: v for n, v in r.items() if "seconds" not in n} for k, r in rows.items()}


def under(root: int) -> list[int]:
    """Processes that a process has started, and they in turn."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if words[0] != "Z":
            children.setdefault(int(words[1]), []).append(int(place.parent.name))
    descendants, waiting = [], [root]
    while waiting:
        new = children.get(waiting.pop(), [])
        descendants += new
        waiting += new
    return descendants


def born(process: int) -> str | None:
    """When a process was started, so that another with its number is not taken for it."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] == "Z" else words[19]


class Trial:
    """Kills, and what came of them."""

    def __init__(self, place: Path, options: argparse.Namespace) -> None:
        self.rng = random.Random(options.seed)
        self.options, self.place = options, place
        self.environment = environment(place / "site")
        self.matrices = []
        for name, limits in (("plain", ""), ("limited", LIMITED)):
            file = place / f"{name}.toml"
            file.write_text(MATRIX.format(limits=limits))
            self.matrices.append(file)
        self.kills: Counter[str] = Counter()
        self.lost = self.again = self.orphans = self.resumed = self.different = 0
        self.checked = 0

    def start(self, matrix: Path, run: Path) -> "subprocess.Popen[bytes]":
        """A run in its own session."""
        words = [FPBENCH, "run", str(matrix), "--out", str(run), "--jobs", "2",
                 "--engine", self.options.engine]  # fmt: skip
        return subprocess.Popen(
            words, env=self.environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=(self.place / "errors").open("ab"),
        )  # fmt: skip

    def whole(self, matrix: Path, run: Path) -> Rows:
        """A run that nobody touches, from where it stands to its end."""
        code = self.start(matrix, run).wait()
        if code:
            sys.exit(f"a run that nobody touched ended with {code}:\n"
                     f"{(self.place / 'errors').read_text()[-2000:]}")  # fmt: skip
        return committed(run)

    def trouble(self, matrix: Path, run: Path, at_most: float) -> bool:
        """One coordinator, disturbed until it ends; whether it came to its end by itself."""
        process = self.start(matrix, run)
        held = committed(run)
        if self.rng.random() < 0.8:  # the others are hit while they start, or plan
            self.wait_for_more(process, run, len(held))
        while True:
            time.sleep(self.rng.uniform(0, at_most))
            if process.poll() is not None or self.kills.total() >= self.options.kills:
                process.wait()
                self.compare(held, committed(run))
                return True
            before = committed(run)
            self.compare(held, before)
            held = before
            family = {p: born(p) for p in under(process.pid)}
            if not family or self.rng.random() < 0.4:
                process.kill()
                process.wait()
                self.kills["coordinators"] += 1
                self.bury(family)
                self.compare(held, committed(run))
                return False
            self.kill_one(family)

    def wait_for_more(self, process: "subprocess.Popen[bytes]", run: Path, count: int) -> None:
        """Wait until a coordinator has committed something, or has ended."""
        while process.poll() is None and len(committed(run)) <= count:
            time.sleep(0.1)

    def kill_one(self, family: dict[int, str | None]) -> None:
        """SIGKILL one of the processes under a coordinator."""
        victim = self.rng.choice(list(family))
        if family[victim] is not None and born(victim) == family[victim]:
            os.kill(victim, signal.SIGKILL)
            self.kills["processes under them"] += 1

    def bury(self, family: dict[int, str | None]) -> None:
        """Wait for the processes of a dead coordinator, and count those that do not end."""
        deadline = time.monotonic() + ALIVE
        while time.monotonic() < deadline:
            left = [p for p, when in family.items() if when is not None and born(p) == when]
            if not left:
                return
            time.sleep(0.05)
        self.orphans += len(left)
        for process in left:
            os.kill(process, signal.SIGKILL)

    def compare(self, before: Rows, after: Rows) -> None:
        """What was committed is there, and was not run again."""
        self.checked += len(before)
        for key, row in before.items():
            self.lost += key not in after
            self.again += key in after and after[key] != row

    def run(self) -> None:
        """Kill until it is enough."""
        wanted = [results(self.whole(m, self.place / f"whole-{m.stem}")) for m in self.matrices]
        number = 0
        while self.kills.total() < self.options.kills:
            which = number % len(self.matrices)
            run = self.place / f"run-{number}"
            for _ in range(self.rng.randint(2, 6)):
                if self.kills.total() >= self.options.kills:
                    break
                self.trouble(self.matrices[which], run, self.rng.choice([0.2, 0.5, 2.0]))
            before = committed(run)
            after = self.whole(self.matrices[which], run)
            self.compare(before, after)
            self.resumed += 1
            self.different += results(after) != wanted[which]
            number += 1
            print(f"{self.kills.total():4} kills, {self.resumed} runs resumed", flush=True)

    def report(self) -> bool:
        """Print the figures; whether they are good."""
        print(", ".join(f"{count} {who}" for who, count in self.kills.items()), "killed")
        print(f"committed cells looked at again  {self.checked}")
        print(f"lost                             {self.lost}")
        print(f"run twice                        {self.again}")
        print(f"runs resumed                     {self.resumed}")
        print(f"with other results               {self.different}")
        print(f"processes that outlived theirs   {self.orphans}")
        return not (self.lost or self.again or self.different or self.orphans)


def main() -> int:
    """Run, print, and say by the exit code whether all is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--engine", default="loky")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        trial = Trial(Path(place), options)
        trial.run()
        good = trial.report()
    print("as it should be" if good else "NOT as it should be")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
