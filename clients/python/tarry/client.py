"""The clients: Client blocks, and threads may share it; AsyncClient is for asyncio."""
from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from . import _calls as calls
from . import types
from ._pool import AsyncPool, Pool
from ._calls import TLS, Call, Settings, Token

if TYPE_CHECKING:
    from ._calls import Unpack

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])
Listed = types.Message | types.FinishedMessage


def _blocking(make: Callable[P, Call[T]]) -> Callable[Concatenate[Any, P], T]:
    """Returns the method of Client that makes a call."""

    def method(self: Any, /, *args: P.args, **options: P.kwargs) -> Any:
        return self._pool.send(make(*args, **options))

    return _named(method, make)


def _awaited(make: Callable[P, Call[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Returns the method of AsyncClient that makes a call."""

    async def method(self: Any, /, *args: P.args, **options: P.kwargs) -> Any:
        return await self._pool.send(make(*args, **options))

    return _named(method, make)


def _named(method: M, make: Callable[..., object]) -> M:
    """Has help() show the method like the call."""
    functools.update_wrapper(method, make)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    signature = inspect.Signature([itself, *inspect.signature(make).parameters.values()])
    setattr(method, "__signature__", signature)
    return method


class Client:
    """Talks to a server. Its calls raise an Error of tarry.errors; none is repeated by itself.

    url: default $TARRY_SERVER, else http://127.0.0.1:8277
    token: text, or a function that returns it; default $TARRY_TOKEN, else none
    timeout: seconds that the server may be silent
    tls: default ssl.create_default_context()
    """

    def __init__(self, url: str | None = None, *, token: Token = None, timeout: float = 30, tls: TLS = None) -> None:
        self.settings = Settings(url, token, timeout, tls)
        self._pool = Pool(self.settings)

    push = _blocking(calls.push)
    push_many = _blocking(calls.push_many)
    rearm = _blocking(calls.rearm)
    get = _blocking(calls.get)
    cancel = _blocking(calls.cancel)
    reschedule = _blocking(calls.reschedule)
    claim = _blocking(calls.claim)
    lease = _blocking(calls.lease)
    settle = _blocking(calls.settle)
    queue = _blocking(calls.queue)
    list_page = _blocking(calls.list_page)
    call = _blocking(calls.call)

    def list(self, queue: str, **filters: Unpack[calls.Filters]) -> Iterator[Listed]:
        """Yields the messages of a queue, read page by page."""
        after: str | None = None
        while after != "":
            page = self.list_page(queue, after, **filters)
            yield from page["messages"]
            after = page["next"]

    def close(self) -> None:
        """Closes idle connections."""
        self._pool.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """Client for asyncio. A call that is cancelled ends its request; beyond so many connections calls wait."""

    def __init__(self, url: str | None = None, *, token: Token = None, timeout: float = 30, tls: TLS = None,
                 connections: int = 64) -> None:
        self.settings = Settings(url, token, timeout, tls)
        self._pool = AsyncPool(self.settings, connections)

    push = _awaited(calls.push)
    push_many = _awaited(calls.push_many)
    rearm = _awaited(calls.rearm)
    get = _awaited(calls.get)
    cancel = _awaited(calls.cancel)
    reschedule = _awaited(calls.reschedule)
    claim = _awaited(calls.claim)
    lease = _awaited(calls.lease)
    settle = _awaited(calls.settle)
    queue = _awaited(calls.queue)
    list_page = _awaited(calls.list_page)
    call = _awaited(calls.call)

    async def list(self, queue: str, **filters: Unpack[calls.Filters]) -> AsyncIterator[Listed]:
        """Yields the messages of a queue, read page by page."""
        after: str | None = None
        while after != "":
            page = await self.list_page(queue, after, **filters)
            for message in page["messages"]:
                yield message
            after = page["next"]

    async def close(self) -> None:
        """Closes idle connections."""
        await self._pool.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
