"""A curator's answers to auditors on other machines, with tokens, limits of rate and of noise."""

from __future__ import annotations

import hmac
import ipaddress
import math
import time
from collections import OrderedDict
from functools import cached_property
from typing import Any

from fpbench import FpbenchError, InputError, Mechanism, component
from fpbench.errors import BudgetError
from fpbench.plugin import discover
from fpbench.privacy import Balance, Curator, Ledger
from fpbench_curator.wire import QueryMessage, compute_longest_query

SHORTEST_TOKEN = 16
"""Least number of characters of a token."""

_MOST_ADDRESSES = 10_000
_OURS = "fpbench-toolkit"
"""The distribution whose secure noise this service trusts."""


class RefusedError(Exception):
    """A refused request: HTTP status, outcome for the log, and the body of the answer."""

    def __init__(self, status: int, outcome: str, error: str, **more: Any) -> None:
        super().__init__(error)
        self.status, self.outcome = status, outcome
        self.body = {"error": error, **more}


def get_place(address: str) -> str:
    """The unit of limits for an address: itself, or its /64 network, all of one IPv6 customer."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip), 64), strict=False))


class RateLimit:
    """A limit of requests a second for each address: a token bucket of one second."""

    def __init__(self, rate: float) -> None:
        self._rate, self._room = rate, max(rate, 1.0)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str, now: float) -> float:
        """Seconds until the address may send a request; 0 if it may now, which uses one token."""
        tokens, since = self._buckets.pop(address, (self._room, now))
        tokens = min(self._room, tokens + (now - since) * self._rate)
        allowed = tokens >= 1
        self._buckets[address] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self._rate


class Service:
    """A curator's answers to authorised requests, independent of the transport.

    Auditors must present the `token`; one address may make `rate` requests a second with it, and as
    many without. For trials only, `allow_simulation` accepts simulated noise and mechanisms of
    other packages: neither keeps its guarantee for real people. InputError if the token is short or
    not of plain characters, the rate is not positive, or the budget of the ledger is infinite.
    """

    def __init__(
        self,
        curator: Curator,
        ledger: Ledger,
        token: str,
        *,
        rate: float = 20.0,
        allow_simulation: bool = False,
    ) -> None:
        if len(token) < SHORTEST_TOKEN:
            raise InputError(
                f"the token has {len(token)} characters, and needs at least {SHORTEST_TOKEN}"
            )
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise InputError(
                "the token must consist of ASCII letters, digits and signs, without spaces"
            )
        if not 0 < rate < math.inf:
            raise InputError(f"rate must be above 0 and finite, not {rate!r}")
        if ledger.epsilon == math.inf:
            raise InputError("a curator on the network needs a budget: epsilon must be finite")
        self._curator, self._ledger = curator, ledger
        self._expected = f"Bearer {token}".encode()
        self._limit, self._strangers = RateLimit(rate), RateLimit(rate)
        self._simulation = allow_simulation
        self.most_bytes = compute_longest_query(curator.people)

    def admit(self, address: str, authorization: bytes) -> None:
        """Check the token and the rate of a request; RefusedError if either is wrong.

        Requests with a wrong token have a limit of their own: an auditor may share an address with
        somebody who sends many of them.
        """
        known = hmac.compare_digest(authorization, self._expected)
        limit = self._limit if known else self._strangers
        wait = limit.wait(get_place(address), time.monotonic())
        if wait:
            raise RefusedError(429, "too many", "too many requests; wait", retry_after=wait)
        if not known:
            raise RefusedError(401, "no token", "the token is missing or wrong")

    def about(self) -> dict[str, Any]:
        """Public facts about the curator, and the rest of its budget, for JSON."""
        ledger = self._ledger
        return {
            "groups": list(self._curator.groups),
            "people": self._curator.people,
            "neighbours": self._curator.neighbours,
            "budget": {"epsilon": ledger.epsilon, "delta": ledger.delta},
            "accounting": ledger.accounting,
            "remaining": _to_json(ledger.remaining),
            "mechanisms": self._mechanisms,
            "noise": ["secure", "simulation"] if self._simulation else ["secure"],
        }

    def answer(self, body: bytes, entry: dict[str, Any]) -> dict[str, Any]:
        """The answer to a query, for JSON; public facts about the query are added to the log entry.

        RefusedError if it is no query, is not allowed, or costs more than the rest of the budget.
        """
        try:
            query = QueryMessage.read(body)
            entry["cells"] = query.n_cells
            entry["answers"] = len(query.epsilon) * query.repetitions
            entry["epsilon"] = math.fsum(query.epsilon) * query.repetitions
            query.check_size(len(self._curator.groups))
            mechanism = self._make_mechanism(query.mechanism)
            entry["mechanism"] = mechanism.name
            for epsilon in set(query.epsilon):
                mechanism.guarantee(epsilon, self._curator.neighbours)
            cells = query.codes(self._curator.people)
        except FpbenchError as error:
            raise RefusedError(422, "malformed", str(error)) from error
        try:
            counts = self._curator.histogram(
                cells,
                query.n_cells,
                epsilon=query.epsilon,
                mechanism=mechanism,
                repetitions=query.repetitions,
            )
        except BudgetError as error:
            rest = _to_json(self._ledger.remaining)
            raise RefusedError(409, "budget", str(error), remaining=rest) from error
        return {"counts": counts.tolist(), "remaining": _to_json(self._ledger.remaining)}

    def _make_mechanism(self, table: dict[str, Any]) -> Mechanism:
        parameters = dict(table)
        use = parameters.pop("use", None)
        if not isinstance(use, str):
            raise InputError('mechanism: needs use = "NAME"')
        mechanism = component("mechanism", use, **parameters)
        assert isinstance(mechanism, Mechanism)
        ours = discover().entry("mechanism", use).source.distribution == _OURS
        if not self._simulation and not (ours and mechanism.noise == "secure"):
            able = ", ".join(self._mechanisms)
            raise InputError(
                f'mechanism: this curator answers with noise = "secure" only, by {able}; not with '
                f"{use}, noise = {mechanism.noise!r}"
            )
        return mechanism

    @cached_property
    def _mechanisms(self) -> list[str]:
        names = []
        for entry in discover().of_kind("mechanism"):
            ours = entry.source.distribution == _OURS and not entry.rivals
            if self._simulation or ours:
                cls = discover().component("mechanism", entry.name)
                assert issubclass(cls, Mechanism)
                if self._simulation or not cls.continuous:
                    names.append(entry.name)
        return names


def _to_json(balance: Balance) -> dict[str, float]:
    rho = {} if balance.rho is None else {"rho": balance.rho}
    return {"epsilon": balance.epsilon, "delta": balance.delta, **rho}
