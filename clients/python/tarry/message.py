"""A message on its way through the worker, and what a handler may raise to decide what becomes of it."""
from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from . import types
from ._calls import body, duration, seconds

MOST_REASON = 1024  # bytes that the server keeps

# Why a handler is to stop.
LOST, LAPSED, TIMED_OUT, DRAINED = "the lease is lost", "the lease has ended", "its time is over", "the worker is shutting down"


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


class Release(Verdict):
    """Its handler was not started."""

    do = "release"


class Settled(Verdict):
    """The handler has settled the message itself."""


class Delivery:
    """A message on its way through the worker. Only the event loop changes it."""

    def __init__(self, info: types.LeasedMessage, sent: float, wall: float, end: float, ttr: float | None) -> None:
        self.message = Message(info)
        self.place = (info["queue"], info["id"])
        self.usual = ttr or seconds(info["ttr"])  # how long it is leased by a renewal
        self.end = end  # of the lease, by the event loop's clock; never later than the server's
        self.wall = wall - sent  # what the wall clock was ahead as the lease was asked for
        self.renew_at = end - min(self.usual, end - sent) / 2
        self.renewal: asyncio.Handle | None = None
        self.timer: asyncio.Handle | None = None
        self.task: asyncio.Task[None] | None = None
        self.settlement: Any = None  # what became of it
        self.resent = False  # the settlement was sent before, and the answer was lost

    def doubtful(self, now: float) -> bool:
        """Reports whether the lease may be over, by the clock that stands still while the machine sleeps or by the other."""
        return max(now, time.time() - self.wall) >= self.end

    def stop(self, why: str) -> None:
        """Tells the handler to stop."""
        self.message.why = self.message.why or why
        self.message.ended.set()
        if self.task:
            self.task.cancel()


def settlement_of(m: Message, error: BaseException | None) -> dict[str, Any]:
    """Returns what becomes of a message."""
    if error is None:
        return {"do": "ack"}
    if m.why == DRAINED and (not isinstance(error, Verdict) or str(error) == DRAINED):
        return {"do": "release"}  # it was interrupted: the attempt does not count
    if not isinstance(error, Verdict):
        error = Retry(reason=f"{type(error).__name__}: {_shown(error)}")
    return error.settlement()


def _shown(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its methods are the user's
        return "an error that cannot be shown"
