# Public names, and the module each is in: see the docstring of `__init__.py`.
from .assessment import Assessment as Assessment
from .assessment import assess as assess
from .facts import ContradictionError as ContradictionError
from .facts import Facts as Facts
from .fairness_report import FairnessReport as FairnessReport
from .linear_programs import prove as prove
from .maximum_entropy import ConditionedBeliefs as ConditionedBeliefs
from .maximum_entropy import condition_beliefs as condition_beliefs
from .propagation import explain_proof as explain_proof
from .propagation import propagate as propagate
from .report_rows import Noise as Noise
from .slices import REPORT_METRICS as REPORT_METRICS
from .slices import SliceColumn as SliceColumn
