# Public names, and the module each is in: see the docstring of `__init__.py`.
from .tabular import Labelled as Labelled
from .tabular import TabularDataset as TabularDataset
from .tabular import domain_field as domain_field
from .tabular import sensitive_field as sensitive_field
