"""Queries while they arrive at a curator's service: a deadline each, a bound on all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fpbench.privacy.curator.service import RefusedError

SECONDS_TO_SEND = 60.0
"""For the whole of a query to arrive."""
LEAST_HELD = 1 << 26
"""Bytes of all queries together that are always allowed."""
_SECONDS_TO_RETRY = 1.0


class _Upload:
    def __init__(self, place: str) -> None:
        self.place, self.size, self.dismissed = place, 0, False
        self.deadline: asyncio.Timeout | None = None


class Uploads:
    """What was sent and is not answered yet.

    When all together are too large, of the place that sends the most the largest upload that has
    not arrived whole is dismissed, to be sent again later: who sends many slowly hinders mostly
    themselves.

    Parameters
    ----------
    most_of_one
        Bytes of one query, at most.
    at_once
        So many of the largest fit, in any case.
    """

    def __init__(self, most_of_one: int, at_once: int) -> None:
        self._most_of_one = most_of_one
        self._most = max(LEAST_HELD, at_once * most_of_one)
        self._uploads: list[_Upload] = []

    @asynccontextmanager
    async def read(self, stream: AsyncIterator[bytes], place: str) -> AsyncIterator[list[bytes]]:
        """The parts of a query that has arrived whole; they count until the block ends.

        Raises
        ------
        RefusedError
            If it is too long, too slow or cut off, or all together are too large.
        """
        upload = _Upload(place)
        self._uploads.append(upload)
        try:
            yield await self._arrived(stream, upload)
        finally:
            self._uploads.remove(upload)

    async def _arrived(self, stream: AsyncIterator[bytes], upload: _Upload) -> list[bytes]:
        from starlette.requests import ClientDisconnect

        parts: list[bytes] = []
        try:
            async with asyncio.timeout(SECONDS_TO_SEND) as upload.deadline:
                async for part in stream:
                    upload.size += len(part)
                    if upload.size > self._most_of_one:
                        said = f"longer than {self._most_of_one:,} bytes, the most a query can be"
                        raise RefusedError(413, "too long", said)
                    self._make_room(upload)
                    parts.append(part)
        except TimeoutError:
            if upload.dismissed:
                raise _busy() from None
            said = f"the query did not arrive within {SECONDS_TO_SEND:.0f} seconds"
            raise RefusedError(408, "too slow", said) from None
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
                raise _busy()
            loser.dismissed, loser.size = True, 0
            assert loser.deadline is not None
            loser.deadline.reschedule(asyncio.get_running_loop().time())


def _busy() -> RefusedError:
    said = "too many queries are being sent at once; wait"
    return RefusedError(429, "busy", said, retry_after=_SECONDS_TO_RETRY)
