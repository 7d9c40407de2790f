"""Sends the results of handlers in batches."""
from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from . import _calls as calls
from . import errors
from ._pool import AsyncPool
from .message import Delivery

log = logging.getLogger("tarry")

LANES = 2  # a call that hangs does not hold up the next
MOST = 1000  # results of a call
WORTH = 256  # results that are sent at once; fewer gather for PACE seconds
PACE = 0.005
FINAL = (errors.LeaseLost, errors.Invalid, errors.NotFound, errors.TooLarge, errors.Unsupported)


def backoff(fails: int) -> float:
    """Returns how many seconds to wait after so many failures in a row, from 0."""
    return float(min(0.05 * 2 ** min(fails, 10), 5) * random.uniform(0.5, 1))


def patience(end: float) -> float:
    """Returns how many seconds a call may take so that it can be repeated before a lease ends."""
    return min(10, max(0.25, (end - asyncio.get_running_loop().time()) / 4))


class Settler:
    """Repeats results that could not be sent until their leases end. freed is called as they are done."""

    def __init__(self, pool: AsyncPool, freed: Callable[[], None]) -> None:
        self.unconfirmed = 0
        self._pool, self._freed = pool, freed
        self._done = 0
        self._waiting: list[Delivery] = []
        self._some, self._progress = asyncio.Event(), asyncio.Event()
        self._lanes = [asyncio.create_task(self._lane()) for _ in range(LANES)]

    def add(self, d: Delivery, settlement: Any) -> None:
        d.settlement = {"lease": d.message.lease, **settlement}
        self.unconfirmed += 1
        self._waiting.append(d)
        self._some.set()

    async def confirmed(self) -> None:
        """Waits until as many results are confirmed or given up as there are now."""
        until = self._done + self.unconfirmed
        while self._done < until:
            await self._progress.wait()

    async def close(self, timeout: float) -> int:
        """Waits for the last results, and returns how many could not be sent."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.confirmed(), timeout)
        for lane in self._lanes:
            lane.cancel()
        return self.unconfirmed

    async def _lane(self) -> None:
        while True:
            await self._some.wait()
            if len(self._waiting) < WORTH:
                await asyncio.sleep(PACE)
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            if not self._waiting:
                self._some.clear()
            await self._send(batch)

    async def _send(self, batch: list[Delivery]) -> None:
        fails = 0
        while batch:
            try:
                settle = calls.settle(d.settlement for d in batch)
                outcomes: list[Any] = await self._pool.send(settle, patience(min(d.end for d in batch)))
            except Exception as e:
                if isinstance(e, FINAL) and len(batch) > 1:  # one of them is to blame
                    for d in batch:
                        await self._send([d])
                    return
                log.warning("%d results could not be sent: %s", len(batch), e)
                outcomes = [e] * len(batch)
            batch = [d for d, outcome in zip(batch, outcomes) if not self._final(d, outcome)]
            if batch:
                await asyncio.sleep(backoff(fails))
                fails += 1

    def _final(self, d: Delivery, outcome: Any) -> bool:
        """Notes the outcome of a result; False: it is to be sent again."""
        if isinstance(outcome, Exception):
            if not isinstance(outcome, FINAL) and asyncio.get_running_loop().time() < d.end:
                d.resent = True
                return False
            counted = " before, or it may have counted" if d.resent and isinstance(outcome, errors.LeaseLost) else ""
            log.warning("%s %s: its result was not taken%s: %s", *d.place, counted, outcome)
        self.unconfirmed -= 1
        self._done += 1
        self._progress.set()
        self._progress = asyncio.Event()
        self._freed()
        return True
