# Public names, and the module each is in: see the docstring of `__init__.py`.
from .attacks import check_mechanism as check_mechanism
from .attacks import epsilon_lower_bound as epsilon_lower_bound
from .laws import Outcome as Outcome
from .targets import checks as checks
