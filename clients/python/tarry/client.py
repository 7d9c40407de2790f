"""The clients: Client blocks, and threads may share it; AsyncClient is for asyncio."""
from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, List

from . import _calls as calls
from . import errors, types
from ._pool import AsyncPool, Pool

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack

Token = str | Callable[[], str] | None


class Client:
    """Talks to a server. Its calls raise an Error of tarry.errors; none is repeated by itself.

    url: default $TARRY_SERVER, else http://127.0.0.1:8277
    token: text, or a function that returns it; default $TARRY_TOKEN, else none
    timeout: seconds that the server may be silent
    tls: default ssl.create_default_context()
    """

    def __init__(self, url: str | None = None, *, token: Token = None, timeout: float = 30,
                 tls: ssl.SSLContext | None = None) -> None:
        self.settings = calls.Settings(url, token, timeout, tls)
        self._pool = Pool(self.settings)

    def push(self, queue: str, body: Any, /, **options: Unpack[types.PushOptions]) -> types.Pushed:
        """Pushes a message. A body of bytes is kept as bytes, any other as JSON."""
        return self._pool.send(calls.push(queue, body, options))

    def push_many(self, messages: Iterable[types.BatchMessage], atomic: bool = False) -> List[types.Pushed | errors.Error]:
        """Pushes up to 10,000 messages. Results come in order; a bad message fails alone, unless atomic."""
        return self._pool.send(calls.push_many(messages, atomic))

    def rearm(self, queue: str, key: str, body: Any, /, **options: Unpack[types.PushOptions]) -> types.Pushed:
        """Winds the message back to delay or due and keeps its body, or pushes it."""
        return self._pool.send(calls.rearm(queue, key, body, options))

    def get(self, queue: str, key: str | None = None, *, id: str | None = None) -> types.Message | types.FinishedMessage:
        """Looks a message up. body() returns its body."""
        return self._pool.send(calls.get(queue, key, id))

    def cancel(self, queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None) -> None:
        """Cancels a message; by id also a dead one."""
        return self._pool.send(calls.cancel(queue, key, id, if_state))

    def reschedule(self, queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None,
                   **when: Unpack[types.Reschedule]) -> types.Message:
        """Makes a message due after delay or at due."""
        return self._pool.send(calls.reschedule(queue, key, id, if_state, when))

    def claim(self, queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None,
              **options: Unpack[types.Claim]) -> types.LeasedMessage:
        """Leases one message, which is to be settled."""
        return self._pool.send(calls.claim(queue, key, id, if_state, options))

    def lease(self, **request: Unpack[types.LeaseRequest]) -> types.Leased:
        """Leases what is due. A Worker does that, and what follows, by itself."""
        return self._pool.send(calls.lease(request))

    def settle(self, settlements: Iterable[types.Settlement]) -> List[types.SettleResult | errors.Error]:
        """Says what became of leased messages. Results come in order, each alone."""
        return self._pool.send(calls.settle(settlements))

    def queue(self, queue: str) -> types.Queue:
        """Counts the messages of a queue."""
        return self._pool.send(calls.queue(queue))

    def list(self, queue: str, **filters: Unpack[calls.Filters]) -> Iterator[types.Message | types.FinishedMessage]:
        """Yields the messages of a queue, read page by page."""
        after: str | None = ""
        while after is not None:
            page = self._pool.send(calls.list_page(queue, after, filters))
            yield from page["messages"]
            after = page["next"] or None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Makes any other call of the API, such as POST /v1/queues/mail/pause."""
        return self._pool.send(calls.other(method, path, body))

    def close(self) -> None:
        """Closes idle connections."""
        self._pool.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """Client for asyncio. A call that is cancelled ends its request; beyond so many connections calls wait."""

    def __init__(self, url: str | None = None, *, token: Token = None, timeout: float = 30,
                 tls: ssl.SSLContext | None = None, connections: int = 64) -> None:
        self.settings = calls.Settings(url, token, timeout, tls)
        self._pool = AsyncPool(self.settings, connections)

    async def push(self, queue: str, body: Any, /, **options: Unpack[types.PushOptions]) -> types.Pushed:
        return await self._pool.send(calls.push(queue, body, options))

    async def push_many(self, messages: Iterable[types.BatchMessage], atomic: bool = False) -> List[types.Pushed | errors.Error]:
        return await self._pool.send(calls.push_many(messages, atomic))

    async def rearm(self, queue: str, key: str, body: Any, /, **options: Unpack[types.PushOptions]) -> types.Pushed:
        return await self._pool.send(calls.rearm(queue, key, body, options))

    async def get(self, queue: str, key: str | None = None, *, id: str | None = None) -> types.Message | types.FinishedMessage:
        return await self._pool.send(calls.get(queue, key, id))

    async def cancel(self, queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None) -> None:
        return await self._pool.send(calls.cancel(queue, key, id, if_state))

    async def reschedule(self, queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None,
                         **when: Unpack[types.Reschedule]) -> types.Message:
        return await self._pool.send(calls.reschedule(queue, key, id, if_state, when))

    async def claim(self, queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None,
                    **options: Unpack[types.Claim]) -> types.LeasedMessage:
        return await self._pool.send(calls.claim(queue, key, id, if_state, options))

    async def lease(self, **request: Unpack[types.LeaseRequest]) -> types.Leased:
        return await self._pool.send(calls.lease(request))

    async def settle(self, settlements: Iterable[types.Settlement]) -> List[types.SettleResult | errors.Error]:
        return await self._pool.send(calls.settle(settlements))

    async def queue(self, queue: str) -> types.Queue:
        return await self._pool.send(calls.queue(queue))

    async def list(self, queue: str, **filters: Unpack[calls.Filters]) -> AsyncIterator[types.Message | types.FinishedMessage]:
        after: str | None = ""
        while after is not None:
            page = await self._pool.send(calls.list_page(queue, after, filters))
            for message in page["messages"]:
                yield message
            after = page["next"] or None

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        return await self._pool.send(calls.other(method, path, body))

    async def close(self) -> None:
        await self._pool.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
