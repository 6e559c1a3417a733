"""Signals: the first Ctrl-C finishes running steps; a second one, or SIGTERM, stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from fpbench.execution.isolation.families import end_descendants


@contextmanager
def handle_signals(on_stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Whether the first Ctrl-C came while this is open; child processes end with it.

    `on_stop`: called at the first Ctrl-C, from a signal handler: it must not use buffered output.

    Raises KeyboardInterrupt: at the second Ctrl-C, and at SIGTERM. Later signals are ignored, so
    that nothing interrupts the cleanup.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop.is_set
        return

    def handle(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and not stop.is_set():
            stop.set()
            on_stop()
            return
        stop.set()
        for kind in before:
            signal.signal(kind, signal.SIG_IGN)
        raise KeyboardInterrupt

    kinds = (signal.SIGINT, signal.SIGTERM)
    # A background command may be started with Ctrl-C ignored.
    handled = [kind for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN]
    before = {kind: signal.signal(kind, handle) for kind in handled}
    try:
        with end_descendants():
            yield stop.is_set
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
