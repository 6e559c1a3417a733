"""Shared by all processes of fpbench: one thread each, no orphans, messages of any size."""

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

NUMBER = struct.Struct("!i")
"""Format of process ids and exit statuses."""
MEMORY = -1
"""Exit status of a process that exceeded its memory limit."""
SIZE = struct.Struct("!Q")
"""Format of sizes: of messages, and of memory limits."""
WELL = b"."
"""Answer of a healthy server to an empty request."""
_PIECE = 1 << 20
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the operating system kill this process when its parent dies.

    `parent`: process id of the parent, as the parent itself sees it.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:  # the system has no such service: check every second
        threading.Thread(target=_poll_parent, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # the parent died before this process could watch it
        os.kill(os.getpid(), signal.SIGKILL)


def _poll_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def start_worker(parent: int) -> None:
    """Set up a worker process: it ends with its parent, and leaves Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)


def send(channel: socket.socket, content: bytes) -> None:
    """Send a message."""
    channel.sendall(SIZE.pack(len(content)))
    channel.sendall(content)


class ByteSource(Protocol):
    """Anything that bytes can be received from, such as a socket."""

    def recv(self, size: int, /) -> bytes:
        """Up to `size` bytes; none if the other side is closed."""


def receive(channel: ByteSource, most: int | None = None) -> bytearray:
    """The next message.

    `channel`: the source of the message. `most`: greatest size in bytes; a message that announces
    more is not read.

    Raises EOFError if the other side is closed; PluginError if it is too long.
    """
    (size,) = SIZE.unpack(_receive_exactly(channel, SIZE.size))
    if most is not None and size > most:
        raise PluginError(f"its answer is longer than the {most:,} bytes that it may have")
    return _receive_exactly(channel, size)


def _receive_exactly(channel: ByteSource, size: int) -> bytearray:
    content = bytearray()
    while len(content) < size:
        piece = channel.recv(min(_PIECE, size - len(content)))
        if not piece:
            raise EOFError
        content += piece
    return content
