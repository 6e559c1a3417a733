# Public names, and the module each is in: see the docstring of `__init__.py`.
from ..builtin.pate.excessive_risk.measure import excessive_risk as excessive_risk
from ..builtin.pate.excessive_risk.report import RiskReport as RiskReport
from ..builtin.private_tree.individual_fairness.measure import SimilarityReport as SimilarityReport
from ..builtin.private_tree.individual_fairness.measure import (
    individual_fairness as individual_fairness,
)
from ..claims.rates import unfairness as unfairness
from .epsilon_bounds import bound_epsilon as bound_epsilon
from .epsilon_bounds import find_most_provable as find_most_provable
from .group_suffixes import make_suffixes as make_suffixes
from .halves import draw_halves as draw_halves
from .private_models import PrivateModel as PrivateModel
from .private_models import RedrawnModels as RedrawnModels
from .private_models import VotedModel as VotedModel
from .private_models import VoteLabels as VoteLabels
