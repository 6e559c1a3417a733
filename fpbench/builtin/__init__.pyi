# Public names, and the module each is in: see the docstring of `__init__.py`.
from .private_tree.estimator import PrivateTreeClassifier as PrivateTreeClassifier
from .private_tree.fitted import PrivateTree as PrivateTree
from .private_tree.fitted import PrivateTreeBatch as PrivateTreeBatch
from .private_tree.growth import grow_trees as grow_trees
from .private_tree.growth import grow_trees_apart as grow_trees_apart
from .private_tree.recipe import Similarity as Similarity
from .private_tree.recipe import TreeRecipe as TreeRecipe
from .private_tree.split_candidates import SplitCandidates as SplitCandidates
from .private_tree.split_scores import Criterion as Criterion
from .private_tree.split_scores import Selection as Selection
from .private_tree.split_scores import impurity as impurity
