"""Strangers cannot use up a curator's connections, files or memory, with TLS or without."""

import asyncio
import errno
import json
import logging
import socket
import ssl
import struct
import time
from contextlib import ExitStack, closing, suppress
from itertools import pairwise
from types import SimpleNamespace

import pytest
from serving import TOKEN, called, listening, make_certificate, serving, write_people

from fpbench import InputError
from fpbench.privacy import Curator, Ledger, RemoteCurator
from fpbench.privacy.curator import connections as curator_connections
from fpbench.privacy.curator.connections import Peer, Peers, compute_connection_limit, get_place
from fpbench.privacy.curator.service import RefusedError, Service
from fpbench.privacy.curator.uploads import Uploads


@pytest.fixture
def service():
    ledger = Ledger(1.0)
    curator = Curator([0, 1, 1, 0], ["a", "b"], ledger=ledger)
    return Service(curator, ledger, TOKEN, rate=1e6)


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("a socket", "a socket"),
    ],
)
def test_an_ipv6_network_is_one_address(address, place):
    assert get_place(address) == place


def test_requests_of_an_ipv6_network_are_counted_together(service):
    service._limit._rate = service._limit._room = 2.0
    for number in range(2):
        service.admit(f"2001:db8::{number}", f"Bearer {TOKEN}".encode())
    with pytest.raises(RefusedError, match="too many requests"):
        service.admit("2001:db8::2", f"Bearer {TOKEN}".encode())
    service.admit("2001:db8:0:1::2", f"Bearer {TOKEN}".encode())


class Crowd:
    """Peers that are only counted."""

    def __init__(self, most, most_of_one):
        self.peers, self.sockets = Peers(most, most_of_one), []

    def add(self, place, *, known=False):
        sock = socket.socket()
        self.sockets.append(sock)
        peer = Peer(sock, place)
        self.peers.add(peer)
        peer.known = known
        return peer


@pytest.fixture
def crowd():
    crowd = Crowd(6, 3)
    yield crowd
    for sock in crowd.sockets:
        sock.close()


def test_the_oldest_stranger_of_a_full_address_makes_room(crowd):
    first, second, third, fourth = (crowd.add("a") for _ in range(4))
    assert [first.leaving, second.leaving, third.leaving, fourth.leaving] == [True] + 3 * [False]
    assert crowd.peers.open == [second, third, fourth]


def test_who_has_the_token_stays(crowd):
    honest = [crowd.add("a", known=True) for _ in range(3)]
    assert crowd.add("a").leaving
    assert not any(peer.leaving for peer in honest)


def test_the_place_with_most_strangers_makes_room(crowd):
    one, many = crowd.add("a"), [crowd.add("b") for _ in range(3)]
    known = [crowd.add(place, known=True) for place in "cd"]
    newest = crowd.add("e")
    assert [peer.leaving for peer in many] == [True, False, False]
    assert not any(peer.leaving for peer in (one, *known, newest))


def test_a_thousand_addresses_do_not_lock_out_one_more(crowd):
    for number in range(1000):
        newest = crowd.add(f"stranger {number}")
        assert not newest.leaving
        assert len(crowd.peers.open) <= 6


def test_a_limit_of_files_leaves_some_for_the_ledger(monkeypatch):
    resource = pytest.importorskip("resource")

    def limit(files):
        monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
        return compute_connection_limit()

    assert limit(1024) == limit(resource.RLIM_INFINITY) == 500
    assert limit(256) == 256 - 80
    with pytest.raises(InputError, match="may open 64 files, and a curator needs 88"):
        limit(64)


def test_without_files_accepting_waits_and_then_goes_on(monkeypatch, caplog):
    """It neither ends nor tries again without a pause, and complains once."""
    monkeypatch.setattr(curator_connections, "_PAUSE", 0.05)
    caplog.set_level(logging.INFO, "fpbench.privacy.curator.curator")
    calls = []

    async def scenario():
        loop = asyncio.get_running_loop()

        async def sock_accept(_):
            calls.append(time.monotonic())
            if len(calls) == 4:
                raise asyncio.CancelledError
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(loop, "sock_accept", sock_accept, raising=False)
        with closing(socket.socket()) as door, pytest.raises(asyncio.CancelledError):
            await curator_connections._accept(None, door, Peers(6, 3))

    asyncio.run(scenario())
    assert min(later - call for call, later in pairwise(calls)) >= 0.05
    (line,) = caplog.messages
    assert "Too many open files" in json.loads(line)["outcome"]


def ended(line):
    """Whether the other side hangs up, by TLS, by TCP or by a reset."""
    try:
        return line.recv(10) == b""
    except (ConnectionError, ssl.SSLError):
        return True


def strangers(stack, port, count, content=b"", network=0):
    """Silent connections, of one address or of many, that stay open until the stack ends."""
    found = []
    for number in range(count):
        address = f"127.{network}.{number // 250}.{1 + number % 250}" if network else "127.0.0.1"
        line = stack.enter_context(called(port, address=address, head=b""))
        with suppress(ConnectionError):
            line.sendall(content)
        found.append(line)
    return found


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    where = tmp_path_factory.mktemp("certificate")
    make_certificate(where)
    return where


@pytest.fixture
def tls(certificate):
    return str(certificate / "cert.pem"), str(certificate / "key.pem")


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # the start of a ClientHello of 512 bytes


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("content", [b"", HELLO, b"GET / HTTP/1.1\r\n\r\n"])
@pytest.mark.parametrize("network", [0, 1])
def test_300_silent_connections_stop_nobody(service, tls, monkeypatch, content, network):
    """Not even if their handshakes may last for ever, and they come from the client's address."""
    monkeypatch.setattr(curator_connections, "SECONDS_TO_SHAKE", 600.0)
    monkeypatch.setattr(curator_connections, "MOST_CONNECTIONS", 200)
    with listening(service, *tls) as port, ExitStack() as stack:
        remote = RemoteCurator(f"https://127.0.0.1:{port}", TOKEN, cafile=tls[0], timeout=30)
        strangers(stack, port, 300, content, network)
        for _ in range(3):
            assert remote.remaining.epsilon == 1.0
        strangers(stack, port, 300, content, network)
        assert remote.remaining.epsilon == 1.0


def test_a_handshake_has_an_end_however_it_is_dragged_out(service, tls, monkeypatch):
    monkeypatch.setattr(curator_connections, "SECONDS_TO_SHAKE", 1.0)
    with listening(service, *tls) as port, ExitStack() as stack:
        silent, dripping = strangers(stack, port, 2)
        sent = 0
        with suppress(ConnectionError):
            for letter in HELLO + bytes(500):
                dripping.sendall(bytes([letter]))
                time.sleep(0.05)
                sent += 1
        assert sent < 500
        assert ended(silent)


def test_resets_and_nonsense_do_not_harm(service, tls):
    with listening(service, *tls) as port, ExitStack() as stack:
        for number in range(300):
            (line,) = strangers(stack, port, 1, [b"", HELLO, bytes(9), b"GET /"][number % 4])
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.close()  # by a reset
        remote = RemoteCurator(f"https://127.0.0.1:{port}", TOKEN, cafile=tls[0], timeout=30)
        assert remote.remaining.epsilon == 1.0


@pytest.mark.slow
def test_after_the_handshake_there_is_a_deadline_too(service, tls, monkeypatch):
    monkeypatch.setattr(curator_connections, "SECONDS_TO_ASK", 0.3)
    context = ssl.create_default_context(cafile=tls[0])
    with (
        listening(service, *tls) as port,
        called(port, head=b"") as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as line,
    ):
        line.sendall(b"GET /v1")
        assert ended(line)


class Transport:
    """One with so much in it that is not read."""

    def __init__(self, unread):
        self.unread, self.aborted = unread, False

    def get_write_buffer_size(self):
        return self.unread

    def abort(self):
        self.aborted = True


@pytest.mark.parametrize(
    ("complete", "unread", "ends_at"),
    [(True, 0, 1), (True, 9, 2), (False, 9, 2), (False, 0, None), (None, 0, 1)],
)
def test_an_answer_that_is_not_read_is_not_kept_for_ever(complete, unread, ends_at):
    """Nobody can hold a connection by not reading; while an answer is computed, it stays."""
    from uvicorn import Config
    from uvicorn.server import ServerState

    async def scenario():
        line = curator_connections._make_protocol()(
            Config(None, log_config=None), ServerState(), {}
        )
        line.cycle = None if complete is None else SimpleNamespace(response_complete=complete)
        line.transport = Transport(unread)
        looks = 0
        while looks < 5 and not line.transport.aborted:
            line._check_progress(line.cycle)
            looks += 1
        line._timer and line._timer.cancel()
        return looks if line.transport.aborted else None

    assert asyncio.run(scenario()) == ends_at


@pytest.mark.slow
def test_a_service_of_few_files_answers_among_many_strangers(tmp_path):
    """More callers, of as many addresses, than the process may open files: none of its are lost."""
    options = [*write_people(tmp_path), *make_certificate(tmp_path), "--epsilon", 1]
    with serving(tmp_path, *options, files=120) as served, ExitStack() as stack:
        remote = RemoteCurator(served.url, TOKEN, cafile=tmp_path / "cert.pem", timeout=30)
        strangers(stack, served.port, 300, network=1)
        strangers(stack, served.port, 100)
        assert remote.remaining.epsilon == 1.0
        assert not [line for line in served.log if "cannot accept" in line["outcome"]]


def test_those_who_have_shown_the_token_stay(service, monkeypatch):
    monkeypatch.setattr(curator_connections, "MOST_OF_ONE", 3)
    token = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    upload = b"POST /v1/histogram HTTP/1.1\r\nContent-Length: 9\r\nExpect: 100-continue\r\n" + token
    with listening(service) as port, ExitStack() as stack:
        known = [stack.enter_context(called(port, head=upload + b"\r\n")) for _ in range(2)]
        for line in known:
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 100")
        slow = stack.enter_context(called(port))
        with called(port, head=b"GET /v1/about HTTP/1.1\r\n" + token + b"\r\n") as line:
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert ended(slow)
        for line in known:
            line.sendall(b"123456789")
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 422")


def test_uploads_are_bounded_together_and_the_greatest_sender_yields(monkeypatch):
    monkeypatch.setattr("fpbench.privacy.curator.uploads.LEAST_MEMORY", 0)
    outcomes = {}

    async def scenario():
        uploads, go = Uploads(100, 2), asyncio.Event()

        async def parts(*sizes):
            for size in sizes:
                yield bytes(size)
            await go.wait()

        async def send(name, place, *sizes):
            try:
                async with uploads.read(parts(*sizes), place) as found:
                    outcomes[name] = len(b"".join(found))
            except RefusedError as refused:
                outcomes[name] = refused.status, refused.outcome

        tasks = []
        for name, place, *sizes in (
            ("small", "a", 50), ("large", "b", 70), ("larger", "b", 40), ("honest", "c", 50),
            ("too long", "d", 60, 41),
        ):  # fmt: skip
            tasks.append(asyncio.create_task(send(name, place, *sizes)))
            for _ in range(5):
                await asyncio.sleep(0)
        assert sum(upload.size for upload in uploads._uploads) <= 200
        go.set()
        await asyncio.gather(*tasks)
        assert not uploads._uploads

    asyncio.run(scenario())
    assert outcomes == {
        "small": 50, "large": (429, "busy"), "larger": 40, "honest": 50, "too long": (413, "too long"),
    }  # fmt: skip


def test_an_upload_that_arrived_keeps_its_place_until_it_is_answered(monkeypatch):
    monkeypatch.setattr("fpbench.privacy.curator.uploads.LEAST_MEMORY", 0)

    async def scenario():
        uploads = Uploads(100, 2)

        async def parts(size):
            yield bytes(size)

        async with uploads.read(parts(100), "a"), uploads.read(parts(100), "a"):
            with pytest.raises(RefusedError, match="too many queries"):
                async with uploads.read(parts(1), "b"):
                    pass
        async with uploads.read(parts(1), "b") as found:
            assert found == [bytes(1)]

    asyncio.run(scenario())
