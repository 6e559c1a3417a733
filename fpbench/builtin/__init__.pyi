# Public names, and the module each is in: see the docstring of `__init__.py`.
from .private_tree.estimator import PrivateTreeClassifier as PrivateTreeClassifier
