"""Whatever a matrix file holds: a plan, or one clear error and exit code 2. Never a traceback."""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from malformed import broken_texts, command, misfits, mutants

pytestmark = pytest.mark.usefixtures("toys")

# How often; the script and a developer's patience may ask for more.
TIMES = int(os.environ.get("FPBENCH_FUZZ", "1"))


def examples(number):
    unhealthy = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(
        deadline=None, max_examples=number * TIMES, suppress_health_check=unhealthy, database=None
    )


def plan(file, content):
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return command("plan", str(file), "--max-cells", "2000")


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [misfits(), broken_texts()], ids=["misfits", "broken"])
def test_what_is_wrong_is_one_clear_error(wrong, tmp_path):
    """2,000 of them, 1,000 of each sort."""
    counted = Counter()

    @examples(1000)
    @given(wrong)
    def check(text):
        said = plan(tmp_path / "m.toml", text)
        assert said.refused, (said, text)
        assert str(tmp_path / "m.toml") in said.error
        counted[said.code] += 1

    check()
    print(f"{counted[2]} malformed matrices, {counted[2]} clear errors")
    assert counted[2] >= 1000


@pytest.mark.slow
@examples(300)
@given(mutants())
def test_what_may_be_wrong_is_a_plan_or_one_clear_error(tmp_path, text):
    said = plan(tmp_path / "m.toml", text)
    assert said.code == 0 or said.refused, (said, text)


@pytest.mark.slow
@examples(200)
@given(st.binary(max_size=60))
def test_bytes_are_one_clear_error(tmp_path, content):
    assert plan(tmp_path / "m.toml", content).refused
