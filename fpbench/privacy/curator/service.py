"""What a curator answers to auditors on other machines: who may ask what, and how often."""

from __future__ import annotations

import hmac
import math
import time
from collections import OrderedDict
from functools import cached_property
from typing import Any

from fpbench.base.errors import BudgetError, FpbenchError, InputError
from fpbench.components.catalog import discover
from fpbench.components.mechanism import Mechanism
from fpbench.components.spec import specify
from fpbench.privacy.curator.connections import place_of
from fpbench.privacy.curator.curator import Curator
from fpbench.privacy.curator.wire import Query, most_bytes
from fpbench.privacy.ledger import Balance, Ledger

SHORTEST_TOKEN = 16
"""Characters that a token must have, at least."""

_MOST_ADDRESSES = 10_000


class RefusedError(Exception):
    """A request that is not answered: the status, the reason, and what else to say."""

    def __init__(self, status: int, outcome: str, error: str, **more: Any) -> None:
        super().__init__(error)
        self.status, self.outcome = status, outcome
        self.body = {"error": error, **more}


class RateLimit:
    """How often each address may ask: a bucket that fills at a rate and holds one second of it.

    Parameters
    ----------
    rate
        Requests a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._room = rate, max(rate, 1.0)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str, now: float) -> float:
        """Seconds until the address may ask again; 0, and counted, if it may now."""
        left, since = self._buckets.pop(address, (self._room, now))
        left = min(self._room, left + (now - since) * self._rate)
        allowed = left >= 1
        self._buckets[address] = (left - 1 if allowed else left, now)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._rate


class Service:
    """What a curator answers to whom; knows nothing of how requests travel.

    Parameters
    ----------
    curator
        Answers.
    ledger
        Its budget, which must be finite.
    token
        What auditors must present.
    rate
        Requests a second that one address may make.
    allow_simulation
        Whether noise may be simulated, and mechanisms of other packages used: for trying things
        out, as neither keeps what its guarantee says of real people.

    Raises
    ------
    InputError
        If the token is short or not of plain characters, the rate is not positive, or the budget
        has no end.
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
            raise InputError("the token must be of plain letters, digits and signs, without blanks")
        if not 0 < rate < math.inf:
            raise InputError(f"rate must be above 0 and finite, not {rate!r}")
        if ledger.epsilon == math.inf:
            raise InputError("a curator that others may ask needs a budget: epsilon must be finite")
        self._curator, self._ledger = curator, ledger
        self._expected = f"Bearer {token}".encode()
        self._limit = RateLimit(rate)
        self._simulation = allow_simulation
        self.most_bytes = most_bytes(curator.people)

    def admit(self, address: str, authorization: bytes) -> None:
        """Let a request in.

        Raises
        ------
        RefusedError
            If the address asks too often, or the token is not the right one.
        """
        wait = self._limit.wait(place_of(address), time.monotonic())
        if wait:
            raise RefusedError(429, "too many", "too many requests; wait", retry_after=wait)
        if not hmac.compare_digest(authorization, self._expected):
            raise RefusedError(401, "no token", "the token is missing or wrong")

    def about(self) -> dict[str, Any]:
        """What is public of the curator, and what is left of its budget."""
        ledger = self._ledger
        return {
            "groups": list(self._curator.groups),
            "people": self._curator.people,
            "neighbours": self._curator.neighbours,
            "budget": {"epsilon": ledger.epsilon, "delta": ledger.delta},
            "accounting": ledger.accounting,
            "remaining": _said(ledger.remaining),
            "mechanisms": self._mechanisms,
            "noise": ["secure", "simulation"] if self._simulation else ["secure"],
        }

    def answer(self, body: bytes, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer a query; what may be logged of it is put into `asked` as it becomes known.

        Raises
        ------
        RefusedError
            If it is no query, asks for what is not allowed, or costs more than is left.
        """
        try:
            query = Query.read(body)
            asked["cells"] = query.n_cells
            asked["answers"] = len(query.epsilon) * query.repetitions
            asked["epsilon"] = math.fsum(query.epsilon) * query.repetitions
            query.answers(len(self._curator.groups))
            mechanism = self._mechanism(query.mechanism)
            asked["mechanism"] = mechanism.name
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
            left = _said(self._ledger.remaining)
            raise RefusedError(409, "budget", str(error), remaining=left) from error
        return {"counts": counts.tolist(), "remaining": _said(self._ledger.remaining)}

    def _mechanism(self, given: dict[str, Any]) -> Mechanism:
        parameters = dict(given)
        use, catalog = parameters.pop("use", None), discover()
        if not isinstance(use, str):
            raise InputError('mechanism: needs use = "NAME"')
        made, _ = specify(catalog, "mechanism", use, parameters, "mechanism")
        assert isinstance(made, Mechanism)
        ours = catalog.entry("mechanism", use).source.distribution == "fpbench"
        if not self._simulation and not (ours and made.noise == "secure"):
            able = ", ".join(self._mechanisms)
            raise InputError(
                f'mechanism: this curator answers with noise = "secure" only, by {able}; not with '
                f"{use}, noise = {made.noise!r}"
            )
        return made

    @cached_property
    def _mechanisms(self) -> list[str]:
        found = []
        for entry in discover().of_kind("mechanism"):
            ours = entry.source.distribution == "fpbench" and not entry.rivals
            if self._simulation or ours:
                cls = discover().component("mechanism", entry.name)
                assert issubclass(cls, Mechanism)
                if self._simulation or not cls.continuous:
                    found.append(entry.name)
        return found


def _said(balance: Balance) -> dict[str, float]:
    rho = {} if balance.rho is None else {"rho": balance.rho}
    return {"epsilon": balance.epsilon, "delta": balance.delta, **rho}
