"""The client of a curator on another machine, over HTTP."""

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

from fpbench import FpbenchError, InputError, Mechanism
from fpbench.errors import BudgetError
from fpbench.plugin import Codes
from fpbench.privacy import Balance, Neighbours, check_epsilon
from fpbench_curator.files import read_token
from fpbench_curator.wire import ABOUT, HISTOGRAM_QUERY, QueryMessage

TOKEN = "FPBENCH_CURATOR_TOKEN"
"""Environment variable that holds the token."""

_NEAR = {"localhost", "127.0.0.1", "::1"}
_LONGEST_ANSWER = 1 << 26


class RemoteCurator:
    """A curator that `fpbench curator serve` runs on another machine.

    It answers as a `Curator` does, and the sensitive attribute never leaves its machine. The n-th
    cell of a query is of the person in the n-th row of the curator's file.

    Parameters
    ----------
    url
        Its address: `https://host:port`.
    token
        The token from the curator's owner; by default, the value of the environment variable
        FPBENCH_CURATOR_TOKEN.
    token_file
        A file with the token, instead.
    cafile
        Certificates (PEM) to trust instead of the system's, for a self-signed certificate.
    timeout
        Seconds to wait for an answer, and in total while the curator asks to try again later.

    Raises
    ------
    InputError
        If the address, the token or the certificates cannot be used.

    Notes
    -----
    A connection that breaks before the answer arrives is an error, without another attempt: the
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
        self._url, near, secure = _parse_address(url)
        self._headers = {"Authorization": f"Bearer {_read_own_token(token, token_file)}"}
        if not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
            raise InputError(f"timeout must be above 0 and finite, not {timeout!r}")
        self._timeout = timeout
        if not (near or secure):
            warnings.warn(
                f"{self._url} is not https: anybody on the network path can read the token and "
                "the answers",
                stacklevel=2,
            )
        self._opener = _make_opener(cafile, direct=near)

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
        neighbours: Neighbours = self._about["neighbours"]
        return neighbours

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Names of the mechanisms that it accepts."""
        return tuple(self._about["mechanisms"])

    @property
    def remaining(self) -> Balance:
        """The rest of its budget, now."""
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
        """Noisy numbers (..., R, C, K) of people, as in `Curator.histogram`.

        The curator sees the cells, and adds the noise; most curators accept secure noise only.

        Raises
        ------
        InputError
            If the cells are not n codes, or the curator refuses the query.
        BudgetError
            If the answers cost more than the rest of the budget; nothing is spent then.
        FpbenchError
            If the curator cannot be reached, or fails.
        """
        if not isinstance(mechanism, Mechanism):
            raise InputError(f"mechanism must be a component, not {mechanism!r}")
        check_epsilon(epsilon)  # before it is converted: a text would become a number
        parameters = np.asarray(epsilon, dtype=np.float64)
        for value in set(parameters.ravel().tolist()):
            mechanism.guarantee(value, self.neighbours)  # refuses a wrong epsilon
        query = QueryMessage.of(cells, n_cells, parameters, mechanism, repetitions, self.people)
        query.check_size(len(self.groups))
        answer = self._ask(HISTOGRAM_QUERY, query.model_dump_json().encode())
        shape = (*parameters.shape, repetitions, n_cells, len(self.groups))
        try:
            return np.array(answer["counts"], dtype=np.float64).reshape(shape)
        except (KeyError, TypeError, ValueError):
            raise FpbenchError(
                f"{self._url} returned an answer that is not from a curator"
            ) from None

    @cached_property
    def _about(self) -> dict[str, Any]:
        about = self._ask(ABOUT)
        if not {"groups", "people", "neighbours", "remaining"} <= about.keys():
            raise FpbenchError(
                f"{self._url} does not answer like a curator of this version of fpbench"
            )
        return about

    def _ask(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        """The answer to a request; asks again, within the timeout, when the curator says so."""
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
        message = f"curator at {self._url}: {answer.get('error', f'HTTP status {status}')}"
        if status == 409:
            raise BudgetError(message)
        raise InputError(message) if 400 <= status < 500 else FpbenchError(message)

    def _send(self, path: str, body: bytes | None) -> tuple[int, dict[str, Any]]:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = Request(self._url + path, data=body, headers=headers)
        try:
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    return response.status, _read_object(response.read(_LONGEST_ANSWER))
            except HTTPError as refusal:
                with refusal:
                    return refusal.code, _read_object(refusal.read(_LONGEST_ANSWER))
        except (OSError, HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            paid = "; what was asked for may have been paid for" if body is not None else ""
            raise FpbenchError(
                f"the curator at {self._url} gave no answer: {reason or type(error).__name__}{paid}"
            ) from error

    def __repr__(self) -> str:
        return f"RemoteCurator({self._url!r})"


def _read_object(content: bytes) -> dict[str, Any]:
    """A JSON object; empty for other content, as from a server that is not a curator."""
    try:
        data = json.loads(content)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _parse_address(url: str) -> tuple[str, bool, bool]:
    """The curator's address; whether that is this machine; whether the connection is encrypted."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (ValueError, AttributeError):  # an invalid port or address, or no text
        parts, good = urlsplit(""), False
    if not good or parts.query or parts.fragment or parts.username:
        raise InputError(f"{url!r} is not the address of a curator: write https://host:port")
    return url.rstrip("/"), parts.hostname in _NEAR, parts.scheme == "https"


def _read_own_token(token: str | None, token_file: str | os.PathLike[str] | None) -> str:
    if token is not None and token_file is not None:
        raise InputError("give token or token_file, not both")
    if token_file is not None:
        token = read_token(Path(token_file))
    token = token if token is not None else os.environ.get(TOKEN, "")
    if not token:
        raise InputError(f"no token: give token or token_file, or set {TOKEN}")
    if not (isinstance(token, str) and token.isascii() and token.isprintable()):
        raise InputError("the token must consist of ASCII characters")
    return token


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirection, which would send the token elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _make_opener(cafile: str | os.PathLike[str] | None, *, direct: bool) -> OpenerDirector:
    try:
        context = ssl.create_default_context(cafile=cafile)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"cafile {str(cafile)!r} cannot be used: {error}") from error
    handlers: list[Any] = [HTTPSHandler(context=context), _NoRedirects]
    if direct:
        handlers.append(ProxyHandler({}))
    return build_opener(*handlers)
