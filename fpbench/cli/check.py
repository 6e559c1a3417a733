"""The `check` and `new` commands for authors of plugins."""

from pathlib import Path
from typing import Annotated

import typer

from fpbench.cli.groups import complete_kind
from fpbench.cli.screen import console
from fpbench.components.names import KINDS


def check(
    package: Annotated[
        str,
        typer.Argument(
            help="Name of an installed distribution, or path of a package's folder or a module.",
            metavar="PACKAGE_OR_PATH",
        ),
    ],
    broken: Annotated[
        bool, typer.Option("--broken", help="Show only laws that are broken.")
    ] = False,
) -> None:
    """Test components of a plugin against the laws of their kinds.

    Exit code 0: all laws kept or skipped; 1: some broken; 2: bad input, or nothing to test.
    """
    from fpbench.testing import Outcome, checks

    counts = dict.fromkeys(Outcome, 0)
    last = ""
    for one in checks(package):
        verdict = one()
        counts[verdict.outcome] += 1
        if broken and verdict.outcome is not Outcome.BROKEN:
            continue
        if last != str(one.case):
            last = str(one.case)
            console.show_heading(f"{last}  ({one.case.entry.source})")
        console.show_listing([(verdict.line(one.law.words),)])
    typer.echo(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if counts[Outcome.BROKEN]:
        raise typer.Exit(1)


def new(
    kind: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(KINDS)}.", metavar="KIND", autocompletion=complete_kind
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(help="Name of the component: lower case, words joined by hyphens."),
    ],
    directory: Annotated[
        Path, typer.Option(help="Folder in which to create the package.")
    ] = Path(),
) -> None:
    """Write a small package with a component and its tests."""
    from fpbench.testing.scaffold import write_package

    folder = write_package(kind, name, directory)
    typer.echo(f"package: {folder}")
    console.show_listing(
        [
            (f"pip install -e {folder}", "# make it known to fpbench"),
            (f"fpbench check {folder}", "# the laws of its kind"),
            (f"pytest {folder}", "# its own tests"),
            (f"fpbench run {folder / f'{name}.toml'}", "# a matrix that uses it"),
        ]
    )
