"""A thousand cells on two machines, of which one is lost in the middle: no cell is lost.

    python benchmarks/perf/two_machines.py [--seeds N]

Two network namespaces of Linux stand for the machines, each with its own network and one cable
between them (root, Debian's iproute2 and the package fpbench-dask are needed; the network of this
machine is left alone). The first has the scheduler, the coordinator and two workers, the second two
more workers. When half of the cells are committed the cable is pulled: nobody is told, and packets
vanish. The run must end by itself with every cell, equal to those of one process but for times.
Exits with 1 if it does not.
"""

# Threads must be limited before numpy is imported.
# ruff: noqa: E402

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import fpbench

MACHINES = {"fpbench-one": "10.77.0.1", "fpbench-two": "10.77.0.2"}
FIRST, SECOND = MACHINES
WORKERS = 2
"""On each machine."""
PORT = 8786
SILENCE = "20s"
"""After which the scheduler gives a worker up; dask's default is five minutes."""
SEEDS = 125
FPBENCH = str(Path(sys.executable).parent / "fpbench")

Rows = dict[str, dict[str, Any]]


def make_matrix(seeds: int) -> dict[str, Any]:
    """Eight cells a seed: two learners, two adversaries, two correctors."""
    claim = {"metric": "statistical-parity"}
    tree = {"use": "plain", "base": "decision-tree"}
    return {
        "seeds": seeds,
        "dataset": [{"use": "census-synthetic", "rows": 500}],
        "learner": [tree, {"use": "threshold-optimizer", **claim}],
        "disclosure": [{"use": "published", **claim}],
        "adversary": [{"use": "prior"}, {"use": "a2", "family": "logistic-regression"}],
        "corrector": [{"use": "exact"}, {"use": "posterior"}],
    }


def write_toml(matrix: dict[str, Any]) -> str:
    """The matrix as a file."""
    lines = [f"seeds = {matrix['seeds']}"]
    for kind, choices in matrix.items():
        if kind != "seeds":
            for choice in choices:
                lines += [f"[[{kind}]]", *(f"{k} = {json.dumps(v)}" for k, v in choice.items())]
    return "\n".join([*lines, ""])


def find_differences(far: Rows, near: Rows) -> list[str]:
    """What two runs disagree on: cells and measures, but no times."""
    faults = [f"{key}: only in one run" for key in sorted(far.keys() ^ near.keys())]
    for key in sorted(far.keys() & near.keys()):
        one, other = far[key], near[key]
        names = [
            n for n in {*one, *other} if "seconds" not in n and one.get(n) != other.get(n)
        ]  # fmt: skip
        faults += [f"{key}: {name}" for name in sorted(names)]
    return faults


def read_rows(run: Path) -> Rows:
    """The finished cells of a run, by key; none if it has no store yet."""
    try:
        return {r["cell"]: r for r in fpbench.load(run).rows() if r["status"] == "done"}
    except fpbench.InputError:
        return {}


@contextmanager
def make_machines() -> Iterator[None]:
    """Two network namespaces, and a cable."""
    try:
        for name in MACHINES:
            call("ip", "netns", "add", name)
        call("ip", "link", "add", "cable", "netns", FIRST, "type", "veth", "peer", "name", "cable",
             "netns", SECOND)  # fmt: skip
        for name, address in MACHINES.items():
            call("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            for device in ("lo", "cable"):
                call("ip", "-n", name, "link", "set", device, "up")
        yield
    finally:
        for name in MACHINES:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def call(*words: str) -> None:
    subprocess.run(words, check=True)


@contextmanager
def begin(machine: str, log: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process on one of the machines, which ends with the benchmark."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            ["ip", "netns", "exec", machine, *command], cwd=log.parent, stdout=file, stderr=file,
            env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": SILENCE},
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def run_on_both(place: Path, cells: int) -> tuple[Rows, dict[str, float]]:
    """Run the matrix on both, and pull the cable in the middle; rows, and seconds of each part."""
    address = f"tcp://{MACHINES[FIRST]}:{PORT}"
    dask = (sys.executable, "-m", "distributed.cli.dask_")
    with ExitStack() as running:
        scheduler = [*dask[:2], f"{dask[2]}scheduler", "--host", MACHINES[FIRST], "--port",
                     f"{PORT}", "--no-dashboard"]  # fmt: skip
        running.enter_context(begin(FIRST, place / "scheduler.log", *scheduler))
        for machine, host in MACHINES.items():
            for number in range(WORKERS):
                worker = [*dask[:2], f"{dask[2]}worker", address, "--host", host, "--nthreads", "1",
                          "--no-dashboard", "--name", f"{machine}-{number}"]  # fmt: skip
                log = place / f"{machine}-{number}.log"
                running.enter_context(begin(machine, log, *worker))
        begun = time.monotonic()
        command = [FPBENCH, "-q", "run", "matrix.toml", "--out", "far", "--scheduler", address]
        run = running.enter_context(begin(FIRST, place / "run.log", *command))
        pulled = 0.0
        while run.poll() is None:
            time.sleep(1.0)
            if not pulled and len(read_rows(place / "far")) >= cells / 2:
                call("ip", "-n", FIRST, "link", "set", "cable", "down")
                pulled = time.monotonic()
        ended = time.monotonic()
    if run.returncode or not pulled:
        raise SystemExit(f"the run ended with {run.returncode}:\n{(place / 'run.log').read_text()}")
    print((place / "run.log").read_text().rstrip())
    return read_rows(place / "far"), {
        "before the cable was pulled": pulled - begun, "after it": ended - pulled
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="eight cells each")
    seeds = parser.parse_args().seeds
    matrix = make_matrix(seeds)
    with tempfile.TemporaryDirectory() as folder, make_machines():
        place = Path(folder)
        (place / "matrix.toml").write_text(write_toml(matrix))
        far, seconds = run_on_both(place, 8 * seeds)
        begun = time.monotonic()
        fpbench.run(place / "matrix.toml", out=place / "near")
        seconds["one process, for comparison"] = time.monotonic() - begun
        near = read_rows(place / "near")
    for what, length in seconds.items():
        print(f"{length:7.1f} s  {what}")
    faults = find_differences(far, near)
    print("\n".join(faults[:20]) or f"{len(far):,} cells, each as one process computes it")
    return bool(faults) or len(far) != 8 * seeds


if __name__ == "__main__":
    raise SystemExit(main())
