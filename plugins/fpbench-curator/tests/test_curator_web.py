"""What the service does when something fails, asked without a network."""

import asyncio
import json
import logging
from unittest import mock

import pytest
from fpbench_curator import web
from fpbench_curator.service import RefusedError, Service, get_place
from fpbench_curator.web import make_app
from hypothesis import given
from hypothesis import strategies as st
from serving import called, listening

from fpbench import Guarantee
from fpbench.privacy import Balance, Curator, Ledger

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
    caplog.set_level(logging.INFO, "fpbench_curator")
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


def test_tokens_are_compared_in_constant_time(service, monkeypatch):
    """Or their first letters could be told by how long the refusal takes."""
    compared = []

    def spied(one, other):
        compared.append({one, other})
        return one == other

    monkeypatch.setattr("hmac.compare_digest", spied)
    with pytest.raises(RefusedError, match="missing or wrong"):
        service.admit("10.0.0.7", b"Bearer a-token-of-many")
    service.admit("10.0.0.7", f"Bearer {TOKEN}".encode())
    right = f"Bearer {TOKEN}".encode()
    assert compared == [{b"Bearer a-token-of-many", right}, {right}]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 0.3)), max_size=40))
def test_requests_without_the_token_use_up_nothing_of_those_with_it(requests):
    """Whatever strangers send from an auditor's address, the auditor's answers are the same."""

    def admit(which):
        budget = Ledger(1.0)
        curator = Curator([0, 1], ["a", "b"], ledger=budget)
        service, now, answers = Service(curator, budget, TOKEN, rate=3.0), 0.0, []
        with mock.patch("time.monotonic") as clock:
            for known, pause in requests:
                clock.return_value = now = now + pause
                if known in which:
                    words = f"Bearer {TOKEN}" if known else "Bearer a-token-of-many"
                    try:
                        service.admit("10.0.0.7", words.encode())
                        answers.append((known, 200))
                    except RefusedError as refused:
                        answers.append((known, refused.status))
        return answers

    both = admit({True, False})
    for known, refusals in ((True, {429}), (False, {401, 429})):
        own = [answer for answer in both if answer[0] is known]
        assert own == admit({known})
        assert {status for _, status in own} <= refusals | ({200} if known else set())


def test_what_is_left_of_a_budget_of_rho_is_told_as_rho():
    ledger = Ledger(1.0, 1e-6, accounting="zcdp")
    service = Service(Curator([0, 1], ["a", "b"], ledger=ledger), ledger, TOKEN)
    assert Balance(**service.about()["remaining"]) == ledger.remaining
    assert ledger.remaining.rho > 0


MURMUR = """
from fpbench import Mechanism, hookimpl

class Murmur(Mechanism):
    \"\"\"Adds nothing.\"\"\"

    name, summary = "murmur", "adds nothing"

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        return counts + 0.0 * epsilon

@hookimpl
def fpbench_mechanisms():
    return [Murmur]
"""


def test_only_a_trial_offers_mechanisms_of_others(install, ledger):
    """Whole numbers from the operating system, says this one, but nobody here has looked at it."""
    install("somebody-elses", "murmur", MURMUR)
    curator = Curator([0, 1, 1, 0], ["a", "b"], ledger=ledger)
    query = json.loads(QUERY)
    query["mechanism"] = {"use": "murmur", "noise": "secure"}

    service = Service(curator, ledger, TOKEN)
    assert service.about()["mechanisms"] == ["discrete-gaussian", "discrete-laplace", "exponential"]
    with pytest.raises(RefusedError, match="by discrete-gaussian, discrete-laplace, exponential"):
        service.answer(json.dumps(query).encode(), {})
    assert ledger.spent.epsilon == 0

    trial = Service(curator, ledger, TOKEN, allow_simulation=True)
    assert {"murmur", "laplace", "discrete-laplace"} <= {*trial.about()["mechanisms"]}
    assert trial.answer(json.dumps(query).encode(), {})["counts"] == [[[[2.0, 2.0]]]]


@pytest.mark.slow
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
    monkeypatch.setattr(web, "SECONDS_TO_SEND", 0.05)
    assert post(service, QUERY[:5], 5.0, QUERY[5:])[0] == 408
    assert logged()["outcome"] == "too slow"
    assert post(service, QUERY[:5], None)[0] == 400
    assert logged()["outcome"] == "cut off"
    assert ledger.remaining.epsilon == 1


def test_what_grows_too_long_is_not_read_to_its_end(service, logged):
    parts = [b"0" * (service.most_bytes // 2 + 1)] * 2
    assert post(service, *parts, RuntimeError)[0] == 413
    assert logged()["outcome"] == "too long"


@pytest.mark.parametrize("path", ["/v1/about/", "/v1/histogram/", "/v2", "//v1/about", "/"])
def test_other_paths_are_limited_and_logged_as_all_requests_are(ledger, path, logged):
    curator = Curator([0, 1, 1, 0], ["a", "b"], ledger=ledger)
    service = Service(curator, ledger, TOKEN, rate=3.0)
    token = f"Authorization: Bearer {TOKEN}\r\n"
    with listening(service) as port:

        def ask(head):
            with called(
                port, head=f"GET {path} HTTP/1.1\r\nHost: evil.example\r\n".encode()
            ) as line:
                line.sendall(f"{head}Connection: close\r\n\r\n".encode())
                with line.makefile("rb") as answers:
                    return answers.read().decode()

        found = ask(token)
        assert found.startswith("HTTP/1.1 404")  # and no redirection
        assert "evil.example" not in found
        assert (logged()["query"], logged()["status"]) == ("unknown", 404)
        assert path not in {*logged().values()}
        assert ask("").startswith("HTTP/1.1 401")
        assert {ask(token)[:12] for _ in range(10)} >= {"HTTP/1.1 429"}


def test_many_slow_queries_keep_nobody_waiting(service, ledger):
    head = f"POST /v1/histogram HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    announced = f"{head}Content-Length: {len(QUERY)}\r\n\r\n".encode()
    with listening(service) as port:
        slow = [called(port, head=announced + QUERY[:1]) for _ in range(12)]
        with called(port, head=announced + QUERY) as honest:
            assert honest.recv(1 << 16).startswith(b"HTTP/1.1 200")
        slow[0].sendall(QUERY[1:])  # nor are they forgotten
        assert slow[0].recv(1 << 16).startswith(b"HTTP/1.1 200")
        for line in slow:
            line.close()
    assert ledger.spent.epsilon == 0.5


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


def test_requests_of_an_ipv6_network_are_counted_together(ledger):
    service = Service(Curator([0, 1], ["a", "b"], ledger=ledger), ledger, TOKEN, rate=2.0)
    for number in range(2):
        service.admit(f"2001:db8::{number}", f"Bearer {TOKEN}".encode())
    with pytest.raises(RefusedError, match="too many requests"):
        service.admit("2001:db8::2", f"Bearer {TOKEN}".encode())
    service.admit("2001:db8:0:1::2", f"Bearer {TOKEN}".encode())
