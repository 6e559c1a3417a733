"""A curator in a process of its own, for tests that talk to one."""

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from fpbench_curator.web import listen, make_server

FPBENCH = Path(sys.executable).parent / "fpbench"
TOKEN = "a-token-of-many-letters"


class Served:
    """A running `fpbench curator serve`."""

    def __init__(self, where, *options, port=0):
        self.out = where / f"out-{time.monotonic_ns()}"
        self.errors = self.out.with_suffix(".errors")
        with self.out.open("w") as out, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [FPBENCH, "curator", "serve", *map(str, options), "--port", str(port)],
                cwd=where, stdout=out, stderr=errors,
            )  # fmt: skip
        end = time.monotonic() + 60
        while not (found := re.search(r" at (https?)://[^ ]*:(\d+)\n", self.out.read_text())):
            assert self.process.poll() is None, self.errors.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        self.scheme, self.port = found[1], int(found[2])
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def log(self):
        """What it logged of queries."""
        return [json.loads(line) for line in self.out.read_text().splitlines()[1:]]

    def kill(self):
        """End it as a power failure would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """End it as its owner would."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)

    def request(self, method, path, body=None, headers=None, *, token=TOKEN):
        """Status, headers and content of the answer to any request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            connection.request(method, path, body, {**sent, **(headers or {})})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()


@contextmanager
def serving(where, *options, port=0):
    """A curator that ends with the block."""
    served = Served(where, *options, port=port)
    try:
        yield served
    finally:
        served.stop()


def write_people(where, n=60):
    """A table of n people of two sexes and three races, and a token; the options that name them."""
    lines = [f"{'fm'[i % 2]},{'abc'[i % 3]},{20 + i % 50}" for i in range(n)]
    (where / "people.csv").write_text("\n".join(["sex,race,age", *lines, ""]))
    token = where / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    return ["people.csv", "--sensitive", "sex", "--ledger", "ledger.db", "--token-file", "token"]


def make_certificate(where):
    """The options of a certificate for 127.0.0.1, made by openssl."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-subj", "/CN=curator", "-addext", "subjectAltName=IP:127.0.0.1",
         "-addext", "keyUsage=critical,digitalSignature,keyCertSign", "-days", "2",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=where, check=True, capture_output=True,
    )  # fmt: skip
    return ["--certfile", where / "cert.pem", "--keyfile", where / "key.pem"]


@contextmanager
def listening(service, certfile=None, keyfile=None):
    """The port of a server in a thread."""
    server = make_server(service, certfile, keyfile)
    with listen("127.0.0.1", 0) as door:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        try:
            yield door.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


def called(port, *, address="127.0.0.1", head=b"GET /v1/about HTTP/1.1\r\nHost: x\r\n"):
    """A connection on which a request has begun."""
    line = socket.create_connection(("127.0.0.1", port), 10, source_address=(address, 0))
    line.sendall(head)
    return line
