"""A distribution of somebody else, for tests of what a curator trusts."""

import sys

import pytest

import fpbench


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a plugin as a distribution would: metadata and a module on the import path."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(str(site))

    def make(distribution, module, source):
        info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(f"[fpbench]\n{module} = {module}\n")
        (site / f"{module}.py").write_text(source)
        fpbench.plugin.discover.cache_clear()

    yield make
    fpbench.plugin.discover.cache_clear()
    sys.modules.pop("murmur", None)
