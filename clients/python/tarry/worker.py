"""The worker leases due messages, handles many at a time, and settles them."""
from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import math
import os
import queue
import signal
import socket
import threading
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _calls as calls
from . import errors, types
from ._pool import AsyncPool
from ._settler import Result, Settler, backoff, patience
from .client import AsyncClient, Client
from .message import Message, Retry, Settled, Snooze, Verdict

log = logging.getLogger("tarry")

Handler = TypeVar("Handler", bound=Callable[[Message], Any])

WAIT = "20s"  # of a long poll
MOST_LEASED = 1000  # messages of a lease call
MOST_UNCONFIRMED = 4096  # results that are not confirmed: beyond it nothing is leased
CALLS = 16  # connections at a time
GRACE = 5.0  # seconds for handlers to return once they are to stop, and for the last results
IN_HAND = 5.0  # seconds that a message is snoozed if its handler still runs here

# Why a handler is to stop.
LOST, LAPSED, TIMED_OUT, DRAINED = "the lease is lost", "the lease has ended", "its time is over", "the worker is shutting down"


@dataclass
class _Handling:
    handler: Callable[[Message], Any]
    slots: int | None
    timeout: float | None
    is_async: bool
    running: int = 0


class _Delivery:
    """A message on its way through the worker. Only the event loop changes it."""

    def __init__(self, info: types.LeasedMessage, handling: _Handling, sent: float, end: float, ttr: float | None) -> None:
        self.message = Message(info)
        self.place = (info["queue"], info["id"])
        self.name = f"{info['queue']} {info['id']}"
        self.handling = handling
        self.usual = ttr or calls.seconds(info["ttr"])  # how long it is leased by a renewal
        self.end = end  # of the lease; never later than the server's
        self.renew_at = end - min(self.usual, end - sent) / 2
        self.renewal: asyncio.Handle | None = None
        self.timer: asyncio.Handle | None = None
        self.task: asyncio.Task[None] | None = None

    def result(self, settlement: dict[str, Any]) -> Result:
        return Result(self.name, self.end, {"lease": self.message.lease, **settlement})

    def stop(self, why: str) -> None:
        """Tells the handler to stop."""
        self.message.why = self.message.why or why
        self.message.ended.set()
        if self.task:
            self.task.cancel()


class Worker:
    """Leases due messages of its queues and handles many at a time.

    concurrency: messages handled at a time; handlers that are not async run in so many threads
    ttr: how long a lease lasts without renewal; default each message's own
    name: default host:pid
    handler_timeout, drain_timeout: seconds; beyond them handlers are told to stop
    on_error: gets each failed message and its error; default: the logger "tarry"
    """

    def __init__(self, client: Client | AsyncClient, *, concurrency: int = 100, ttr: types.Duration | None = None,
                 name: str | None = None, handler_timeout: float | None = None, drain_timeout: float = 30,
                 on_error: Callable[[Message, BaseException], object] | None = None) -> None:
        self._settings = client.settings
        self.concurrency = concurrency
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"[-100:]
        self._ttr = None if ttr is None else calls.seconds(ttr)
        self._handler_timeout, self._drain_timeout = handler_timeout, drain_timeout
        self._on_error = on_error or self._log_error
        self._handlings: dict[str, _Handling] = {}
        self._running: dict[tuple[str, str], _Delivery] = {}
        self._left_out: set[str] = set()  # queues without room, which the poll under way does not name
        self._renewals: list[_Delivery] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._polls = (f"{uuid.uuid4().hex}-{n}" for n in itertools.count())
        self._poll_name = ""
        self._jobs: queue.SimpleQueue[_Delivery | None] = queue.SimpleQueue()
        self._threads = self._in_threads = 0
        self._returned: deque[tuple[_Delivery, BaseException | None]] = deque()
        self._collecting = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False

    def handle(self, queue: str, *, concurrency: int | None = None, timeout: float | None = None) -> Callable[[Handler], Handler]:
        """Registers the handler of a queue. When it returns the message is acked; Retry, Snooze, Bury and
        Settled do as they say; any other exception retries the message after its backoff."""

        def register(handler: Handler) -> Handler:
            if queue in self._handlings:
                raise ValueError(f"queue {queue} has a handler already")
            is_async = inspect.iscoroutinefunction(handler)
            self._handlings[queue] = _Handling(handler, concurrency, timeout or self._handler_timeout, is_async)
            return handler

        return register

    def run(self) -> None:
        """Handles messages until SIGTERM, SIGINT or stop, and then drains: it leases nothing more, and lets
        handlers finish for drain_timeout. Those that do not are told to stop: async ones are cancelled,
        others find message.ended set. A TimeoutError says that some had to."""
        asyncio.run(self._run_until_signal())

    async def _run_until_signal(self) -> None:
        for s in (signal.SIGTERM, signal.SIGINT):
            try:
                asyncio.get_running_loop().add_signal_handler(s, self.stop)
            except (NotImplementedError, RuntimeError, ValueError):
                pass  # on Windows, or not in the main thread
        await self.run_async()

    def stop(self) -> None:
        """Makes run drain and return. Any thread may call it."""
        self._stopped = True
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    async def run_async(self) -> None:
        """Is run within a program's own event loop, without signals. When it is cancelled it drains too."""
        if not self._handlings:
            raise ValueError("no handler is registered")
        self._loop = asyncio.get_running_loop()
        self._stop, self._freed, self._quiet = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._pool = AsyncPool(self._settings, CALLS)
        self._settler = Settler(self._pool, self._freed.set)
        if self._stopped:
            self._stop.set()
        poll, stop = asyncio.create_task(self._poll()), asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({poll, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            await self._drain(poll)

    async def _poll(self) -> None:
        fails = 0
        while not self._stop.is_set():
            request = self._request()
            if not request:
                self._freed.clear()
                await self._freed.wait()
                continue
            sent = self._now()
            try:
                leased = await self._pool.send(calls.lease(request))
            except (errors.Invalid, errors.Unsupported):
                raise
            except errors.Error as e:
                pause = max(backoff(fails), e.retry_after)
                log.warning("cannot lease, trying again in %.1f s: %s", pause, e)
                await _within(self._stop.wait(), pause)
                fails += 1
                continue
            fails = 0
            self._deliver(leased, sent + calls.seconds(leased.get("waited") or "0s"))

    def _request(self) -> types.LeaseRequest | None:
        """Returns a request for as many messages as there is room for."""
        free = min(self.concurrency - len(self._running), MOST_UNCONFIRMED - self._settler.unconfirmed, MOST_LEASED)
        room = {q: h.slots - h.running for q, h in self._handlings.items() if h.slots}
        self._left_out = {q for q, n in room.items() if n <= 0}
        queues = [q for q in self._handlings if q not in self._left_out]
        if free <= 0 or not queues:
            return None
        self._poll_name = next(self._polls)
        return {"queues": queues, "max": free, "wait": WAIT, "worker": self.name, "poll": self._poll_name,
                "ttr": calls.duration(self._ttr) if self._ttr else None,
                "room": [{"queue": q, "max": min(n, MOST_LEASED)} for q, n in room.items() if n > 0]}

    def _deliver(self, leased: types.Leased, sent: float) -> None:
        now = calls.instant(leased["now"])
        for q in leased.get("queues", ()):
            if "error" in q:
                log.warning("cannot lease from %s: %s", q["queue"], q["error"]["message"])
        for info in leased["messages"]:
            expires = info["lease_expires"]
            end = sent + calls.instant(expires) - now if expires else math.inf
            d = _Delivery(info, self._handlings[info["queue"]], sent, end, self._ttr)
            if self._stop.is_set():
                self._settler.add(d.result({"do": "release"}))
            elif d.place in self._running:
                self._settler.add(d.result(Snooze(f"{IN_HAND}s").settlement()))
            elif end <= self._now():
                log.warning("%s: its lease ended before it came; its time to run is too short", d.name)
            else:
                self._enter(d)

    def _enter(self, d: _Delivery) -> None:
        self._running[d.place] = d
        d.handling.running += 1
        if d.end < math.inf:
            d.renewal = self._at(d.renew_at, self._renewal_due, d)
        if d.message.attempt > 2 and self._settler.unconfirmed:
            self._spawn(self._start_alone(d))
        else:
            self._start(d)

    async def _start_alone(self, d: _Delivery) -> None:
        """Starts a message that may kill the process once the results of others are safe."""
        await _within(self._settler.confirmed(), GRACE)
        self._start(d)

    def _start(self, d: _Delivery) -> None:
        if d.handling.timeout:
            d.timer = self._at(self._now() + d.handling.timeout, d.stop, TIMED_OUT)
        if d.handling.is_async:
            d.task = asyncio.create_task(self._handle(d))
            return
        self._in_threads += 1
        if self._in_threads > self._threads:
            self._threads += 1
            threading.Thread(target=self._thread, name=f"tarry-{self._threads}", daemon=True).start()
        self._jobs.put(d)

    async def _handle(self, d: _Delivery) -> None:
        error: BaseException | None = None
        try:
            await d.handling.handler(d.message)
        except asyncio.CancelledError:
            error = Retry(reason=d.message.why or "the handler was cancelled")
        except Exception as e:
            error = e
        self._finish(d, error)

    def _thread(self) -> None:
        while d := self._jobs.get():
            error: BaseException | None = None
            try:
                d.handling.handler(d.message)
            except BaseException as e:
                error = e
            self._returned.append((d, error))
            if not self._collecting:
                self._collecting = True
                try:
                    self._running_loop().call_soon_threadsafe(self._collect)
                except RuntimeError:
                    return  # the worker has ended without waiting for this handler

    def _collect(self) -> None:
        """Takes what threads have returned."""
        self._collecting = False
        while self._returned:
            self._in_threads -= 1
            self._finish(*self._returned.popleft())

    def _finish(self, d: _Delivery, error: BaseException | None) -> None:
        del self._running[d.place]
        d.handling.running -= 1
        for handle in (d.renewal, d.timer):
            if handle:
                handle.cancel()
        if error and not isinstance(error, (Snooze, Settled)):
            self._tell(d.message, error)
        if d.message.why == LOST:
            log.warning("%s: %s", d.name, LOST)
        elif not isinstance(error, Settled):
            self._settler.add(d.result(_settlement(d.message, error)))
        self._freed.set()
        if d.message.queue in self._left_out:
            self._left_out.clear()
            self._spawn(self._end_wait())
        if self._stop.is_set() and not self._running:
            self._quiet.set()

    def _tell(self, m: Message, error: BaseException) -> None:
        try:
            self._on_error(m, error)
        except Exception:
            log.exception("on_error failed")

    @staticmethod
    def _log_error(m: Message, error: BaseException) -> None:
        trace = None if isinstance(error, Verdict) else error
        log.warning("%s %s, attempt %d: %s", m.queue, m.id, m.attempt, _reason(error), exc_info=trace)

    def _renewal_due(self, d: _Delivery) -> None:
        if not self._renewals:
            self._running_loop().call_soon(lambda: self._spawn(self._renew()))
        self._renewals.append(d)

    async def _renew(self) -> None:
        """Renews leases in one call, each after half its time. A failed call is soon repeated."""
        batch, self._renewals = self._renewals, []
        sent = self._now()
        extend: list[types.Settlement] = [
            {"lease": d.message.lease, "do": "extend", "ttr": calls.duration(d.usual)} for d in batch]
        outcomes: list[Any]
        try:
            outcomes = await self._pool.send(calls.settle(extend), patience(min(d.end for d in batch)))
        except errors.Error as e:
            log.warning("%d leases could not be renewed: %s", len(batch), e)
            outcomes = [e] * len(batch)
        for d, outcome in zip(batch, outcomes):
            if self._running.get(d.place) is d and d.message.why in ("", DRAINED):
                self._renewed(d, outcome, sent)

    def _renewed(self, d: _Delivery, outcome: Any, sent: float) -> None:
        if isinstance(outcome, errors.LeaseLost):
            d.stop(LOST)
        elif isinstance(outcome, errors.Unsupported):
            pass  # it ends when it ends
        elif not isinstance(outcome, errors.Error):
            d.end = max(d.end, sent + d.usual)
            d.renewal = self._at(d.end - d.usual / 2, self._renewal_due, d)
        elif self._now() >= d.end:
            d.stop(LAPSED)
        else:
            d.renewal = self._at(min(self._now() + d.usual / 16, d.end), self._renewal_due, d)

    async def _end_wait(self) -> None:
        """Ends the poll under way, so that the next asks anew; the server says what was leased."""
        try:
            await self._pool.send(calls.end_lease(self._poll_name), GRACE)
        except errors.Error as e:
            log.warning("cannot end a wait: %s", e)

    async def _drain(self, poll: asyncio.Task[None]) -> None:
        self._stop.set()
        self._freed.set()
        if not poll.done():
            await self._end_wait()
            await asyncio.wait({poll}, timeout=1)
            poll.cancel()  # closes its connection: the server releases what it has leased
        cut = 0
        if self._running and not await _within(self._quiet.wait(), self._drain_timeout):
            cut = len(self._running)
            for d in list(self._running.values()):
                d.stop(DRAINED)
            await _within(self._quiet.wait(), GRACE)
        unsent = await self._settler.close(GRACE)
        for _ in range(self._threads):
            self._jobs.put(None)
        await self._pool.close()
        if not poll.cancelled() and poll.done():
            poll.result()
        if cut or unsent:
            raise TimeoutError(f"{cut} handlers were told to stop, {len(self._running)} of them have not; "
                               f"{unsent} results could not be sent")

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop
        return self._loop

    def _now(self) -> float:
        return self._running_loop().time()

    def _at(self, when: float, call: Callable[..., object], *args: Any) -> asyncio.Handle:
        return self._running_loop().call_at(when, call, *args)

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _within(awaitable: Any, seconds: float) -> bool:
    try:
        await asyncio.wait_for(awaitable, seconds)
        return True
    except asyncio.TimeoutError:
        return False


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, Verdict) else f"{type(error).__name__}: {error}"


def _settlement(m: Message, error: BaseException | None) -> dict[str, Any]:
    """Returns what becomes of a message."""
    if error is None:
        return {"do": "ack"}
    if m.why == DRAINED and (not isinstance(error, Verdict) or str(error) == DRAINED):
        return {"do": "release"}  # it was interrupted: the attempt does not count
    if not isinstance(error, Verdict):
        error = Retry(reason=_reason(error))
    return error.settlement()
