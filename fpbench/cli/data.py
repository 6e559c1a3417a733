"""The `data` commands."""

from typing import Annotated

import typer

from fpbench.cli.groups import NoThirdParty, complete_dataset, group

app = group("data", "Data files: list, fetch and verify them.")

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Data sets; all if not given.", autocompletion=complete_dataset),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A parameter of the data set; may be repeated.", metavar="KEY=VALUE"
    ),
]


@app.command("list")
def data_list(no_third_party: NoThirdParty = False) -> None:
    """List every data set, its size, and where its files are."""
    from fpbench.cli.screen import data_sets as data_listings
    from fpbench.components.catalog import discover

    data_listings.show_data(discover())


@app.command()
def fetch(
    names: Annotated[
        list[str],
        typer.Argument(help="Data sets.", metavar="NAME...", autocompletion=complete_dataset),
    ],
    settings: Set = None,
    no_third_party: NoThirdParty = False,
) -> None:
    """Download files of data sets that are missing or differ from the original."""
    from fpbench.cli.screen import data_sets as data_listings
    from fpbench.components.catalog import discover

    data_listings.fetch(discover(), names, data_listings.parse_parameters(settings or []))


@app.command()
def verify(names: Names = None, no_third_party: NoThirdParty = False) -> None:
    """Compare files of data sets with the originals; exit code 1 if one differs."""
    from fpbench.cli.screen import data_sets as data_listings
    from fpbench.components.catalog import discover

    if not data_listings.verify(discover(), names or []):
        raise typer.Exit(1)


@app.command()
def path() -> None:
    """Show the folders that are searched for data, in this order."""
    from fpbench.data.data_files import DataHome

    for directory in DataHome.default().directories:
        typer.echo(str(directory))
