"""The connections of a curator's service, limited from accept on.

uvicorn counts a connection after its TLS handshake, and asyncio accepts without limit before that.
So sockets are accepted here, one at a time, and only a bounded number goes on to uvicorn.
Connections that have not sent a valid token make room for newer ones.
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
"""Greatest number of connections, and of one address: each uses one of the process's few files."""

SECONDS_TO_SHAKE = 10.0
"""Limit of a TLS handshake, from accept."""
SECONDS_TO_ASK = 30.0
"""Limit for the head of a request to arrive, and for its answer to be read."""

_SPARE_FILES = 64
"""Files reserved for the ledger, its journal and everything else that is not a connection."""
_FEWEST = 8
_LEAVING = 16
"""Greatest number of sockets waiting for asyncio to close them; more stop accepting."""
_SECONDS_TO_LEAVE = 5.0
"""Limit for the other side to end TLS after the connection is closed here."""
_PAUSE = 0.1
"""Seconds until the next attempt if the system has no socket."""

log = logging.getLogger("fpbench.privacy.curator.curator")


def get_place(address: str) -> str:
    """The unit of limits for an address: itself, or its /64 network, all of one IPv6 customer."""
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
        """Whether it has presented the token."""
        self.leaving = False
        self.task: asyncio.Task[Any] | None = None
        self.transport: asyncio.Transport | None = None

    def drop(self) -> None:
        """Close the connection at once, in any state."""
        self.leaving = True
        if self.transport is not None:
            self.transport.abort()
        elif self.task is not None:
            self.task.cancel()
        else:
            self.sock.close()


class Peers:
    """All accepted sockets, limited in total and by place.

    When there are too many, a connection without a token yet is dropped: the oldest of the place
    that has the most of them. So a stranger who opens many displaces mostly their own connections,
    and a new one has time to present the token. Connections with a token stay.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._peers: list[Peer] = []

    @property
    def open(self) -> list[Peer]:
        """Peers whose sockets are still open, the oldest first."""
        self._peers = [peer for peer in self._peers if peer.sock.fileno() != -1]
        return self._peers

    @property
    def crowded(self) -> bool:
        """Whether too many sockets wait to be closed to accept another one."""
        return len(self.open) >= self._most + _LEAVING

    def add(self, peer: Peer) -> bool:
        """Add a peer and drop another if there are too many; False if the new one was dropped."""
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


def compute_connection_limit() -> int:
    """Number of connections that leaves files for the ledger; InputError if too small."""
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


def create_limited_server(config: Config) -> Server:
    """A uvicorn server that limits connections from accept."""
    from uvicorn import Server

    class LimitedServer(Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await self.lifespan.startup()
            self.servers = []
            self.peers = Peers(compute_connection_limit(), MOST_OF_ONE)
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

    return LimitedServer(config)


async def _accept(server: Server, door: socket.socket, peers: Peers) -> None:
    """Accept sockets forever, and serve or close each."""
    loop, protocol = asyncio.get_running_loop(), _make_protocol()
    door.setblocking(False)
    complained = False
    while True:
        while peers.crowded:
            await asyncio.sleep(_PAUSE / 10)
        try:
            sock, address = await loop.sock_accept(door)
        except OSError as error:  # no free files, or the caller is gone
            if not complained:
                now = datetime.now(UTC).isoformat(timespec="milliseconds")
                log.info(json.dumps({"time": now, "outcome": f"cannot accept: {error}"}))
            complained = True
            await asyncio.sleep(_PAUSE)
            continue
        complained = False
        peer = Peer(sock, get_place(str(address[0])))
        if peers.add(peer):
            peer.task = asyncio.create_task(_serve(server, peer, protocol))
            peer.task.add_done_callback(partial(_close_failed, peer))
        await asyncio.sleep(0)  # accept returns at once while callers wait; let other tasks run


async def _serve(server: Server, peer: Peer, protocol: type[H11Protocol]) -> None:
    """Complete the handshake, and pass the connection to uvicorn."""
    config = server.config
    timeouts = (
        {"ssl_handshake_timeout": SECONDS_TO_SHAKE, "ssl_shutdown_timeout": _SECONDS_TO_LEAVE}
        if config.ssl
        else {}
    )
    await asyncio.get_running_loop().connect_accepted_socket(
        lambda: protocol(config, server.server_state, {"peer": peer}),
        peer.sock,
        ssl=config.ssl,
        **timeouts,
    )


def _close_failed(peer: Peer, task: asyncio.Task[Any]) -> None:
    """Close the socket of a handshake that failed, timed out, or did not begin."""
    if task.cancelled() or task.exception() is not None:
        peer.leaving = True
        peer.sock.close()


def _make_protocol() -> type[H11Protocol]:
    """The protocol class of connections, with limits of time for requests and answers.

    Always h11: httptools reads heads of any length.
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
            self._timer = self.loop.call_later(SECONDS_TO_ASK, self._check_progress, self.cycle)

        def _check_progress(self, last: Any) -> None:
            """End the connection if no request came since the last check, or no answer was read."""
            unread = self.transport.get_write_buffer_size() > 0
            idle = last is None or last.response_complete or unread
            if self.cycle is last and idle and (self._late or not unread):
                self.transport.abort()
                return
            self._late = self.cycle is last and unread
            self._wait()

    return Connection
