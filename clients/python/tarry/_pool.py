"""Carries calls over connections of http.client, one for each call under way.

asyncio gets its answers from threads: one implementation of HTTP, the standard library's, is enough for
thousands of messages a second, as they go in batches. To cancel a call shuts its connection down, which
tells the server and ends the thread's wait.
"""
from __future__ import annotations

import asyncio
import http.client
import os
import queue
import socket
import ssl
import threading
import time
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, TypeVar

from ._calls import Call, Settings

T = TypeVar("T")

# Idle connections are kept for less than the three minutes after which a server closes them.
IDLE_SECONDS = 60

CONNECT_SECONDS = 10  # a thread that connects cannot be interrupted


class Exchange:
    """A call under way, which another thread may cut off."""

    connection: http.client.HTTPConnection | None = None
    over = False

    def cut(self) -> None:
        self.over = True
        if self.connection and self.connection.sock:
            with suppress(OSError):  # it has ended
                self.connection.sock.shutdown(socket.SHUT_RDWR)


class Pool:
    """Connections to a server. Threads may share a pool; a fork has connections of its own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._idle: list[tuple[float, int, http.client.HTTPConnection]] = []

    def send(self, call: Call[T], timeout: float = 0, exchange: Exchange | None = None) -> T:
        payload = call.payload()
        headers = self.settings.headers(payload)
        silence = (timeout or self.settings.timeout) + call.wait
        connection = self._take(min(silence, CONNECT_SECONDS))
        try:
            if not connection.sock:
                connection.connect()
            connection.sock.settimeout(silence)
            if exchange:
                exchange.connection = connection
                if exchange.over:
                    raise ConnectionAbortedError("the call was cancelled")
            with suppress(BrokenPipeError, ConnectionResetError):  # a server that refuses a request early may have said why
                connection.request(call.method, self.settings.prefix + call.path, payload, headers)
            response = connection.getresponse()
            body = response.read()
        except BaseException as e:
            connection.close()
            if isinstance(e, (OSError, http.client.HTTPException, OverflowError, MemoryError)):
                raise self.settings.no_answer(call, e) from e
            raise
        if response.will_close or exchange and exchange.over:
            connection.close()
        else:
            with self._lock:
                self._idle.append((time.monotonic(), os.getpid(), connection))
        return call.answer(response.status, body, response.getheader("Retry-After", ""))

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                since, pid, connection = self._idle.pop()
            if pid == os.getpid() and time.monotonic() - since < IDLE_SECONDS and not _ended(connection):
                return connection
            connection.close()
        s = self.settings
        if s.tls:
            return http.client.HTTPSConnection(s.host, s.port, timeout=timeout, context=s.tls)
        return http.client.HTTPConnection(s.host, s.port, timeout=timeout)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, _, connection in idle:
            connection.close()


def _ended(connection: http.client.HTTPConnection) -> bool:
    """Reports whether an idle connection has something to read: its end, or what nobody asked for."""
    try:
        connection.sock.settimeout(0)
        connection.sock.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        pass
    return True


class Threads(Executor):
    """Daemon threads. Those of a ThreadPoolExecutor take no calls once the main thread has ended, and hold up the exit."""

    ended = False

    def __init__(self, most: int) -> None:
        self._most, self._started, self._idle = most, 0, threading.Semaphore(0)
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def submit(self, fn: Any, /, *args: Any, **options: Any) -> Future[Any]:
        if self.ended:
            raise RuntimeError("the client is closed")
        future: Future[Any] = Future()
        self._jobs.put((future, fn, args))
        if not self._idle.acquire(blocking=False) and self._started < self._most:
            self._started += 1
            threading.Thread(target=self._run, name="tarry-call", daemon=True).start()
        return future

    def _run(self) -> None:
        while job := self._jobs.get():
            future, fn, args = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args))
                except BaseException as e:
                    future.set_exception(e)
            del job, future, fn, args
            self._idle.release()

    def end(self) -> None:
        self.ended = True
        for _ in range(self._started):
            self._jobs.put(None)


class AsyncPool:
    """A Pool for asyncio. More calls than connections wait."""

    def __init__(self, settings: Settings, connections: int) -> None:
        self._pool = Pool(settings)
        self._connections = connections
        self._start_threads()

    def _start_threads(self) -> None:
        self._pid, self._threads = os.getpid(), Threads(self._connections)

    async def send(self, call: Call[T], timeout: float = 0) -> T:
        """timeout, if given, bounds the whole call and not only the server's silence."""
        if self._pid != os.getpid():  # a fork has none of its parent's threads
            self._start_threads()
        exchange = Exchange()
        try:
            sent: asyncio.Future[T] = asyncio.get_running_loop().run_in_executor(self._threads, self._pool.send, call, timeout, exchange)
            return await asyncio.wait_for(sent, timeout + call.wait if timeout else None)
        except (asyncio.CancelledError, asyncio.TimeoutError) as e:
            exchange.cut()
            if isinstance(e, asyncio.TimeoutError):
                raise self._pool.settings.no_answer(call, e) from e
            raise

    async def close(self) -> None:
        self._threads.end()
        self._pool.close()

    def __del__(self) -> None:
        self._threads.end()
