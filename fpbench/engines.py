"""Where steps are executed. Every engine is a `concurrent.futures.Executor`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from fpbench.errors import InputError, nearest

ENGINES = {
    "inline": "in this process, one step after another",
    "loky": "in worker processes of this machine",
}

# One thread a worker: workers do not compete for cores, and sums do not depend on how many
# threads share them, so that every engine gives the same results bit for bit.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}


class InlineExecutor(Executor):
    """Runs what is submitted at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it and return a finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # a future carries whatever was raised
            future.set_exception(error)
        return future


class LokyExecutor(Executor):
    """Worker processes; those that die are replaced when the next step is submitted."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool = self._new()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand it to a worker."""
        try:
            future: Future[Any] = self._pool.submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            self._pool = self._new()
            future = self._pool.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers; at once if what they do is not wanted any more."""
        self._pool.shutdown(wait=wait, kill_workers=cancel_futures)

    def _new(self) -> Any:
        from loky import ProcessPoolExecutor

        return ProcessPoolExecutor(max_workers=self._jobs, env=_ONE_THREAD)


@contextmanager
def open_engine(name: str | None, jobs: int) -> Iterator[Executor]:
    """An executor with `jobs` workers: `inline` for one and `loky` for more, unless named.

    Raises
    ------
    InputError
        If there is no such engine, or the number of jobs does not fit it.
    """
    if jobs < 1:
        raise InputError(f"jobs must be 1 or more, not {jobs}")
    name = name or ("inline" if jobs == 1 else "loky")
    if name == "inline":
        if jobs > 1:
            raise InputError(f"engine 'inline' runs one job at a time, not {jobs}; use 'loky'")
        with _one_thread(), InlineExecutor() as executor:
            yield executor
    elif name == "loky":
        workers = LokyExecutor(jobs)
        try:
            yield workers
        except BaseException:
            workers.shutdown(cancel_futures=True)
            raise
        workers.shutdown()
    else:
        raise InputError(f"unknown engine {name!r}; {nearest(name, ENGINES)}")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit native thread pools: of libraries that are loaded, and of those that will be."""
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
