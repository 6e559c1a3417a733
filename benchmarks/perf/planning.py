"""How long it takes to plan 100,000 cells, and how much memory: `fpbench plan` as a whole process.

Matrices of four shapes: many seeds, many learners, many audits, and many of all with rules that
exclude some. Limits: 10 s and 1 GiB for 100,000 cells; time grows with the number of cells to a
power of at most 1.15, after what an empty plan costs (CPU time, which neighbours hardly change).
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

CELLS = 100_000
LIMIT_S = 10.0
LIMIT_MIB = 1024.0
LIMIT_POWER = 1.15
TOYS = Path(__file__).parents[2] / "tests" / "plugins"
FPBENCH = str(Path(sys.executable).parent / "fpbench")

ATTACK = """
[[disclosure]]
use = "oracle"
tolerance = {{ linspace = [0.0, 0.9, {tolerances}] }}
[[adversary]]
use = "coin"
[[adversary]]
use = "peek"
[[corrector]]
use = "flip"
[[corrector]]
use = "none"
"""
PEOPLE = """
[[dataset]]
use = "flock"
rows = 90
[[learner]]
use = "parrot"
number = {{ sweep = [{numbers}] }}
"""


def listed(count: int) -> str:
    """So many numbers."""
    return ", ".join(map(str, range(count)))


def seeds(cells: int) -> str:
    """20 combinations, many seeds."""
    return f"seeds = {cells // 20}" + (PEOPLE + ATTACK).format(numbers="1", tolerances=5)


def learners(cells: int) -> str:
    """Many learners, one seed."""
    return (PEOPLE + ATTACK).format(numbers=listed(cells // 20), tolerances=5)


def audits(cells: int) -> str:
    """Auditors with many mechanisms, and ten seeds."""
    audit = """
[[auditor]]
use = "counter"
[[mechanism]]
use = "hiss"
scale = {{ linspace = [1.0, 2.0, {scales}] }}
"""
    text = PEOPLE.format(numbers=listed(10)) + audit.format(scales=cells // 100)
    return "seeds = 10" + text


def excluded(cells: int) -> str:
    """Ten seeds, many learners and tolerances, and 200 rules."""
    side = math.isqrt(cells // 40)
    text = "seeds = 10" + (PEOPLE + ATTACK).format(numbers=listed(side), tolerances=side)
    rules = (
        f'[[exclude]]\nlearner = "parrot number={i % side}"\nadversary = "coin"\n'
        f'corrector = "flip"\ndisclosure = "oracle tolerance=0.0"\n'
        for i in range(200)
    )
    return text + "".join(rules)


SHAPES = {shape.__name__: shape for shape in (seeds, learners, audits, excluded)}


class Cost(NamedTuple):
    """What a process took."""

    seconds: float
    cpu: float
    mib: float


def environment(site: Path) -> dict[str, str]:
    """An environment in which the toys of the tests are a plugin."""
    info = site / "toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fpbench]\ntoys = toys\n")
    path = [os.environ.get("PYTHONPATH", ""), str(site), str(TOYS)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def planned(text: str, place: Path, settings: dict[str, Any]) -> Cost:
    """Plan a matrix in a process of its own."""
    file = place / "matrix.toml"
    file.write_text(text)
    start = time.perf_counter()
    process = subprocess.Popen(
        [FPBENCH, "plan", str(file)], stdout=subprocess.DEVNULL, env=settings
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"fpbench plan ended with {process.returncode}")
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), help=", ".join(SHAPES))
    shapes = parser.parse_args().shapes
    sizes = [CELLS // 8, CELLS // 4, CELLS // 2, CELLS]
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        settings = environment(place / "site")
        for name in shapes:
            base = min(planned(seeds(20), place, settings).cpu for _ in range(3))
            costs = [planned(SHAPES[name](size), place, settings) for size in sizes]
            for size, cost in zip(sizes, costs, strict=True):
                print(f"{name:9} {size:7,} cells {cost.seconds:6.2f} s, CPU {cost.cpu:6.2f} s, "
                      f"{cost.mib:5.0f} MiB", flush=True)  # fmt: skip
            few, many = costs[1].cpu - base, costs[-1].cpu - base
            power = math.log(many / few) / math.log(sizes[-1] / sizes[1])
            print(f"{name:9} grows with the power {power:.2f} of the cells")
            good &= costs[-1].seconds <= LIMIT_S and costs[-1].mib <= LIMIT_MIB
            good &= power <= LIMIT_POWER
    print(f"limits {LIMIT_S:g} s, {LIMIT_MIB:g} MiB, power {LIMIT_POWER}: "
          f"{'met' if good else 'EXCEEDED'}")  # fmt: skip
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
