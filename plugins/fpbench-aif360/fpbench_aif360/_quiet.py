"""Load AI Fairness 360 without its warnings about optional packages, and seed it."""

from __future__ import annotations

import importlib
import logging
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def load(path: str) -> Any:
    """The object at `package.module:name`; logging and warnings stay as they were."""
    module, _, name = path.partition(":")
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.setLevel(logging.CRITICAL)  # "No module named 'tensorflow'", and so on
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(importlib.import_module(module), name)
    finally:
        root.setLevel(level)
        for handler in [h for h in root.handlers if h not in handlers]:
            root.removeHandler(handler)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed Python's own randomness, which AI Fairness 360 uses; restore its state at the end."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
