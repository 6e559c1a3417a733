"""Confinement of an adversary's process to the data that it was given.

Its environment names neither data nor secrets, fpbench loads no data set in it, and it runs as
another user if the operator says so. Only the last is a real barrier: code of the same user can
open the same files.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

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
"""Matches a password in an address."""


def is_private(name: str, value: str) -> bool:
    """Whether an environment variable locates data or holds a secret."""
    return bool(name in _DATA or _SECRET.search(name) or _IN_ADDRESS.search(value))


def public_environment() -> dict[str, str]:
    """The environment without private variables."""
    return {name: value for name, value in os.environ.items() if not is_private(name, value)}


def secrets() -> dict[str, str]:
    """The private variables of the environment, for steps whose components may need them."""
    return {name: value for name, value in os.environ.items() if is_private(name, value)}


def isolated_user() -> struct_passwd | None:
    """The user of adversaries' processes; None if it is the current user.

    Raises
    ------
    InputError
        If there is no such user, or no process can be started as that user.
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
        raise InputError(f"{USER}: must be a user other than root, not {name!r}")
    return user


def confine(parent: int) -> None:
    """Confine this process to an adversary's rights, irrevocably.

    Parameters
    ----------
    parent
        The process with which it dies.

    Raises
    ------
    InputError
        As `isolated_user`.
    """
    refuse_data()
    user = isolated_user()
    if user is None:
        return
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.environ["HOME"] = user.pw_dir
    die_with_parent(parent)  # which a change of user undoes
