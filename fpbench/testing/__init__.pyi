# Public names, and the module each is in: see the docstring of `__init__.py`.
from .attacks import PAIRS as PAIRS
from .attacks import Attack as Attack
from .attacks import ReleaseFunction as ReleaseFunction
from .attacks import attack_mechanism as attack_mechanism
from .attacks import check_mechanism as check_mechanism
from .attacks import epsilon_lower_bound as epsilon_lower_bound
from .laws import LAWS as LAWS
from .laws import Check as Check
from .laws import Law as Law
from .laws import Outcome as Outcome
from .laws import Verdict as Verdict
from .targets import check_component as check_component
from .targets import checks as checks
