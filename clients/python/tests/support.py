"""Servers and clients for the tests. TARRY_BINARY is the path of the command tarry."""
from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable
from typing import Any

import tarry

PATIENCE = 60.0  # seconds that something may take on a busy machine


class Server:
    """A tarry serve of its own. It comes back on the same address and store after kill."""

    def __init__(self, store: str = "mem:", *args: str) -> None:
        self.store, self.args, self.address = store, args, "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        command = [os.environ["TARRY_BINARY"], "serve", "--store", self.store, "--http", self.address, *self.args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        line = self.process.stdout.readline()
        self.url = line.rpartition(" listens on ")[2].strip()
        self.address = self.url.rpartition("/")[2]
        if not self.address:
            raise AssertionError(f"the server said {line!r}")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.communicate(timeout=PATIENCE)


class ServerTest(unittest.TestCase):
    """Has a server in memory, and a client of it."""

    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.addClassCleanup(cls.server.kill)

    def setUp(self) -> None:
        self.client = tarry.Client(self.server.url)
        self.addCleanup(self.client.close)
        self.q = self.id().rpartition(".")[2] + "." + type(self).__name__

    def directory(self) -> str:
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        return d.name

    def await_(self, event: threading.Event) -> None:
        self.assertTrue(event.wait(PATIENCE), "it did not happen")


def answering(test: unittest.TestCase, *answer: bytes) -> str:
    """Returns the URL of what sends these bytes, whatever it is asked, and then hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        with listener:
            while not ended.is_set():
                connection, _ = listener.accept()
                with connection, contextlib.suppress(ConnectionError):  # the client may hang up first
                    connection.recv(1 << 16)
                    for part in answer:
                        connection.sendall(part)
                        if len(answer) > 1:
                            ended.wait(0.05)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    address = listener.getsockname()

    def end() -> None:
        ended.set()
        with contextlib.suppress(ConnectionError):  # it may have ended already
            socket.create_connection(address).close()
        thread.join(PATIENCE)

    test.addCleanup(end)
    return f"http://127.0.0.1:{address[1]}"


class Blocking:
    """An AsyncClient that is used like a Client, on an event loop of its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = tarry.AsyncClient(*args, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)

        def call(*args: Any, **options: Any) -> Any:
            answer = method(*args, **options)
            return self.loop.run_until_complete(_all(answer) if inspect.isasyncgen(answer) else answer)

        return call

    def close(self) -> None:
        self.loop.run_until_complete(self.client.close())
        self.loop.close()


async def _all(generator: Any) -> list[Any]:
    return [item async for item in generator]


class Running:
    """A worker that runs in a thread until the test ends."""

    def __init__(self, test: unittest.TestCase, worker: tarry.Worker) -> None:
        self.worker = worker
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        test.addCleanup(self.thread.join, PATIENCE)
        test.addCleanup(worker.stop)

    def _run(self) -> None:
        try:
            self.worker.run()
        except BaseException as e:
            self.error = e

    def stop(self) -> BaseException | None:
        self.worker.stop()
        return self.join()

    def join(self) -> BaseException | None:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive(), "the worker did not end"
        return self.error


def python(*args: str, **env: str) -> subprocess.Popen[str]:
    """Starts a Python of its own, which finds the client."""
    path = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return subprocess.Popen([sys.executable, "-u", *args], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": path, **env})
