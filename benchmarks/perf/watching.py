"""What it costs to look, after each step, at what it has changed in its process. Limit: 3 %.

Null cells (toys of the tests) are run by loky with two workers, as they are and with looks that
do nothing, in turn. Counted is the processor's time of all processes, so that what else the
machine does matters little; start and end are taken off, by runs of one seed.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from overhead import install_toys

SEEDS = 300
TURNS = 7
LIMIT = 0.03
MATRIX = """
seeds = %d
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
[[corrector]]
use = "none"
"""
SCRIPT = "import sys, fpbench; fpbench.run(sys.argv[1], out=sys.argv[2], engine='loky', jobs=2)"
BEFORE = {
    "looks": "import fpbench.execution.work.process_watch\n",
    "none": """
from fpbench.execution.work.process_watch import Changes, Watch

Watch.look = lambda self: Changes()
Watch.replaced = lambda self: ()
""",
}
"""What each process runs first; both import the same."""


def spent(environment: dict[str, str], place: Path, seeds: int) -> float:
    """Seconds of the processor that a run takes, with all its processes."""
    place.mkdir()
    matrix = place / "null.toml"
    matrix.write_text(MATRIX % seeds)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-c", SCRIPT, str(matrix), str(place / "run")]
    subprocess.run(words, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Measure, print, and say by the exit code whether the limit holds."""
    each: dict[str, list[float]] = {name: [] for name in BEFORE}
    with tempfile.TemporaryDirectory() as temporary:
        environments: dict[str, dict[str, str]] = {}
        for name, script in BEFORE.items():
            site = Path(temporary) / name
            environments[name] = install_toys(site)
            (site / "sitecustomize.py").write_text(script)
        for turn in range(TURNS):
            for name in BEFORE if turn % 2 else reversed(BEFORE):
                one, many = (
                    spent(environments[name], Path(temporary) / f"{name}-{turn}-{seeds}", seeds)
                    for seeds in (1, 1 + SEEDS)
                )
                each[name].append((many - one) / (2 * SEEDS))
    for name, seconds in each.items():
        print(f"{name:6} {statistics.median(seconds) * 1e3:7.3f} ms of the processor a cell")
    pairs = zip(each["looks"], each["none"], strict=True)
    share = statistics.median(1 - none / looks for looks, none in pairs)
    print(f"share of the looks {share:.1%}, limit {LIMIT:.0%}: "
          f"{'met' if share <= LIMIT else 'MISSED'}")  # fmt: skip
    return int(share > LIMIT)


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    sys.exit(main())
