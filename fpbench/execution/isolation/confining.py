"""Confinement of an adversary's process to the data that it received.

Its environment names neither data nor secrets, fpbench loads no data set in it, and it runs as
another user if the operator sets one. Only another user is a real barrier: code of the same user
can open the same files.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.data.data_files import refuse_data
from fpbench.execution.isolation.processes import die_with_parent

if TYPE_CHECKING:
    from pwd import struct_passwd

USER = "FPBENCH_ISOLATED_USER"
"""Environment variable that names the user of adversaries' processes."""
_DATA = ("FPBENCH_DATA", "XDG_DATA_HOME")
_SECRET = re.compile(
    r"(?:^|_)(?:TOKENS?|KEYS?|AUTH|COOKIES?)(?:_|$)|_PWD$|_PASS$"
    r"|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"://[^/\s]*:[^/\s]*@")
"""Matches an address with a password."""
_PR_SET_NO_NEW_PRIVS = 38
_IMPORTED = ("fpbench", "numpy", "pandas", "scipy", "sklearn")
"""Packages that adversaries' processes import."""
_PROBE = """
import os, sys
def is_readable(path):
    return os.access(path, os.R_OK) and (not os.path.isdir(path) or os.access(path, os.X_OK))
print(next((path for path in sys.argv[1:] if not is_readable(path)), ""), end="")
"""


def is_private(name: str, value: str) -> bool:
    """Whether an environment variable locates data or holds a secret."""
    return bool(name in _DATA or _SECRET.search(name) or _IN_ADDRESS.search(value))


def get_public_environment() -> dict[str, str]:
    """The environment without private variables."""
    return {name: value for name, value in os.environ.items() if not is_private(name, value)}


def get_secrets() -> dict[str, str]:
    """The private variables of the environment, for steps whose components may need them."""
    return {name: value for name, value in os.environ.items() if is_private(name, value)}


def find_isolated_user() -> struct_passwd | None:
    """The user of adversaries' processes; None if it is the current user.

    Raises InputError if there is no such user, or no process can be started as that user.
    """
    name = os.environ.get(USER)
    if not name:
        return None
    import pwd

    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise InputError(f"{USER}: there is no user {name!r} here") from None
    if os.geteuid() != 0:
        raise InputError(f"{USER}: only root can start processes as {name!r}; run fpbench as root")
    if user.pw_uid == 0:
        raise InputError(f"{USER}: must be a user other than root, not {show_value(name)}")
    return user


def check_isolated_user() -> None:
    """Check that adversaries' processes can run as the user that the operator set.

    A process that may not read the standard library would fail at some late import.

    Raises InputError: as `find_isolated_user`; if the user cannot read Python, fpbench or its
    imports; or if this process may not become the user.
    """
    user = find_isolated_user()
    if user is None:
        return
    specs = map(find_spec, _IMPORTED)
    files = [os.__file__, *(spec.origin for spec in specs if spec and spec.origin)]
    paths = [path for file in files for path in (os.path.dirname(file), file)]
    identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    try:
        unreadable = find_unreadable(filter(os.path.exists, paths), **identity)
    except PermissionError as error:
        raise InputError(
            f"{USER}: this process may not become {user.pw_name!r} ({error.strerror}); in a "
            "container, give it the rights SETUID and SETGID"
        ) from None
    if unreadable is not None:
        raise InputError(
            f"{USER}: {user.pw_name!r} cannot read {unreadable}, which adversaries need; install "
            "Python and fpbench where every user can read them, not below /root"
        )


def find_unreadable(paths: Iterable[str], **identity: Any) -> str | None:
    """The first of some files and folders that a user cannot read; None if the user can read all.

    `paths`: absolute paths that exist. `identity`: the user, as arguments of `subprocess.run`:
    `user`, `group`, `extra_groups`; the current user if none.

    Returns: the path; the path of Python if the user cannot start Python.

    Raises PermissionError if this process may not become that user.
    """
    python = os.path.realpath(sys.executable)
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _PROBE, *paths],
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=True, **identity,
        )  # fmt: skip
    except subprocess.CalledProcessError:  # Python does not start without its library
        return python
    except PermissionError as error:
        if error.errno == errno.EACCES:
            return python
        raise
    return os.fsdecode(done.stdout) or None


def confine(parent: int) -> None:
    """Confine this process to an adversary's rights, irrevocably.

    `parent`: the process at whose death this one dies.

    Raises InputError: as `find_isolated_user`.
    """
    refuse_data()
    if sys.platform == "linux":  # no program that it starts has more rights, such as `sudo`
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    user = find_isolated_user()
    if user is None:
        return
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.environ["HOME"] = user.pw_dir
    die_with_parent(parent)  # again, as a change of user undoes it
