# Public names, and the module each is in: see the docstring of `__init__.py`.
from .attributes import Attribute as Attribute
from .attributes import Dropped as Dropped
from .attributes import Sensitive as Sensitive
from .attributes import measured_cuts as measured_cuts
from .domain import Domain as Domain
from .domain import DomainParameter as DomainParameter
from .sample import ModelAnswers as ModelAnswers
from .table import DatasetFacts as DatasetFacts
