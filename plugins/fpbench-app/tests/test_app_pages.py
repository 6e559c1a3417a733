"""What the pages answer, without a browser."""

import re
import signal
from html import unescape

import httpx2
import pytest
from conftest import TOKEN, Served
from fpbench_app import case as case_module
from fpbench_app.case import Case
from fpbench_app.web import App, Job, listen
from starlette.testclient import TestClient

import fpbench
from fpbench import FairnessReport, InputError
from fpbench.tabular import load_table


def read_error(response):
    """The message of a page that refuses."""
    assert response.status_code in (400, 413)
    assert "Traceback" not in response.text
    (text,) = re.findall(r'<p role="alert" class="wrong">(.*?)</p>', response.text, re.DOTALL)
    return unescape(text)


def test_the_page_is_for_who_has_the_token(client):
    assert client.get("").status_code == 200
    for path in ("/", "/x/", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/reading", "/assets/app.css"):
        response = client.get(f"http://127.0.0.1:8000{path}")
        assert response.status_code in (403, 404)
        assert TOKEN not in response.text
    assert client.post("http://127.0.0.1:8000/x/files").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_a_name_that_was_bound_to_this_machine_is_refused(client, host):
    assert client.get("", headers={"host": host}).status_code == 400
    assert client.get("", headers={"host": "localhost:9"}).status_code == 200


def test_pages_ask_for_nothing_elsewhere_and_run_nothing_of_others(client, upload):
    upload()
    for page in ("", "reading", "verdict", "assets/app.js", "assets/app.css", "assets/icon.svg"):
        response = client.get(page)
        assert response.headers["content-security-policy"].startswith("default-src 'self'; ")
        assert response.headers["referrer-policy"] == "no-referrer"
        text = response.text.replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"[/*]//? ", "", text)
    assert client.get("assets/../web.py").status_code == 404


def test_what_is_read_is_shown(upload, people):
    page = upload().text
    assert "Read as: selection rate of 2 groups of sex in 5 slices by job; shares" in page
    for (job, sex), own in people.groupby(["job", "sex"]):
        cells = [job, sex, "selection-rate", f"{(own['hired'] == 'yes').mean():.6g}", len(own)]
        assert re.search("".join(f"<td[^>]*>{cell}</td>" for cell in cells), page)
    for column in ("sex", "hired"):
        assert f'<option value="{column}" selected>' in page
    assert "as it is read: selection-rate" in page


def test_what_is_read_can_be_corrected(client, upload, files):
    said = read_error(upload(table=files[1].read_bytes().replace(b"Hire rate", b"Hired")))
    assert re.fullmatch(r"table\.csv, row 0, column 'Hired': '0\.\d+' is no whole number.*", said)
    own = {"group": "sex", "prediction": "hired", "text": "Hired", "meaning": "selection-rate"}
    page = client.post("reading", data=own).text
    assert "Read as: selection rate of 2 groups of sex in 5 slices by job; shares" in page
    assert '<input type="hidden" name="text" value="Hired">' in page
    assert '<option value="selection-rate" selected>' in page
    said = read_error(client.post("reading", data={**own, "meaning": ""}))
    assert "is no whole number" in said
    coarse = re.sub(r"0\.\d+", lambda rate: f"{float(rate[0]):.2f}", files[1].read_text())
    assert "rounded, by at most 0.005" in upload(table=coarse.encode()).text
    own = {"group": "sex", "prediction": "hired"}
    assert "rounded, by at most 0.05" in client.post("reading", data={**own, "decimals": "1"}).text
    said = read_error(client.post("reading", data={**own, "decimals": "-1"}))
    assert said == "decimals: '-1' is no whole number"
    said = read_error(client.post("reading", data={**own, "group": "hired"}))
    assert said == "'hired' cannot be two of group, prediction and label"


def test_people_are_those_that_were_chosen(files, people):
    case = Case(*files)
    X, predictions, labels, groups = case.take_people()
    assert list(X.columns) == ["age", "job"]
    assert labels is None
    assert (predictions == (people["hired"] == "yes")).all()
    assert (groups == people["sex"]).all()
    chosen = {"group": "sex", "prediction": "age", "label": "hired", "positive_label": "no"}
    case.choices = case_module.Choices(**chosen, threshold="40")
    X, predictions, labels, _ = case.take_people()
    assert list(X.columns) == ["job"]
    assert (predictions == (people["age"] >= 40)).all()
    assert (labels == (people["hired"] == "no")).all()
    case.choices = case_module.Choices(**chosen)
    with pytest.raises(InputError, match="column 'age': has .* values: choose a column of two"):
        case.take_people()
    case.choices = case_module.Choices("sex", "job", threshold="40")
    with pytest.raises(InputError, match="column 'job': not all values, and the least"):
        case.take_people()


@pytest.mark.slow
def test_the_verdict_is_that_of_fpbench(client, upload, wait_for, files, people):
    upload()
    assert client.post("verdict").url.path.endswith("/verdict")
    page = wait_for("verdict").text
    own = fpbench.assess(
        files[1], people[["age", "job", "sex"]], people["hired"], groups="sex", positive="yes"
    )
    assert own.verdict in unescape(page)
    assert "Riskiest cells" in page
    assert "<th>predicted 1</th>" in page


@pytest.mark.slow
def test_released_tables_are_those_of_fpbench(
    client, upload, wait_for, monkeypatch, tmp_path, people
):
    make = fpbench.release
    monkeypatch.setattr(fpbench, "release", lambda *given, **named: make(*given, **named, seed=3))
    monkeypatch.setattr(case_module, "EPSILONS", (0.5, 5.0))
    upload()
    client.post("releases")
    page = wait_for("releases").text
    assert page.count('class="step ') == 4
    own = {"by": ["job"], "order": 1}
    given = people[["age", "job"]], (people["hired"] == "yes").astype(int), people["sex"]
    for number, epsilon in enumerate((0.5, 5.0), 1):
        made = make(*given, epsilon=epsilon, seed=3, **own)
        assert made.to_json()["attack"]["measures"]["leak"] is not None
        made.report.to_csv(tmp_path / "own.csv")
        table = client.get(f"download/{number}.csv")
        assert table.content == (tmp_path / "own.csv").read_bytes()
        assert f"table-epsilon-{epsilon:g}.csv" in table.headers["content-disposition"]
        record = client.get(f"download/{number}.json").json()
        assert record["table"] == made.report.hash_values()
        # One of several was picked by what true groups say, which no guarantee covers.
        assert record["guarantee"]["choice"].startswith("epsilon was chosen by attacks")
    exact = FairnessReport.from_predictions(*given, **own, min_cell=0)
    exact.to_csv(tmp_path / "own.csv")
    assert client.get("download/3.csv").content == (tmp_path / "own.csv").read_bytes()
    for path in ("download/0.csv", "download/4.csv", "download/1.exe"):
        assert "there is no " in read_error(client.get(path))


@pytest.mark.slow
def test_without_a_table_tables_are_made_of_all_columns(client, files, monkeypatch, wait_for):
    monkeypatch.setattr(case_module, "EPSILONS", (1.0,))
    page = client.post("files", files={"people": ("p.csv", files[0].read_bytes())}).text
    assert "300 people" in page
    assert "there is no table to judge" in read_error(client.post("verdict"))
    client.post("releases")
    assert "cut by age, job" in wait_for("releases").text


@pytest.mark.parametrize("kind", ["people", "table"])
@pytest.mark.parametrize(
    "content", [b"\0\1\2", b"PK\x03\x04", b"one line", b"a,b\n1\n", "\N{SNOWMAN}".encode("utf-16")]
)
def test_a_file_that_cannot_be_read_is_one_error(upload, tmp_path, kind, content):
    said = read_error(upload(**{kind: content}))
    assert f"{kind}.csv" in said
    assert str(tmp_path) not in said


def test_steps_out_of_order_are_one_error(client, upload):
    for page in ("reading", "verdict", "releases", "download/1.csv"):
        assert read_error(client.get(page))
    for page in ("reading", "verdict", "releases", "files"):
        assert read_error(client.post(page))
    upload()
    assert "begin from what was read" in read_error(client.get("verdict"))


def test_names_of_files_and_columns_are_text(client, upload, tmp_path):
    hostile = "<img src=x onerror=alert(1)>"
    text = f'{hostile},sex,hired\n"{hostile}",f,1\nb,m,0\n{hostile},m,1\nb,f,0\n'
    page = upload(text.encode(), name=f"../../../../tmp/{hostile}/..\\{hostile}.csv").text
    assert hostile not in page
    assert "&lt;img src=x" in page
    assert {file.parent for file in tmp_path.rglob("*.csv")} == {
        tmp_path / "people", tmp_path / "table"
    }  # fmt: skip
    for name in ("..", ".", "/", "\\", "\n"):
        assert upload(name=name).status_code in (200, 400)
    assert {file.parent for file in tmp_path.rglob("*") if file.is_file()} <= {
        tmp_path / "people", tmp_path / "table"
    }  # fmt: skip


def test_uploads_are_limited_and_replace_those_before(tmp_path, files):
    client = TestClient(
        App(tmp_path, TOKEN, most=20_000).to_asgi(), f"http://127.0.0.1:8000/{TOKEN}/"
    )
    large = {"people": ("people.csv", b"x" * 20_001)}
    assert "too large" in read_error(client.post("files", files=large))
    assert not list(tmp_path.iterdir())
    # Without a length, as programs may send.
    response = client.post("files", content=iter([b"x" * 10]))
    assert "too large" in read_error(response)
    for name in ("a.csv", "b.csv"):
        client.post("files", files={"people": (name, files[0].read_bytes())})
    assert [file.name for file in tmp_path.rglob("*.csv")] == ["b.csv"]


def test_what_fails_in_a_thread_is_one_error():
    def fail(tell):
        tell("begun")
        raise ZeroDivisionError("by zero")

    job = Job("", fail)
    while not job.done:
        pass
    assert job.text.startswith("begun; ")
    assert job.error == "fpbench failed at this (ZeroDivisionError: by zero); please tell us"


def test_a_port_in_use_is_one_error():
    with listen(0) as door:
        assert door.getsockname()[0] == "127.0.0.1"
        with pytest.raises(InputError, match=r"^cannot listen on port \d+: Address already in use"):
            listen(door.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_files_are_gone_after_the_end(tmp_path, files, kind):
    served = Served(tmp_path)
    try:
        sent = {"people": ("people.csv", files[0].read_bytes())}
        page = httpx2.post(f"{served.url}files", files=sent, follow_redirects=True)
        assert page.status_code == 200
        (folder,) = served.folders
        assert load_table(folder / "people" / "people.csv").frame.shape == (300, 4)
        assert folder.stat().st_mode & 0o077 == 0
        assert httpx2.post(f"{served.url}releases").status_code == 303  # which goes on meanwhile
    finally:
        assert served.stop(kind) == 0
    assert served.folders == []
