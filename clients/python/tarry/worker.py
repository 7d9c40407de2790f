"""The worker leases due messages, handles many at a time, and settles them."""
from __future__ import annotations

import asyncio
import logging
import math
import os
import queue
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from inspect import iscoroutine, iscoroutinefunction
from typing import Any, TypeVar

from . import _calls as calls
from . import errors, types
from ._calls import duration, instant, seconds
from ._pool import AsyncPool
from ._settler import Settler, backoff, patience
from .client import AsyncClient, Client
from .message import DRAINED, LAPSED, LOST, TIMED_OUT, Delivery, Message, Release, Retry, Settled, Snooze, Verdict, settlement_of

log = logging.getLogger("tarry")

Handler = TypeVar("Handler", bound=Callable[[Message], Any])

WAIT = "20s"  # of a long poll
MOST_LEASED = 1000  # messages of a lease call
MOST_UNCONFIRMED = 4096  # results that are not confirmed: beyond it nothing is leased
MOST_RETRY_AFTER = 30.0  # seconds: the server may be back long before what its gateway says
CALLS = 16  # connections at a time
GRACE = 5.0  # seconds for handlers to return once they are to stop, and for the last results
IN_HAND = 5.0  # seconds that a message is snoozed if its handler still runs here


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
        self._ttr = None if ttr is None else seconds(ttr)
        self._handler_timeout, self._drain_timeout = handler_timeout, drain_timeout
        self._on_error = on_error or _log_error
        self._handlers: dict[str, Callable[[Message], Any]] = {}
        self._running: dict[tuple[str, str], Delivery] = {}
        self._renewals: list[Delivery] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._poll_name = ""
        self._jobs: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        self._threads = self._in_threads = 0
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def handle(self, queue: str) -> Callable[[Handler], Handler]:
        """Registers the handler of a queue. When it returns the message is acked; Retry, Snooze, Bury and
        Settled do as they say; any other exception retries the message after its backoff."""

        def register(handler: Handler) -> Handler:
            if queue in self._handlers:
                raise ValueError(f"queue {queue} has a handler already")
            self._handlers[queue] = handler
            return handler

        return register

    def run(self) -> None:
        """Handles messages until SIGTERM, SIGINT or stop, and then drains: it leases nothing more, and lets
        handlers finish for drain_timeout. Those that do not are told to stop: async ones are cancelled,
        others find message.ended set. A TimeoutError says that some had to."""
        asyncio.run(self._run_until_signal())

    async def _run_until_signal(self) -> None:
        for s in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows, or not in the main thread
                asyncio.get_running_loop().add_signal_handler(s, self._signalled)
        await self.run_async()

    def _signalled(self) -> None:
        for s in (signal.SIGTERM, signal.SIGINT):  # a second one kills
            asyncio.get_running_loop().remove_signal_handler(s)
        self.stop()

    def stop(self) -> None:
        """Makes run drain and return. Any thread may call it."""
        self._stopped = True
        self._call_soon(lambda: self._stop.set())

    def _call_soon(self, call: Callable[..., object], *args: Any) -> bool:
        """Has the event loop call something; False: it has ended, or not begun."""
        with suppress(RuntimeError):
            return bool(self._loop and self._loop.call_soon_threadsafe(call, *args))
        return False

    async def run_async(self) -> None:
        """Runs as run does, in the program's own event loop and without signals. It drains when it is cancelled."""
        if self._loop:
            raise ValueError("a worker runs once; make another")
        if not self._handlers or self.concurrency < 1:
            raise ValueError("a worker needs a queue with a handler, and a concurrency of at least 1")
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
            sent, wall = _now(), time.time()
            try:
                leased = await self._pool.send(calls.lease(**request), self._settings.timeout)
            except (errors.Invalid, errors.Unsupported):
                raise
            except errors.Error as e:
                log.warning("cannot lease: %s", e)
                await _within(self._stop.wait(), max(backoff(fails), min(e.retry_after, MOST_RETRY_AFTER)))
                fails += 1
                continue
            finally:
                self._poll_name = ""
            fails = 0
            waited = seconds(leased.get("waited") or "0s")
            self._deliver(leased, sent + waited, wall + waited)

    def _request(self) -> types.LeaseRequest | None:
        """Returns a request for as many messages as there is room for."""
        free = min(self.concurrency - len(self._running), MOST_UNCONFIRMED - self._settler.unconfirmed, MOST_LEASED)
        if free <= 0:
            return None
        self._poll_name = uuid.uuid4().hex
        return {"queues": list(self._handlers), "max": free, "wait": WAIT, "worker": self.name, "poll": self._poll_name,
                "ttr": duration(self._ttr) if self._ttr else None}

    def _deliver(self, leased: types.Leased, sent: float, wall: float) -> None:
        now = instant(leased["now"])
        for q in leased.get("queues", ()):
            if "error" in q:
                log.warning("cannot lease from %s: %s", q["queue"], q["error"]["message"])
        for info in leased["messages"]:
            expires = info["lease_expires"]
            end = sent + instant(expires) - now if expires else math.inf
            d = Delivery(info, sent, wall, end, self._ttr)
            if self._stop.is_set():
                self._settler.add(d, {"do": "release"})
            elif d.place in self._running:
                self._settler.add(d, Snooze(f"{IN_HAND}s").settlement())
            else:
                self._enter(d)

    def _enter(self, d: Delivery) -> None:
        self._running[d.place] = d
        if d.end < math.inf:
            d.renewal = _at(d.renew_at, self._renewal_due, d)
        if d.message.attempt > 2 and self._settler.unconfirmed:
            self._spawn(self._start_alone(d))
        else:
            self._start(d)

    async def _start_alone(self, d: Delivery) -> None:
        """Starts a message that may kill the process once the results of others are safe."""
        await _within(self._settler.confirmed(), GRACE)
        if self._stop.is_set():
            d.stop(DRAINED)
        if d.message.why:
            self._finish(d, Retry(reason=d.message.why))
        else:
            self._start(d)

    def _start(self, d: Delivery) -> None:
        if self._handler_timeout:
            d.timer = _at(_now() + self._handler_timeout, d.stop, TIMED_OUT)
        if iscoroutinefunction(self._handlers[d.message.queue]):
            d.task = asyncio.create_task(self._handle(d))
            return
        self._in_threads += 1
        if self._in_threads > self._threads:
            self._threads += 1
            threading.Thread(target=self._thread, name=f"tarry-{self._threads}", daemon=True).start()
        self._jobs.put(d)

    async def _handle(self, d: Delivery) -> None:
        error: BaseException | None = None
        try:
            self._check(d)
            await self._handlers[d.message.queue](d.message)
        except asyncio.CancelledError:
            error = Retry(reason=d.message.why or "the handler was cancelled")
        except BaseException as e:  # a SystemExit, too, would end the event loop
            error = e
        self._finish(d, error)
        if isinstance(error, KeyboardInterrupt):
            raise error

    def _check(self, d: Delivery) -> None:
        """Lets no handler start whose lease may be over: another one may have held up the event loop, or all threads."""
        if self._loop and d.doubtful(self._loop.time()):
            raise Release()

    def _thread(self) -> None:
        while d := self._jobs.get():
            error: BaseException | None = None
            try:
                self._check(d)
                if iscoroutine(self._handlers[d.message.queue](d.message)):
                    raise TypeError("the handler returned a coroutine: nothing awaits it, as it is not an async def")
            except BaseException as e:
                error = e
            if not self._call_soon(self._returned, d, error):
                return  # the worker has ended without waiting for this handler

    def _returned(self, d: Delivery, error: BaseException | None) -> None:
        self._in_threads -= 1
        self._finish(d, error)

    def _finish(self, d: Delivery, error: BaseException | None) -> None:
        del self._running[d.place]
        for handle in (d.renewal, d.timer):
            if handle:
                handle.cancel()
        if d.message.why == LOST:
            asyncio.get_running_loop().call_soon(self._on_error, d.message, errors.LeaseLost(LOST))
        elif not isinstance(error, Settled):
            settlement = settlement_of(d.message, error)
            self._settler.add(d, settlement)
            if error and settlement["do"] in ("retry", "bury"):
                asyncio.get_running_loop().call_soon(self._on_error, d.message, error)
        self._freed.set()
        if self._stop.is_set() and not self._running:
            self._quiet.set()

    def _renewal_due(self, d: Delivery) -> None:
        if not self._renewals:
            asyncio.get_running_loop().call_soon(lambda: self._spawn(self._renew()))
        self._renewals.append(d)

    async def _renew(self) -> None:
        """Renews leases in one call, each after half its time. A failed call is soon repeated."""
        batch, self._renewals = self._renewals[:MOST_LEASED], self._renewals[MOST_LEASED:]
        if self._renewals:
            self._spawn(self._renew())
        sent, wall = _now(), time.time()
        try:
            extend = calls.settle({"lease": d.message.lease, "do": "extend", "ttr": duration(d.usual)} for d in batch)
            outcomes: list[Any] = await self._pool.send(extend, patience(min(d.end for d in batch)))
        except Exception as e:
            log.warning("%d leases could not be renewed: %s", len(batch), e)
            outcomes = [e] * len(batch)
        for d, outcome in zip(batch, outcomes):
            if self._running.get(d.place) is d and d.message.why in ("", DRAINED):
                self._renewed(d, outcome, sent, wall)

    def _renewed(self, d: Delivery, outcome: Any, sent: float, wall: float) -> None:
        if isinstance(outcome, errors.LeaseLost):
            d.stop(LOST)
        elif isinstance(outcome, errors.Unsupported):
            pass  # it ends when it ends
        elif not isinstance(outcome, Exception):
            d.end, d.wall = max(d.end, sent + d.usual), wall - sent
            d.renewal = _at(d.end - d.usual / 2, self._renewal_due, d)
        elif _now() >= d.end:
            d.stop(LAPSED)
        else:
            d.renewal = _at(min(_now() + d.usual / 16, d.end), self._renewal_due, d)

    async def _end_wait(self) -> None:
        """Ends the poll under way. It may not have reached the server yet."""
        name = self._poll_name
        with suppress(errors.Error):  # then it ends by itself
            while name and name == self._poll_name and not (await self._pool.send(calls.end_lease(name), GRACE))["count"]:
                await asyncio.sleep(0.05)

    async def _drain(self, poll: asyncio.Task[None]) -> None:
        self._stop.set()
        self._freed.set()
        if not poll.done():
            await _within(self._end_wait(), 1)
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

    def _spawn(self, coroutine: Any) -> None:
        self._tasks.add(task := asyncio.create_task(coroutine))
        task.add_done_callback(self._tasks.discard)


def _log_error(m: Message, error: BaseException) -> None:
    trace = None if isinstance(error, (Verdict, errors.LeaseLost)) else error
    log.warning("%s %s, attempt %d: %s", m.queue, m.id, m.attempt, error, exc_info=trace)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _at(when: float, call: Callable[..., object], *args: Any) -> asyncio.Handle:
    return asyncio.get_running_loop().call_at(when, call, *args)


async def _within(awaitable: Any, timeout: float) -> bool:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(awaitable, timeout)
        return True
    return False
