"""Ctrl-C once: finish what runs. Twice, or SIGTERM: stop now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from fpbench.execution.isolation.families import no_survivors


class Stop:
    """Whether the user has asked for an end; called, it says so."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        """Whether it was asked for."""
        return self.asked


@contextmanager
def orderly(on_asked: Callable[[], None]) -> Iterator[Stop]:
    """While this is open, the first Ctrl-C only asks for an end; processes end with it.

    Parameters
    ----------
    on_asked
        Called when it does, from a signal handler: it must not use buffered output.

    Raises
    ------
    KeyboardInterrupt
        At the second Ctrl-C, and at SIGTERM. What comes after is ignored, so that nothing
        interrupts the clearing up.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handle(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and not stop.asked:
            stop.asked = True
            on_asked()
            return
        stop.asked = True
        for known in before:
            signal.signal(known, signal.SIG_IGN)
        raise KeyboardInterrupt

    kinds = (signal.SIGINT, signal.SIGTERM)
    # Who starts a command in the background may have it ignore Ctrl-C.
    heeded = [kind for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN]
    before = {kind: signal.signal(kind, handle) for kind in heeded}
    try:
        with no_survivors():
            yield stop
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
