"""How long `fpbench --help` and `fpbench plugins` take, beside importing typer and rich alone.

Whole processes, in turn, so that the machine's mood is the same for all. Limit: 2 times.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 40
LIMIT = 2.0
FPBENCH = str(Path(sys.executable).parent / "fpbench")
COMMANDS = {
    "python -c 'import typer, rich'": [sys.executable, "-c", "import typer, rich"],
    "fpbench --help": [FPBENCH, "--help"],
    "fpbench plugins": [FPBENCH, "plugins"],
}


def main() -> int:
    """Measure, print, and say by the exit code whether the limit holds."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    # With it, an editable install would be compiled anew at each start, which users' never is.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for turn in range(RUNS + 3):
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if turn >= 3:  # the first turns fill the caches
                times[name].append(time.perf_counter() - start)
    base = next(iter(times.values()))
    worst = 0.0
    for name, spent in times.items():
        # The ratio of each turn: both processes of a turn met the same machine.
        ratio = statistics.median(a / b for a, b in zip(spent, base, strict=True))
        worst = max(worst, ratio)
        print(f"{name:32} {statistics.median(spent) * 1e3:7.1f} ms   ratio {ratio:.2f}")
    print(f"limit {LIMIT}: {'met' if worst <= LIMIT else 'EXCEEDED'}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
