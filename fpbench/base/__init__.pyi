# Public names, and the module each is in: see the docstring of `__init__.py`.
from .arrays import drop_last_bits as drop_last_bits
from .errors import nearest as nearest
from .text import as_written as as_written
