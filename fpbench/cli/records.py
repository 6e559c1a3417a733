"""Machine-readable records of gates: criteria, thresholds, measurements, versions.

Every gate writes the same keys: `versions`, `gate`, `passes`, and `checks`, each with its criterion
in words, its threshold, the measurement and the outcome: statement by statement, as evaluations by
SATRE, the Standardised Architecture for Trusted Research Environments, are kept.
"""

import sys
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpbench.base.errors import InputError
from fpbench.base.files import check_output, write_output
from fpbench.cli.groups import STANDARD

if TYPE_CHECKING:
    from fpbench.api.reproduce import Reproduction
    from fpbench.results.intervals import Interval

_PACKAGES = ("numpy", "pandas", "scipy", "scikit-learn", "highspy")


def check_outputs(inputs: Iterable[Path], **outputs: Path | None) -> None:
    """Raise InputError, before anything is done, if an output cannot be written, or should not be.

    `inputs`: files that the command reads; no output may overwrite one of them, or another output.
    `outputs`: by their options, without hyphens.
    """
    taken = {file.resolve(): "is read here" for file in inputs}
    for option, file in outputs.items():
        if file is None or file == STANDARD:
            continue
        if not check_output(file).absolute().parent.is_dir():
            raise InputError(f"{file}: there is no directory {file.parent}")
        if why := taken.get(file.resolve()):
            raise InputError(
                f"--{option}: {file} {why}, and would be overwritten: name another file"
            )
        taken[file.resolve()] = f"is named by --{option}"


def write_record(file: Path, content: Mapping[str, Any]) -> None:
    """Write a record, with the installed versions, to a file or to standard output."""
    from importlib.metadata import version
    from json import dumps
    from platform import python_version

    from fpbench import __version__

    versions = {"fpbench": __version__, "python": python_version()}
    versions |= {name: version(name) for name in _PACKAGES}
    text = dumps({"versions": versions, **content}, indent=2, allow_nan=False) + "\n"
    if file == STANDARD:
        sys.stdout.write(text)
    else:
        write_output(file, text)


def record_statements(judged: "Reproduction") -> dict[str, Any]:
    """The statements of a matrix, and their verdicts in a run."""
    from hashlib import sha256

    from fpbench.base.files import read_matrix

    matrix = read_matrix(judged.run.path)
    failed = sum(cell.status == "failed" for cell in judged.run.finished)
    return {
        "gate": "statements of a matrix",
        "title": judged.title,
        "run": str(judged.run.path),
        "matrix_sha256": sha256(matrix[1]).hexdigest() if matrix else None,
        "passes": not judged.deviates and not failed,
        "failed_cells": failed,
        "checks": [
            {
                "name": verdict.expectation.check,
                "statement": verdict.expectation.says,
                "source": verdict.expectation.source,
                "where": {name: str(value) for name, value in verdict.per.items()},
                "threshold": verdict.stated,
                **_describe_number(verdict.ours),
                "outcome": str(verdict.outcome),
                "note": verdict.note,
            }
            for verdict in judged.verdicts
        ],
    }


def _describe_number(ours: "Interval | None") -> dict[str, float | None]:
    """A number of a run with its 95 % interval; None where there is none, or it is not finite."""
    ends = (None, None, None) if ours is None else (ours.mean, ours.low, ours.high)
    finite = [end if end is not None and isfinite(end) else None for end in ends]
    return dict(zip(("measured", "low", "high"), finite, strict=True))
