"""Queries that arrive at a curator's service, with a deadline each and a limit on all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fpbench.privacy.curator.service import RefusedError

SECONDS_TO_SEND = 60.0
"""Limit for a whole query to arrive."""
LEAST_MEMORY = 1 << 26
"""Memory limit of all queries together, at least, in bytes."""
_SECONDS_TO_RETRY = 1.0


class _Upload:
    def __init__(self, place: str) -> None:
        self.place, self.size, self.dismissed = place, 0, False
        self.deadline: asyncio.Timeout | None = None


class Uploads:
    """Queries without an answer yet, limited in size: each, and in total to `at_once` large ones.

    When they are too large together, the largest incomplete upload of the address that sends the
    most is dismissed, and its sender may try again later. So a stranger who sends many slow uploads
    mostly hinders themselves.
    """

    def __init__(self, most_of_one: int, at_once: int) -> None:
        self._most_of_one = most_of_one
        self._most = max(LEAST_MEMORY, at_once * most_of_one)
        self._uploads: list[_Upload] = []

    @asynccontextmanager
    async def read(self, stream: AsyncIterator[bytes], place: str) -> AsyncIterator[list[bytes]]:
        """The parts of a whole query; they use memory of the limit until the block ends.

        RefusedError if the query is too long, too slow or cut off, or all queries together are too
        large.
        """
        upload = _Upload(place)
        self._uploads.append(upload)
        try:
            yield await self._receive(stream, upload)
        finally:
            self._uploads.remove(upload)

    async def _receive(self, stream: AsyncIterator[bytes], upload: _Upload) -> list[bytes]:
        from starlette.requests import ClientDisconnect

        parts: list[bytes] = []
        try:
            async with asyncio.timeout(SECONDS_TO_SEND) as upload.deadline:
                async for part in stream:
                    upload.size += len(part)
                    if upload.size > self._most_of_one:
                        why = f"longer than {self._most_of_one:,} bytes, the most a query can be"
                        raise RefusedError(413, "too long", why)
                    self._make_room(upload)
                    parts.append(part)
        except TimeoutError:
            if upload.dismissed:
                raise _make_refusal() from None
            why = f"the query did not arrive within {SECONDS_TO_SEND:.0f} seconds"
            raise RefusedError(408, "too slow", why) from None
        except ClientDisconnect:
            raise RefusedError(400, "cut off", "the query was cut off") from None
        upload.deadline = None
        return parts

    def _make_room(self, newest: _Upload) -> None:
        while sum(upload.size for upload in self._uploads) > self._most:
            arriving = [upload for upload in self._uploads if upload.deadline and upload.size]
            sizes: Counter[str] = Counter()
            for upload in arriving:
                sizes[upload.place] += upload.size
            loser = max(arriving, key=lambda upload: (sizes[upload.place], upload.size))
            if loser is newest:
                raise _make_refusal()
            loser.dismissed, loser.size = True, 0
            assert loser.deadline is not None
            loser.deadline.reschedule(asyncio.get_running_loop().time())


def _make_refusal() -> RefusedError:
    why = "too many queries are being sent at once; wait"
    return RefusedError(429, "busy", why, retry_after=_SECONDS_TO_RETRY)
