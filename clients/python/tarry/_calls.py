"""The calls of the API: what is sent and how the answer is read. The clients only carry them."""
from __future__ import annotations

import base64
import json
import os
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypedDict, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from . import errors, types

VERSION = "0.0.0"

T = TypeVar("T")

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
    out = {}
    for name, value in fields.items():
        if name == "body":
            if isinstance(value, (bytes, bytearray, memoryview)):
                name, value = "body_base64", base64.b64encode(value).decode()
        elif value is None:
            continue
        elif name == "backoff":
            value = [_text(v) for v in value]
        out[name] = _text(value) if name != "body" else value
    return out


def _text(value: Any) -> Any:
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
    read: Callable[[Any], T]
    body: Mapping[str, Any] | None = None
    wait: float = 0  # seconds that the server may take on purpose

    def payload(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body, allow_nan=False, separators=(",", ":")).encode()

    def answer(self, status: int, body: bytes, retry_after: str) -> T:
        if not 200 <= status < 300:
            raise errors.from_answer(status, body, retry_after)
        try:
            return self.read(json.loads(body) if body else None)
        except (ValueError, LookupError, TypeError) as e:
            raise errors.Unavailable(f"{self.path}: not an answer of tarry: {body[:100]!r}", status=status) from e


@dataclass
class Settings:
    """Where the server is, and what it is told with each request."""

    url: str | None = None
    token: str | Callable[[], str] | None = None
    timeout: float = 30
    tls: ssl.SSLContext | None = None
    host: str = field(init=False)
    port: int = field(init=False)
    prefix: str = field(init=False)

    def __post_init__(self) -> None:
        url = self.url or os.environ.get("TARRY_SERVER") or "http://127.0.0.1:8277"
        if self.token is None:
            self.token = os.environ.get("TARRY_TOKEN")
        u = urlsplit(url)
        if u.scheme not in ("http", "https") or not u.hostname or u.query or u.username:
            raise ValueError(f"{url!r} is not the address of a server such as http://127.0.0.1:8277")
        self.host, self.prefix = u.hostname, u.path.rstrip("/")
        self.port = u.port or (443 if u.scheme == "https" else 80)
        if u.scheme == "https":
            self.tls = self.tls or ssl.create_default_context()
        else:
            self.tls = None

    def headers(self, payload: bytes) -> dict[str, str]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        h = {"Host": f"{host}:{self.port}", "User-Agent": f"tarry-python/{VERSION}",
             "Content-Type": "application/json", "Content-Length": str(len(payload))}
        if token := self.token() if callable(self.token) else self.token:
            h["Authorization"] = f"Bearer {token}"
        return h

    def no_answer(self, call: Call[Any], e: BaseException) -> errors.Unavailable:
        return errors.Unavailable(f"{call.method} {call.path}: no answer of {self.host}:{self.port}: {e or type(e).__name__}")


def _queue(queue: str) -> str:
    return "/v1/queues/" + quote(queue, safe="")


def _message(queue: str, key: str | None, id: str | None, end: str = "", **query: str | None) -> str:
    if (key is None) == (id is None):
        raise ValueError("name the message by its key or by its id")
    path = f"{_queue(queue)}/keys/{quote(key, safe='')}" if key is not None else f"{_queue(queue)}/messages/{quote(str(id), safe='')}"
    return _with(path + end, **query)


def _with(path: str, **query: str | None) -> str:
    given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _same(answer: Any) -> Any:
    return answer


def _results(answer: Any) -> list[Any]:
    return [errors.from_details(r["error"]) if "error" in r else r for r in answer["results"]]


def push(queue: str, body: Any, options: Mapping[str, Any]) -> Call[types.Pushed]:
    return Call("POST", _queue(queue) + "/messages", _same, encode({"body": body, **options}))


def push_many(messages: Iterable[types.BatchMessage], atomic: bool) -> Call[list[types.Pushed | errors.Error]]:
    return Call("POST", "/v1/messages", _results, {"messages": [encode(m) for m in messages], "atomic": atomic})


def rearm(queue: str, key: str, body: Any, options: Mapping[str, Any]) -> Call[types.Pushed]:
    return Call("PUT", _message(queue, key, None), _same, encode({"body": body, **options}))


def get(queue: str, key: str | None, id: str | None) -> Call[types.Message | types.FinishedMessage]:
    return Call("GET", _message(queue, key, id), _same)


def cancel(queue: str, key: str | None, id: str | None, if_state: str | None) -> Call[None]:
    return Call("DELETE", _message(queue, key, id, if_state=if_state), _same)


def reschedule(queue: str, key: str | None, id: str | None, if_state: str | None, when: Mapping[str, Any]) -> Call[types.Message]:
    return Call("PATCH", _message(queue, key, id, if_state=if_state), _same, encode(when))


def claim(queue: str, key: str | None, id: str | None, if_state: str | None, options: Mapping[str, Any]) -> Call[types.LeasedMessage]:
    return Call("POST", _message(queue, key, id, "/claim", if_state=if_state), _same, encode(options))


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


def list_page(queue: str, after: str, filters: Mapping[str, Any]) -> Call[types.MessagePage]:
    query = {name: str(_text(value)) for name, value in filters.items() if name != "body"}
    body = "true" if filters.get("body") else None
    return Call("GET", _with(_queue(queue) + "/messages", after=after or None, body=body, **query), _same)


def queue(queue: str) -> Call[types.Queue]:
    return Call("GET", _queue(queue), _same)


def lease(request: Mapping[str, Any]) -> Call[types.Leased]:
    return Call("POST", "/v1/lease", _same, encode(request), wait=seconds(request.get("wait") or "0s"))


def end_lease(poll: str) -> Call[types.Counted]:
    return Call("POST", "/v1/lease/end", _same, {"poll": poll})


def settle(settlements: Iterable[types.Settlement]) -> Call[list[types.SettleResult | errors.Error]]:
    return Call("POST", "/v1/settle", _results, {"settlements": [encode(s) for s in settlements]})


def other(method: str, path: str, body: Any) -> Call[Any]:
    return Call(method, path, _same, body)
