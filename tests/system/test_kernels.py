"""Numbers are the same whatever kernel computed them; what is not says so, and is set apart."""

import subprocess
import sys

import numpy as np
import pytest
from kernels import other_kernel

import fpbench
from fpbench import load
from fpbench.base import drop_last_bits
from fpbench.plugin import Status
from fpbench.store.differences import TOLERANCE, diff, is_near
from fpbench.store.environment import have_same_kernels
from fpbench.store.store import Store

pytestmark = pytest.mark.slow

# What amplified last bits: ties of trees and linear programs, iterations that stop early, and
# sorted scores. The network does not claim to be portable.
MATRIX = """
seeds = 2
[[dataset]]
use = "census-synthetic"
rows = 2_000
[[learner]]
use = "exponentiated-gradient"
tolerance = 0.0
[[learner]]
use = "grid-search"
grid_size = 5
base = "logistic-regression"
[[learner]]
use = "threshold-optimizer"
base = "logistic-regression"
[[learner]]
use = "pate"
teachers = 20
[[learner]]
use = "pate"
label = "pate of networks"
teachers = 5
teacher = "mlp"
student = "mlp"
epochs = 10
[[learner]]
use = "plain"
label = "network"
base = "sklearn.neural_network:MLPClassifier"
base_parameters = { max_iter = 20, hidden_layer_sizes = [32, 16] }
[[disclosure]]
use = "published"
metric = "statistical-parity"
[[adversary]]
use = "a1"
[[adversary]]
use = "a2"
family = "logistic-regression"
[[corrector]]
use = "exact"
[[corrector]]
use = "posterior"
"""
CELLS, NETWORKS = 48, 8
SMALL = """
seeds = 2
[[dataset]]
use = "census-synthetic"
rows = 600
[[learner]]
use = "plain"
label = "line"
base = "logistic-regression"
[[learner]]
use = "plain"
label = "network"
base = "sklearn.neural_network:MLPClassifier"
base_parameters = { max_iter = 20, hidden_layer_sizes = [32, 16] }
[[disclosure]]
use = "hidden"
[[adversary]]
use = "a2"
family = "logistic-regression"
[[corrector]]
use = "none"
"""


def make_run(directory, text, environment=None):
    """A matrix, run as a user does; on another kernel if its environment is given."""
    matrix = directory / "matrix.toml"
    matrix.write_text(text)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "fpbench", "run", matrix, "--out", directory / "r"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return directory / "r"


@pytest.fixture(scope="module")
def other():
    return other_kernel()


@pytest.fixture(scope="module")
def here(tmp_path_factory, other):
    return make_run(tmp_path_factory.mktemp("here"), MATRIX)


@pytest.fixture(scope="module")
def there(tmp_path_factory, other):
    return make_run(tmp_path_factory.mktemp("there"), MATRIX, other)


@pytest.fixture(scope="module")
def small(tmp_path_factory, other):
    return make_run(tmp_path_factory.mktemp("small"), SMALL, other)


def test_what_claims_to_be_portable_is_and_what_does_not_is_not(here, there):
    found = diff(here, there)
    assert not found.exact
    assert found.compared == CELLS
    assert (found.spreads, found.statuses) == ((), ())
    assert not found
    assert found.incomparable == NETWORKS
    # A flag must be earned: the network's numbers are indeed others.
    assert max(spread.largest for spread in found.apart) > 1e-3
    rows = fpbench.load(here).rows()
    assert [row["learner"] for row in rows if row.get("portable") is False] == [
        "network"
    ] * NETWORKS
    assert all(row.get("portable") in (False, None) for row in rows)


def test_a_run_is_the_same_as_itself_to_the_last_bit(here):
    found = diff(here, here)
    assert found.exact
    assert not found
    assert found.incomparable == 0


def copy_forged(source, target, by, **more):
    """A run in which the line's cells say another accuracy, and something more."""
    with Store(source) as store:
        about, cells = store.about(), list(store.cells())
        environment, records = store.environment(), list(store.records())
    lines = {cell.key for cell in cells if cell.labels["learner"] == "line"}
    run = target / "forged"
    with Store(run, create=True) as store:
        session = store.begin(about, environment, cells)
        for record in records:
            measures = dict(record.measures)
            if record.key in lines:
                measures |= {"initial_accuracy": measures["initial_accuracy"] + by, **more}
            store.add(session, record.key, Status.DONE, record.seconds, measures)
    (run / "matrix.toml").write_text(SMALL)
    return run


def test_an_honest_run_of_another_kernel_is_verified(small, command):
    done = command("verify", small, "--sample", 9, "--seed", 1, COLUMNS="200")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 cells not comparable across kernels" in done.stdout
    assert "2 of 2 cells run again are the same within 1e-06, as the kernels" in done.stdout
    assert "to the last bit" not in done.stdout


@pytest.mark.filterwarnings("ignore::UserWarning")  # of a network that stops early
def test_a_forged_row_of_another_kernel_is_found(small, tmp_path):
    found = load(copy_forged(small, tmp_path, 2e-6)).verify(9)
    assert not found.exact
    assert not found.same
    wrong = [each for each in found.checked if each.wrong]
    assert [", line, " in each.cell for each in wrong] == [True, True]
    assert {change.name for each in wrong for change in each.changes} == {"initial_accuracy"}
    told = [each for each in found.checked if not each.comparable]
    assert [", network, " in each.cell for each in told] == [True, True]
    assert not any(each.wrong or each.same for each in told)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of a network that stops early
def test_a_row_that_says_it_is_not_portable_is_compared(small, tmp_path):
    found = load(copy_forged(small, tmp_path, 0.1, portable=False)).verify(9)
    assert not found.same
    assert len([each for each in found.checked if each.wrong]) == 2


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (0.5, 0.5 + 0.99 * TOLERANCE, True),
        (0.5, 0.5 + 1.01 * TOLERANCE, False),
        (1e9, 1e9 + 900.0, True),  # of what is larger than 1, a share
        (1e9, 1e9 + 1100.0, False),
        (1, 1.0, False),
        (3, 4, False),
        ("a", "a", True),
        (True, None, False),
        (np.nan, np.nan, True),
        (np.nan, 0.5, False),
        (np.inf, np.inf, True),
        (np.inf, 1e300, False),
        (0.0, -0.0, True),
    ],
)
def test_what_is_near(one, other, alike):
    assert is_near(one, other) is is_near(other, one) is alike


def test_kernels_are_the_same_only_if_all_of_them_are_recorded_and_equal():
    known = {
        "machine": "x86_64", "blas": ["openblas 0.3.30 Haswell"], "simd": ["X86_V3"],
        "solvers": {"scipy": "1.17"}, "packages": {"numpy": "2.4", "fpbench": "0.1"},
    }  # fmt: skip
    assert have_same_kernels([known, known])
    assert have_same_kernels([known, known | {"packages": {"numpy": "2.4", "fpbench": "0.2"}}])
    for name, value in (
        ("blas", ["openblas 0.3.30 SkylakeX"]), ("simd", []), ("machine", "aarch64"),
        ("solvers", {}), ("packages", {"numpy": "2.3"}), ("packages", None),
    ):  # fmt: skip
        assert not have_same_kernels([known, known | {name: value}]), name
    for name in ("blas", "simd", "machine"):
        old = {key: value for key, value in known.items() if key != name}
        assert not have_same_kernels([old, old]), name


def test_last_bits_are_dropped():
    noise = 1 + np.array([0, 1, -1, 5]) * 2.0**-52
    assert len(set(drop_last_bits(noise / 3).tolist())) == 1
    assert drop_last_bits(np.array([1e-17, -1e-17])).tolist() == [0.0, 0.0]
    assert drop_last_bits(np.array([0.25, 0.75])).tolist() == [0.25, 0.75]
    # What is left of numbers of the size 100 has their last bits.
    assert drop_last_bits(np.array([0.1 + 1e-13]), 100.0) == drop_last_bits(np.array([0.1]), 100.0)
    values = np.random.default_rng(0).random(1000)
    assert np.abs(drop_last_bits(values) - values).max() <= 2.0**-24
