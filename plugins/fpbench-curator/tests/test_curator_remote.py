"""The client of a curator, against servers that are none, or not at their best."""

import http.server
import json
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from fpbench_curator import RemoteCurator

import fpbench
from fpbench import FpbenchError, InputError
from fpbench.errors import BudgetError

TOKEN = "a-token-of-many-letters"
DISCRETE = fpbench.component("mechanism", "discrete-laplace", noise="secure")
ABOUT = {
    "groups": ["a", "b"], "people": 4, "neighbours": "attribute", "mechanisms": [],
    "remaining": {"epsilon": 1.0, "delta": 0.0},
}  # fmt: skip


@contextmanager
def server(*answers):
    """A server that gives these answers, one after the other, and remembers what it was sent."""
    waiting, seen = list(answers), []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            length = int(self.headers.get("Content-Length", 0))
            seen.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
            status, content, headers = (*waiting.pop(0), {})[:3]
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as host:
        thread = threading.Thread(target=host.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{host.server_address[1]}", seen
        finally:
            host.shutdown()
            thread.join()


def ask(curator, **changes):
    given = {"cells": [0, 1, -1, 0], "n_cells": 2, "epsilon": 0.1, "mechanism": DISCRETE}
    given.update(changes)
    return curator.histogram(given.pop("cells"), given.pop("n_cells"), **given)


def test_a_query_says_all_that_is_needed_and_no_more():
    counts = [[[[1.0, 2.0], [3.0, 4.0]]]]
    with server((200, ABOUT), (200, {"counts": counts})) as (url, seen):
        found = ask(RemoteCurator(url + "/", TOKEN))
    assert found.tolist() == counts[0]
    (_, path, headers, body) = seen[1]
    assert (path, headers["Authorization"]) == ("/v1/histogram", f"Bearer {TOKEN}")
    assert json.loads(body) == {
        "cells": "AAH/AA==", "width": 1, "n_cells": 2, "epsilon": [0.1], "repetitions": 1,
        "mechanism": {"use": "discrete-laplace", "noise": "secure"},
    }  # fmt: skip


@pytest.mark.slow
def test_many_cells_are_sent_in_wider_numbers():
    for n_cells, width in ((128, 1), (129, 2), (32768, 2), (32769, 4)):
        counts = np.zeros((1, 1, n_cells, 2)).tolist()
        with server((200, ABOUT), (200, {"counts": counts})) as (url, seen):
            found = ask(RemoteCurator(url, TOKEN), cells=[0, 1, -1, n_cells - 1], n_cells=n_cells)
        assert found.shape == (1, n_cells, 2)
        assert json.loads(seen[1][3])["width"] == width


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cells": [0, 1]}, r"of shape \(2,\), and there are 4 people"),
        ({"cells": [0, 1, 2, 0]}, r"cells must be in 0\.\.1"),
        ({"cells": [0.5] * 4}, "whole numbers"),
        ({"n_cells": 0}, "n_cells must be a whole number"),
        ({"epsilon": []}, "epsilon"),
        ({"epsilon": [0.5, 1e-10]}, "epsilon must be at least 1e-09, not 1e-10"),
        ({"mechanism": "discrete-laplace"}, "mechanism must be a component"),
        ({"n_cells": "2"}, "n_cells must be a whole number"),
        ({"repetitions": 0}, "repetitions"),
        ({"repetitions": 100_000}, "asks for 400,000 counts"),
    ],
)
def test_what_makes_no_sense_is_not_sent(changes, said):
    with server((200, ABOUT)) as (url, seen), pytest.raises(InputError, match=said):
        ask(RemoteCurator(url, TOKEN), **changes)
    assert len(seen) <= 1  # what it is a curator of


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, InputError), (401, InputError), (403, InputError), (409, BudgetError),
     (413, InputError), (422, InputError), (500, FpbenchError), (503, FpbenchError)],
)  # fmt: skip
def test_a_refusal_is_said_in_the_curators_words(status, kind):
    with server((200, ABOUT), (status, {"error": "not today"})) as (url, _):
        with pytest.raises(kind, match=rf"curator at {url}: not today") as caught:
            ask(RemoteCurator(url, TOKEN))
        assert type(caught.value) is kind


def test_it_waits_for_its_turn_as_long_as_it_may():
    busy = (429, {"error": "too many requests", "retry_after": 0.05})
    with server(busy, busy, (200, ABOUT)) as (url, _):
        assert RemoteCurator(url, TOKEN).people == 4
    with server(busy, busy, busy) as (url, seen):
        with pytest.raises(InputError, match="too many requests"):
            _ = RemoteCurator(url, TOKEN, timeout=0.07).people
        assert len(seen) < 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"<html>hello</html>", "not answer like a curator of this version"),
        (b"", "not answer like a curator of this version"),
        (b"[1]", "not answer like a curator of this version"),
        ({"people": 3}, "not answer like a curator of this version"),
    ],
)
def test_a_server_that_is_no_curator(answer, said):
    with server((200, answer)) as (url, _), pytest.raises(FpbenchError, match=said):
        _ = RemoteCurator(url, TOKEN).groups


@pytest.mark.parametrize("counts", [None, [], [[1, 2]], "x", [[[["a", "b"], ["c", "d"]]]]])
def test_an_answer_that_is_none(counts):
    said = "an answer that is not from a curator"
    answers = server((200, ABOUT), (200, {"counts": counts}))
    with answers as (url, _), pytest.raises(FpbenchError, match=said):
        ask(RemoteCurator(url, TOKEN))


def test_a_redirection_does_not_take_the_token_elsewhere():
    with server() as (other, visited):
        moved = server((302, b"", {"Location": f"{other}/v1/about"}))
        with moved as (url, _), pytest.raises(FpbenchError, match="status 302"):
            _ = RemoteCurator(url, TOKEN).groups
        assert not visited


def test_a_question_that_got_no_answer_may_have_been_paid_for():
    with server((200, ABOUT)) as (url, _):
        curator = RemoteCurator(url, TOKEN, timeout=5)
        assert curator.groups == ("a", "b")
    with pytest.raises(FpbenchError, match=r"gave no answer: .*refused; what was asked for may"):
        ask(curator)
    with pytest.raises(FpbenchError, match=r"gave no answer: .*refused$"):
        _ = curator.remaining


@pytest.mark.parametrize(
    "url",
    ["", 8000, None, "127.0.0.1:8000", "ftp://x", "file:///etc/passwd", "http://", "http://x:port",
     "http://x:99999", "https://me:secret@x", "https://x/?a=b", "https://x/#a", "http://[::1"],
)  # fmt: skip
def test_addresses_that_are_none(url):
    with pytest.raises(InputError, match="is not the address of a curator"):
        RemoteCurator(url, TOKEN)


def test_the_token_comes_from_the_environment_or_a_file(tmp_path, monkeypatch):
    monkeypatch.delenv("FPBENCH_CURATOR_TOKEN", raising=False)
    with pytest.raises(InputError, match="no token: .*FPBENCH_CURATOR_TOKEN"):
        RemoteCurator("http://127.0.0.1:1")
    file = tmp_path / "token"
    file.write_text("from-a-file-with-a-line\n")
    monkeypatch.setenv("FPBENCH_CURATOR_TOKEN", "from-the-environment")
    for given, sent in (
        ({}, "from-the-environment"),
        ({"token_file": file}, "from-a-file-with-a-line"),
        ({"token": TOKEN}, TOKEN),
    ):
        with server((200, ABOUT)) as (url, seen):
            assert RemoteCurator(url, **given).people == 4
        assert seen[0][2]["Authorization"] == f"Bearer {sent}"
    for given, said in (
        ({"token": TOKEN, "token_file": file}, "not both"),
        ({"token": "line\r\nbreak"}, "ASCII characters"),
        ({"token_file": tmp_path / "none"}, "cannot be read"),
    ):
        with pytest.raises(InputError, match=said):
            RemoteCurator("http://127.0.0.1:1", **given)


def test_the_token_does_not_show():
    curator = RemoteCurator("https://127.0.0.1:1", TOKEN)
    assert repr(curator) == "RemoteCurator('https://127.0.0.1:1')"
    with pytest.raises(FpbenchError) as caught:
        _ = curator.groups
    assert TOKEN not in str(caught.value)


def test_it_warns_of_what_others_can_read(tmp_path):
    with pytest.warns(UserWarning, match="not https: anybody on the network path"):
        RemoteCurator("http://curator.example:8731", TOKEN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RemoteCurator("https://curator.example:8731", TOKEN)
    with pytest.raises(InputError, match="cafile .* cannot be used"):
        RemoteCurator("https://curator.example", TOKEN, cafile=tmp_path / "none")
    (tmp_path / "no.pem").write_text("no certificate")
    with pytest.raises(InputError, match="cafile .* cannot be used"):
        RemoteCurator("https://curator.example", TOKEN, cafile=tmp_path / "no.pem")
    for timeout in (0, -1, np.inf, np.nan, "10"):
        with pytest.raises(InputError, match="timeout must be "):
            RemoteCurator("https://curator.example", TOKEN, timeout=timeout)
