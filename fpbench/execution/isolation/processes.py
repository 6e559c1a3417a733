"""What processes of fpbench have in common: one thread each, no orphans, messages of any size."""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import threading
import time
from typing import Protocol

from fpbench.base.errors import PluginError

# One thread a worker: workers do not compete for cores, and sums do not depend on how many
# threads share them, so that every engine gives the same results bit for bit.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}

NUMBER = struct.Struct("!i")
"""How process ids and exit statuses are told."""
MEMORY = -1
"""What is told instead of an exit status, of a process that held more memory than it may."""
SIZE = struct.Struct("!Q")
"""How sizes are told: of messages, and of memory that a process may have."""
WELL = b"."
"""What a server answers to who asks for nothing."""
_PIECE = 1 << 20
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the operating system kill this process when its parent dies.

    Parameters
    ----------
    parent
        Its process id, as the parent itself knows it.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:  # no such service: look every second
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it died before it could be watched
        os.kill(os.getpid(), signal.SIGKILL)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def start_worker(parent: int) -> None:
    """Set up a worker process: it ends with its parent, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)


def send(channel: socket.socket, content: bytes) -> None:
    """Send a message."""
    channel.sendall(SIZE.pack(len(content)))
    channel.sendall(content)


class Heard(Protocol):
    """Whatever bytes can be received from, as from a socket."""

    def recv(self, size: int, /) -> bytes:
        """At most so many bytes; none if the other side has gone."""


def receive(channel: Heard, most: int | None = None) -> bytearray:
    """Receive a message.

    Parameters
    ----------
    channel
        Where it comes from.
    most
        Bytes that it may have; nothing is read of one that announces more.

    Raises
    ------
    EOFError
        If the other side has gone.
    PluginError
        If it is longer than it may be.
    """
    (size,) = SIZE.unpack(_exactly(channel, SIZE.size))
    if most is not None and size > most:
        raise PluginError(f"its answer is longer than the {most:,} bytes that it may have")
    return _exactly(channel, size)


def _exactly(channel: Heard, size: int) -> bytearray:
    content = bytearray()
    while len(content) < size:
        piece = channel.recv(min(_PIECE, size - len(content)))
        if not piece:
            raise EOFError
        content += piece
    return content
