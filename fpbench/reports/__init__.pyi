# Public names, and the module each is in: see the docstring of `__init__.py`.
from .reading.metric_names import parse_report_metric as parse_report_metric
from .reconstructed_people import reconstruct_people as reconstruct_people
from .slices import REPORT_METRICS as REPORT_METRICS
from .utility import ReportUtility as ReportUtility
from .utility import measure_utility as measure_utility
