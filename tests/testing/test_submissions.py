"""Submissions: made, signed and checked; what a stranger may have done to them is named."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from malformed import command
from strangers import TRAPS, add_journal, look, set_trap
from submissions import MATRIX, QUICK, UNRUN, copy, forge, make_key

import fpbench
from fpbench import InputError, Status, StoreError
from fpbench.base.trust import NO_THIRD_PARTY
from fpbench.execution.verification import CheckedCell, Verification
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.matrix.matrix import read as read_matrix
from fpbench.store.differences import CellChange
from fpbench.store.results import Results
from fpbench.store.store import Store
from fpbench.testing.submissions import checking, signing
from fpbench.testing.submissions.checking import CheckOutcome, _Inspector, check
from fpbench.testing.submissions.folder import find_submission, make_submission, require_submission
from fpbench.testing.submissions.lock import list_differences, list_versions, read_lock
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


def find_signer(folder, signers):
    return signing.find_signer(folder, read_manifest(folder)[0], signers)


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
    with pytest.raises(
        StoreError, match="is a run directory, not a submission; fpbench submit new"
    ):
        require_submission(run.path)
    with pytest.raises(StoreError, match="neither a run directory .* nor a submission"):
        find_submission(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "outcome", "told"),
    [
        ([{"seeds": 3}], CheckOutcome.PASSED, "3 seeds, 0 to 2"),
        ([{"seeds": [4, 1]}], CheckOutcome.NOTED, "2 seeds, 1, 4; not the first 2, 0 to 1: chosen by somebody"),
        ([{"seeds": 3}, {"seeds": 2}], CheckOutcome.NOTED, "2 seeds, 0 to 1; left out: 1 other seed of the run"),
    ],
)  # fmt: skip
def test_seeds_that_somebody_may_have_chosen_are_told(toys, tmp_path, asked, outcome, told):
    for more in asked:
        fpbench.run({**TOYS, **more}, out=tmp_path / "run")
    checkup = inspect(make_submission(tmp_path / "run", tmp_path / "sent"))
    assert (outcomes(checkup)["seeds"], words(checkup, "seeds")) == (outcome, told)


@pytest.mark.slow
def test_fewer_seeds_than_the_matrix_names_are_told(toys, tmp_path):
    fpbench.run({**TOYS, "seeds": 5}, seeds=2, out=tmp_path / "run")
    checkup = inspect(make_submission(tmp_path / "run", tmp_path / "sent"))
    assert words(checkup, "seeds") == ("2 seeds, 0 to 1; its matrix names 3 others, not run")


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
    assert outcomes(checkup)["signature"] is CheckOutcome.PASSED  # of the manifest as it was
    assert words(checkup, "recomputation") == "because of manifest"
    said = command("verify", str(signed), "--signed", str(ada[1]))
    assert said.code == 1
    assert f"is not as ada@example.org signed it: {named}" in said.error


def test_a_manifest_that_was_made_again_is_not_what_was_signed(signed, ada):
    change(signed)
    renew_manifest(signed)
    with pytest.raises(StoreError, match=r"is not a signature of manifest\.txt"):
        find_signer(signed, ada[1])
    said = command("verify", str(signed), "--signed", str(ada[1]))
    assert said.code == 1
    assert "is not a signature of manifest.txt" in said.error


def test_who_signed(signed, made, ada, tmp_path):
    assert find_signer(signed, ada[1]) == "ada@example.org"
    _, public = make_key(tmp_path, "eve")
    (tmp_path / "others").write_text(f"ada@example.org {public}\n")
    with pytest.raises(StoreError, match="is not signed by anybody in .*others"):
        find_signer(signed, tmp_path / "others")
    with pytest.raises(StoreError, match="is not signed; its author can: fpbench sign"):
        find_signer(made, ada[1])
    with pytest.raises(InputError, match="no such file of trusted signers"):
        find_signer(signed, tmp_path / "none")


@pytest.mark.slow
def test_keys_and_names_of_signers(signed, ada, tmp_path):
    """One person with several keys, and one key under several names, some of which may not sign."""
    own, (_, other) = ada[1].read_text().split(maxsplit=1)[1].strip(), make_key(tmp_path, "new")
    signers = tmp_path / "signers"
    for lines, name in (
        ([f"ada {other}", f"ada {own}"], "ada"),
        ([f"ada {own}", f"ada {own} old laptop", f"# bob {own}", f"eve {other}"], "ada"),
        ([f"ada {own}", f"group {own}"], "ada or group"),
        ([f"ada,group {own}"], "ada or group"),
        ([f'"ada l,ovelace" {own}'], "ada l or ovelace"),
        ([f'git namespaces="git" {own}', f'ada namespaces="git,fpbench" {own}'], "ada"),
        ([f'late valid-before="20200101" {own}', f"*@example.org {own}"], "*@example.org"),
    ):
        signers.write_text("\n".join([*lines, ""]))
        assert find_signer(signed, signers) == name
    signers.write_text(f'git namespaces="git" {own}\n')
    with pytest.raises(StoreError, match=r"is not a signature of manifest\.txt"):
        find_signer(signed, signers)


def test_a_manifest_is_read_once(signed, ada, monkeypatch):
    """Who swaps the signed manifest and another one in between gains nothing."""
    manifest = signed / "manifest.txt"
    honest = manifest.read_bytes()
    (signed / "lock.txt").write_text("numpy 0.0.1\n")
    renew_manifest(signed)

    def swap(*asked):
        changes = find_changes(*asked)
        manifest.write_bytes(honest)
        return changes

    monkeypatch.setattr("fpbench.testing.submissions.checking.find_changes", swap)
    checkup = inspect(signed, replace(UNRUN, signers=ada[1]))
    assert outcomes(checkup)["manifest"] is CheckOutcome.PASSED
    assert outcomes(checkup)["signature"] is CheckOutcome.FAILED


def test_files_are_signed_as_they_are_now(made, ada, tmp_path):
    add(folder := copy(made, tmp_path / "copy"))
    signing.sign(folder, ada[0])
    content, checksums = read_manifest(folder)
    assert not find_changes(folder, checksums)
    assert signing.find_signer(folder, content, ada[1]) == "ada@example.org"


def test_a_signature_for_something_else_is_none_of_a_submission(made, ada, tmp_path):
    folder = copy(made, tmp_path / "copy")
    manifest = (folder / "manifest.txt").read_bytes()
    done = subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", ada[0], "-n", "git"],
        input=manifest, capture_output=True, check=True,
    )  # fmt: skip
    (folder / "manifest.txt.sig").write_bytes(done.stdout)
    with pytest.raises(StoreError, match=r"is not a signature of manifest\.txt"):
        find_signer(folder, ada[1])
    (folder / "manifest.txt.sig").write_bytes(os.urandom(500))
    with pytest.raises(StoreError, match="is not signed by anybody"):
        find_signer(folder, ada[1])


def test_a_mere_run_directory_is_not_signed(run, ada):
    checkup = inspect(run.path, replace(QUICK, signers=ada[1]))
    assert outcomes(checkup)["signature"] is CheckOutcome.FAILED
    assert not checkup.verified
    assert "signature" not in outcomes(inspect(run.path))


def test_without_openssh_it_says_how_to_get_it(made, monkeypatch, tmp_path):
    folder = copy(made, tmp_path / "copy")
    (tmp_path / "key").write_text("")
    monkeypatch.setattr(signing.shutil, "which", lambda program: None)
    with pytest.raises(InputError, match="ssh-keygen is not installed: apt-get install openssh"):
        signing.sign(folder, tmp_path / "key")
    with pytest.raises(InputError, match="no such key; ssh-keygen -t ed25519 makes one"):
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
    """Add files of more than 1 GiB that take no room on a disk, and time to be read."""
    for number in range(2):
        (folder / f"sparse{number}").touch()
        os.truncate(folder / f"sparse{number}", 600 * 2**20)


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
    assert outcomes(checkup)["manifest"] is CheckOutcome.FAILED
    assert str(tmp_path) not in "".join(each.words for each in checkup.findings)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda f: (f / "a\nb").write_text(""), "cannot be in a manifest"),
        (lambda f: (f / "\u202egpj.exe").write_text(""), "cannot be in a manifest"),
        (lambda f: (f / "/".join("abcdefghij")).mkdir(parents=True), "8 folders deep"),
        (lambda f: [(f / f"f{i}").mkdir() for i in range(1001)], "more than 1,000 files"),
        (fill_with_holes, "holds more than 1 GiB"),
        (lambda f: (f / "manifest.txt").write_text("../x\n"), "line 1 is not a checksum and path"),
        (lambda f: (f / "manifest.txt").write_bytes(b"\xff" * 99), "line 1 is not a checksum"),
        (lambda f: os.truncate(f / "manifest.txt", 2**20 + 1), "it is larger than 1 MiB"),
        (lambda f: (f / "manifest.txt").unlink(), "No such file"),
    ],
)
def test_names_and_manifests_of_strangers(spoil, why, made, tmp_path):
    spoil(folder := copy(made, tmp_path / "sent"))
    checkup = inspect(folder)
    assert outcomes(checkup)["manifest"] is CheckOutcome.FAILED
    assert why in words(checkup, "manifest")
    assert outcomes(checkup)["recomputation"] is CheckOutcome.SKIPPED


def test_a_run_directory_elsewhere_is_refused(made, run, tmp_path):
    folder = copy(made, tmp_path / "sent")
    shutil.rmtree(folder / "run")
    (folder / "run").symlink_to(run.path)
    with pytest.raises(StoreError, match="is a link; a submission must have its own files"):
        find_submission(folder)


def test_a_journal_is_obeyed_by_nobody(made, tmp_path):
    folder = copy(made, tmp_path / "sent")
    (tmp_path / "precious").write_text("mine")
    add_journal(folder / "run", tmp_path / "precious")
    renew_manifest(folder)
    checkup = inspect(folder)
    assert outcomes(checkup)["run"] is CheckOutcome.FAILED
    assert "fpbench never writes such a file" in words(checkup, "run")
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("numpy @ file:///etc/passwd", "is not a NAME==VERSION"),
        ("-r other.txt", "is not a NAME==VERSION"),
        ("numpy==1\nnumpy==2", "is not a NAME==VERSION of another package"),
        ("numpy==1.0", "contradicts the run's record: "),
    ],
)
def test_a_lock_says_what_the_run_says(line, why, made, tmp_path):
    folder = copy(made, tmp_path / "sent")
    (folder / "lock.txt").write_text(f"{line}\n")
    renew_manifest(folder)
    checkup = inspect(folder)
    assert outcomes(checkup)["lock"] is CheckOutcome.FAILED
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
        "dataset 'csv' reads a file named by the matrix: nobody else can recompute it"
    )
    assert outcomes(checkup)["recomputation"] is CheckOutcome.SKIPPED


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


@pytest.mark.parametrize("how", ["left out", "failed", "skipped"])
def test_seeds_chosen_for_one_adversary_are_found(how, made, tmp_path):
    folder = copy(made, tmp_path / "sent")
    with Store(folder / "run", create=True) as store:
        cells = list(store.cells())
        (cell,) = [c for c in cells if c.labels["adversary"] == "majority" and c.seed == 1]
        if how == "failed":
            store.add(1, cell.key, Status.FAILED, 60.0, {}, "exceeded the limit on time (60 s)")
        else:
            others = [replace(cell, reason="not for it")] if how == "skipped" else []
            with store.writing():
                store.plan({}, [c for c in cells if c is not cell] + others)
    (folder / "run" / "store.lock").unlink()
    renew_manifest(folder)
    checkup = inspect(folder, QUICK)
    assert checkup.reason.startswith("recomputation: ")
    assert ("majority" in checkup.reason, checkup.verified) == (True, False)


def test_third_parties_components_are_told_and_tested(toys, tmp_path, monkeypatch):
    toys_run = fpbench.run(TOYS, out=tmp_path / "run")
    folder = make_submission(toys_run.path, tmp_path / "sent")
    checkup = inspect(folder, replace(QUICK, kit=False))
    assert outcomes(checkup)["components"] is CheckOutcome.NOTED
    assert words(checkup, "limits").endswith(
        "; code of third parties has your rights: check in a container"
    )
    assert "adversary 'coin' is from fpbench-toys 1.0" in words(checkup, "components")
    assert "which --no-third-party refuses" in words(checkup, "components")
    assert checkup.verified
    assert words(inspect(folder), "kit").startswith("broken laws: learner parrot raises ")
    monkeypatch.setenv(NO_THIRD_PARTY, "1")
    fpbench.discover.cache_clear()
    checkup = inspect(folder, QUICK)
    assert not checkup.passes
    assert "fpbench-toys 1.0 left out: --no-third-party" in checkup.reason
    assert outcomes(checkup)["recomputation"] is CheckOutcome.SKIPPED


def test_it_tells_the_limits_of_each_step(made):
    alone = replace(UNRUN, limits=Limits(timeout=5.0, memory_limit=2**30))
    checkup = inspect(made, alone)
    assert words(checkup, "limits").endswith("limited to 5 s and 1 GiB")
    assert outcomes(checkup)["limits"] is CheckOutcome.PASSED


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
    assert "passed  signature: by ada@example.org" in said.output
    assert "each step has its own process, limited to 600 s and 4 GiB" in said.output
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
    ):
        assert command(*words).refused, words


@pytest.mark.parametrize(("option", "value"), [("--memory", "much"), ("--timeout", "inf")])
def test_a_limit_that_is_none_is_named(option, value, run):
    said = command("submit", "check", str(run.path), option, value)
    assert said.refused
    assert f"error: {option}: " in said.error


# What each check says


def look_into(run, options=UNRUN, **known):
    """The checks of a run, as if this were its matrix, or these its results."""
    inspector = _Inspector(find_submission(run.path), options)
    vars(inspector).update({f"_{name}": value for name, value in known.items()})
    return inspector


def parse(**changes):
    return read_matrix({**MATRIX, **changes})


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ("dd", (CheckOutcome.PASSED, "2 of 2 cells are done")),
        ("ds", (CheckOutcome.NOTED, "1 of 2 cells are done")),
        ("d ", (CheckOutcome.NOTED, "1 of 2 cells are done")),
        ("df", (CheckOutcome.NOTED, "1 of 2 cells are done, 1 failed")),
        ("ff", (CheckOutcome.FAILED, "0 of 2 cells are done")),
    ],
)
def test_cells_that_are_not_done_are_told(statuses, said, run):
    words = {"d": "done", "s": "skipped", "f": "failed", " ": ""}
    rows = [{"status": words[each], "seed": i} for i, each in enumerate(statuses)]
    assert look_into(run, results=Results.of(rows)).check_run() == said


def test_data_that_have_an_address_or_a_checksum_are_no_secret(run):
    """Data of the census office have an address and no checksum; they change now and then."""
    matrix = parse(dataset=[{"use": "acs-income"}, {"use": "adult"}])
    assert look_into(run, matrix=matrix).check_data() == (
        CheckOutcome.PASSED, "2 data sets, published or generated"
    )  # fmt: skip


def test_classes_by_import_path_and_components_within_components_are_told(run, toys):
    learners = [
        {"use": "decision-tree", "of": "evil.models:Best"},
        {"use": "decision-tree", "label": "b", "of": ["sklearn.svm:SVC", "sklearnish:SVC"]},
        {"use": "decision-tree", "label": "c", "of": [{"use": "parrot", "x": "a: b"}]},
    ]
    outcome, words = look_into(run, matrix=parse(learner=learners)).check_components()
    assert outcome is CheckOutcome.NOTED
    assert words.partition(": ")[2] == (
        "learner 'parrot' is from fpbench-toys 1.0, 'evil.models:Best' is imported, "
        "'sklearnish:SVC' is imported"
    )
    assert look_into(run, matrix=parse()).check_components() == (
        CheckOutcome.PASSED, "6 components, all built in"
    )  # fmt: skip


def recomputed(cells, **more):
    """What `recompute` gives: cells by what became of them."""
    change = CellChange("", "gain", 0, 1)
    kinds = {
        "same": CheckedCell("a"), "other": CheckedCell("b", (change,) * 7, comparable=False),
        "wrong": CheckedCell("c", (change,) * 7), "lost": CheckedCell("d", problem="it is gone"),
    }  # fmt: skip
    checked = tuple(kinds[each] for each in cells)
    return Verification(Path(), checked, 9, 0, (), **{"exact": False, **more})


@pytest.mark.parametrize(
    ("again", "outcome", "words"),
    [
        (recomputed(["same", "other"]), CheckOutcome.PASSED,
         "1 of 2 cells run again are the same within 1e-06 (9 are done)"),
        (recomputed(["same"], exact=True), CheckOutcome.PASSED,
         "1 of 1 cells run again are the same to the last bit (9 are done)"),
        (recomputed(["other"] * 2), CheckOutcome.NOTED,
         "none of 2 cells can be compared here: they are not portable"),
        (recomputed(["same", "wrong", "lost"]), CheckOutcome.FAILED,
         "2 of 3 cells: c differs in gain, gain, gain, gain, gain and 2 more, "
         "d could not be run again (it is gone)"),
        (recomputed(["same"], contradictions=tuple("abcdef")), CheckOutcome.FAILED,
         "the run is not as its matrix: a; b; c; d; e and 1 more"),
        (recomputed(["same"], misplaced=("g\N{CYRILLIC SMALL LETTER A}in",)), CheckOutcome.FAILED,
         "rows have measures that fpbench never gives to them: 'g\\u0430in'"),
    ],
)  # fmt: skip
def test_what_came_of_the_sample(again, outcome, words, run, monkeypatch):
    asked = []

    def recompute(*args, **kwargs):
        asked.append((args, kwargs))
        return again

    monkeypatch.setattr(checking, "recompute", recompute)
    limits = Limits(timeout=5.0)
    options = replace(QUICK, sample=7, seed=3, jobs=2, limits=limits)
    checkup = inspect(run.path, options)
    assert asked == [((run.path, 7), {"seed": 3, "jobs": 2, "limits": limits})]
    assert checkup.findings[-1] == ("recomputation", outcome, words)
    assert checkup.verified is (outcome is CheckOutcome.PASSED)


def test_a_missing_file_of_signers_is_no_fault_of_the_submission(made, tmp_path):
    with pytest.raises(InputError, match="no such file of trusted signers"):
        inspect(made, replace(UNRUN, signers=tmp_path / "none"))


def test_a_new_submission_is_there_whole_or_not_at_all(run, made, tmp_path, monkeypatch):
    assert made.stat().st_mode & 0o777 == 0o755  # a web server may read it
    monkeypatch.setattr("fpbench.testing.submissions.folder.write_lock", None)
    with pytest.raises(TypeError):
        make_submission(run.path, tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_a_run_of_which_nothing_is_done_is_not_submitted(run, tmp_path):
    empty = copy(run.path, tmp_path / "empty")
    with Store(empty, create=True) as store, store.writing():
        for table in ("result", "page"):
            store._open.execute(f"DELETE FROM {table}")
    with pytest.raises(StoreError, match="no cell is done: there is nothing to submit"):
        make_submission(empty, tmp_path / "new")


def test_versions_are_those_of_python_packages_and_solvers():
    environment = {
        "python": "3.11",
        "packages": {"numpy": "2.0"},
        "solvers": {"cbc": "2", "x": None},
    }
    assert list_versions(environment) == {"python": "3.11", "numpy": "2.0", "cbc": "2"}
    one, other = {"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "1", "d": "1"}
    assert list_differences(one, other) == [
        "a 1, not there", "b 1, not 2", "d missing, not 1"
    ]  # fmt: skip


def test_paths_that_a_manifest_can_hold(tmp_path):
    deep = tmp_path / "/".join("abcdefgh")
    deep.mkdir(parents=True)
    for name in ("manifest.txt", "two words", "manifest.txt.sig"):
        (deep / name).write_text("")
        (tmp_path / name).write_text("")
    folder = "/".join("abcdefgh")
    names = ["manifest.txt", "manifest.txt.sig", "two words"]
    assert [*compute_manifest(tmp_path)] == [*(f"{folder}/{name}" for name in names), "two words"]
    line = f"{'0' * 64}  {{}}\n"
    (tmp_path / "manifest.txt").write_text(line.format("a") * 2)
    with pytest.raises(StoreError, match="line 2 is not a checksum and path of another file"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.txt").write_text("".join(line.format(i) for i in range(1001)))
    with pytest.raises(StoreError, match="line 1001 is not a checksum and path of another file"):
        read_manifest(tmp_path)
    for name in ("a\\b", " a", "a "):
        (tmp_path / name).write_text("")
        with pytest.raises(StoreError, match="cannot be in a manifest"):
            compute_manifest(tmp_path)
        (tmp_path / name).unlink()
