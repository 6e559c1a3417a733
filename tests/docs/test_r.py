"""The lines of R that a page shows run, where R and reticulate are installed."""

import os
import shutil
import subprocess
import sys

import pytest
from pages import PAGES, blocks

RSCRIPT = shutil.which("Rscript")


def run_r(*arguments, **options):
    environment = {**os.environ, "RETICULATE_PYTHON": sys.executable}
    return subprocess.run(
        [RSCRIPT, *arguments],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        **options,
    )


@pytest.mark.slow
def test_the_lines_of_r_assess_and_release_a_table(tmp_path):
    if not RSCRIPT or run_r("-e", "reticulate::py_config()").returncode:
        pytest.skip(
            "no R with reticulate for this python: install r-base-core, and reticulate in R"
        )
    page = PAGES["docs/assess.md"]
    make = [sys.executable, "-c", blocks(page, "python")[0].text]
    subprocess.run(make, cwd=tmp_path, check=True)
    (lines,) = blocks(page, "r")
    (tmp_path / "lines.R").write_text(lines.text)
    done = run_r("lines.R", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Do not publish: the group of")
    assert "Guaranteed: epsilon 1" in done.stdout
    assert (tmp_path / "released.csv").read_text().startswith("job,age,hours,region,group,metric")
