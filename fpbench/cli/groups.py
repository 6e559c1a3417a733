"""What every group of commands on the command line starts from."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fpbench.base.trust import forbid_third_party


def _forbid(asked: bool) -> bool:
    if asked:
        forbid_third_party()
    return asked


STANDARD = Path("-")
"""What an option for an output file says of standard output."""


def _file(output: Path | None) -> Path | None:
    return None if output == STANDARD else output


Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", callback=_file, help="File; standard output if not given, or if -."
    ),
]
"""An option of every command that writes text to standard output unless told otherwise."""

NoThirdParty = Annotated[
    bool,
    typer.Option(
        "--no-third-party",
        callback=_forbid,
        help="Load built-in components only: no code of other distributions.",
    ),
]
"""An option of every command that loads plugins; seen to before the command is called."""


class _Light:
    """A command whose `--help` has a value when it is not given.

    typer (0.29) loads pydantic to convert a missing one, which costs more than all the rest.
    """

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.default = False
        return option

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; for a Tab, values stay text, as to convert one loads pydantic, too."""
        if ctx.resilient_parsing:
            for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
                parameter.process_value = _keep_text
        parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return parsed


def _keep_text(_: Any, value: Any) -> Any:
    return value


class Command(_Light, TyperCommand):
    """A command that starts light."""


class _Group(_Light, TyperGroup):
    pass


def group(name: str, text: str) -> typer.Typer:
    """A group of commands that starts light: plain help, no completion options to convert."""
    return typer.Typer(
        name=name,
        help=text,
        cls=_Group,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
