"""The curator of another machine, asked over HTTP."""

from __future__ import annotations

import json
import math
import os
import ssl
import time
import warnings
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.errors import BudgetError, FpbenchError, InputError
from fpbench.components.guarantee import Neighbours, check_epsilon
from fpbench.components.mechanism import Mechanism
from fpbench.data.sample import Codes
from fpbench.privacy.curator.files import read_token
from fpbench.privacy.curator.wire import ABOUT, HISTOGRAM_QUERY, Query
from fpbench.privacy.ledger import Balance

TOKEN = "FPBENCH_CURATOR_TOKEN"
"""Environment variable that holds the token."""

_NEAR = {"localhost", "127.0.0.1", "::1"}
_LONGEST_ANSWER = 1 << 26


class RemoteCurator:
    """A curator that `fpbench curator serve` runs on another machine.

    It answers as a `Curator` does, and the sensitive attribute never leaves its machine. The
    people's order is theirs: the n-th cell is that of the n-th row of the curator's file.

    Parameters
    ----------
    url
        Where it is: `https://host:port`.
    token
        What the curator's owner gave you; by default, what the environment variable
        FPBENCH_CURATOR_TOKEN holds.
    token_file
        A file with the token, instead.
    cafile
        Certificates (PEM) to trust instead of the system's: the curator's own, if it signed it
        itself.
    timeout
        Seconds to wait: for an answer, and in total for a turn if others ask too.

    Raises
    ------
    InputError
        If the address, the token or the certificates cannot be used.

    Notes
    -----
    A connection that breaks before the answer arrives is an error, and is not tried again: the
    curator may have paid for that answer, and would pay again.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        token_file: str | os.PathLike[str] | None = None,
        cafile: str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._url, near, secure = _address(url)
        self._headers = {"Authorization": f"Bearer {_token(token, token_file)}"}
        if not 0 < timeout < math.inf:
            raise InputError(f"timeout must be above 0 and finite, not {timeout!r}")
        self._timeout = timeout
        if not (near or secure):
            warnings.warn(
                f"{self._url} is not https: whoever carries the connection can read the token and "
                "the answers",
                stacklevel=2,
            )
        self._opener = _opener(cafile, direct=near)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the K groups."""
        return tuple(self._about["groups"])

    @property
    def people(self) -> int:
        """Number of people n."""
        return int(self._about["people"])

    @property
    def neighbours(self) -> Neighbours:
        """The relation that epsilon is measured by."""
        found: Neighbours = self._about["neighbours"]
        return found

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Mechanisms that it answers by."""
        return tuple(self._about["mechanisms"])

    @property
    def remaining(self) -> Balance:
        """What is left of its budget, now."""
        return Balance(**self._ask(ABOUT)["remaining"])

    def histogram(
        self,
        cells: Codes | ArrayLike,
        n_cells: int,
        *,
        epsilon: ArrayLike,
        mechanism: Mechanism,
        repetitions: int = 1,
    ) -> NDArray[np.float64]:
        """Noisy numbers of people of every group in every cell.

        Parameters
        ----------
        cells
            (n,) the cell of each person, in 0..n_cells-1, or -1 for none; the curator sees them.
        n_cells
            Number of cells C.
        epsilon
            Of one answer; one or several, shape (...). Cells share nobody, so each uses all of it.
        mechanism
            Adds the noise, there; most curators accept only those with secure noise.
        repetitions
            Number R of answers for each epsilon, each of fresh noise and each paid for.

        Returns
        -------
        ndarray
            (..., R, C, K).

        Raises
        ------
        InputError
            If the cells are not n such codes, or the curator refuses the query.
        BudgetError
            If the answers cost more than is left; nothing is spent then.
        FpbenchError
            If the curator cannot be reached, or fails.
        """
        check_epsilon(epsilon)  # before it is converted: a text would become a number
        parameters = np.asarray(epsilon, dtype=np.float64)
        for value in set(parameters.ravel().tolist()):
            mechanism.guarantee(value, self.neighbours)  # says what is wrong with it
        query = Query.of(cells, n_cells, parameters, mechanism, repetitions, self.people)
        query.answers(len(self.groups))
        answer = self._ask(HISTOGRAM_QUERY, query.model_dump_json().encode())
        shape = (*parameters.shape, repetitions, n_cells, len(self.groups))
        try:
            return np.array(answer["counts"], dtype=np.float64).reshape(shape)
        except (KeyError, TypeError, ValueError):
            raise FpbenchError(f"{self._url} gave an answer that is none of a curator") from None

    @cached_property
    def _about(self) -> dict[str, Any]:
        found = self._ask(ABOUT)
        if not {"groups", "people", "neighbours", "remaining"} <= found.keys():
            raise FpbenchError(f"{self._url} is no curator of this version of fpbench")
        return found

    def _ask(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        """The answer to a request; waits for its turn as long as it may."""
        end = time.monotonic() + self._timeout
        while True:
            status, answer = self._send(path, body)
            if status == 200:
                return answer
            wait = answer.get("retry_after")
            if status != 429 or not isinstance(wait, int | float):
                break
            if time.monotonic() + wait > end:
                break
            time.sleep(max(wait, 0.01))
        said = f"curator at {self._url}: {answer.get('error', f'HTTP status {status}')}"
        if status == 409:
            raise BudgetError(said)
        raise InputError(said) if 400 <= status < 500 else FpbenchError(said)

    def _send(self, path: str, body: bytes | None) -> tuple[int, dict[str, Any]]:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = Request(self._url + path, data=body, headers=headers)
        try:
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    return response.status, _object(response.read(_LONGEST_ANSWER))
            except HTTPError as refusal:
                with refusal:
                    return refusal.code, _object(refusal.read(_LONGEST_ANSWER))
        except (OSError, HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            paid = "; what was asked for may have been paid for" if body is not None else ""
            raise FpbenchError(
                f"the curator at {self._url} gave no answer: {reason or type(error).__name__}{paid}"
            ) from error

    def __repr__(self) -> str:
        return f"RemoteCurator({self._url!r})"


def _object(content: bytes) -> dict[str, Any]:
    """A JSON object; empty if it is none, as of a server that is no curator."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _address(url: str) -> tuple[str, bool, bool]:
    """Where the curator is; whether that is this machine; whether the way there is encrypted."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port or an address that is none
        parts, good = urlsplit(""), False
    if not good or parts.query or parts.fragment or parts.username:
        raise InputError(f"{url!r} is no address of a curator: https://host:port")
    return url.rstrip("/"), parts.hostname in _NEAR, parts.scheme == "https"


def _token(token: str | None, token_file: str | os.PathLike[str] | None) -> str:
    if token is not None and token_file is not None:
        raise InputError("give token or token_file, not both")
    if token_file is not None:
        token = read_token(Path(token_file))
    found = token if token is not None else os.environ.get(TOKEN, "")
    if not found:
        raise InputError(f"no token: give token or token_file, or set {TOKEN}")
    if not (found.isascii() and found.isprintable()):
        raise InputError("the token must be of plain characters")
    return found


class _StayHere(HTTPRedirectHandler):
    """A redirection would take the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(cafile: str | os.PathLike[str] | None, *, direct: bool) -> OpenerDirector:
    try:
        context = ssl.create_default_context(cafile=cafile)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"cafile {str(cafile)!r} cannot be used: {error}") from error
    handlers: list[Any] = [HTTPSHandler(context=context), _StayHere]
    if direct:
        handlers.append(ProxyHandler({}))
    return build_opener(*handlers)
