# Public names, and the module each is in: see the docstring of `__init__.py`.
from .arrays import drop_last_bits as drop_last_bits
from .errors import suggest_name as suggest_name
from .errors import tell_extra as tell_extra
from .text import hide_paths as hide_paths
from .text import to_fraction as to_fraction
