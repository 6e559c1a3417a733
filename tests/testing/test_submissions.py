"""Submissions: made, signed and checked; what a stranger may have done to them is named."""

import json
import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from malformed import command
from strangers import TRAPS, add_journal, look, set_trap
from submissions import MATRIX, QUICK, UNRUN, copy, forge, make_key

import fpbench
from fpbench import InputError, StoreError
from fpbench.base.trust import NO_THIRD_PARTY
from fpbench.execution.isolation.confining import USER
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.testing.submissions import signing
from fpbench.testing.submissions.checking import Outcome, check
from fpbench.testing.submissions.folder import find_submission, make_submission, require_submission
from fpbench.testing.submissions.lock import read_lock
from fpbench.testing.submissions.manifest import (
    compute_manifest,
    find_changes,
    read_manifest,
    write_manifest,
)

FILES = ["lock.txt", "run/environment.json", "run/matrix.json", "run/store.sqlite"]
TOYS = {
    "seeds": 1,
    "dataset": [{"use": "flock"}],
    "learner": [{"use": "parrot"}],
    "disclosure": [{"use": "oracle"}],
    "adversary": [{"use": "coin"}],
    "corrector": [{"use": "none"}],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fpbench.run(MATRIX, out=tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="module")
def made(run, tmp_path_factory):
    """A submission that nobody changes."""
    return make_submission(run.path, tmp_path_factory.mktemp("made") / "submission")


@pytest.fixture(scope="module")
def ada(tmp_path_factory):
    """The key of Ada, and a file of trusted signers that names her."""
    if not shutil.which("ssh-keygen"):
        pytest.skip("no ssh-keygen: apt-get install openssh-client")
    folder = tmp_path_factory.mktemp("keys")
    key, public = make_key(folder)
    (folder / "signers").write_text(f"ada@example.org {public}\n")
    return key, folder / "signers"


@pytest.fixture
def signed(made, ada, tmp_path):
    """A copy of the submission that Ada has signed."""
    folder = copy(made, tmp_path / "signed")
    signing.sign(folder, ada[0])
    return folder


def outcomes(checkup):
    return {each.name: each.outcome for each in checkup.findings}


def words(checkup, name):
    return next(each.words for each in checkup.findings if each.name == name)


def inspect(folder, options=UNRUN):
    return check(find_submission(folder), options)


def renew_manifest(folder):
    """What a forger does who knows of manifests."""
    (folder / "manifest.txt").write_text(write_manifest(compute_manifest(folder)))


# What a submission is


def test_a_submission_has_the_run_its_versions_and_a_manifest(made, run):
    assert sorted(compute_manifest(made)) == FILES  # no lock file, which names a machine
    assert read_manifest(made)[1] == compute_manifest(made)
    recorded = json.loads((run.path / "environment.json").read_text())
    versions = read_lock(made)
    assert recorded["packages"].items() <= versions.items()
    assert versions["python"] == recorded["python"]
    assert fpbench.load(made / "run").rows() == fpbench.load(run.path).rows()


def test_what_cannot_be_submitted_is_refused(run, made, tmp_path):
    with pytest.raises(StoreError, match="not a run directory"):
        make_submission(tmp_path, tmp_path / "new")
    with pytest.raises(StoreError, match="already exists; name a new directory with --out"):
        make_submission(run.path, made)
    with pytest.raises(StoreError, match="is in the run directory .* name another with --out"):
        make_submission(run.path, run.path / "inside")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="dangling: already exists"):
        make_submission(run.path, tmp_path / "dangling")
    with pytest.raises(StoreError, match="is a run directory, no submission; fpbench submit new"):
        require_submission(run.path)
    with pytest.raises(StoreError, match="neither a run directory .* nor a submission"):
        find_submission(tmp_path)


def test_sha256sum_reads_the_manifest(made):
    if not shutil.which("sha256sum"):
        pytest.skip("no sha256sum")
    done = subprocess.run(
        ["sha256sum", "--check", "--quiet", "manifest.txt"], cwd=made, check=False
    )
    assert done.returncode == 0


# Tampering


def change(folder):
    (folder / "lock.txt").write_text("numpy==1.0\n")


def add(folder):
    (folder / "run" / "more.txt").write_text("more")


def remove(folder):
    (folder / "run" / "environment.json").unlink()


def rename(folder):
    (folder / "lock.txt").rename(folder / "key.txt")


@pytest.mark.parametrize(
    ("tamper", "named"),
    [
        (change, "changed: lock.txt"),
        (add, "added: run/more.txt"),
        (remove, "removed: run/environment.json"),
        (rename, "added: key.txt; removed: lock.txt"),
        (lambda folder: forge(folder / "run", gain=0.1), "changed: run/store.sqlite"),
    ],
)
def test_each_kind_of_change_is_named(tamper, named, signed, ada):
    tamper(signed)
    changes = find_changes(signed, read_manifest(signed)[1])
    assert str(changes) == named
    checkup = inspect(signed, replace(UNRUN, signers=ada[1]))
    assert not checkup.passes
    assert not checkup.verified
    assert checkup.reason == f"manifest: files differ from manifest.txt: {named}"
    assert outcomes(checkup)["signature"] is Outcome.PASSED  # of the manifest as it was
    assert words(checkup, "recomputation") == "because of manifest"
    said = command("verify", str(signed), "--signed", str(ada[1]))
    assert said.code == 1
    assert f"is not as ada@example.org signed it: {named}" in said.error


def test_a_manifest_that_was_made_again_is_not_what_was_signed(signed, ada):
    change(signed)
    renew_manifest(signed)
    with pytest.raises(StoreError, match=r"is not a signature of manifest\.txt"):
        signing.find_signer(signed, ada[1])
    said = command("verify", str(signed), "--signed", str(ada[1]))
    assert said.code == 1
    assert "is not a signature of manifest.txt" in said.error


def test_who_signed(signed, made, ada, tmp_path):
    assert signing.find_signer(signed, ada[1]) == "ada@example.org"
    _, public = make_key(tmp_path, "eve")
    (tmp_path / "others").write_text(f"ada@example.org {public}\n")
    with pytest.raises(StoreError, match="is signed by nobody whom .*others names"):
        signing.find_signer(signed, tmp_path / "others")
    with pytest.raises(StoreError, match="is not signed; its author can: fpbench sign"):
        signing.find_signer(made, ada[1])
    with pytest.raises(InputError, match="there is no such file of trusted signers"):
        signing.find_signer(signed, tmp_path / "none")


def test_a_signature_for_something_else_is_none_of_a_submission(made, ada, tmp_path):
    folder = copy(made, tmp_path / "copy")
    manifest = (folder / "manifest.txt").read_bytes()
    done = subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", ada[0], "-n", "git"],
        input=manifest, capture_output=True, check=True,
    )  # fmt: skip
    (folder / "manifest.txt.sig").write_bytes(done.stdout)
    with pytest.raises(StoreError, match=r"is not a signature of manifest\.txt"):
        signing.find_signer(folder, ada[1])
    (folder / "manifest.txt.sig").write_bytes(os.urandom(500))
    with pytest.raises(StoreError, match="is signed by nobody"):
        signing.find_signer(folder, ada[1])


def test_a_mere_run_directory_is_not_signed(run, ada):
    checkup = inspect(run.path, replace(QUICK, signers=ada[1]))
    assert outcomes(checkup)["signature"] is Outcome.FAILED
    assert not checkup.verified
    assert "signature" not in outcomes(inspect(run.path))


def test_without_openssh_it_says_how_to_get_it(made, monkeypatch, tmp_path):
    folder = copy(made, tmp_path / "copy")
    (tmp_path / "key").write_text("")
    monkeypatch.setattr(signing.shutil, "which", lambda program: None)
    with pytest.raises(InputError, match="ssh-keygen is not installed: apt-get install openssh"):
        signing.sign(folder, tmp_path / "key")
    with pytest.raises(InputError, match="there is no such key; ssh-keygen -t ed25519 makes one"):
        signing.sign(folder, tmp_path / "other")


def test_what_is_no_key_cannot_sign(made, ada, tmp_path):
    folder = copy(made, tmp_path / "copy")
    (tmp_path / "key").write_text("no key")
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(InputError, match="key: cannot sign: "):
        signing.sign(folder, tmp_path / "key")
    assert not (folder / "manifest.txt.sig").exists()


# What a stranger may send


def fill_with_holes(folder):
    """Add files of 18 GiB that take no room on a disk, and minutes to be read."""
    for number in range(2):
        (folder / f"sparse{number}").touch()
        os.truncate(folder / f"sparse{number}", 9 * 2**30)


@pytest.mark.parametrize("kind", TRAPS)
@pytest.mark.parametrize("name", ["lock.txt", "manifest.txt", "run/store.sqlite", "more"])
def test_traps_are_named_and_not_opened(name, kind, made, tmp_path):
    folder = copy(made, tmp_path / "sent")
    if not set_trap(folder / name, kind, tmp_path / "outside"):
        pytest.skip("only root makes devices")
    before = look(tmp_path)
    if (name, kind) == ("run/store.sqlite", "dangling"):
        with pytest.raises(StoreError, match="neither a run directory"):
            inspect(folder)
        return
    checkup = inspect(folder)
    assert look(tmp_path) == before
    if (name, kind) == ("more", "directory"):
        assert checkup.passes  # an empty folder, of which a manifest says nothing
        return
    assert outcomes(checkup)["manifest"] is Outcome.FAILED
    assert str(tmp_path) not in "".join(each.words for each in checkup.findings)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda f: (f / "a\nb").write_text(""), "cannot stand in a manifest"),
        (lambda f: (f / "\u202egpj.exe").write_text(""), "cannot stand in a manifest"),
        (lambda f: (f / "/".join("abcdefghij")).mkdir(parents=True), "8 folders deep"),
        (lambda f: [(f / f"f{i}").mkdir() for i in range(1001)], "more than 1,000 files"),
        (fill_with_holes, "holds more than 16 GiB"),
        (lambda f: (f / "manifest.txt").write_text("../x\n"), "line 1 is no checksum and path"),
        (lambda f: (f / "manifest.txt").write_bytes(b"\xff" * 99), "line 1 is no checksum"),
        (lambda f: os.truncate(f / "manifest.txt", 2**20 + 1), "it is larger than 1 MiB"),
        (lambda f: (f / "manifest.txt").unlink(), "No such file"),
    ],
)
def test_names_and_manifests_of_strangers(spoil, why, made, tmp_path):
    spoil(folder := copy(made, tmp_path / "sent"))
    checkup = inspect(folder)
    assert outcomes(checkup)["manifest"] is Outcome.FAILED
    assert why in words(checkup, "manifest")
    assert outcomes(checkup)["recomputation"] is Outcome.SKIPPED


def test_a_run_directory_elsewhere_is_refused(made, run, tmp_path):
    folder = copy(made, tmp_path / "sent")
    shutil.rmtree(folder / "run")
    (folder / "run").symlink_to(run.path)
    with pytest.raises(StoreError, match="is a link; a submission holds its own files"):
        find_submission(folder)


def test_a_journal_is_obeyed_by_nobody(made, tmp_path):
    folder = copy(made, tmp_path / "sent")
    (tmp_path / "precious").write_text("mine")
    add_journal(folder / "run", tmp_path / "precious")
    renew_manifest(folder)
    checkup = inspect(folder)
    assert outcomes(checkup)["run"] is Outcome.FAILED
    assert "fpbench never writes such a file" in words(checkup, "run")
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("numpy @ file:///etc/passwd", "is no NAME==VERSION"),
        ("-r other.txt", "is no NAME==VERSION"),
        ("numpy==1\nnumpy==2", "is no NAME==VERSION of another package"),
        ("numpy==1.0", "contradicts what the run records: "),
    ],
)
def test_a_lock_says_what_the_run_says(line, why, made, tmp_path):
    folder = copy(made, tmp_path / "sent")
    (folder / "lock.txt").write_text(f"{line}\n")
    renew_manifest(folder)
    checkup = inspect(folder)
    assert outcomes(checkup)["lock"] is Outcome.FAILED
    assert why in words(checkup, "lock")


def replace_matrix(folder, **changes):
    """Run another matrix, and send it as if nothing were the matter."""
    shutil.rmtree(folder / "run")
    fpbench.run({**MATRIX, "seeds": 1, **changes}, out=folder / "run")
    renew_manifest(folder)


def test_a_file_of_the_one_who_checks_is_not_read(made, tmp_path):
    """Otherwise a page would publish what is measured of it."""
    rows = [f"{i % 2},{(i // 2) % 2},{i % 7}" for i in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["sex,paid,x", *rows, ""]))
    folder = copy(made, tmp_path / "sent")
    data = {"use": "csv", "path": str(tmp_path / "people.csv"), "label_column": "paid",
            "sensitive": "sex"}  # fmt: skip
    replace_matrix(folder, dataset=[data])
    (tmp_path / "people.csv").unlink()
    os.mkfifo(tmp_path / "people.csv")  # who opens it waits for ever
    checkup = inspect(folder, QUICK)
    assert words(checkup, "data") == (
        "dataset 'csv' reads a file that the matrix names: nobody else can recompute it"
    )
    assert outcomes(checkup)["recomputation"] is Outcome.SKIPPED


def test_another_matrix_than_that_of_the_run_is_found(made, tmp_path):
    folder = copy(made, tmp_path / "sent")
    matrix = json.loads((folder / "run" / "matrix.json").read_text())
    matrix["adversary"][1]["use"] = "a2"
    (folder / "run" / "matrix.json").write_text(json.dumps(matrix))
    renew_manifest(folder)
    assert "is not the matrix that the run was made from" in words(inspect(folder), "run")
    small = replace(UNRUN, max_cells=1)
    assert "more than 1" in words(inspect(made, small), "run")


def test_forged_numbers_are_found_and_named(made, tmp_path):
    folder = copy(made, tmp_path / "sent")
    forge(folder / "run", gain=0.01)
    renew_manifest(folder)
    checkup = inspect(folder, QUICK)
    assert checkup.reason.startswith("recomputation: 1 of 1 cells: ")
    assert checkup.reason.endswith(" differs in gain")
    assert not checkup.verified


def test_third_parties_components_are_told_and_tested(toys, tmp_path, monkeypatch):
    toys_run = fpbench.run(TOYS, out=tmp_path / "run")
    folder = make_submission(toys_run.path, tmp_path / "sent")
    checkup = inspect(folder, replace(QUICK, kit=False))
    assert outcomes(checkup)["components"] is Outcome.NOTED
    assert "adversary 'coin' is of fpbench-toys 1.0" in words(checkup, "components")
    assert "which --no-third-party refuses" in words(checkup, "components")
    assert checkup.verified
    assert words(inspect(folder), "kit").startswith("broken laws: learner parrot raises ")
    monkeypatch.setenv(NO_THIRD_PARTY, "1")
    fpbench.discover.cache_clear()
    checkup = inspect(folder, QUICK)
    assert not checkup.passes
    assert "fpbench-toys 1.0 left out: --no-third-party" in checkup.reason
    assert outcomes(checkup)["recomputation"] is Outcome.SKIPPED


@pytest.mark.skipif(os.name != "posix" or os.geteuid(), reason="only root becomes another user")
def test_it_tells_with_what_rights_adversaries_run(made, monkeypatch):
    alone = replace(UNRUN, limits=Limits(timeout=5.0, memory_limit=2**30))
    assert "5 s and 1 GiB; adversaries have your rights" in words(inspect(made, alone), "limits")
    monkeypatch.setenv(USER, "nobody")
    assert "adversaries run as user nobody" in words(inspect(made, alone), "limits")


def test_the_smaller_limit_counts():
    matrix, own = Limits(timeout=5.0), Limits(timeout=9.0, memory_limit=100)
    assert matrix.tighten(own) == Limits(timeout=5.0, memory_limit=100)
    assert NO_LIMITS.tighten(NO_LIMITS) == NO_LIMITS


# The commands


def test_made_signed_and_checked_by_commands(run, ada, tmp_path):
    folder = tmp_path / "mine"
    made = command("submit", "new", str(run.path), "-o", str(folder))
    assert made.code == 0
    assert made.output.startswith(f"submission: {folder}\n")
    assert command("sign", str(folder), "--key", str(ada[0])).code == 0
    before = look(folder)
    said = command("submit", "check", str(folder), "--sample", "1", "--signed", str(ada[1]))
    assert said.code == 0, said
    assert said.output.splitlines()[0] == f"{folder} passes"
    assert "passed  signature: of ada@example.org" in said.output
    assert "each step has a process of its own, and may take 600 s and 4 GiB" in said.output
    assert look(folder) == before
    verified = command("verify", str(folder), "--sample", "1", "--signed", str(ada[1]))
    assert verified.code == 0
    assert "signed by ada@example.org: all files are as they were signed" in verified.output
    add(folder)
    said = command("submit", "check", str(folder), "--sample", "1")
    assert said.code == 1
    assert f"{folder} does not pass: manifest: " in said.output
    said = command("submit", "check", str(folder), "--sample", "1", "--json", "-")
    assert said.code == 1
    record = json.loads(said.output)
    assert record["passes"] is False
    assert [each["name"] for each in record["checks"] if each["outcome"] == "failed"] == [
        "manifest"
    ]


def test_commands_refuse_what_is_no_submission(run, tmp_path):
    for words in (
        ["submit", "check", str(run.path)],
        ["submit", "check", str(tmp_path)],
        ["submit", "new", str(tmp_path)],
        ["sign", str(run.path), "--key", "key"],
        ["submit", "check", str(run.path), "--memory", "much"],
    ):
        assert command(*words).refused, words
