"""One least epsilon wherever one is asked for, and noise that is right down to it."""

import importlib
import inspect
import math
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fpbench
from fpbench import Guarantee, InputError
from fpbench.base.public_names import list_public_names, list_rooms
from fpbench.builtin.mechanisms._simulated import simulate_discrete_laplace
from fpbench.builtin.pafer.queries import halve_epsilon
from fpbench.builtin.private_tree.recipe import TreeRecipe
from fpbench.components.catalog import discover
from fpbench.privacy import (
    COUNT_SENSITIVITY,
    LEAST_EPSILON,
    Curator,
    Ledger,
    RecordingCurator,
    check_epsilon,
)

TOO_LITTLE = 0.999e-9
"""Only `check_epsilon` refuses it, so whoever does asks that."""
LAPLACE = fpbench.component("mechanism", "discrete-laplace")

# The one place


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (0, "epsilon must be above 0 and finite, not 0"),
        (-1.0, "epsilon must be above 0 and finite, not -1.0"),
        (math.nan, "epsilon must be above 0 and finite, not nan"),
        (math.inf, "epsilon must be above 0 and finite, not inf"),
        (np.float64("inf"), "epsilon must be above 0 and finite, not inf"),
        (10**400, f"epsilon must be above 0 and finite, not 1{'0' * 39}"),
        (1e-10, "epsilon must be at least 1e-09, not 1e-10"),
        (math.nextafter(1e-9, 0), "epsilon must be at least 1e-09, not 9.999999999999999e-10"),
        (5e-324, "epsilon must be at least 1e-09, not 5e-324"),
        (True, "epsilon must be a number, not True"),
        ("1", "epsilon must be a number, not '1'"),
        (None, "epsilon must be a number, not None"),
        (1j, "epsilon must be a number, not 1j"),
        ([1.0, 0.0], "epsilon must be above 0 and finite, not 0.0"),
        (np.array([[1.0], [math.nan], [1e-10]]), "epsilon must be above 0 and finite, not nan"),
        (np.array([1.0, math.inf]), "epsilon must be above 0 and finite, not inf"),
        (np.array([1.0, 1e-10]), "epsilon must be at least 1e-09, not 1e-10"),
    ],
)
def test_a_wrong_epsilon_is_one_error(epsilon, message):
    with pytest.raises(InputError) as refused:
        check_epsilon(epsilon)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "epsilon", [1e-9, LEAST_EPSILON, 1, 1e308, np.float32(1), np.int64(3), np.array([1.0, 2]), []]
)
def test_an_epsilon_is_accepted(epsilon):
    check_epsilon(epsilon)


def test_an_epsilon_may_be_infinite_where_that_means_no_privacy():
    check_epsilon(math.inf, infinite=True)
    for bad in (0.0, -math.inf, math.nan):
        with pytest.raises(InputError, match=f"budget must be above 0, not {bad}"):
            check_epsilon(bad, "budget", infinite=True)
    with pytest.raises(InputError, match="budget must be at least 1e-09"):
        check_epsilon(1e-10, "budget", infinite=True)


class Cheap(float):
    """Compares as an epsilon that may be, and is none."""

    def __le__(self, other):
        return True

    __lt__ = __ge__ = __gt__ = __le__


NO_NUMBERS = ["1", "1e-10", b"1", True, np.True_, None, 1j, [1.0], [], np.array([0.5]), np.array([]),
              np.array(0.5), Fraction(1, 2), Decimal("0.5"), {}]  # fmt: skip


def test_guarantees_budgets_and_questions_are_of_numbers():
    for value in NO_NUMBERS:
        for arguments in ((value,), (1.0, value), (1.0, 0.0, "attribute", value)):
            if len(arguments) < 4 or value is not None:  # None is no rho
                with pytest.raises(InputError, match="must be a number, not"):
                    Guarantee(*arguments)
        for arguments in ((value,), (1.0, value)):
            with pytest.raises(InputError, match="must be a number, not"):
                Ledger(*arguments)
    for value in ("much", "1", True, None, [True, True], ["1"], [[1.0], [1.0, 2.0]], [10**400],
                  [Fraction(1, 2)], Decimal(1)):  # fmt: skip
        asked = curator()
        with pytest.raises(InputError, match="epsilon must be"):
            asked.histogram([0] * 4, 1, epsilon=value, mechanism=LAPLACE)
        assert asked.remaining.epsilon == 1.0


def test_numbers_are_pythons_own():
    made = Guarantee(np.float32(0.5), np.float64(0.25), "attribute", np.float16(2))
    assert [type(n) for n in (made.epsilon, made.delta, made.rho)] == [float] * 3
    assert type(Guarantee(np.int8(1)).epsilon) is int
    with pytest.raises(InputError, match="at least 1e-09"):
        Guarantee(Cheap(1e-300))
    with pytest.raises(InputError, match="rho must be above 0 and finite"):
        Guarantee(1.0, rho=10**400)
    with pytest.raises(InputError, match="unknown neighbours"):
        Guarantee(1.0, neighbours=["attribute"])


def test_only_guarantees_are_paid_for():
    ledger = Ledger(1.0)
    free = SimpleNamespace(epsilon=-5.0, delta=0.0, neighbours="attribute", rho=None)
    for given in ([free], [Guarantee(0.5), 0.1], [None]):
        with pytest.raises(InputError, match="guarantee must be a Guarantee"):
            ledger.spend(given)
    assert ledger.remaining.epsilon == 1.0


# Every entrance


def curator():
    return Curator([0, 1, 1, 0], ["a", "b"], ledger=Ledger(1.0))


def audit(epsilon):
    fpbench.audit(np.array([0, 1, 1, 0]), None, ["a", "a", "b", "b"], epsilon=epsilon, rng=0)


def train(epsilon):
    tree = fpbench.builtin.PrivateTreeClassifier(epsilon=epsilon, bounds=(0, 1), max_depth=1)
    tree.fit(np.array([[0.1], [0.9]]), [0, 1])


NOISES = [
    entry.name
    for entry in discover().of_kind("mechanism")
    if entry.source.distribution == "fpbench-toolkit"
]
ENTRANCES = {
    "Curator.histogram": lambda e: curator().histogram([0] * 4, 1, epsilon=e, mechanism=LAPLACE),
    "Guarantee": Guarantee,
    "Ledger": Ledger,
    "FairnessReport.protect": lambda e: fpbench.FairnessReport.from_predictions(
        pd.DataFrame({"x": [0, 0, 1, 1]}), [0, 1, 0, 1], list("abab"), by=["x"], min_cell=0
    ).protect(noise="laplace", epsilon=e),
    **{f"Mechanism.find_{law}_law": lambda e, law=law: [
        getattr(fpbench.component("mechanism", name), f"find_{law}_law")(
            COUNT_SENSITIVITY["attribute"], e, np.array([5])
        ) for name in NOISES
    ] for law in ("exact", "noise")},
    "Mechanism.guarantee": lambda e: LAPLACE.guarantee(e, "attribute"),
    "Mechanism.release": lambda e: LAPLACE.release(
        np.array([1]), COUNT_SENSITIVITY["attribute"], e, np.random.default_rng(0)
    ),
    "PrivateTreeClassifier": train,
    "RecordingCurator.histogram": lambda e: RecordingCurator(curator()).histogram(
        [0] * 4, 1, epsilon=e, mechanism=LAPLACE
    ),
    "audit": audit,
    "check_epsilon": check_epsilon,
    "check_mechanism": lambda e: fpbench.testing.check_mechanism(LAPLACE, epsilon=e),
    "epsilon_to_rho": lambda e: fpbench.privacy.epsilon_to_rho(e, 1e-6),
    "gaussian_sigma": lambda e: fpbench.privacy.gaussian_sigma(e, 1e-6),
    "sampled_gaussian_sigma": lambda e: fpbench.privacy.sampled_gaussian_sigma(e, 1e-6, 0.1, 5),
    "release": lambda e: fpbench.release(
        pd.DataFrame({"x": [0, 0, 1, 1]}), [0, 1, 0, 1], list("abab"), by=["x"], epsilon=e
    ),
}  # fmt: skip
# No privacy is asked of these: what was measured, what others must have, points of a curve.
OTHERS = {"Balance", "HistogramSource.histogram", "gaussian_delta"}


def public_callables():
    for package, name in [(p, n) for p in ("fpbench", *list_rooms()) for n in list_public_names(p)]:
        value = getattr(importlib.import_module(package), name)
        if callable(value):
            yield name, value
        if inspect.isclass(value):
            methods = inspect.getmembers(value, inspect.isfunction)
            own = ((m, f) for m, f in methods if m in vars(value) and not m.startswith("_"))
            yield from ((f"{name}.{method}", function) for method, function in own)


def asks_for_epsilon(function):
    try:
        return any("epsilon" in name for name in inspect.signature(function).parameters)
    except (TypeError, ValueError):  # an alias of a type
        return False


def test_every_public_function_that_asks_for_an_epsilon_is_listed_here():
    names = {name for name, function in public_callables() if asks_for_epsilon(function)}
    assert names == {*ENTRANCES, *OTHERS}


def test_every_public_function_refuses_a_wrong_epsilon():
    for enter in ENTRANCES.values():
        for epsilon in (TOO_LITTLE, math.nan):
            with pytest.raises(InputError, match=r"^[^\n]*epsilon[^\n]*$"):
                enter(epsilon)


def test_every_component_refuses_a_wrong_epsilon(tmp_path):
    kinds = set()
    for entry in discover():
        cls = discover().component(entry.kind, entry.name)
        example = next(iter(cls.examples(tmp_path)), {})
        if entry.kind != "learner" and "mechanism" in cls.model_fields:
            example = {**example, "mechanism": {"use": "discrete-laplace"}}
        if "base" in cls.model_fields and cls.model_fields["base"].is_required():
            example = {**example, "base": {"use": "plain"}}
        for field in (field for field in cls.model_fields if "epsilon" in field):
            kinds.add(entry.kind)
            for epsilon in (TOO_LITTLE, math.nan):
                with pytest.raises(InputError, match=rf"^[^\n]*{field}[^\n]*$"):
                    fpbench.component(entry.kind, entry.name, **{**example, field: epsilon})
    assert kinds >= {"learner", "disclosure", "auditor"}


# Shares of an epsilon, which may be less than what was asked for


def test_a_share_that_is_too_little_is_named():
    with pytest.raises(
        InputError, match=r"epsilon \* leaf_share must be at least 1e-09, not 5e-10"
    ):
        TreeRecipe(epsilon=1e-9)
    with pytest.raises(InputError, match="epsilon of each of max_depth levels must be at least"):
        TreeRecipe(epsilon=4e-9, max_depth=6)
    TreeRecipe(epsilon=2e-9, max_depth=1)
    with pytest.raises(InputError, match=r"epsilon / 2, of each of two .*, not 7\.5e-10"):
        halve_epsilon(1.5e-9)


def test_an_epsilon_that_is_split_by_the_caller_is_refused_by_the_curator():
    """Not one of 10,000 answers at 1e-13 each is given, and nothing is spent."""
    asked = curator()
    with pytest.raises(InputError, match="at least 1e-09, not 1e-13"):
        asked.histogram([0] * 4, 1, epsilon=np.full(10_000, 1e-9 / 10_000), mechanism=LAPLACE)
    assert asked.remaining.epsilon == 1.0


# Simulated noise down to the least epsilon

DRAWS = 100_000
SMALL = [LEAST_EPSILON, 3e-8, 1e-6, 1e-4]


def released(name, epsilon, count, upper=None, **parameters):
    mechanism = fpbench.component("mechanism", name, **parameters)
    counts = np.full(DRAWS, count)
    noisy = mechanism.release(
        counts, COUNT_SENSITIVITY["attribute"], epsilon, np.random.default_rng(1), upper=upper
    )
    assert np.isfinite(noisy).all()
    return noisy - count


def uniform(noise, cdf):
    """What a distribution makes of draws of it, spread within the steps of a discrete one."""
    low, high = cdf(noise - 1), cdf(noise)
    return low + np.random.default_rng(2).random(noise.size) * (high - low)


@pytest.mark.parametrize("epsilon", SMALL)
def test_discrete_laplace_noise_is_right(epsilon):
    noise = released("discrete-laplace", epsilon, 7)
    q = epsilon / 2  # minus the logarithm of the ratio of neighbours

    def cdf(z):
        tail = np.exp(-q * np.where(z < 0, -z, z + 1)) / (1 + math.exp(-q))
        return np.where(z < 0, tail, 1 - tail)

    assert (noise == np.rint(noise)).all()
    assert stats.kstest(uniform(noise, cdf), "uniform").pvalue > 0.01
    assert (noise == 0).mean() < 1e-3


@pytest.mark.parametrize("epsilon", SMALL)
@pytest.mark.parametrize("delta", [1e-6, 1e-300])
def test_discrete_gaussian_noise_is_right(epsilon, delta):
    noise = released("discrete-gaussian", epsilon, 7, delta=delta)
    sigma = math.sqrt(2 / (2 * fpbench.privacy.epsilon_to_rho(epsilon, delta)))
    assert (noise == np.rint(noise)).all()
    spread = uniform(noise, lambda z: stats.norm.cdf((z + 0.5) / sigma))
    assert stats.kstest(spread, "uniform").pvalue > 0.01


@pytest.mark.parametrize("epsilon", SMALL)
def test_continuous_noise_is_right(epsilon):
    laplace = released("laplace", epsilon, 7)
    assert stats.kstest(laplace, stats.laplace(scale=2 / epsilon).cdf).pvalue > 0.01
    sigma = math.sqrt(2) * fpbench.privacy.gaussian_sigma(epsilon, 1e-6)
    assert stats.kstest(released("gaussian", epsilon, 7), stats.norm(scale=sigma).cdf).pvalue > 0.01


@pytest.mark.parametrize("epsilon", SMALL)
@pytest.mark.parametrize("utility", ["absolute", "squared", "root", "indicator"])
def test_choices_among_few_counts_are_right(epsilon, utility):
    """So little tells them apart that all are equally likely."""
    chosen = 7 + released("exponential", epsilon, 7, upper=10, utility=utility)
    assert stats.chisquare(np.bincount(chosen.astype(int), minlength=11)).pvalue > 0.01


@pytest.mark.parametrize("epsilon", SMALL)
def test_choices_among_many_counts_are_right(epsilon):
    """A Laplace distribution that ends at 0 and at the bound."""
    upper, count = int(12 / epsilon), int(3 / epsilon)
    noise = released("exponential", epsilon, count, upper=upper)
    law = stats.laplace(scale=4 / epsilon)
    low, high = law.cdf([-count - 0.5, upper - count + 0.5])

    def cdf(z):
        return (law.cdf(z + 0.5) - low) / (high - low)

    assert stats.kstest(uniform(noise, cdf), "uniform").pvalue > 0.01


@pytest.mark.parametrize("count", [0, 2**53, 2**63 - 1])
@pytest.mark.parametrize("name", ["discrete-laplace", "discrete-gaussian", "laplace", "gaussian"])
def test_large_counts_and_large_noise_do_not_wrap_around(name, count):
    noise = released(name, LEAST_EPSILON, count)
    assert np.abs(noise).max() < 1e12
    assert abs(np.median(noise)) < 1e9


def test_noise_that_cannot_be_simulated_is_refused():
    """Two geometric numbers that both stay at 2^63 - 1 would cancel out: the true count."""
    for scale in (2.0**48, 1e20, math.inf):
        with pytest.raises(InputError, match="cannot be simulated"):
            simulate_discrete_laplace(np.array([1.0, scale]), (2,), np.random.default_rng(0))


def test_exact_noise_is_right_at_the_least_epsilon():
    mechanism = fpbench.component("mechanism", "discrete-laplace", noise="secure")
    noise = mechanism.release(
        np.zeros(2000, np.int64),
        COUNT_SENSITIVITY["attribute"],
        LEAST_EPSILON,
        np.random.default_rng(0),
    )
    # A random number of the operating system: a false alarm once in 10^6.
    assert stats.kstest(noise, stats.laplace(scale=2 / LEAST_EPSILON).cdf).pvalue > 1e-6
