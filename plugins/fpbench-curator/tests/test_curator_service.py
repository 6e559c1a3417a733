"""The curator as a service, in processes of its own: nothing overspent, forgotten or let in."""

import base64
import json
import re
import shlex
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from fpbench_curator import RemoteCurator
from fpbench_curator.commands import app
from fpbench_curator.service import RateLimit
from serving import FPBENCH, TOKEN, Served, make_certificate, serving, write_people
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import fpbench
from fpbench import FpbenchError, InputError
from fpbench.errors import BudgetError
from fpbench.privacy import Ledger

DISCRETE = fpbench.component("mechanism", "discrete-laplace", noise="secure")
PEOPLE = 60


def ask(curator, epsilon=0.001, **more):
    cells = np.arange(curator.people) % 2
    given = {"epsilon": epsilon, "mechanism": DISCRETE, **more}
    return curator.histogram(cells, 2, **given)


def body(**changes):
    """A good query, but for the changes."""
    query = {
        "cells": base64.b64encode(bytes(PEOPLE)).decode(),
        "width": 1,
        "n_cells": 1,
        "epsilon": [0.001],
        "mechanism": {"use": "discrete-laplace", "noise": "secure"},
    }
    return json.dumps({k: v for k, v in {**query, **changes}.items() if v is not None})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One service for the tests that need no more than that."""
    where = tmp_path_factory.mktemp("shared")
    with serving(where, *write_people(where, PEOPLE), "--epsilon", 5, "--rate", 1e6) as served:
        yield served
        # Whatever they sent, it still answers, and logged no token and no data.
        assert served.request("GET", "/v1/about")[0] == 200
    assert TOKEN not in served.out.read_text()
    assert set(served.errors.read_text().splitlines()) <= {"Invalid HTTP request received."}
    known = {"time", "query", "from", "cells", "answers", "epsilon", "mechanism", "status",
             "outcome"}  # fmt: skip
    assert {key for line in served.log for key in line} <= known


@pytest.fixture
def remote(shared):
    return RemoteCurator(shared.url, TOKEN)


@pytest.mark.slow
def test_a_remote_curator_answers_as_one_here(remote):
    source: fpbench.privacy.HistogramSource = remote
    assert (source.people, source.groups, source.neighbours) == (60, ("f", "m"), "attribute")
    before = remote.remaining.epsilon
    found = ask(remote, [[0.01, 0.1]], repetitions=5)
    assert found.shape == (1, 2, 5, 2, 2)
    assert (found == np.rint(found)).all()
    assert remote.remaining.epsilon == pytest.approx(before - 0.55)
    # Everybody of even number is an f, and in cell 0: noise of scale 2 / 2 around that.
    means = ask(remote, 2.0, repetitions=1)[0]
    assert np.abs(means - [[30, 0], [0, 30]]).max() < 40
    none = remote.histogram([-1] * 60, 300, epsilon=0.01, mechanism=DISCRETE)
    assert none.shape == (1, 300, 2)


@pytest.mark.slow
def test_what_a_query_was_is_logged_without_data(shared, remote):
    ask(remote, [0.001, 0.002], repetitions=3)
    line = shared.log[-1]
    assert line["time"].startswith("20")
    assert line["from"] == "127.0.0.1"
    del line["time"], line["from"]
    assert line == {
        "query": "histogram", "cells": 2, "answers": 6, "epsilon": pytest.approx(0.009),
        "mechanism": "discrete-laplace", "status": 200, "outcome": "answered",
    }  # fmt: skip


@pytest.mark.parametrize(
    "token", [None, "", "a-token-of-many-letterS", TOKEN + "x", TOKEN[:-1], "é" * 16]
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/about"), ("POST", "/v1/histogram")])
def test_a_wrong_token_is_refused(shared, method, path, token):
    status, headers, content = shared.request(method, path, token=token)
    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
    assert json.loads(content) == {"error": "the token is missing or wrong"}
    assert (shared.log[-1]["status"], shared.log[-1]["outcome"]) == (401, "no token")


def test_a_client_with_a_wrong_token_is_told(shared):
    with pytest.raises(InputError, match="the token is missing or wrong"):
        _ = RemoteCurator(shared.url, "b" * 20).groups


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cells": None}, "cells: Field required"),
        ({"cells": "not base64!"}, "cells: not base64"),
        ({"cells": "AAAA"}, "3 bytes, and 60 people at 1 bytes each make 60"),
        ({"width": 3}, "width: Input should be 1, 2 or 4"),
        ({"cells": base64.b64encode(b"\x01" * PEOPLE).decode()}, r"cells must be in 0..0"),
        ({"n_cells": 10**9}, "n_cells: Input should be less"),
        ({"n_cells": 30_000, "repetitions": 2}, "asks for 120,000 counts; 100,000 is the most"),
        ({"epsilon": []}, "epsilon: List should have at least 1 item"),
        ({"epsilon": [0.1, 0]}, "epsilon.1: Input should be greater"),
        ({"epsilon": [float("inf")]}, "epsilon.0: Input should be a finite number"),
        ({"repetitions": 0}, "repetitions: Input should be greater"),
        ({"more": 1}, "more: Extra inputs are not permitted"),
        ({"mechanism": {"use": "discrete-laplace", "nois": "secure"}}, "did you mean 'noise'?"),
        ({"mechanism": {"use": "discrete-laplace"}}, 'answers with noise = "secure" only'),
        ({"mechanism": {"use": "laplace"}}, "by discrete-gaussian, discrete-laplace, exponential"),
        ({"mechanism": {"use": "laplace", "noise": "secure"}}, "draws real numbers"),
    ],
)
def test_malformed_queries_cost_nothing_and_are_told_why(shared, remote, changes, said):
    before = remote.remaining
    status, _, content = shared.request("POST", "/v1/histogram", body(**changes))
    assert (status, said in json.loads(content)["error"]) == (422, True), content
    assert remote.remaining == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(shared, content):
    status, _, said = shared.request("POST", "/v1/histogram", content)
    assert status == 422
    assert 5 < len(json.loads(said)["error"]) < 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/docs", 404), ("GET", "/openapi.json", 404),
     ("GET", "/v1/histogram", 405), ("DELETE", "/v1/about", 405)],
)  # fmt: skip
def test_there_is_nothing_else(shared, method, path, status):
    assert shared.request(method, path)[0] == status


def test_long_requests_are_refused_before_they_are_read(shared):
    announced = {"Content-Length": str(10**12)}
    status, _, content = shared.request("POST", "/v1/histogram", headers=announced)
    assert status == 413  # of which not one byte was sent
    assert "the most a query can be" in json.loads(content)["error"]
    assert shared.log[-1]["outcome"] == "too long"

    def endless():
        for _ in range(10_000):
            yield b"0" * 10_000

    try:
        status = shared.request("POST", "/v1/histogram", endless())[0]
    except ConnectionError:  # it hung up on us while we sent
        status = 413
    assert status == 413
    assert shared.request("GET", "/v1/about")[0] == 200


def test_noise_that_is_no_http_does_not_matter(shared):
    for noise in (b"\x16\x03\x01" + bytes(100), b"GET\r\n\r\n", b"A" * 200_000):
        with socket.create_connection(("127.0.0.1", shared.port), 10) as door:
            try:
                door.sendall(noise)
                door.recv(100)
            except ConnectionError:
                pass
    # A query that is cut off costs nothing.
    with socket.create_connection(("127.0.0.1", shared.port), 10) as door:
        start = f"POST /v1/histogram HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        door.sendall(f"{start}Content-Length: 300\r\n\r\n{{".encode())
    assert shared.request("GET", "/v1/about")[0] == 200


@pytest.mark.slow
def test_the_budget_ends_and_a_restart_does_not_renew_it(tmp_path):
    options = [*write_people(tmp_path), "--epsilon", 1]
    with serving(tmp_path, *options) as served:
        remote = RemoteCurator(served.url, TOKEN)
        ask(remote, 0.7)
        with pytest.raises(BudgetError, match=r"asked for epsilon 0\.4, left epsilon 0\.3 of"):
            ask(remote, 0.4)
        refusal = served.request("POST", "/v1/histogram", body(epsilon=[0.4]))
        assert refusal[0] == 409
        assert json.loads(refusal[2])["remaining"] == {"epsilon": 0.3, "delta": 0}
        assert served.log[-1]["outcome"] == "budget"
        assert remote.remaining.epsilon == 0.3
    assert served.process.returncode in (0, -15)  # uvicorn hands the signal on once it is done
    with serving(tmp_path, *options, port=served.port) as again:
        assert "epsilon 0.3 left of 1" in again.out.read_text()
        assert RemoteCurator(again.url, TOKEN).remaining.epsilon == 0.3
        ask(remote, 0.3)  # the same client goes on
        with pytest.raises(BudgetError, match="left epsilon 0 of"):
            ask(remote, 0.001)
    assert Ledger(1, path=tmp_path / "ledger.db").spent.epsilon == 1


@pytest.mark.slow
def test_killed_in_the_middle_of_1000_queries_of_32_clients(tmp_path):
    """Nobody loses an answer for good, and no epsilon that was spent is forgotten."""
    each, clients, wanted, afforded = 0.001, 32, 1000, 1100
    options = [*write_people(tmp_path), "--epsilon", afforded * each, "--rate", 1e6]
    received, lock, halfway = 0, threading.Lock(), threading.Event()

    def audit(number):
        nonlocal received
        curator, lost = RemoteCurator(served.url, TOKEN), 0
        for _ in range(wanted // clients + (number < wanted % clients)):
            while True:
                try:
                    assert ask(curator, each).shape == (1, 2, 2)
                    break
                except InputError:  # a refusal, which there should be none of
                    raise
                except FpbenchError:  # the curator is gone; it will be back
                    lost += 1
                    time.sleep(0.1)
            with lock:
                received += 1
                if received == wanted // 2:
                    halfway.set()
        return lost

    served = Served(tmp_path, *options)
    try:
        with ThreadPoolExecutor(clients) as pool:
            work = [pool.submit(audit, number) for number in range(clients)]
            assert halfway.wait(60)
            served.kill()
            ledger = Ledger(afforded * each, path=tmp_path / "ledger.db")
            at_kill = len(ledger.entries)
            served = Served(tmp_path, *options, port=served.port)
            lost = [job.result() for job in work]
        spent = len(ledger.entries)
        assert received == wanted
        assert wanted // 2 <= at_kill <= wanted
        # What was paid for and not received was in flight when it was killed: one a client.
        assert 0 <= spent - received <= clients
        assert sum(lost) > 0
        assert ledger.spent.epsilon == pytest.approx(spent * each)

        # And what is left is given to 32 clients to the last query, and not one more.
        def drain(_):
            curator, answered = RemoteCurator(served.url, TOKEN), 0
            while True:
                try:
                    ask(curator, each)
                except BudgetError:
                    return answered
                answered += 1

        with ThreadPoolExecutor(clients) as pool:
            assert sum(pool.map(drain, range(clients))) == afforded - spent
        assert len(ledger.entries) == afforded
        assert ledger.remaining.epsilon == 0
    finally:
        served.stop()


@pytest.mark.slow
def test_tls(tmp_path):
    """The curator's own certificate is trusted by who was given it, and by nobody else."""
    certificate = make_certificate(tmp_path)
    options = [*write_people(tmp_path), "--epsilon", 1]
    with serving(tmp_path, *options, *certificate) as served:
        assert served.scheme == "https"
        remote = RemoteCurator(served.url, TOKEN, cafile=tmp_path / "cert.pem")
        assert ask(remote, 0.1).shape == (1, 2, 2)
        with pytest.raises(FpbenchError, match="certificate verify failed"):
            _ = RemoteCurator(served.url, TOKEN).groups
        with pytest.raises(FpbenchError, match="gave no answer"):
            _ = RemoteCurator(served.url.replace("https", "http"), TOKEN).groups
        other = served.url.replace("127.0.0.1", "localhost")
        with pytest.raises(FpbenchError, match="localhost"):  # the certificate is not for it
            _ = RemoteCurator(other, TOKEN, cafile=tmp_path / "cert.pem").groups


@pytest.mark.slow
def test_the_guide_for_two_machines(tmp_path, monkeypatch):
    """Its commands are understood, and its Python audits a model against groups it never gets."""
    text = (Path(__file__).parents[3] / "docs" / "curator.md").read_text()
    command = re.search(r"^fpbench curator serve (.*?)\n(?!    )", text, re.M | re.S)[1]
    options = shlex.split(command.replace("\\\n", " "))
    for tls in ("--certfile", "--keyfile", "--host"):  # TLS has a test of its own
        place = options.index(tls)
        del options[place : place + 2]
    write_people(tmp_path, 3000)
    remote, local = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    people = pd.read_csv(tmp_path / "people.csv")
    hired = ((people["sex"] == "m") & (np.arange(3000) % 5 > 0)).to_numpy(np.int8)  # of no f
    monkeypatch.setenv("FPBENCH_CURATOR_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    names = {"model": hired, "X": None, "people": people}
    with serving(tmp_path, *options) as served:
        exec(remote.replace("https://curator.example:8731", served.url)
             .replace(', cafile="cert.pem"', ""), names)  # fmt: skip
        assert names["curator"].remaining.epsilon == 1.5
    assert names["release"].noise == "secure"
    assert 0 <= names["release"].values[0] < 0.1
    exec(local, names)  # with the same ledger
    assert names["ledger"].remaining.epsilon == 1
    assert names["curator"].groups == tuple(f"{s} x {r}" for s in "fm" for r in "abc")


@pytest.mark.slow
def test_who_asks_too_often_has_to_wait(tmp_path):
    options = [*write_people(tmp_path), "--epsilon", 1, "--rate", 4]
    with serving(tmp_path, *options) as served:
        found = [served.request("GET", "/v1/about", token="x") for _ in range(10)]
        assert {status for status, _, _ in found} == {401, 429}
        status, headers, content = next(answer for answer in found if answer[0] == 429)
        assert (status, headers["Retry-After"]) == (429, "1")
        assert 0 < json.loads(content)["retry_after"] <= 0.25
        remote, start = RemoteCurator(served.url, TOKEN), time.monotonic()
        for _ in range(8):
            ask(remote, 0.01)  # waits for its turn
        assert time.monotonic() - start > (8 - 3) / 4 - 0.25  # one of the first second's 4 is used
        assert remote.remaining.epsilon == 0.92
        hasty = RemoteCurator(served.url, TOKEN, timeout=0.05)
        served.request("GET", "/v1/about")
        with pytest.raises(InputError, match="too many requests"):
            _ = [hasty.remaining for _ in range(8)]


@pytest.mark.slow
def test_who_asks_is_not_what_a_header_says(tmp_path):
    """Or whoever guesses tokens would be somebody else each time."""
    options = [*write_people(tmp_path), "--epsilon", 1, "--rate", 4]
    with serving(tmp_path, *options) as served:
        said = [{"X-Forwarded-For": f"10.0.0.{i}"} for i in range(10)]
        found = [served.request("GET", "/v1/about", None, more, token="x") for more in said]
        assert {status for status, _, _ in found} == {401, 429}
        assert {line["from"] for line in served.log} == {"127.0.0.1"}


@pytest.mark.slow
def test_simulated_noise_is_for_trials(tmp_path):
    options = [*write_people(tmp_path), "--epsilon", 1, "--allow-simulation"]
    with serving(tmp_path, *options, "--neighbours", "add-remove") as served:
        assert "protects nobody" in served.errors.read_text()
        remote = RemoteCurator(served.url, TOKEN)
        assert remote.neighbours == "add-remove"
        assert "laplace" in remote.mechanisms
        found = ask(remote, 0.5, mechanism=fpbench.component("mechanism", "laplace"))
        assert (found != np.rint(found)).any()


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a curator that is expected to refuse: its one error."""
    monkeypatch.chdir(tmp_path)
    options = write_people(tmp_path)

    def run(*changes):
        given = dict(zip(options[1::2], options[2::2], strict=True)) | {"--epsilon": "1"}
        given |= dict(zip(changes[::2], map(str, changes[1::2]), strict=True))
        file = given.pop("FILE", options[0])
        words = ["serve", file, *(word for pair in given.items() for word in pair)]
        done = CliRunner().invoke(app, words)
        assert isinstance(done.exception, InputError), done.exception
        assert "curator of" not in done.stdout
        return str(done.exception)

    return run


def test_the_installed_command_refuses_in_one_line(tmp_path):
    options = [*write_people(tmp_path), "--epsilon", "1", "--token-file", "people.csv"]
    done = subprocess.run(
        [FPBENCH, "curator", "serve", *options],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: token file 'people.csv' holds more than one line\n"


def test_it_does_not_start_with_what_makes_no_sense(start, tmp_path):
    for name, text in (("empty", ""), ("blank", " \n"), ("short", "abc"), ("two", "a" * 20 + "\nb"),
                       ("spaced", "a b " * 10), ("accent", "é" * 20)):  # fmt: skip
        (tmp_path / name).write_text(text)
    assert "token file 'empty' is empty" in start("--token-file", "empty")
    assert "is empty" in start("--token-file", "blank")
    assert "3 characters, and needs at least 16" in start("--token-file", "short")
    assert "more than one line" in start("--token-file", "two")
    assert "without spaces" in start("--token-file", "spaced")
    assert "ASCII letters" in start("--token-file", "accent")
    assert "token file 'none' cannot be read: No such file" in start("--token-file", "none")
    assert "no column 'sexx'; did you mean 'sex'?" in start("--sensitive", "sexx")
    assert "50 different numbers" in start("--sensitive", "age")
    assert "no such file" in start("FILE", "none.csv")
    assert "epsilon must be above 0" in start("--epsilon", 0)
    assert "epsilon must be a number" in start("--epsilon", "nan")
    assert "epsilon must be at least 1e-09, not 1e-10" in start("--epsilon", "1e-10")
    assert "epsilon must be finite" in start("--epsilon", "inf", "--ledger", "other.db")
    assert "delta must be at least 0 and below 1" in start("--delta", 1)
    assert "did you mean 'attribute'?" in start("--neighbours", "atribute")
    assert "rate must be above 0" in start("--rate", 0, "--ledger", "rate.db")
    assert "needs --certfile" in start("--keyfile", "token")
    # Nor is there now a ledger of a budget that was never meant.
    assert not list(tmp_path.glob("*.db*"))


def test_it_does_not_start_with_what_cannot_be_used(start, tmp_path):
    Ledger(2.0, path=tmp_path / "two.db")
    assert "ledger of another budget: epsilon = 2.0, not epsilon = 1.0" in start(
        "--ledger", "two.db"
    )
    assert "people.csv" in start("--ledger", "people.csv")
    assert "cannot be used" in start("--ledger", "no/such/folder/ledger.db")
    assert "certificate or its key cannot be used" in start("--certfile", "token", "--port", 0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = start("--port", taken.getsockname()[1])
        assert "cannot listen on 127.0.0.1" in said
    assert "port must be in 0..65535, not 99999" in start("--port", 99999)
    assert "cannot listen on no.such.host.invalid" in start("--host", "no.such.host.invalid")


def test_a_bucket_lets_a_second_through_at_once_and_then_the_rate():
    limit = RateLimit(5)
    assert [limit.wait("a", 100.0) for _ in range(5)] == [0] * 5
    assert limit.wait("a", 100.0) == pytest.approx(0.2)
    assert limit.wait("b", 100.0) == 0  # another address has its own
    assert limit.wait("a", 100.1) == pytest.approx(0.1)
    assert limit.wait("a", 100.25) == 0
    assert [limit.wait("a", 900.0) for _ in range(6)].count(0) == 5
    for address in range(20_000):
        limit.wait(str(address), 900.0)
    assert limit.wait("a", 900.0) == 0  # it was long gone, and forgotten
    slow = RateLimit(0.1)
    assert slow.wait("a", 0) == 0
    assert slow.wait("a", 0) == pytest.approx(10)


@pytest.mark.slow
def test_a_curator_on_another_machine(tmp_path):
    """What it is sent has no groups in it, and what it answers is all that is known."""
    options, X = write_people(tmp_path, 200), np.arange(200)[:, None] % 5
    tree = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 2)
    with serving(tmp_path, *options, "--epsilon", 2) as served:
        curator = RemoteCurator(served.url, TOKEN)
        for mode in ("partition", "reference"):
            release = fpbench.audit(
                tree, X, curator, epsilon=0.5, mode=mode,
                mechanism={"use": "discrete-laplace", "noise": "secure"},
            )  # fmt: skip
            assert 0 <= release.low[0] <= release.values[0] <= release.high[0] <= 1
            assert release.low[0] < release.high[0]
            assert (release.noise, release.guarantee.epsilon) == ("secure", 0.5)
        assert curator.remaining.epsilon == pytest.approx(1.0)
        assert sum("cells" in line for line in served.log) == 3
        with pytest.raises(BudgetError):
            fpbench.audit(
                tree, X, curator, epsilon=1.5,
                mechanism={"use": "discrete-laplace", "noise": "secure"},
            )  # fmt: skip


@pytest.mark.parametrize("page", ["docs/audit-guide.md", "docs/running.md"])
def test_the_commands_of_other_pages_are_understood(page):
    text = (Path(__file__).parents[3] / page).read_text().replace("\\\n", " ")
    (command,) = re.findall(r"fpbench curator serve (.*)", text)
    serve = typer.main.get_command(app).commands["serve"]
    assert serve.make_context("serve", shlex.split(command)).params["host"] == "0.0.0.0"
