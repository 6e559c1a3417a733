"""What the service does when something fails, asked without a network."""

import asyncio
import json
import logging

import pytest

from fpbench import Curator, Guarantee, Ledger, curator_http
from fpbench.curator_http import make_app
from fpbench.curator_service import Service

TOKEN = "a-token-of-many-letters"
QUERY = json.dumps(
    {"cells": "AAAAAA==", "width": 1, "n_cells": 1, "epsilon": [0.25],
     "mechanism": {"use": "discrete-laplace", "noise": "secure"}}
).encode()  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    return Ledger(1.0, path=tmp_path / "ledger.db")


@pytest.fixture
def service(ledger):
    return Service(Curator([0, 1, 1, 0], ["a", "b"], ledger=ledger), ledger, TOKEN)


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.INFO, "fpbench.curator")
    return lambda: json.loads(caplog.messages[-1])


def post(service, *parts):
    """Status and answer to a query that arrives in parts; a number is a pause, None a lost connection."""
    sent, waiting = [], list(parts)

    async def receive():
        part = waiting.pop(0)
        if isinstance(part, float):
            await asyncio.sleep(part)
            part = b""
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": "/v1/histogram", "raw_path": b"/v1/histogram",
        "query_string": b"", "root_path": "", "client": ("10.0.0.7", 1), "server": ("x", 1),
        "headers": [(b"authorization", f"Bearer {TOKEN}".encode())],
    }  # fmt: skip
    asyncio.run(make_app(service)(scope, receive, send))
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(content)


def test_a_query_may_arrive_in_parts(service, ledger, logged):
    status, answer = post(service, QUERY[:10], QUERY[10:40], QUERY[40:])
    assert (status, list(answer)) == (200, ["counts", "remaining"])
    assert answer["remaining"] == {"epsilon": 0.75, "delta": 0}
    assert (logged()["from"], logged()["outcome"]) == ("10.0.0.7", "answered")


def test_a_failure_says_nothing_of_what_it_saw(service, ledger, logged, monkeypatch):
    def fail(*_, **__):
        ledger.spend(Guarantee(0.25))
        raise RuntimeError("true counts are 2, 2")

    monkeypatch.setattr(Curator, "histogram", fail)
    status, answer = post(service, QUERY)
    assert status == 503
    assert answer["error"].endswith("what was asked for may have been paid for")
    line = logged()
    assert line["outcome"].startswith("failed: RuntimeError in fail, line ")
    assert "counts are" not in json.dumps([answer, line])
    assert ledger.remaining.epsilon == 0.75


def test_without_its_ledger_it_answers_nothing(service, logged, tmp_path):
    assert post(service, QUERY)[0] == 200
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    status, answer = post(service, QUERY)
    assert (status, "counts" in answer) == (503, False)
    assert logged()["outcome"].startswith("failed: the ledger ")
    assert str(tmp_path) not in answer["error"]


def test_who_sends_too_slowly_is_cut_off(service, ledger, logged, monkeypatch):
    monkeypatch.setattr(curator_http, "_SECONDS_TO_SEND", 0.05)
    assert post(service, QUERY[:5], 5.0, QUERY[5:])[0] == 408
    assert logged()["outcome"] == "too slow"
    assert post(service, QUERY[:5], None)[0] == 400
    assert logged()["outcome"] == "cut off"
    assert ledger.remaining.epsilon == 1


def test_what_grows_too_long_is_not_read_to_its_end(service, logged):
    parts = [b"0" * (service.most_bytes // 2 + 1)] * 2
    assert post(service, *parts, RuntimeError)[0] == 413
    assert logged()["outcome"] == "too long"
