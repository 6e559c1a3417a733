# Public names, and the module each is in: see the docstring of `__init__.py`.
from .engines.engine import Engine as Engine
from .engines.engine import EngineError as EngineError
from .engines.engine import EngineSetup as EngineSetup
from .engines.local import InlineEngine as InlineEngine
from .engines.task import StepTask as StepTask
from .engines.task import WorkerCheck as WorkerCheck
from .work.execute import LostError as LostError
