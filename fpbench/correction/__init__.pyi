# Public names, and the module each is in: see the docstring of `__init__.py`.
from .count_leak import compute_count_leak as compute_count_leak
from .exact.counting import CountedProblem as CountedProblem
from .exact.solve import solve_exact as solve_exact
from .facts.dual_ascent import ConditionedBeliefs as ConditionedBeliefs
from .facts.dual_ascent import condition_beliefs as condition_beliefs
from .facts.explaining import explain_proof as explain_proof
from .facts.likeliest_groups import LikeliestGroups as LikeliestGroups
from .facts.likeliest_groups import find_likeliest_groups as find_likeliest_groups
from .facts.linear_programs import prove as prove
from .facts.propagation import propagate as propagate
from .leak_limits import limit_leak as limit_leak
from .leak_limits import limit_leak_by_error as limit_leak_by_error
from .leak_limits import limit_realised_gain as limit_realised_gain
from .optimal import OptimalCorrector as OptimalCorrector
from .posterior import compute_posterior as compute_posterior
from .proven import find_possible as find_possible
