"""Signatures of submissions: OpenSSH signs a manifest, and identifies the signer."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from base64 import b64decode, b64encode
from pathlib import Path

from fpbench.base.errors import InputError, StoreError
from fpbench.base.files import write_file
from fpbench.testing.submissions.manifest import (
    MANIFEST,
    SIGNATURE,
    compute_manifest,
    read_text_file,
    write_manifest,
)

NAMESPACE = "fpbench"
"""Namespace of signatures: one made for mail or git is invalid for a submission."""
_MAGIC = b"SSHSIG"
"""First bytes of an OpenSSH signature."""
_SECONDS = 120.0
"""Seconds for typing the passphrase of a key."""


def sign(folder: Path, key: Path) -> Path:
    """Write the manifest of a submission as it is now, and sign it with an SSH key.

    `key`: file of the private key; or of a public key whose private key an agent holds.

    Raises InputError if `ssh-keygen` is missing, or cannot use the key; StoreError if the
    submission cannot be read or written.
    """
    if not key.is_file():
        raise InputError(f"{key}: no such key; ssh-keygen -t ed25519 makes one")
    manifest = write_manifest(compute_manifest(folder)).encode()
    done = _run_ssh_keygen(["sign", "-q", "-f", str(key), "-n", NAMESPACE], manifest)
    if done.returncode:
        raise InputError(f"{key}: cannot sign: {_read_reason(done)}")
    try:
        write_file(folder / MANIFEST, manifest)
        write_file(folder / SIGNATURE, done.stdout)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return folder / SIGNATURE


def find_signer(folder: Path, manifest: bytes, signers: Path) -> str:
    """The signer of a submission's manifest, by the name in a file of trusted signers.

    It does not check the files: `find_changes` compares them with the manifest.

    `signers`: an allowed-signers file of OpenSSH, `NAME ssh-ed25519 KEY` in each line. A person may
    have several keys, one per line.

    Returns: the name; for a key with several names, all of them.

    Raises InputError if the file or `ssh-keygen` is missing; StoreError if there is no signature,
    it is not of this manifest, or nobody in the file made it.
    """
    if not signers.is_file():
        raise InputError(
            f"{signers}: no such file of trusted signers (NAME ssh-ed25519 KEY per line)"
        )
    if not (folder / SIGNATURE).exists():
        raise StoreError(f"{folder}: is not signed; its author can: fpbench sign {folder}")
    with tempfile.TemporaryDirectory(prefix="fpbench-") as private:
        # ssh-keygen opens files by name: it gets copies of the bytes that were safely read once.
        signature, trusted = Path(private) / SIGNATURE, Path(private) / "signers"
        write_file(signature, signed := read_text_file(folder / SIGNATURE))
        write_file(trusted, named := read_text_file(signers, named=True))
        common = ["-f", str(trusted), "-s", str(signature)]
        known = _run_ssh_keygen(["find-principals", *common])
        if known.returncode:
            raise StoreError(f"{folder}: is not signed by anybody in {signers}")
        lines = known.stdout.decode(errors="replace").splitlines()
        lines += _find_names(named.decode(errors="replace"), signed)
        names = dict.fromkeys(name for line in lines for name in line.split(","))
        done = {
            name: _run_ssh_keygen(["verify", *common, "-I", name, "-n", NAMESPACE], manifest)
            for name in names
        }
    valid = [name for name, verified in done.items() if not verified.returncode]
    if not valid:
        reason = _read_reason([*done.values()][-1])
        raise StoreError(f"{folder / SIGNATURE}: is not a signature of {MANIFEST}: {reason}")
    return " or ".join(valid)


def _find_names(signers: str, signature: bytes) -> list[str]:
    """The names of the key of a signature; ssh-keygen reports the first line only."""
    blob = b64decode(b"".join(signature.split(b"\n")[1:-2]) + b"==")
    start = len(_MAGIC)  # then version, and length of the key, four bytes each
    length = int.from_bytes(blob[start + 4 : start + 8], "big")
    key = b64encode(blob[start + 8 : start + 8 + length]).decode()
    lines = [line for line in signers.splitlines() if key in line.split()]
    return [(line.split('"')[1] if line.startswith('"') else line.split()[0]) for line in lines]


def _run_ssh_keygen(arguments: list[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise InputError(
            "ssh-keygen is not installed: apt-get install openssh-client (Debian, Ubuntu), "
            "dnf install openssh (Fedora); macOS and Windows include it"
        )
    try:
        return subprocess.run(
            [program, "-Y", *arguments], input=given, capture_output=True, check=False,
            timeout=_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"ssh-keygen did not answer: {error}") from error


def _read_reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """The last message of ssh-keygen."""
    lines = (done.stderr + done.stdout).decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")
