# Public names, and the module each is in: see the docstring of `__init__.py`.
from .calibration import calibrated as calibrated
from .exact.counting import Tally as Tally
from .exact.solve import solve_exact as solve_exact
from .optimal import OptimalCorrector as OptimalCorrector
from .posterior import given_problem as given_problem
