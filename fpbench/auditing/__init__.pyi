# Public names, and the module each is in: see the docstring of `__init__.py`.
from .excessive_risk.measure import RiskMethod as RiskMethod
from .excessive_risk.report import RiskReport as RiskReport
from .individual_fairness.measure import SimilarityReport as SimilarityReport
from .private_models import PrivateModel as PrivateModel
from .private_models import RedrawnModels as RedrawnModels
from .private_models import VotedModel as VotedModel
