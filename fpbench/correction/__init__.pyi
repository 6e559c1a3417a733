# Public names, and the module each is in: see the docstring of `__init__.py`.
from .calibration import calibrated as calibrated
from .exact.counting import CountedProblem as CountedProblem
from .exact.solve import solve_exact as solve_exact
from .optimal import OptimalCorrector as OptimalCorrector
from .posterior import compute_posterior as compute_posterior
