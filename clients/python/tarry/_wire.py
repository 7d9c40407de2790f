"""How requests are written and answers read, without carrying them."""
from __future__ import annotations

import base64
import json
import os
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from . import errors, types

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
            return self.read(json.loads(body) if body else None)  # type: ignore[no-any-return]
        except (ValueError, LookupError, TypeError) as e:
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
        self.timeout = timeout

    def headers(self, payload: bytes) -> dict[str, str]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        h = {"Host": f"{host}:{self.port}", "User-Agent": f"tarry-python/{VERSION}",
             "Content-Type": "application/json", "Content-Length": str(len(payload))}
        if token := self.token() if callable(self.token) else self.token:
            h["Authorization"] = f"Bearer {token}"
        return h

    def no_answer(self, call: Call[Any], e: BaseException) -> errors.Unavailable:
        return errors.Unavailable(f"{call.method} {call.path}: no answer of {self.host}:{self.port}: {e or type(e).__name__}")
