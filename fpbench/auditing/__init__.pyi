# Public names, and the module each is in: see the docstring of `__init__.py`.
from .epsilon_bounds import bound_epsilon as bound_epsilon
from .epsilon_bounds import find_most_provable as find_most_provable
from .group_suffixes import make_suffixes as make_suffixes
from .halves import draw_halves as draw_halves
from .private_models import PrivateModel as PrivateModel
from .private_models import RedrawnModels as RedrawnModels
from .private_models import VotedModel as VotedModel
