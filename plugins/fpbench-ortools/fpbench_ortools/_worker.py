"""The process that loads OR-Tools: reads programs and writes answers, as lines of JSON.

This script imports nothing of fpbench, which may load HiGHS: OR-Tools has another build of HiGHS,
and a process can load only one of the two.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import Any


def main() -> None:
    """Solve one program after the other, until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    from ortools.sat.python import cp_model

    _send({"status": "LOADED"})
    while True:
        _send(_solve(cp_model, json.loads(requests.get())))


def _listen(requests: queue.Queue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)  # even during a search: nobody reads its answer


def _send(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _solve(cp_model: Any, program: dict[str, Any]) -> dict[str, Any]:
    model, variables = _build_model(cp_model, program)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1  # answers the same way every time
    solver.parameters.max_time_in_seconds = program["seconds"]
    status = solver.status_name(solver.solve(model))
    if status == "MODEL_INVALID":
        return {"status": status, "why": model.validate()}
    if status not in ("OPTIMAL", "FEASIBLE"):
        return {"status": status}
    return {
        "status": status,
        "values": [int(solver.value(v)) for v in variables],
        "bound": solver.best_objective_bound,
    }


def _build_model(cp_model: Any, program: dict[str, Any]) -> tuple[Any, list[Any]]:
    model = cp_model.CpModel()
    x = [
        model.new_bool_var("") if list(bounds) == [0, 1] else model.new_int_var(*bounds, "")
        for bounds in program["variables"]
    ]
    weighted = cp_model.LinearExpr.weighted_sum
    for at, by, low, high, literals in program["rows"]:
        total = weighted([x[v] for v in at], by) if at else 0
        row = model.add_linear_constraint(total, low, high)
        row.only_enforce_if([x[v] for v in literals])
    for target, one, other in program["products"]:
        model.add_multiplication_equality(x[target], [x[one], x[other]])
    for ways, literals in program["clauses"]:
        model.add_bool_or([x[v] for v in ways]).only_enforce_if([x[v] for v in literals])
    model.minimize(sum(x[v] for v in program["costs"]))
    return model, x


if __name__ == "__main__":
    main()
