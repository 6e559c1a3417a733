# Public names, and the module each is in: see the docstring of `__init__.py`.
from ..components.attack_kinds import Context as Context
from ..components.auditor import Shadows as Shadows
from ..components.auditor import Subject as Subject
from ..components.catalog import Catalog as Catalog
from ..components.catalog import discover as discover
from ..components.hooks import Lazy as Lazy
from ..components.measures import MeasureFigure as MeasureFigure
from ..components.names import Status as Status
from ..components.records import MeasureValues as MeasureValues
from ..components.records import SolverStatus as SolverStatus
from ..components.records import Weighing as Weighing
from ..data.data_files import DataFile as DataFile
from ..data.data_files import DataHome as DataHome
from ..data.sample import Codes as Codes
from ..data.sample import Split as Split
