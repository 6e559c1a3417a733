"""What travels to workers and back: a module of its own, because it opens no file."""

from __future__ import annotations

import pickle
from typing import Any


def travelled(thing: Any) -> Any:
    """The thing as another process would get it."""
    return pickle.loads(pickle.dumps(thing))
