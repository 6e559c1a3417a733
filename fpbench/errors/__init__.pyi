# Public names, and the module each is in: see the docstring of `__init__.py`.
from ..base.errors import BudgetError as BudgetError
from ..base.errors import DataError as DataError
from ..base.errors import HiddenError as HiddenError
from ..base.errors import MatrixError as MatrixError
from ..base.errors import NameUnknownError as NameUnknownError
from ..base.errors import StoreError as StoreError
