"""A message as a handler gets it, and what a handler may raise to decide what becomes of it."""
from __future__ import annotations

import threading
from typing import Any

from . import types
from ._wire import body, duration, seconds

MOST_REASON = 1024  # bytes that the server keeps


class Message:
    """A message as a handler gets it. info has the rest of what the server tells of it."""

    def __init__(self, info: types.LeasedMessage) -> None:
        self.info = info
        self.body: Any = body(info)  # its JSON value, or bytes
        self.id = info["id"]
        self.queue = info["queue"]
        self.key = info["key"]
        self.attempt = info["attempt"]  # from 1
        self.headers = info["headers"]
        self.lease = info["lease"]  # for a handler that settles the message itself, and then raises Settled
        self.ended = threading.Event()  # the handler is to stop, and why says for what reason
        self.why = ""


class Verdict(Exception):
    """What becomes of a message; the base of what a handler may raise for it."""

    do = ""

    def __init__(self, delay: types.Duration | None = None, reason: object = "") -> None:
        super().__init__(str(reason))
        self.delay = None if delay is None else duration(seconds(delay))

    def settlement(self) -> dict[str, Any]:
        reason = str(self).encode(errors="replace")[:MOST_REASON].decode(errors="ignore")
        return {"do": self.do, **({"delay": self.delay} if self.delay else {}), **({"reason": reason} if reason else {})}


class Retry(Verdict):
    """It failed: again after delay, else after its backoff; dead when its attempts are used up."""

    do = "retry"


class Snooze(Verdict):
    """Not now: again after delay. The attempt does not count."""

    do = "snooze"

    def __init__(self, delay: types.Duration) -> None:
        super().__init__(delay)


class Bury(Verdict):
    """Hopeless: dead at once."""

    do = "bury"

    def __init__(self, reason: object = "") -> None:
        super().__init__(None, reason)


class Settled(Verdict):
    """The handler has settled the message itself."""
