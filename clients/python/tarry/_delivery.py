"""A message on its way through the worker."""
from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import types
from ._wire import seconds
from .message import Message, Retry, Verdict

# Why a handler is to stop.
LOST, LAPSED, TIMED_OUT, DRAINED = "the lease is lost", "the lease has ended", "its time is over", "the worker is shutting down"


@dataclass
class Handling:
    handler: Callable[[Message], Any]
    slots: int | None
    timeout: float | None
    is_async: bool
    running: int = 0


class Delivery:
    """A message on its way through the worker. Only the event loop changes it."""

    def __init__(self, info: types.LeasedMessage, handling: Handling, sent: float, end: float, ttr: float | None) -> None:
        self.message = Message(info)
        self.place = (info["queue"], info["id"])
        self.handling = handling
        self.usual = ttr or seconds(info["ttr"])  # how long it is leased by a renewal
        self.end = end  # of the lease; never later than the server's
        self.renew_at = end - min(self.usual, end - sent) / 2
        self.renewal: asyncio.Handle | None = None
        self.timer: asyncio.Handle | None = None
        self.task: asyncio.Task[None] | None = None
        self.settlement: Any = None  # what became of it
        self.resent = False  # the settlement was sent before, and the answer was lost

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
        error = Retry(reason=f"{type(error).__name__}: {error}")
    return error.settlement()
