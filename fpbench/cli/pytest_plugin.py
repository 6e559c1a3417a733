"""`pytest --fpbench`: the laws of a plugin's components as tests, one line each.

Without the flag, nothing of fpbench is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fpbench.testing.laws import Check


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("fpbench", "plugins of fpbench")
    group.addoption(
        "--fpbench", action="store_true", help="test plugins against the laws of fpbench"
    )
    group.addoption(
        "--fpbench-target",
        metavar="PACKAGE_OR_PATH",
        help="what --fpbench tests: a distribution or path, not the project that pytest runs in",
    )


def _is_enabled(config: pytest.Config) -> bool:
    return bool(config.getoption("fpbench") or config.getoption("fpbench_target"))


_LINE = "fpbench"
"""The report property that holds the line of a law."""


class LawBrokenError(Exception):
    """A broken law; only its message is shown."""


class LawItem(pytest.Item):
    """One law, of one component."""

    def __init__(self, *, check: Check, **more: Any) -> None:
        super().__init__(**more)
        self.check = check

    def runtest(self) -> None:
        """Test the law."""
        verdict = self.check()
        self.user_properties.append((_LINE, verdict.line(str(self.check))))
        if verdict.outcome == "skipped":
            pytest.skip(verdict.reason)
        if verdict.outcome == "broken":
            raise LawBrokenError(f"{self.check}: {verdict.reason}")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """One line, not a traceback through the kit."""
        if isinstance(excinfo.value, LawBrokenError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """The path and the name of the test."""
        return self.path, None, str(self.check)


class Laws(pytest.Collector):
    """The laws of all tested components."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item for each law; a usage error if there is nothing to test."""
        from fpbench.base.errors import FpbenchError
        from fpbench.testing import checks

        target = self.config.getoption("fpbench_target") or self.config.rootpath
        try:
            laws = checks(target)
        except FpbenchError as error:
            raise pytest.UsageError(f"--fpbench: {error}") from None
        for check in laws:
            yield LawItem.from_parent(self, name=str(check), check=check)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the laws to the tests, before any are deselected."""
    if _is_enabled(config):
        laws = Laws.from_parent(session, name="fpbench", nodeid="fpbench")
        items += laws.collect()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print one line for each law."""
    if not _is_enabled(config):
        return
    lines = [
        value
        for outcome in ("passed", "failed", "skipped")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in report.user_properties
        if name == _LINE and report.when == "call"
    ]
    if lines:
        terminalreporter.section("laws of fpbench")
    for line in lines:
        terminalreporter.write_line(line)
