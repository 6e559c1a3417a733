"""The integer program against brute force and the exact solver, with every solver there is."""

import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import fpbench
from fpbench import FairnessReport, FpbenchError, InputError, Problem
from fpbench.builtin.ferry import correctors, ip_model, ip_solver
from fpbench.builtin.ferry.correctors import IP
from fpbench.builtin.ferry.ip_model import IntegerModel, exclude_counts, simplify
from fpbench.claims import (
    METRICS,
    AnyOf,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    Row,
    ShareBounds,
)
from fpbench.claims.rates import FORMS
from fpbench.correction import CountedProblem, solve_exact
from fpbench.plugin import SolverStatus

MODELS = ["counts", "individuals"]
BOUNDS = st.sampled_from([(0.0, 0.3), (0.2, 0.5), (0.3, 0.3), (0.5, 1.0), (0.0, 1.0)])

needs_cplex = pytest.mark.skipif(
    importlib.util.find_spec("cplex") is None,
    reason="needs cplex: pip install 'fpbench-toolkit[cp]'",
)


def claim(tolerance=0.05, metric="statistical-parity"):
    return RateConstraint(metric, tolerance)


def problem(n=40, k=2, seed=0, constraints=None, weights=True):
    rng = np.random.default_rng(seed)
    guess, labels = rng.integers(0, k, n), rng.integers(0, 2, n)
    predictions = (rng.random(n) < 0.2 + 0.5 * guess / (k - 1)).astype(np.int8)
    costs = rng.random(n) + 0.1 if weights else None
    known = (claim(),) if constraints is None else tuple(constraints)
    return Problem(guess, k, predictions, labels, known, costs)


@st.composite
def constraints(draw, n, k, linear=False):
    """A claim, sometimes with something else that is known."""
    group, metric, form = st.integers(0, k - 1), st.sampled_from(METRICS), st.sampled_from(FORMS)
    others = [
        st.builds(lambda g, b: ShareBounds(g, *b), group, BOUNDS),
        st.builds(lambda g, b, m: RateBounds(g, *b, m), group, BOUNDS, metric),
        st.builds(lambda m, b, f: KnownUnfairness(m, *b, f), metric, BOUNDS, form),
        st.builds(lambda r, g: KnownPeople([r], [g]), st.integers(0, n - 1), group),
    ]
    if linear:
        # Multiples of 1/8, so that the oracle's sums are exact.
        number = st.integers(-16, 16).map(lambda eighths: eighths / 8)
        sums = st.builds(
            lambda g, c, low, width: LinearConstraint(g, c, low, low + width),
            group, st.lists(number, min_size=n, max_size=n), number,
            st.sampled_from([0.0, 0.5, 2.0, np.inf]),
        )  # fmt: skip
        return tuple(draw(st.lists(sums, min_size=1, max_size=2))) + tuple(
            draw(st.lists(st.one_of(*others), max_size=1))
        )
    tolerance = st.sampled_from([0.0, 0.02, 0.1, 0.25, 0.5, Fraction(123456789012, 10**12)])
    rates = draw(st.builds(RateConstraint, metric, tolerance, form))
    return (rates, *draw(st.lists(st.one_of(*others), max_size=2)))


@st.composite
def problems(draw, most, groups, linear=False):
    """Any problem it can express: ties, empty slices and impossible claims among them."""
    k, n = draw(st.integers(2, groups)), draw(st.integers(2, most))
    known = draw(constraints(n, k, linear))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    guess = rng.integers(0, k, n)
    predictions = (rng.random(n) < draw(st.sampled_from([0.0, 0.2, 0.5]))
                   + 0.4 * guess / (k - 1)).astype(np.int8)  # fmt: skip
    labels = rng.integers(0, 2, n) * draw(st.booleans())
    costs = draw(st.sampled_from([
        None, rng.random(n) + 0.1, rng.integers(1, 3, n).astype(float),
        (rng.random(n) + 0.1) * 1e-5, (rng.random(n) + 0.1) * 1e20,
    ]))  # fmt: skip
    return Problem(guess, k, predictions, labels, known, costs)


def check_answer(answer, least, instance):
    """Whether an answer is right: the status, the least cost, and values that cost as much."""
    if least is None:
        assert answer.status is SolverStatus.INFEASIBLE
        assert answer.values is None and answer.objective is None and answer.moves is None
        return
    assert answer.status is SolverStatus.OPTIMAL
    assert answer.objective == pytest.approx(least, rel=1e-6, abs=0)
    assert answer.gap == 0
    assert oracles.admissible(instance, answer.values)
    changed = answer.values != instance.guess
    assert answer.objective == pytest.approx(oracles.costs(instance)[changed].sum(), rel=1e-12)
    moves = np.zeros_like(answer.moves)
    np.add.at(
        moves, (instance.predictions[changed], instance.guess[changed], answer.values[changed]), 1
    )
    np.testing.assert_array_equal(answer.moves, moves)


class TestAgreement:
    @pytest.mark.slow
    @pytest.mark.parametrize("model", MODELS)
    @given(data=st.data())
    def test_with_every_vector_there_is(self, model, data):
        instance = data.draw(problems(most=7, groups=3))
        correction = IP(model=model).correct(instance)
        check_answer(correction, oracles.brute_force(instance), instance)

    @pytest.mark.slow
    @pytest.mark.parametrize("model", MODELS)
    @given(data=st.data())
    def test_of_linear_constraints_with_every_vector_there_is(self, model, data):
        instance = data.draw(problems(most=6, groups=3, linear=True))
        correction = IP(model=model).correct(instance)
        check_answer(correction, oracles.brute_force(instance), instance)

    @settings(max_examples=20)
    @given(
        data=st.data(), k=st.integers(2, 3), model=st.sampled_from(MODELS),
        report=st.sampled_from([
            {"metrics": ["selected", "rejected"]}, {"decimals": 1}, {"sizes": False},
            {"decimals": 0, "sizes": False},  # ends that are not told twice
            {"metrics": ["selected"], "round_to": 3}, {"noise": "laplace", "epsilon": 1.0},
        ]),
    )  # fmt: skip
    def test_of_published_tables_with_every_vector_there_is(self, data, k, model, report):
        n, seed = 7, data.draw(st.integers(0, 999))
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"a": rng.integers(0, 2, n).astype(str), "b": ["u"] * 4 + ["v"] * 3})
        predictions, codes = rng.integers(0, 2, n), rng.permutation(np.arange(n) % k)
        groups = pd.Categorical.from_codes(codes, list("fmx"[:k]))
        published = FairnessReport.from_predictions(
            X, predictions, groups, by=["a", "b"], min_cell=0, rng=seed, **report
        )
        facts, guess = published.facts(X, predictions), rng.integers(0, k, n)
        weights = rng.random(n) + 0.1
        found = IP(model=model).correct(
            Problem(guess, k, predictions, predictions, (facts,), weights)
        )
        vectors = [v for v in oracles.all_vectors(n, k) if facts.allows(v)]
        least = min(weights[v != guess].sum() for v in vectors)
        assert found.status is SolverStatus.OPTIMAL
        assert facts.allows(found.values)
        assert found.objective == pytest.approx(least, rel=1e-6)

    @settings(max_examples=20)
    @given(
        seed=st.integers(0, 2**32), k=st.integers(2, 3), model=st.sampled_from(MODELS),
        metric=st.sampled_from(METRICS), form=st.sampled_from(["between-groups", "ratio"]),
        low=st.sampled_from([0.0, 0.2]), width=st.sampled_from([0.0, 0.2, 0.5]),
    )  # fmt: skip
    def test_of_rates_of_two_groups_with_every_vector_there_is(
        self, seed, k, model, metric, form, low, width
    ):
        instance = problem(7, k, seed, [KnownUnfairness(metric, low, low + width, form)])
        least = oracles.brute_force(instance)
        check_answer(IP(model=model).correct(instance), least, instance)
        assert solve_exact(instance).objective == pytest.approx(least)

    @pytest.mark.parametrize("form", FORMS)
    def test_rates_of_two_groups_are_cut_by_counts(self, form, monkeypatch):
        built = []

        def build(tally, *, counted):
            built.append(counted)
            return IntegerModel(tally, counted=counted)

        monkeypatch.setattr(correctors, "IntegerModel", build)
        instance = problem(60, 3, constraints=[RateConstraint("equalized-odds", 0.05, form)])
        check_answer(IP().correct(instance), solve_exact(instance).objective, instance)
        assert built == [form != "to-overall"]

    @pytest.mark.slow
    @given(instance=problems(most=60, groups=4))
    def test_with_the_exact_solver(self, instance):
        exact = solve_exact(instance)
        check_answer(IP(model="counts").correct(instance), exact.objective, instance)

    @pytest.mark.slow
    @pytest.mark.parametrize(("k", "metric"), list(product((2, 3), METRICS)))
    def test_the_published_model_agrees_with_the_exact_solver(self, k, metric):
        instance = problem(50, k, constraints=[claim(0.08, metric)])
        exact = solve_exact(instance)
        check_answer(IP(model="individuals").correct(instance), exact.objective, instance)

    @settings(max_examples=20)
    @given(seed=st.integers(0, 1000), off=st.sampled_from([0, 10**-9, 10**-15]))
    def test_a_claim_that_holds_with_nothing_to_spare(self, seed, off):
        """Rates at the tolerance satisfy it, and rates a hair beyond do not."""
        loose = problem(60, 2, seed, [claim(0.1)])
        correction = solve_exact(loose)
        assume(correction.values is not None)
        rates = correction.values, loose.predictions, loose.labels, 2
        tightest = loose.constraints[0].unfairness(*rates) - Fraction(off)
        assume(tightest > 0)
        tight = replace(loose, constraints=(claim(tightest),))
        check_answer(IP(model="counts").correct(tight), solve_exact(tight).objective, tight)

    def test_the_weights_of_one_problem_may_differ_a_millionfold(self):
        instance = problem(60, 3)
        weights = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 60)
        instance = replace(instance, weights=weights)
        exact = solve_exact(instance)
        check_answer(IP().correct(instance), exact.objective, instance)


class TestLinear:
    def test_a_total_is_known(self):
        """Of four people worth 1, 2, 4 and 8, those of group 1 are worth 5."""
        known = LinearConstraint(1, [1, 2, 4, 8], 5, 5)
        instance = Problem(np.zeros(4, int), 2, np.zeros(4, int), None, (known,))
        correction = IP().correct(instance)
        assert correction.values.tolist() == [1, 0, 1, 0]
        assert correction.objective == 2

    @pytest.mark.parametrize(("low", "high", "status"), [
        (-np.inf, np.inf, "optimal"),
        (0.5, np.inf, "optimal"),
        (-np.inf, 0.6, "optimal"),
        (np.inf, np.inf, "infeasible"),
        (-np.inf, -np.inf, "infeasible"),
        (0.61, 1e300, "infeasible"),
        (0.6, 0.6, "optimal"),
    ])  # fmt: skip
    @pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
    def test_bounds_and_scales(self, low, high, status, scale):
        """0.1 + 0.2 + 0.3 is 0.6 here, whatever floats make of it."""
        known = LinearConstraint(1, np.array([0.1, 0.2, 0.3]) * scale, low * scale, high * scale)
        instance = Problem(np.zeros(3, int), 2, np.zeros(3, int), None, (known,))
        assert IP().correct(instance).status == status

    def test_people_whose_coefficients_are_all_zero_are_left_alone(self):
        known = LinearConstraint(1, [0, 0, 1], 1, 1)
        instance = Problem(np.zeros(3, int), 2, np.zeros(3, int), None, (known,))
        model = IntegerModel(CountedProblem(instance), counted=False)
        assert len(model.program.costs) == 3  # here counts look at everyone
        assert IP().correct(instance).values.tolist() == [0, 0, 1]

    def test_people_at_whom_nothing_looks_are_not_in_the_model(self):
        instance = problem(constraints=[claim(metric="equal-opportunity")])
        model = IntegerModel(CountedProblem(instance), counted=True)
        assert len(model.program.costs) == np.count_nonzero(instance.labels)

    def test_a_solution_that_a_loose_solver_lets_through_is_cut_off(self, monkeypatch):
        loose = {"primal_feasibility_tolerance": 1e-2, "mip_feasibility_tolerance": 1e-3}
        monkeypatch.setattr(ip_solver, "_HIGHS", ip_solver._HIGHS | loose)
        excluded = []
        exclude = IntegerModel.exclude
        monkeypatch.setattr(
            IntegerModel, "exclude", lambda self, x: (excluded.append(x), exclude(self, x))
        )
        for seed in range(8):
            coefficients = np.round(np.random.default_rng(seed).normal(size=8), 1)
            known = LinearConstraint(1, coefficients, 0.5005, 0.6)
            instance = problem(8, 2, seed, [known])
            correction = IP().correct(instance)
            check_answer(correction, oracles.brute_force(instance), instance)
        assert excluded


class TestExactness:
    def test_the_greatest_fraction_up_to_a_bound(self):
        for d, numerator, denominator in product(range(1, 12), range(8), range(1, 8)):
            for bound in (Fraction(n, d) for n in range(d + 1)):
                best = max(
                    Fraction(min(int(bound * e), numerator), e) for e in range(1, denominator + 1)
                )
                assert ip_model._find_greatest(bound, numerator, denominator) == best

    @given(
        seed=st.integers(0, 2**32),
        bound=st.fractions(0, 1) | st.floats(0, 1).map(Fraction),
        least=st.booleans(),
    )
    def test_the_simplest_row_means_the_same_in_small_numbers(self, seed, bound, least):
        rng = np.random.default_rng(seed)
        sizes = tuple(int(size) for size in rng.integers(0, 8, 2))
        instance = Problem(np.zeros(sum(sizes), int), 2, np.repeat([0, 1], sizes), None, (claim(),))
        part = CountedProblem(instance).classes.part(None)
        row = (part.rate_at_least if least else part.rate_at_most)(1, bound)
        simple = simplify(row, sizes)
        assert max((abs(a) for *_, a in simple.terms), default=0) <= max(*sizes, 1)
        for negative, positive in product(range(sizes[0] + 1), range(sizes[1] + 1)):
            counts = np.array([[0, negative], [0, positive]])
            assert simple.holds(counts) == row.holds(counts)

    @pytest.mark.slow
    @given(seed=st.integers(0, 2**32), nested=st.booleans())
    def test_the_way_out_excludes_what_violates_and_nothing_else(self, seed, nested):
        rng = np.random.default_rng(seed)
        rows = [
            Row.of(rng.integers(-5, 6, (2, 2)).tolist(), int(rng.integers(-3, 4))) for _ in range(2)
        ]
        condition = AnyOf(tuple((row,) for row in rows)) if nested else rows[0]
        counts = rng.integers(0, 4, (2, 2))
        assume(not condition.holds(counts))
        way = exclude_counts(condition, counts)
        assert not way.holds(counts)
        for flat in product(range(4), repeat=4):
            other = np.array(flat).reshape(2, 2)
            assert way.holds(other) or not condition.holds(other)

    def test_counts_that_a_solver_gets_wrong_are_cut_off(self, monkeypatch):
        """A solver that ignores one row of a claim is asked again until the claim holds."""
        instance = problem(24, 2, 1, [claim(0.05)])
        row, calls = IntegerModel._add_row, []

        def careless(self, row_of_claim, switch=None):
            if switch is not None:
                row(self, row_of_claim, switch)

        def count_calls(*arguments):
            calls.append(arguments)
            return ip_solver.solve(*arguments)

        monkeypatch.setattr(IntegerModel, "_add_row", careless)
        monkeypatch.setattr("fpbench.builtin.ferry.correctors.solve", count_calls)
        check_answer(
            IP().correct(instance),
            solve_exact(instance).objective,
            instance,
        )
        assert len(calls) > 1


class TestTime:
    @pytest.mark.parametrize("model", MODELS)
    def test_no_time_at_all_is_a_timeout(self, model):
        correction = IP(time_limit=1e-9, model=model).correct(problem(300))
        assert correction.status is SolverStatus.TIMEOUT
        assert correction.values is None and correction.bound == 0

    def test_building_counts(self, monkeypatch):
        """A model that takes all the time to build is not solved."""
        translate = ip_solver.translate

        def slow(*arguments):
            time.sleep(0.3)
            return translate(*arguments)

        monkeypatch.setattr(ip_solver, "translate", slow)
        correction = IP(time_limit=0.2).correct(problem(300))
        assert correction.status is SolverStatus.TIMEOUT

    @pytest.mark.slow
    def test_what_is_found_in_time_comes_with_a_bound(self):
        instance = problem(3000, 3)
        started = time.process_time()  # a busy machine leaves less of it, never more
        correction = IP(time_limit=2.0, model="individuals").correct(instance)
        assert time.process_time() - started < 6
        exact = solve_exact(instance).objective
        assert correction.bound <= exact * (1 + 1e-6)
        if correction.values is None:
            assert correction.status is SolverStatus.TIMEOUT
        else:
            assert oracles.admissible(instance, correction.values)
            assert correction.objective >= exact * (1 - 1e-6)
            proven = correction.gap <= 1e-6
            assert correction.status == ("optimal" if proven else "feasible")

    def test_an_incumbent_at_the_time_limit_is_not_proven(self, monkeypatch):
        """Even the optimum is only `feasible` if the solver was stopped."""
        from pyomo.opt import TerminationCondition

        run = ip_solver._run

        def stop(*arguments):
            results = run(*arguments)
            results.solver.termination_condition = TerminationCondition.maxTimeLimit
            return results

        monkeypatch.setattr(ip_solver, "_run", stop)
        correction = IP(model="counts").correct(problem())
        assert correction.status is SolverStatus.FEASIBLE
        assert correction.objective == pytest.approx(solve_exact(problem()).objective)

    def test_people_known_to_be_elsewhere_are_part_of_the_bound(self):
        instance = problem(constraints=[claim(), KnownPeople([0, 1], [0, 0])])
        instance = replace(instance, guess=np.ones(40, int))
        correction = IP(time_limit=1e-9).correct(instance)
        assert correction.bound == instance.weights[:2].sum()


class TestRefusals:
    def test_nothing_known(self):
        with pytest.raises(InputError, match="nothing was claimed"):
            IP().correct(problem(constraints=[]))

    def test_someone_known_to_be_of_two_groups(self):
        known = [claim(), KnownPeople([0], [0]), KnownPeople([0], [1])]
        assert IP().correct(problem(constraints=known)).status is SolverStatus.INFEASIBLE

    def test_everyone_known(self):
        for truth, status in (([0, 1, 0, 1], "optimal"), ([0, 0, 0, 1], "infeasible")):
            known = claim(0.0), KnownPeople(range(4), truth)
            instance = Problem(np.array([1, 1, 0, 1]), 2, np.array([0, 0, 1, 1]), None, known)
            correction = IP().correct(instance)
            assert correction.status == status
            assert correction.values is None or correction.values.tolist() == truth

    @pytest.mark.parametrize(("wrong", "message"), [
        ({"time_limit": 0}, "time_limit: input should be greater than 0"),
        ({"time_limit": float("nan")}, "time_limit"),
        ({"model": "people"}, "model"),
        ({"solver": "hihgs"}, "unknown solver; did you mean 'highs'"),
        ({"solver": "cplex_drect"}, "did you mean 'cplex_direct'"),
        ({"solver": ""}, "unknown solver"),
        ({"solver": 3}, "solver"),
        ({"threads": 2}, "threads"),
    ])  # fmt: skip
    def test_wrong_parameters(self, wrong, message):
        with pytest.raises(ValidationError):
            IP(**wrong)
        with pytest.raises(InputError, match=message):
            fpbench.component("corrector", "ip", **wrong)


class TestSolvers:
    def solves(self, name, capfd, tmp_path, monkeypatch):
        """It finds the optimum and what is impossible, in silence, and leaves nothing behind."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        solver = IP(solver=name)
        instance = problem(60, 3)
        check_answer(
            solver.correct(instance),
            solve_exact(instance).objective,
            instance,
        )
        impossible = Problem(np.array([0, 1]), 2, np.array([0, 1]), None, (claim(0.1),))
        assert solver.correct(impossible).status is SolverStatus.INFEASIBLE
        assert capfd.readouterr() == ("", "")
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("name", ["highs", "appsi_highs"])
    def test_highs(self, name, capfd, tmp_path, monkeypatch):
        self.solves(name, capfd, tmp_path, monkeypatch)

    @pytest.mark.slow
    @needs_cplex
    @pytest.mark.parametrize("name", ["cplex_direct", "appsi_cplex"])
    def test_cplex(self, name, capfd, tmp_path, monkeypatch):
        self.solves(name, capfd, tmp_path, monkeypatch)

    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "program"), [("glpk", "glpsol"), ("cbc", "cbc")])
    def test_executables(self, name, program, capfd, tmp_path, monkeypatch):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program} on PATH")
        self.solves(name, capfd, tmp_path, monkeypatch)

    @needs_cplex
    @pytest.mark.parametrize("name", ["cplex_direct", "appsi_cplex"])
    def test_a_licence_that_is_too_small(self, name, capfd):
        with pytest.raises(FpbenchError) as caught:
            IP(solver=name).correct(problem(1500))
        message = str(caught.value)
        if "1016" not in message:
            pytest.skip("this CPLEX has a licence")
        assert "solver = 'highs'" in message
        assert capfd.readouterr() == ("", "")

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["glpk", "cbc", "ipopt"])
    def test_an_executable_that_is_missing(self, name, monkeypatch, tmp_path, capfd):
        monkeypatch.setenv("PATH", str(tmp_path))
        script = (
            "import numpy as np\n"
            "from fpbench import FpbenchError, Problem\n"
            "from fpbench.claims import RateConstraint\n"
            "from fpbench.builtin.ferry.correctors import IP\n"
            "problem = Problem(np.array([0, 1]), 2, np.array([0, 1]), None, (RateConstraint(),))\n"
            f"try:\n    IP(solver={name!r}).correct(problem)\n"
            "except FpbenchError as error:\n    print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert f"solver {name!r} is not installed here: " in done.stdout
        assert "use solver = 'highs'" in done.stdout
        assert done.stderr == ""

    def test_a_solver_that_crashes(self, monkeypatch):
        def crash(*_):
            raise RuntimeError("segmentation\nfault")

        monkeypatch.setattr(ip_solver, "_run", crash)
        with pytest.raises(FpbenchError, match="solver 'highs' failed: segmentation fault"):
            IP().correct(problem())

    def test_pyomo_is_as_talkative_afterwards_as_before(self):
        logger = logging.getLogger("pyomo")
        before = logger.level, list(logger.handlers), logger.propagate
        IP().correct(problem())
        assert (logger.level, list(logger.handlers), logger.propagate) == before

    def test_without_pyomo_it_is_unavailable(self, monkeypatch):
        monkeypatch.setattr(ip_solver, "find_spec", lambda _: None)
        monkeypatch.setattr("fpbench.builtin.ferry.correctors.find_spec", lambda _: None)
        assert IP.unavailable() == "needs pyomo: pip install 'fpbench-toolkit[ip]'"
        assert IP(solver="ipopt").solver == "ipopt"
        with pytest.raises(FpbenchError, match=r"needs pyomo: pip install 'fpbench-toolkit\[ip\]'"):
            IP().correct(problem())
