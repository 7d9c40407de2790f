"""The calls of the API. Each says what is sent and how the answer is read; the clients carry it."""
from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, List, Literal, TypedDict
from urllib.parse import quote, urlencode

from . import errors, types
from ._wire import Call, encode, seconds, text

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack


class Filters(TypedDict, total=False):
    """Which messages a list has, and in what order; see docs/http.md."""

    state: Literal["ready", "leased", "scheduled", "dead", "finished"]
    from_: types.Time
    to: types.Time
    order: Literal["asc", "desc"]
    key_prefix: str
    header: str
    ending: Literal["acked", "cancelled", "expired"]
    limit: int  # of a page
    body: bool


def push(queue: str, body: Any, /, **options: Unpack[types.PushOptions]) -> Call[types.Pushed]:
    """Pushes a message. A body of bytes is kept as bytes, any other as JSON."""
    return Call("POST", _queue(queue) + "/messages", encode({"body": body, **options}))


def push_many(messages: Iterable[types.BatchMessage], atomic: bool = False) -> Call[List[types.Pushed | errors.Error]]:
    """Pushes up to 10,000 messages. Results come in order; a bad message fails alone, unless atomic."""
    return Call("POST", "/v1/messages", {"messages": [encode(m) for m in messages], "atomic": atomic}, _results)


def rearm(queue: str, key: str, body: Any, /, **options: Unpack[types.PushOptions]) -> Call[types.Pushed]:
    """Winds the message back to delay or due and keeps its body, or pushes it."""
    return Call("PUT", _message(queue, key, None), encode({"body": body, **options}))


def get(queue: str, key: str | None = None, *, id: str | None = None) -> Call[types.Message | types.FinishedMessage]:
    """Looks a message up. body() returns its body."""
    return Call("GET", _message(queue, key, id))


def cancel(queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None) -> Call[None]:
    """Cancels a message; by id also a dead one."""
    return Call("DELETE", _message(queue, key, id, if_state=if_state))


def reschedule(queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None,
               **when: Unpack[types.Reschedule]) -> Call[types.Message]:
    """Makes a message due after delay or at due."""
    return Call("PATCH", _message(queue, key, id, if_state=if_state), encode(when))


def claim(queue: str, key: str | None = None, *, id: str | None = None, if_state: str | None = None,
          **options: Unpack[types.Claim]) -> Call[types.LeasedMessage]:
    """Leases one message, which is to be settled."""
    return Call("POST", _message(queue, key, id, "/claim", if_state=if_state), encode(options))


def lease(**request: Unpack[types.LeaseRequest]) -> Call[types.Leased]:
    """Leases what is due. A Worker does that, and what follows, by itself."""
    return Call("POST", "/v1/lease", encode(request), wait=seconds(request.get("wait") or "0s"))


def end_lease(poll: str) -> Call[types.Counted]:
    """Ends a wait; what it has leased is still answered."""
    return Call("POST", "/v1/lease/end", {"poll": poll})


def settle(settlements: Iterable[types.Settlement]) -> Call[List[types.SettleResult | errors.Error]]:
    """Says what became of leased messages. Results come in order, each alone."""
    return Call("POST", "/v1/settle", {"settlements": [encode(s) for s in settlements]}, _results)


def queue(queue: str) -> Call[types.Queue]:
    """Counts the messages of a queue."""
    return Call("GET", _queue(queue))


def list_page(queue: str, after: str | None = None, **filters: Unpack[Filters]) -> Call[types.MessagePage]:
    """Reads a page of the messages of a queue: next is the after of the next page, empty on the last."""
    query = {name: str(text(value)) for name, value in filters.items() if name != "body"}
    return Call("GET", _with(_queue(queue) + "/messages", after=after, body="true" if filters.get("body") else None, **query))


def call(method: str, path: str, body: Any = None) -> Call[Any]:
    """Makes any other call of the API, such as POST /v1/queues/mail/pause."""
    return Call(method, path, body)


def _queue(queue: str) -> str:
    return "/v1/queues/" + quote(queue, safe="")


def _message(queue: str, key: str | None, id: str | None, end: str = "", **query: str | None) -> str:
    if (key is None) == (id is None):
        raise ValueError("name the message by its key or by its id")
    name = f"/messages/{quote(str(id), safe='')}" if key is None else f"/keys/{quote(key, safe='')}"
    return _with(_queue(queue) + name + end, **query)


def _with(path: str, **query: str | None) -> str:
    given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _results(answer: Any) -> list[Any]:
    return [errors.from_details(r["error"]) if "error" in r else r for r in answer["results"]]
