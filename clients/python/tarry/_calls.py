"""The calls of the API. Each says what is sent and how the answer is read; the clients carry it."""
from __future__ import annotations

import base64
import json
import os
import re
import ssl
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, List, Literal, TypedDict, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from . import errors, types

if sys.version_info >= (3, 11):
    from typing import Unpack as Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack

VERSION = "0.0.0"

T = TypeVar("T")
Token = str | Callable[[], str] | None
TLS = ssl.SSLContext | None

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(d|h|ms|us|µs|μs|ns|m|s)")


def seconds(d: types.Duration) -> float:
    """Returns a duration in seconds."""
    if isinstance(d, timedelta):
        return d.total_seconds()
    if not d or _PART.sub("", d):
        raise ValueError(f'{d!r} is not a duration such as "1500ms", "30m", "48h" or "7d"')
    return sum(float(n) * _UNITS[unit] for n, unit in _PART.findall(d))


def duration(s: float) -> str:
    """Writes seconds as the API does."""
    return f"{round(s * 1e6)}us"


def instant(text: str) -> float:
    """Reads a time of an answer, in seconds since 1970."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def body(message: types.Message | types.LeasedMessage) -> Any:
    """Returns the body of a message: its JSON value, or bytes."""
    return base64.b64decode(message["body_base64"]) if "body_base64" in message else message.get("body")


def encode(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Writes bytes, durations and times as the API does, and leaves out what is None. A body may be None."""
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "body" and isinstance(value, (bytes, bytearray, memoryview)):
            out["body_base64"] = base64.b64encode(value).decode()
        elif name == "body":
            out[name] = value
        elif value is not None:
            out[name] = [text(v) for v in value] if name == "backoff" else text(value)
    return out


def text(value: Any) -> Any:
    if isinstance(value, timedelta):
        return duration(value.total_seconds())
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a datetime needs a time zone, such as datetime.now(timezone.utc) has")
        return value.isoformat()
    return value


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    read: Callable[[Any], Any] = lambda answer: answer
    wait: float = 0  # seconds that the server may take on purpose

    def payload(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body, allow_nan=False, separators=(",", ":")).encode()

    def answer(self, status: int, body: bytes, retry_after: str) -> T:
        if not 200 <= status < 300:
            raise errors.from_answer(status, body, retry_after)
        try:
            return self.read(_decoded(body) if body else None)  # type: ignore[no-any-return]
        except (ValueError, LookupError, TypeError, RecursionError) as e:
            raise errors.Unavailable(f"{self.path}: not an answer of tarry: {body[:100]!r}", status=status) from e


class Settings:
    """Where the server is, and what it is told with each request."""

    def __init__(self, url: str | None, token: Token, timeout: float, tls: TLS) -> None:
        url = url or os.environ.get("TARRY_SERVER") or "http://127.0.0.1:8277"
        u = urlsplit(url)
        if u.scheme not in ("http", "https") or not u.hostname or u.query or u.username:
            raise ValueError(f"{url!r} is not the address of a server such as http://127.0.0.1:8277")
        secure = u.scheme == "https"
        self.host, self.port, self.prefix = u.hostname, u.port or (443 if secure else 80), u.path.rstrip("/")
        self.tls = tls or ssl.create_default_context() if secure else None
        self.token = os.environ.get("TARRY_TOKEN") if token is None else token
        self.timeout = min(timeout, 1e6)  # sockets take no infinite one

    def headers(self, payload: bytes) -> dict[str, str]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        h = {"Host": f"{host}:{self.port}", "User-Agent": f"tarry-python/{VERSION}",
             "Content-Type": "application/json", "Content-Length": str(len(payload))}
        try:
            token = (self.token() if callable(self.token) else self.token or "").strip()
        except Exception as e:
            raise errors.Unauthorized(f"there is no token: {e}") from e
        if token:
            h["Authorization"] = f"Bearer {token}"
        return h

    def no_answer(self, call: Call[Any], e: BaseException) -> errors.Unavailable:
        return errors.Unavailable(f"{call.method} {call.path}: no answer from {self.host}:{self.port}: {str(e) or type(e).__name__}")


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
    encoded = [encode(m) for m in messages]
    return Call("POST", "/v1/messages", {"messages": encoded, "atomic": atomic}, _results(len(encoded)))


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
    return Call("POST", "/v1/lease", encode(request), _with_fields("messages", "now"), wait=seconds(request.get("wait") or "0s"))


def end_lease(poll: str) -> Call[types.Counted]:
    """Ends a wait; what it has leased is still answered."""
    return Call("POST", "/v1/lease/end", {"poll": poll}, _with_fields("count"))


def settle(settlements: Iterable[types.Settlement]) -> Call[List[types.SettleResult | errors.Error]]:
    """Says what became of leased messages. Results come in order, each alone."""
    encoded = [encode(s) for s in settlements]
    return Call("POST", "/v1/settle", {"settlements": encoded}, _results(len(encoded)))


def queue(queue: str) -> Call[types.Queue]:
    """Counts the messages of a queue."""
    return Call("GET", _queue(queue))


def list_page(queue: str, after: str | None = None, **filters: Unpack[Filters]) -> Call[types.MessagePage]:
    """Reads a page of the messages of a queue: next is the after of the next page, empty on the last."""
    query = {name: str(text(value)) for name, value in filters.items() if name != "body"}
    path = _with(_queue(queue) + "/messages", after=after, body="true" if filters.get("body") else None, **query)
    return Call("GET", path, read=_with_fields("messages", "next"))


def call(method: str, path: str, body: Any = None) -> Call[Any]:
    """Makes any other call of the API, such as POST /v1/queues/mail/pause."""
    return Call(method, path, body)


def _queue(queue: str) -> str:
    return "/v1/queues/" + _segment(queue)


def _message(queue: str, key: str | None, id: str | None, end: str = "", **query: str | None) -> str:
    if (key is None) == (id is None):
        raise ValueError("name the message by its key or by its id")
    name = f"/messages/{_segment(str(id))}" if key is None else f"/keys/{_segment(key)}"
    return _with(_queue(queue) + name + end, **query)


def _segment(name: str) -> str:
    if name in ("", ".", ".."):  # a path with them is another path
        raise ValueError(f"{name!r} cannot be part of a path")
    return quote(name, safe="")


def _with(path: str, **query: str | None) -> str:
    given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _results(count: int) -> Callable[[Any], list[Any]]:
    def read(answer: Any) -> list[Any]:
        results = [errors.from_details(r["error"]) if "error" in r else r for r in answer["results"]]
        if len(results) != count:
            raise ValueError(f"{len(results)} results for {count} items")
        return results

    return read


def _with_fields(*names: str) -> Callable[[Any], Any]:
    return lambda answer: answer if [answer[name] for name in names] else None


def _decoded(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except ValueError:  # if only because of a number with more digits than int() takes
        return json.loads(answer, parse_int=lambda n: int(n) if len(n) < 4000 else Decimal(n))
