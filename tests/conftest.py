"""Fixtures that several files use: toy plugins installed as packages, and the real data."""

import gc
import os
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
import warm_start

# Before numpy is imported: where each core has a process of tests already, several threads of
# linear algebra wait for each other, and take up to six times the processor time of one.
os.environ.update(warm_start.ONE_THREAD)

from commands import run_command
from hypothesis import settings

from fpbench.plugin import DataHome, discover

# How long an example takes is the machine's affair, and no law. Where slow tests are left out, laws
# are tried on few examples, the same each time; else on many, others each time.
settings.register_profile("laws", deadline=None, max_examples=100)
settings.register_profile("quick", deadline=None, max_examples=15, derandomize=True)

# Hundreds of processes start here. Without bytecode each compiles all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

warm_start.install()

TESTS = Path(__file__).parent
TOYS = TESTS / "plugins"

LONGEST = (
    "execution/test_faults.py", "cli/test_main.py", "testing/test_new_packages.py",
    "execution/isolation/test_isolation.py", "testing/test_conformance.py",
    "page/test_report_browser.py", "testing/test_laws.py",
    "system/test_adult_attack.py", "docs/test_tutorial.py", "store/test_foreign_runs.py",
    "cli/test_assess.py", "system/test_kernels.py",
    "builtin/test_learners.py", "testing/test_testing.py",
    "correction/test_posterior_of_groups.py",
    "system/test_real_data.py", "correction/exact/test_agreement.py", "execution/test_runner.py",
    "execution/test_verification.py",
    "privacy/test_ledger.py", "matrix/test_malformed.py", "docs/test_docs.py",
    "builtin/ferry/test_ip.py", "builtin/pafer/test_pafer.py", "docs/test_notebooks.py", "base/test_trust.py",
    "reports/assessments/test_assessing.py", "builtin/test_census_synthetic.py",
)  # fmt: skip
"""The files that take longest. They come first, so that no process of xdist ends alone with one."""

Install = Callable[..., Path]


def pytest_configure(config: pytest.Config) -> None:
    """Choose how often laws are tried; have xdist hand out files in the order below.

    It would hand them out by their number of tests.
    """
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "laws")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """`-n auto` is a process more than cores: a third of the time, tests wait for other processes."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have every other process of xdist import files from the last to the first.

    In a new clone each file is compiled where it is imported first; so no two compile all of them.
    """
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if isinstance(collector, pytest.Directory) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest; the order is the same in every process.

    Of a test with `quick_cases(n)` all but n cases are slow: any n, but always the same.
    """
    cases = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("quick_cases"):
            cases[item.nodeid.partition("[")[0], mark.args[0]].append(item)
    for (_, quick), several in cases.items():
        for item in sorted(several, key=lambda item: zlib.crc32(item.nodeid.encode()))[quick:]:
            item.add_marker("slow")
    ranks = {TESTS / name: n for n, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (ranks.get(item.path, len(ranks)), item.path))


def pytest_collection_finish() -> None:
    """Have no garbage collection look at what was imported and collected: it lives to the end."""
    gc.freeze()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a plugin as a distribution would: metadata and a module on the import path.

    Subprocesses and workers of this test find it too.
    """
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(TOYS)]))

    def make(distribution: str, module: str, source: str | None = None) -> Path:
        info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(f"[fpbench]\n{module} = {module}\n")
        if source is not None:
            (site / f"{module}.py").write_text(source)
        discover.cache_clear()
        return site

    yield make
    discover.cache_clear()
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    for name in [name for name, file in files.items() if str(file).startswith(str(site))]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def _forks_stay_possible() -> Iterator[None]:
    """No test leaves a variable for which whatever starts after it would be a new interpreter."""
    before = warm_start.needs_new_interpreter(os.environ)
    yield
    assert warm_start.needs_new_interpreter(os.environ) == before


@pytest.fixture
def toys(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy components of tests/plugins, installed."""
    monkeypatch.syspath_prepend(str(TOYS))
    install("fpbench-toys", "toys")


@pytest.fixture
def toy_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What toy components did, in any process, since the last call."""
    file = tmp_path / "trace"
    monkeypatch.setenv("TOY_TRACE", str(file))

    def read() -> list[str]:
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    return read


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed command in an empty directory."""
    where = tmp_path / "work"
    where.mkdir()

    def run(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        return run_command([*map(str, arguments)], where, {**os.environ, **env})

    return run


@pytest.fixture
def new_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this test starts is a new interpreter, as for a user, and no fork of a template."""
    monkeypatch.setenv("FPBENCH_TEST_PROCESSES", "fresh")


@pytest.fixture(scope="session")
def adult_home() -> DataHome:
    """The real UCI Adult files, or a skip that says how to get them."""
    home = DataHome.default()
    try:
        home.find("adult.data")
        home.find("adult.test")
    except ValueError as missing:
        pytest.skip(f"{missing}; fpbench data fetch adult, or set FPBENCH_DATA")
    return home
