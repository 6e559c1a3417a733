"""The connections of a curator's service, counted from accept: strangers cannot use up its files.

uvicorn counts a connection when its TLS handshake is over, and asyncio accepts without end before
that. So sockets are accepted here, one at a time, and each gets a place among a bounded number
before it is handed on. Who has not shown the token yet makes room for who comes later.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import socket
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from fpbench.base.errors import InputError

if TYPE_CHECKING:
    from uvicorn import Config, Server
    from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 500
MOST_OF_ONE = 100
"""Connections, and those of one address: each holds a file of the few that a process may open."""

SECONDS_TO_SHAKE = 10.0
"""Until a TLS handshake is over, counted from accept."""
SECONDS_TO_ASK = 30.0
"""Until the head of a request is there, and for an answer to be read; then the connection ends."""

_SPARE_FILES = 64
"""Files that are kept free for the ledger, its journal and all else that is no connection."""
_FEWEST = 8
_LEAVING = 16
"""Sockets that may wait for asyncio to close them, at most, before another one is accepted."""
_SECONDS_TO_LEAVE = 5.0
"""For the other side to end TLS, once the connection is closed here."""
_PAUSE = 0.1
"""Seconds until the next try, if the system gives no socket."""

log = logging.getLogger("fpbench.privacy.curator.curator")


def place_of(address: str) -> str:
    """Whom an address stands for: itself, or its /64 network, as one IPv6 customer has them all."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip), 64), strict=False))


class Peer:
    """One accepted socket, from accept until it is closed."""

    def __init__(self, sock: socket.socket, place: str) -> None:
        self.sock, self.place = sock, place
        self.known = False
        """Whether it has shown the token."""
        self.leaving = False
        self.task: asyncio.Task[Any] | None = None
        self.transport: asyncio.Transport | None = None

    def drop(self) -> None:
        """Close it at once, in whatever state it is."""
        self.leaving = True
        if self.transport is not None:
            self.transport.abort()
        elif self.task is not None:
            self.task.cancel()
        else:
            self.sock.close()


class Peers:
    """All accepted sockets, a bounded number in all and of one place.

    When there are too many, a connection that has not shown the token is dropped: of the place that
    has the most of these, the oldest. So who opens many of them displaces mostly their own, and a
    new one has as long to show the token as it takes to open that many. Those that have shown it
    stay.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._peers: list[Peer] = []

    @property
    def open(self) -> list[Peer]:
        """Those whose sockets are not closed yet, the oldest first."""
        self._peers = [peer for peer in self._peers if peer.sock.fileno() != -1]
        return self._peers

    @property
    def crowded(self) -> bool:
        """Whether so many wait to be closed that no more should be accepted."""
        return len(self.open) >= self._most + _LEAVING

    def add(self, peer: Peer) -> bool:
        """Make room for one more; False, and it is closed, if there is none."""
        self.open.append(peer)
        staying = [other for other in self._peers if not other.leaving]
        at_home = [other for other in staying if other.place == peer.place]
        if len(at_home) > self._most_of_one:
            self._drop_stranger(at_home, peer)
        elif len(staying) > self._most:
            self._drop_stranger(staying, peer)
        return not peer.leaving

    def _drop_stranger(self, among: list[Peer], newest: Peer) -> None:
        strangers = [peer for peer in among if not peer.known]
        counts = Counter(peer.place for peer in strangers)
        most = max(counts.values())
        # The newest is last: it is dropped only if nobody else can be.
        next(peer for peer in strangers if counts[peer.place] == most).drop()


def most_connections() -> int:
    """How many connections there may be, so that files are left for the ledger.

    Raises
    ------
    InputError
        If the process may open too few files.
    """
    try:
        import resource
    except ImportError:  # Windows, where sockets are no files
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    if files < _SPARE_FILES + _LEAVING + _FEWEST:
        raise InputError(
            f"this process may open {files} files, and a curator needs "
            f"{_SPARE_FILES + _LEAVING + _FEWEST}: raise the limit (ulimit -n)"
        )
    return min(MOST_CONNECTIONS, files - _SPARE_FILES - _LEAVING)


def counting_server(config: Config) -> Server:
    """A server of uvicorn's that counts connections from accept."""
    from uvicorn import Server

    class CountingServer(Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await self.lifespan.startup()
            self.servers = []
            self.peers = Peers(most_connections(), MOST_OF_ONE)
            self.doors = [
                asyncio.create_task(_accept(self, door, self.peers)) for door in sockets or []
            ]
            self.started = True

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for door in self.doors:
                door.cancel()
            for peer in self.peers.open:
                if peer.transport is None:  # uvicorn does not know of it yet
                    peer.drop()
            await super().shutdown(sockets)

    return CountingServer(config)


async def _accept(server: Server, door: socket.socket, peers: Peers) -> None:
    """Accept sockets for ever, and give each its place or close it."""
    loop, carrier = asyncio.get_running_loop(), _carrier()
    door.setblocking(False)
    complained = False
    while True:
        while peers.crowded:
            await asyncio.sleep(_PAUSE / 10)
        try:
            sock, address = await loop.sock_accept(door)
        except OSError as error:  # no files left, or the caller is gone already
            if not complained:
                now = datetime.now(UTC).isoformat(timespec="milliseconds")
                log.info(json.dumps({"time": now, "outcome": f"cannot accept: {error}"}))
            complained = True
            await asyncio.sleep(_PAUSE)
            continue
        complained = False
        peer = Peer(sock, place_of(str(address[0])))
        if peers.add(peer):
            peer.task = asyncio.create_task(_serve(server, peer, carrier))
            peer.task.add_done_callback(partial(_close_failed, peer))
        await asyncio.sleep(0)  # accepting does not wait while there are callers, and others must


async def _serve(server: Server, peer: Peer, carrier: type[H11Protocol]) -> None:
    """Shake hands, and hand the connection on to uvicorn."""
    config = server.config
    timeouts = (
        {"ssl_handshake_timeout": SECONDS_TO_SHAKE, "ssl_shutdown_timeout": _SECONDS_TO_LEAVE}
        if config.ssl
        else {}
    )
    await asyncio.get_running_loop().connect_accepted_socket(
        lambda: carrier(config, server.server_state, {"peer": peer}),
        peer.sock,
        ssl=config.ssl,
        **timeouts,
    )


def _close_failed(peer: Peer, task: asyncio.Task[Any]) -> None:
    """Close the socket of a handshake that failed, ended too late, or was not begun."""
    if task.cancelled() or task.exception() is not None:
        peer.leaving = True
        peer.sock.close()


def _carrier() -> type[H11Protocol]:
    """How connections are carried: each has so long to ask, and to read what it is answered.

    By h11 even where httptools is installed, which reads heads of any length.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Connection(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _late = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            peer: Peer = self.app_state["peer"]
            peer.transport = transport
            if peer.leaving:
                transport.abort()
            else:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._timer = self.loop.call_later(SECONDS_TO_ASK, self._look, self.cycle)

        def _look(self, last: Any) -> None:
            """End it if no request has come since the last look, or an answer is not read."""
            unread = self.transport.get_write_buffer_size() > 0
            idle = last is None or last.response_complete or unread
            if self.cycle is last and idle and (self._late or not unread):
                self.transport.abort()
                return
            self._late = self.cycle is last and unread
            self._wait()

    return Connection
