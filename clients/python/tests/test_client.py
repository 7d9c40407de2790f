"""Both clients make the same calls on a real server."""
from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import signal
import socket
import ssl
import subprocess
import threading
import unittest
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any
from unittest import mock

import tarry
from tarry import _calls

from .support import PATIENCE, Blocking, Server, ServerTest, answering

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]


class Calls(ServerTest):
    make: Any = tarry.Client

    def setUp(self) -> None:
        super().setUp()
        self.client: Any = self.make(self.server.url)
        self.addCleanup(self.client.close)

    def lease(self) -> Any:
        return self.client.lease(queues=[self.q], wait="20s")["messages"][0]

    def test_push_get_cancel(self) -> None:
        pushed = self.client.push(self.q, {"id": 42}, delay="30m", key="a/ö 42", headers={"shop": "1"}, backoff=["1s", timedelta(minutes=1)])
        self.assertEqual((pushed["outcome"], pushed["state"]), ("created", "scheduled"))
        got = self.client.get(self.q, "a/ö 42")
        self.assertEqual((tarry.body(got), got["id"], got["headers"], got["backoff"]), ({"id": 42}, pushed["id"], {"shop": "1"}, ["1s", "1m"]))
        self.assertEqual(self.client.get(self.q, id=pushed["id"])["key"], "a/ö 42")
        self.client.cancel(self.q, "a/ö 42")
        with self.assertRaises(tarry.NotFound) as e:
            self.client.cancel(self.q, "a/ö 42")
        self.assertEqual((e.exception.status, e.exception.code), (404, "not_found"))

    def test_a_key_is_held(self) -> None:
        first = self.client.push(self.q, 1, delay="1h", key="k")
        with self.assertRaises(tarry.Exists) as e:
            self.client.push(self.q, 2, key="k")
        details = e.exception.details
        assert details
        self.assertEqual((details["id"], details["state"]), (first["id"], "scheduled"))
        self.assertIn("on_conflict", e.exception.hint)
        self.assertEqual(str(e.exception), f"{e.exception.message} ({e.exception.hint})")
        self.assertEqual(self.client.push(self.q, 2, key="k", on_conflict="keep")["outcome"], "kept")
        self.client.rearm(self.q, "k", 3, delay="2h")
        self.assertEqual(tarry.body(self.client.get(self.q, "k")), 1)

    def test_bodies(self) -> None:
        for body in (None, "text", 2**63, [1.5, {"a": "\x00é😀"}], b"", b"\x00\xff"):
            self.client.push(self.q, body, content_type="image/png" if isinstance(body, bytes) else None)
            self.assertEqual(tarry.body(self.lease()), body)
        with self.assertRaises(ValueError):
            self.client.push(self.q, float("nan"))

    def test_times(self) -> None:
        due = datetime(2040, 1, 2, 3, 4, 5, 678000, timezone(timedelta(hours=2)))
        self.assertEqual(self.client.push(self.q, 0, due=due)["due"], "2040-01-02T01:04:05.678Z")
        with self.assertRaises(ValueError):
            self.client.push(self.q, 0, due=datetime.now())
        self.client.push(self.q, 0, key="k", delay=timedelta(days=2), ttr=timedelta(milliseconds=1500))
        self.assertEqual(self.client.get(self.q, "k")["ttr"], "1.5s")
        moved = self.client.reschedule(self.q, "k", due=due)
        self.assertEqual(moved["due"], "2040-01-02T01:04:05.678Z")

    def test_push_many(self) -> None:
        messages = [{"queue": self.q, "body": b"1", "key": "k"}, {"queue": self.q, "body": 2, "key": "k"}, {"queue": self.q, "delay": timedelta(1)}]
        good, bad, late = self.client.push_many(messages)
        self.assertEqual((good["outcome"], late["state"]), ("created", "scheduled"))
        self.assertIsInstance(bad, tarry.Exists)
        with self.assertRaises(tarry.Exists):
            self.client.push_many([{"queue": self.q, "key": "new"}, {"queue": self.q, "key": "k"}], atomic=True)
        with self.assertRaises(tarry.NotFound):
            self.client.get(self.q, "new")

    def test_claim_and_settle(self) -> None:
        self.client.push(self.q, 1, delay="1h", key="k")
        with self.assertRaises(tarry.NotDue) as e:
            self.client.claim(self.q, "k")
        self.assertEqual(e.exception.details and e.exception.details["code"], "not_due")
        m = self.client.claim(self.q, "k", if_state="scheduled", ttr="30s", worker="tests")
        with self.assertRaises(tarry.Leased):
            self.client.cancel(self.q, "k")
        with self.assertRaises(tarry.Stale):
            self.client.cancel(self.q, "k", if_state="ready")
        buried, lost = self.client.settle([{"lease": m["lease"], "do": "bury", "reason": "why"}, {"lease": m["lease"], "do": "ack"}])
        self.assertEqual(buried["state"], "dead")
        self.assertIsInstance(lost, tarry.LeaseLost)
        dead, = self.client.list(self.q, state="dead")
        self.assertEqual((dead["last_error"], dead["failures"][0]["worker"]), ("why", "tests"))
        self.client.cancel(self.q, id=m["id"])

    def test_list(self) -> None:
        pushed = [self.client.push(self.q, n, key=f"{n % 2}-{n}", delay=timedelta(hours=n + 1))["id"] for n in range(5)]
        listed = list(self.client.list(self.q, limit=2, body=True))
        self.assertEqual([(m["id"], tarry.body(m)) for m in listed], list(zip(pushed, range(5))))
        after = datetime.now(timezone.utc) + timedelta(hours=2, minutes=30)
        self.assertEqual([m["id"] for m in self.client.list(self.q, state="scheduled", from_=after, order="desc")], pushed[:1:-1])
        self.assertEqual([m["id"] for m in self.client.list(self.q, key_prefix="1-")], pushed[1::2])
        self.assertEqual(self.client.queue(self.q)["scheduled"], 5)
        self.assertEqual(self.client.call("POST", f"/v1/queues/{self.q}/purge", {})["count"], 5)

    def test_wrong_requests(self) -> None:
        with self.assertRaisesRegex(tarry.Invalid, "^priority"):
            self.client.push(self.q, 1, priority=-1)
        with self.assertRaises(tarry.TooLarge) as e:
            self.client.push(self.q, "x" * (9 << 20))
        self.assertEqual(e.exception.status, 413)
        self.client.call("PUT", f"/v1/queues/{self.q}/settings", {"settings": {"max_pending": 1}, "revision": "0"})
        self.client.push(self.q, 1)
        with self.assertRaises(tarry.Limit) as limited:
            self.client.push(self.q, 1)
        self.assertEqual((limited.exception.status, limited.exception.retry_after), (429, 1))
        with self.assertRaises(ValueError):
            self.client.get(self.q)
        with self.assertRaises(ValueError):
            self.make("ftp://127.0.0.1")

    def test_a_server_that_went_and_came(self) -> None:
        server = Server()
        self.addCleanup(lambda: server.kill())
        client: Any = self.make(server.url)
        self.addCleanup(client.close)
        client.push(self.q, 1)
        server.kill()
        with self.assertRaises(tarry.Unavailable) as e:
            client.push(self.q, 1)
        self.assertEqual(e.exception.status, 0)
        server.start()
        self.assertEqual(client.push(self.q, 1)["outcome"], "created")
        server.kill()
        server.start()  # the idle connection has ended unnoticed
        self.assertEqual(client.push(self.q, 1)["outcome"], "created")

    def test_not_a_server_of_ours(self) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            status = 200

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(self.status)
                if self.status == 503:
                    self.send_header("Retry-After", "7")
                self.end_headers()
                self.wfile.write(b"<html>")
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        threading.Thread(target=proxy.serve_forever).start()
        client: Any = self.make(f"http://127.0.0.1:{proxy.server_port}")
        self.addCleanup(client.close)
        for status in 200, 302, 404, 503:
            Handler.status = status
            with self.assertRaisesRegex(tarry.Unavailable, "<html>") as e:
                client.push(self.q, 1)
            self.assertEqual((e.exception.status, e.exception.retry_after), (status, 7 if status == 503 else 0))

    def test_answers_that_are_none(self) -> None:
        def say(body: bytes, length: int = 0, status: str = "200 OK") -> bytes:
            return f"HTTP/1.1 {status}\r\nContent-Length: {length or len(body)}\r\n\r\n".encode() + body

        for answer in (b"", b"\x00\r\n\r\n", say(b"{}", 10), say(b"{}", 10**13), say(b"{}", 10**20), say(b"[" * 10**5),
                       say(b"[" * 10**5, status="409 Conflict"), say(b"{}"), say(b"null"), say(b'{"results":[]}'), say(b'{"results":[null]}'),
                       b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"):
            client: Any = self.make(answering(self, answer), timeout=PATIENCE)
            self.addCleanup(client.close)
            calls: list[Callable[[], object]] = [lambda: client.push_many([{"queue": "q"}]), lambda: list(client.list("q")), lambda: client.lease(queues=["q"])]
            for call in calls:
                with self.subTest(answer[:80]), self.assertRaises(tarry.Unavailable):
                    call()

    def test_a_number_with_many_digits(self) -> None:
        digits = "12" * 5000
        self.client.push(self.q, f'{{"n":{digits}}}'.encode(), content_type="application/json")
        self.assertEqual(str(tarry.body(self.lease())["n"]), digits)

    def test_parts_of_a_path(self) -> None:
        for name in "", ".", "..":
            calls: list[Callable[[], object]] = [lambda: self.client.cancel(self.q, name), lambda: self.client.get(self.q, id=name), lambda: self.client.push(name, 1)]
            for call in calls:
                with self.assertRaisesRegex(ValueError, "cannot be part of a path"):
                    call()

    def test_a_connection_that_does_not_come_about(self) -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as held:
            for _ in range(8):  # nobody accepts them, and the last wait
                waiting = held.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())
            client: Any = self.make(f"http://127.0.0.1:{full.getsockname()[1]}", timeout=10 * PATIENCE)
            self.addCleanup(client.close)
            with mock.patch("tarry._pool.CONNECT_SECONDS", 0.1), self.assertRaisesRegex(tarry.Unavailable, "timed out"):
                client.push(self.q, 1)

    def test_tls_and_tokens(self) -> None:
        cert, key = os.environ["TARRY_TEST_CERT"], os.environ["TARRY_TEST_KEY"]
        tokens = os.path.join(self.directory(), "tokens.json")
        made = subprocess.run([os.environ["TARRY_BINARY"], "token", "create", "shop", "--scope", "push", "--tokens", tokens],
                              capture_output=True, text=True, check=True)
        server = Server("mem:", "--tokens", tokens, "--tls-cert", cert, "--tls-key", key)
        self.addCleanup(server.kill)
        trust = ssl.create_default_context(cafile=cert)
        for token, error in ("wrong", tarry.Unauthorized), (lambda: made.stdout.split()[-1], tarry.Forbidden):
            client: Any = self.make(server.url, token=token, tls=trust)
            self.addCleanup(client.close)
            if error is tarry.Forbidden:
                client.push(self.q, 1, key="k")
            with self.assertRaises(error):
                client.get(self.q, "k")
        with self.assertRaises(tarry.Unavailable):
            untrusted: Any = self.make(server.url)
            self.addCleanup(untrusted.close)
            untrusted.push(self.q, 1)

    def test_a_token_that_cannot_be_read(self) -> None:
        def token() -> str:
            raise OSError("no such file")

        client: Any = self.make(self.server.url, token=token)
        self.addCleanup(client.close)
        with self.assertRaisesRegex(tarry.Unauthorized, "no such file"):
            client.push(self.q, 1)
        line: Any = self.make(self.server.url, token="of a file\n", timeout=float("inf"))
        self.addCleanup(line.close)
        line.push(self.q, 1)

    def test_timeout(self) -> None:
        client: Any = self.make(self.server.url, timeout=0.2)
        self.addCleanup(client.close)
        self.assertEqual(client.lease(queues=[self.q], wait="300ms")["messages"], [])  # a wait is no silence
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            os.waitpid(self.server.process.pid, os.WUNTRACED)  # it has stopped
            with self.assertRaises(tarry.Unavailable):
                client.push(self.q, 1)
        finally:
            self.server.process.send_signal(signal.SIGCONT)


class AsyncCalls(Calls):
    make = Blocking

    def test_a_cancelled_lease_takes_nothing(self) -> None:
        async def test() -> None:
            async with tarry.AsyncClient(self.server.url) as c:
                waiting = asyncio.create_task(c.lease(queues=[self.q], wait="60s", worker=self.q))
                while not [w for w in (await c.call("GET", "/v1/workers"))["workers"] if w["name"] == self.q]:
                    await asyncio.sleep(0.01)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting
                pushed = await c.push(self.q, 1)
                leased = await c.lease(queues=[self.q], wait="20s")
                self.assertEqual([(m["id"], m["attempt"]) for m in leased["messages"]], [(pushed["id"], 1)])

        asyncio.run(asyncio.wait_for(test(), PATIENCE))

    def test_many_at_a_time(self) -> None:
        async def test() -> None:
            async with tarry.AsyncClient(self.server.url, connections=4) as c:
                await asyncio.gather(*(c.push(self.q, n) for n in range(200)))
                self.assertEqual((await c.queue(self.q))["ready"], 200)
            with self.assertRaises(RuntimeError):
                await c.queue(self.q)
            del c
            while [t for t in threading.enumerate() if t.name == "tarry-call"]:
                await asyncio.sleep(0.01)

        asyncio.run(asyncio.wait_for(test(), PATIENCE))


    def test_the_timeout_of_a_whole_call(self) -> None:
        """Results are sent again in time, even if an answer comes bit by bit."""
        async def test() -> None:
            url = answering(self, b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n", *[b" "] * 10000)
            client = tarry.AsyncClient(url)
            with self.assertRaises(tarry.Unavailable):
                await client._pool.send(_calls.queue("q"), 0.3)
            await client.close()

        asyncio.run(asyncio.wait_for(test(), PATIENCE))


class Sharing(ServerTest):
    @unittest.skipUnless(resource, "there is no limit of files here")
    def test_no_file_is_left(self) -> None:
        self.client.push(self.q, 1)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
        try:
            self.client.push(self.q, 1)  # its connection is there
            with self.assertRaises(tarry.Unavailable):
                tarry.Client(self.server.url).push(self.q, 1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def test_threads_share_a_client(self) -> None:
        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda n: self.client.push(self.q, n), range(400)))
        bodies = {m.get("body") for m in self.client.list(self.q, body=True)}
        self.assertEqual(bodies, set(range(400)))

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_fork_has_connections_of_its_own(self) -> None:
        self.client.push(self.q, 0)
        children = []
        for _ in range(2):
            if child := os.fork():
                children.append(child)
                continue
            try:
                for _ in range(50):
                    self.client.push(self.q, 0, key=uuid.uuid4().hex)
                os._exit(0)
            except BaseException:
                os._exit(1)
        for _ in range(50):
            self.client.push(self.q, 0)
        self.assertEqual([os.waitpid(child, 0)[1] for child in children], [0, 0])
        self.assertEqual(self.client.queue(self.q)["ready"], 151)

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_a_fork_has_threads_of_its_own(self) -> None:
        client = tarry.AsyncClient(self.server.url)
        asyncio.run(client.push(self.q, 0))
        child = os.fork()
        if not child:
            try:
                asyncio.run(asyncio.wait_for(client.push(self.q, 0), PATIENCE))
                os._exit(0)
            except BaseException:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        asyncio.run(client.close())


if __name__ == "__main__":
    unittest.main()
