"""One thread for native libraries: the same sums on every machine, and no competing workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# One thread per worker: workers do not compete for cores, and sums do not depend on the number of
# threads, so every engine gives the same results bit for bit.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}
"""Environment variables for processes that start."""


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Limit native thread pools: of libraries that are loaded, and of those that will be."""
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
