"""Run directories that a stranger may send, and a look at all that lies around them."""

import hashlib
import os
import shutil
import socket
import stat
import struct
from pathlib import Path

MATRIX = """
title = "T"
seeds = 2
[[dataset]]
use = "census-synthetic"
rows = 300
[[learner]]
use = "plain"
[[disclosure]]
use = "published"
metric = "statistical-parity"
[[adversary]]
use = "a1"
[[adversary]]
use = "prior"
[[corrector]]
use = "none"
[[expect]]
check = "value"
source = "here"
measure = "gain"
expected = 0.0
tolerance = 1.0
says = "it is something"
"""

STORE_FILES = ("store.sqlite", "store.sqlite-wal", "store.sqlite-shm", "store.sqlite-journal")
TRAPS = ("link", "dangling", "zero", "fifo", "directory", "socket", "hardlink", "device")


def look(*places):
    """Of everything there and below: kind, identity, size, times, names and content."""
    found = {}
    for place in places:
        paths = [place, *place.rglob("*")]
        for path in paths:
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else ""
            if stat.S_ISREG(status.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path)] = (
                status.st_mode, status.st_ino, status.st_nlink, status.st_size,
                status.st_mtime_ns, status.st_ctime_ns, content,
            )  # fmt: skip
    return found


def add_journal(run, victim):
    """A journal that SQLite rolls back, and then deletes the file that it names as its superior.

    The layout is that of a rollback journal (https://www.sqlite.org/fileformat2.html, 3).
    """
    data = (run / "store.sqlite").read_bytes()
    (page,) = struct.unpack(">H", data[16:18])
    magic = bytes([0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7])
    head = magic + struct.pack(">IIIII", 1, 1, len(data) // page, 512, page)
    checksum = 1 + sum(data[i] for i in range(page - 200, 0, -200))
    record = struct.pack(">I", 1) + data[:page] + struct.pack(">I", checksum & 0xFFFFFFFF)
    name = str(victim).encode()
    tail = struct.pack(">I", 0x40000000 // page + 1) + name
    tail += struct.pack(">II", len(name), sum(name) & 0xFFFFFFFF) + magic
    (run / "store.sqlite-journal").write_bytes(head.ljust(512, b"\0") + record + tail)


def set_trap(file: Path, kind: str, outside: Path) -> bool:
    """Put something that is no file of the directory's own; whether that is possible here."""
    content = file.read_bytes() if file.is_file() else b"mine"
    file.unlink(missing_ok=True)
    match kind:
        case "link" | "hardlink":
            outside.write_bytes(content)
            (file.symlink_to if kind == "link" else file.hardlink_to)(outside)
        case "dangling":
            file.symlink_to(outside)
        case "zero":
            file.symlink_to("/dev/zero")
        case "fifo":
            os.mkfifo(file)
        case "directory":
            file.mkdir()
        case "socket":
            here = os.getcwd()
            os.chdir(file.parent)  # names of sockets are short
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(file.name)
            os.chdir(here)
        case "device":
            try:
                os.mknod(file, stat.S_IFCHR | 0o600, os.makedev(1, 5))
            except PermissionError:
                return False
    return True


def copy_run(source: Path, target: Path) -> Path:
    """A copy, as it would come out of an archive."""
    return Path(shutil.copytree(source, target))


def drop_results(store, keys):
    """Forget that some cells of a run have results."""
    records = [record for record in store.records() if record.key not in keys]
    with store.writing():
        for table in ("measure", "page", "result"):
            store._db.execute(f"DELETE FROM {table}")
        for record in records:
            store.put(record)
