"""Output of checks of submissions, and of the building of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fpbench.cli.screen import console
from fpbench.cli.screen.sheets import show_line
from fpbench.testing.submissions.checking import CheckOutcome

if TYPE_CHECKING:
    from fpbench.report.site.building import Site
    from fpbench.testing.submissions.checking import Checkup

_COLOURS = {
    CheckOutcome.NOTED: "yellow",
    CheckOutcome.FAILED: "red",
    CheckOutcome.SKIPPED: "yellow",
}


def show_checkup(checkup: Checkup) -> None:
    """Show the verdict, then every check."""
    name = checkup.submission.folder
    if checkup.verified:
        show_line(f"{name} passes", "green")
    else:
        show_line(f"{name} does not pass: {checkup.reason}", "red")
    for each in checkup.findings:
        show_line(f"{each.outcome:8}{each.name}: {each.words}", _COLOURS.get(each.outcome))


def show_site(site: Site) -> None:
    """Show what was verified, and where the site is."""
    for entrant in site.entrants:
        if entrant.verified:
            show_line(f"verified: {entrant.checkup.submission.folder}")
        else:
            show_line(
                f"not verified: {entrant.checkup.submission.folder}: {entrant.reason}",
                "yellow",
            )
    console.show_text(f"site: {site.directory / 'index.html'} ({site.pages} pages)")
