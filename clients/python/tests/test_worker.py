"""Workers on a real server."""
from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import signal
import subprocess
import threading
import time
import unittest
from datetime import timedelta
from typing import Any
from unittest import mock

import tarry
from tarry import _calls
from tarry._pool import AsyncPool
from tarry.message import Delivery

from .support import PATIENCE, Running, Server, ServerTest, python


class Verdicts(ServerTest):
    """What a handler does decides what becomes of its message."""

    def handled(self, handler: Any, times: int = 1, **options: Any) -> list[tarry.Message]:
        """Pushes a message and has it handled so many times; the worker then drains."""
        seen: list[tarry.Message] = []
        errors: list[BaseException] = []
        enough = threading.Event()
        worker = tarry.Worker(self.client, on_error=lambda m, e: errors.append(e))

        def note(m: tarry.Message) -> None:
            seen.append(m)
            if len(seen) == times:
                enough.set()

        if asyncio.iscoroutinefunction(handler):
            @worker.handle(self.q)
            async def handle_async(m: tarry.Message) -> None:
                note(m)
                await handler(m)
        else:
            @worker.handle(self.q)
            def handle(m: tarry.Message) -> Any:
                note(m)
                return handler(m)
        self.client.push(self.q, {"id": 42}, key="k", remember="1h", **options)
        running = Running(self, worker)
        self.await_(enough)
        self.assertIsNone(running.stop())
        self.errors = errors
        return seen

    def test_ack(self) -> None:
        m, = self.handled(lambda m: None, headers={"shop": "1"})
        self.assertEqual((m.body, m.key, m.attempt, m.headers), ({"id": 42}, "k", 1, {"shop": "1"}))
        got: Any = self.client.get(self.q, "k")
        self.assertEqual((got["state"], got["ending"], self.errors), ("finished", "acked", []))

    def test_ack_async(self) -> None:
        async def handler(m: tarry.Message) -> None:
            await asyncio.sleep(0)

        self.handled(handler)
        self.assertEqual(self.client.get(self.q, "k")["state"], "finished")

    def test_an_exception_retries(self) -> None:
        def handler(m: tarry.Message) -> None:
            raise RuntimeError("half a character \ud800" + "é" * 2000)

        first, second = self.handled(handler, times=2, backoff=["1ms", "1h"])
        self.assertEqual((first.attempt, second.attempt), (1, 2))
        got: Any = self.client.get(self.q, "k")
        self.assertEqual((got["state"], got["attempt"]), ("scheduled", 2))
        self.assertRegex(got["last_error"], "^RuntimeError: half a character .é+$")
        self.assertEqual([type(e) for e in self.errors], [RuntimeError] * 2)

    def test_what_is_no_usual_exception_retries(self) -> None:
        class Odd(BaseException):
            def __str__(self) -> str:
                raise RuntimeError("it has no text")

        for error, said in (SystemExit(1), "SystemExit: 1"), (Odd(), "Odd: an error that cannot be shown"):
            def handler(m: tarry.Message) -> None:
                raise error

            async def handler_async(m: tarry.Message) -> None:
                raise error

            for handle in handler, handler_async:
                with self.subTest(said, handler=handle):
                    self.q += "."
                    self.handled(handle, backoff=["1h"])
                    got: Any = self.client.get(self.q, "k")
                    self.assertEqual((got["state"], got["last_error"]), ("scheduled", said))

    def test_a_coroutine_that_nothing_awaits(self) -> None:
        async def forgotten(m: tarry.Message) -> None:
            raise AssertionError("it was awaited")

        self.handled(lambda m: forgotten(m), backoff=["1h"])
        self.assertRegex(self.client.get(self.q, "k").get("last_error", ""), "^TypeError: the handler returned a coroutine")

    def test_retry(self) -> None:
        async def handler(m: tarry.Message) -> None:
            raise tarry.Retry(timedelta(milliseconds=1) if m.attempt == 1 else "2h", "no answer")

        self.handled(handler, times=2)
        got: Any = self.client.get(self.q, "k")
        self.assertEqual((got["state"], got["last_error"], got["attempt"]), ("scheduled", "no answer", 2))

    def test_snooze(self) -> None:
        def handler(m: tarry.Message) -> None:
            raise tarry.Snooze("1h")

        self.handled(handler)
        got: Any = self.client.get(self.q, "k")
        self.assertEqual((got["state"], got["attempt"], self.errors), ("scheduled", 0, []))

    def test_bury(self) -> None:
        def handler(m: tarry.Message) -> None:
            raise tarry.Bury("no such order")

        m, = self.handled(handler)
        got: Any = self.client.get(self.q, id=m.id)
        self.assertEqual((got["state"], got["last_error"]), ("dead", "no such order"))

    def test_settled(self) -> None:
        def handler(m: tarry.Message) -> None:
            self.client.settle([{"lease": m.lease, "do": "snooze", "delay": "1h"}])
            raise tarry.Settled()

        self.handled(handler)
        self.assertEqual(self.client.get(self.q, "k")["state"], "scheduled")

    def test_a_delay_that_is_none(self) -> None:
        def handler(m: tarry.Message) -> None:
            raise tarry.Snooze("soon")

        self.handled(handler, backoff=["1h"])
        self.assertRegex(self.client.get(self.q, "k").get("last_error", ""), "^ValueError: 'soon'")


class Leases(ServerTest):
    def test_leases_are_renewed(self) -> None:
        """Both kinds of handlers hold a message for long; nobody else gets it."""
        worker, begun, go = tarry.Worker(self.client, ttr="3s"), threading.Barrier(3), threading.Event()

        @worker.handle(self.q)
        def slow(m: tarry.Message) -> None:
            begun.wait(PATIENCE)
            go.wait(PATIENCE)

        @worker.handle(self.q + ".async")
        async def slow_async(m: tarry.Message) -> None:
            await asyncio.get_running_loop().run_in_executor(None, begun.wait, PATIENCE)
            await asyncio.get_running_loop().run_in_executor(None, go.wait, PATIENCE)

        for q in self.q, self.q + ".async":
            self.client.push(q, 1, key="k", remember="1h")
        running = Running(self, worker)
        begun.wait(PATIENCE)

        def ends() -> list[float]:
            found: list[Any] = [self.client.get(q, "k") for q in (self.q, self.q + ".async")]
            return [_calls.instant(m["lease_expires"]) for m in found]

        first = ends()
        leased: list[Any] = []
        while not leased and min(now - end for now, end in zip(ends(), first)) < 3:  # the first lease has ended
            leased = self.client.lease(queues=[self.q, self.q + ".async"], wait="100ms")["messages"]
        go.set()
        self.assertEqual(leased, [])
        self.assertIsNone(running.stop())
        for q in self.q, self.q + ".async":
            got: Any = self.client.get(q, "k")
            self.assertEqual((got["state"], got.get("failures", [])), ("finished", []))

    def test_a_lost_lease_stops_the_handler(self) -> None:
        worker, stopped = tarry.Worker(self.client, ttr="3s"), queue.SimpleQueue[str]()

        def take(m: tarry.Message) -> None:
            self.client.settle([{"lease": m.lease, "do": "snooze", "delay": "1h"}])

        @worker.handle(self.q)
        def lost(m: tarry.Message) -> None:
            take(m)
            m.ended.wait(PATIENCE)
            stopped.put(m.why)

        @worker.handle(self.q + ".async")
        async def lost_async(m: tarry.Message) -> None:
            take(m)
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                stopped.put(m.why)
                raise

        for q in self.q, self.q + ".async":
            self.client.push(q, 1, key="k")
        running = Running(self, worker)
        self.assertEqual([stopped.get(timeout=PATIENCE) for _ in range(2)], ["the lease is lost"] * 2)
        self.assertIsNone(running.stop())
        for q in self.q, self.q + ".async":
            self.assertEqual(self.client.get(q, "k")["state"], "scheduled")

    def test_many_leases_are_renewed_in_several_calls(self) -> None:
        worker, go, sizes = tarry.Worker(self.client, ttr="2s"), threading.Event(), queue.SimpleQueue[int]()

        @worker.handle(self.q)
        def slow(m: tarry.Message) -> None:
            go.wait(PATIENCE)

        def settle(settlements: Any) -> Any:
            found = list(settlements)
            sizes.put(len(found))
            return _calls.settle(found)

        self.client.push_many({"queue": self.q} for _ in range(7))
        with mock.patch("tarry.worker.MOST_LEASED", 7), mock.patch("tarry.worker.calls", mock.Mock(wraps=_calls, settle=settle)):
            running = Running(self, worker)
            while self.client.queue(self.q)["leased"] < 7:
                pass
            with mock.patch("tarry.worker.MOST_LEASED", 3):
                renewed = 0
                while renewed < 7:
                    size = sizes.get(timeout=PATIENCE)
                    self.assertLessEqual(size, 3)
                    renewed += size
            go.set()
            self.assertIsNone(running.stop())

    def test_what_lapsed_while_the_event_loop_stood_still_does_not_begin(self) -> None:
        worker, held, go, seen = tarry.Worker(self.client, ttr="1500ms", concurrency=2), threading.Event(), threading.Event(), []

        @worker.handle(self.q)
        async def handle(m: tarry.Message) -> None:
            seen.append(m.key)
            if len(seen) == 1:
                held.set()
                go.wait(PATIENCE)

        self.client.push_many({"queue": self.q, "key": key, "priority": n, "backoff": ["1h"]} for n, key in enumerate(("first", "second")))
        running = Running(self, worker)
        self.await_(held)
        while self.client.get(self.q, "second")["state"] == "leased":
            pass
        self.client.cancel(self.q, "second")
        go.set()
        self.assertIsNone(running.stop())
        self.assertEqual(seen, ["first"])

    def test_a_lease_ends_by_the_clock_that_has_seen_more(self) -> None:
        self.client.push(self.q, 1)
        info, = self.client.lease(queues=[self.q], wait="20s", ttr="60s")["messages"]
        with mock.patch("time.time", lambda: 2000.0):
            d = Delivery(info, sent=100, wall=2000, end=160, ttr=None)
            self.assertEqual([d.doubtful(159), d.doubtful(160)], [False, True])
        with mock.patch("time.time", lambda: 2060.0):  # the machine slept
            self.assertTrue(d.doubtful(101))

    def test_a_server_that_hangs(self) -> None:
        """The lease ends unrenewed: the handler stops. Later the message comes again."""
        server = Server()
        self.addCleanup(server.kill)
        client = tarry.Client(server.url, timeout=1)
        self.addCleanup(client.close)
        worker, seen, stopped = tarry.Worker(client, ttr="2s"), queue.SimpleQueue[int](), queue.SimpleQueue[str]()

        @worker.handle(self.q)
        async def handle(m: tarry.Message) -> None:
            seen.put(m.attempt)
            if m.attempt == 1:
                try:
                    await asyncio.sleep(PATIENCE)
                finally:
                    stopped.put(m.why)

        client.push(self.q, 1, key="k", backoff=["1ms"])
        running = Running(self, worker)
        self.assertEqual(seen.get(timeout=PATIENCE), 1)
        server.process.send_signal(signal.SIGSTOP)
        try:
            self.assertEqual(stopped.get(timeout=PATIENCE), "the lease has ended")
        finally:
            server.process.send_signal(signal.SIGCONT)
        self.assertEqual(seen.get(timeout=PATIENCE), 2)
        self.assertIsNone(running.stop())

    def test_a_handler_has_its_time(self) -> None:
        errors = queue.SimpleQueue[Any]()
        worker = tarry.Worker(self.client, handler_timeout=0.1, on_error=lambda m, e: errors.put((m.why, str(e))))

        @worker.handle(self.q)
        async def slow(m: tarry.Message) -> None:
            await asyncio.sleep(PATIENCE)

        self.client.push(self.q, 1, key="k", backoff=["1h"])
        running = Running(self, worker)
        self.assertEqual(errors.get(timeout=PATIENCE), ("its time is over", "its time is over"))
        self.assertIsNone(running.stop())
        self.assertEqual(self.client.get(self.q, "k").get("last_error"), "its time is over")

    def test_what_comes_again_while_its_handler_runs_waits(self) -> None:
        """Its lease ends unrenewed, as its time is over, but the handler goes on."""
        worker, at_a_time, go = tarry.Worker(self.client, ttr="100ms", handler_timeout=0.05), threading.Semaphore(1), threading.Event()
        over = threading.Event()

        @worker.handle(self.q)
        def stubborn(m: tarry.Message) -> None:
            if not at_a_time.acquire(blocking=False):
                over.set()
            go.wait(PATIENCE)
            at_a_time.release()

        self.client.push(self.q, 1, key="k")
        running = Running(self, worker)
        while self.client.get(self.q, "k")["state"] != "scheduled":  # snoozed
            self.assertFalse(over.is_set())
        go.set()
        self.assertIsNone(running.stop())
        self.assertFalse(over.is_set())


class Concurrency(ServerTest):
    def test_no_more_than_so_many_at_a_time(self) -> None:
        for kind in "sync", "async":
            with self.subTest(kind):
                worker = tarry.Worker(self.client, concurrency=7)
                lock, at_a_time, most, left, full = threading.Lock(), 0, 0, 300, threading.Event()

                def begin(by: int) -> None:
                    nonlocal at_a_time, most, left
                    with lock:
                        at_a_time += by
                        most = max(most, at_a_time)
                        if most == 7:
                            full.set()
                        left -= by < 0
                        if not left:
                            worker.stop()

                if kind == "sync":
                    @worker.handle(self.q)
                    def handle(m: tarry.Message) -> None:
                        begin(1)
                        full.wait(PATIENCE)
                        time.sleep(0.001)
                        begin(-1)
                else:
                    @worker.handle(self.q)
                    async def handle_async(m: tarry.Message) -> None:
                        begin(1)
                        await asyncio.sleep(0.001)
                        while not full.is_set():
                            await asyncio.sleep(0.001)
                        begin(-1)
                self.client.push_many({"queue": self.q, "body": n} for n in range(left))
                self.assertIsNone(Running(self, worker).join())
                self.assertEqual(most, 7)
                self.assertEqual(self.client.queue(self.q)["ready"] + self.client.queue(self.q)["leased"], 0)

    def test_wrong_use(self) -> None:
        worker = tarry.Worker(self.client)
        with self.assertRaises(ValueError):
            worker.run()
        worker.handle(self.q)(print)
        with self.assertRaises(ValueError):
            worker.handle(self.q)(print)
        worker.stop()
        worker.run()
        with self.assertRaises(ValueError):
            worker.run()
        worker = tarry.Worker(self.client, concurrency=0)
        worker.handle(self.q)(print)
        with self.assertRaises(ValueError):
            worker.run()

    def test_a_wrong_queue_ends_the_worker(self) -> None:
        worker = tarry.Worker(self.client)
        worker.handle("no name")(print)
        self.assertIsInstance(Running(self, worker).join(), tarry.Invalid)

    def test_what_may_kill_the_process_waits_for_the_results_of_others(self) -> None:
        """From its third attempt on, a message starts when the ack of the one before it has arrived."""
        worker, leased, count = tarry.Worker(self.client, concurrency=1), [], 20

        @worker.handle(self.q)
        async def suspect(m: tarry.Message) -> None:
            counts = await asyncio.get_running_loop().run_in_executor(None, self.client.queue, self.q)
            leased.append(counts["leased"])
            if len(leased) == count:
                worker.stop()

        self.client.push_many({"queue": self.q, "isolate": False} for _ in range(count))
        for _ in range(2):
            messages = self.client.lease(queues=[self.q], max=count, wait="20s")["messages"]
            self.client.settle({"lease": m["lease"], "do": "retry", "delay": "0s"} for m in messages)
        self.assertIsNone(Running(self, worker).join())
        self.assertEqual(leased, [1] * count)  # itself alone


PROGRAM = """
import sys, threading, tarry
worker = tarry.Worker(tarry.Client(), drain_timeout=float(sys.argv[2]), concurrency=1 + (sys.argv[3] == "async"))
stop, told = worker.stop, threading.Event()

def stop_and_tell():
    stop()
    told.set()

worker.stop = stop_and_tell

def begun(m):
    print("begun", m.key, flush=True)

if sys.argv[3] == "async":
    import asyncio
    @worker.handle(sys.argv[1])
    async def handle(m):
        begun(m)
        await asyncio.sleep(m.body)
else:
    @worker.handle(sys.argv[1])
    def handle(m):
        begun(m)
        if m.body is None:
            told.wait()
        elif m.ended.wait(m.body):
            raise RuntimeError("interrupted")
worker.run()
print("drained", flush=True)
"""


AFTER_MAIN = """
import sys, threading, tarry
client = tarry.Client()
worker = tarry.Worker(client)

@worker.handle(sys.argv[1])
def handle(m):
    print(m.body, flush=True)
    if m.body == 3:
        return worker.stop()
    threading.main_thread().join()
    client.push(sys.argv[1], m.body + 1)

client.push(sys.argv[1], 1)
threading.Thread(target=worker.run).start()
"""


class Drain(ServerTest):
    def program(self, body: float | None, drain: float, kind: str = "sync") -> Any:
        self.client.push(self.q, body, key="k", remember="1h")
        program = python("-c", PROGRAM, self.q, str(drain), kind, TARRY_SERVER=self.server.url)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        assert program.stdout
        self.assertEqual(program.stdout.readline(), "begun k\n")
        return program

    def test_sigterm_lets_handlers_finish(self) -> None:
        program = self.program(None, 30)  # its handler ends once it drains
        self.client.push(self.q, 0, key="later")
        program.send_signal(signal.SIGTERM)
        out, _ = program.communicate(timeout=PATIENCE)
        self.assertEqual((out, program.returncode), ("drained\n", 0))
        self.assertEqual(self.client.get(self.q, "k")["state"], "finished")
        later: Any = self.client.get(self.q, "later")
        self.assertEqual((later["state"], later["attempt"]), ("ready", 0))

    def test_what_comes_while_it_drains_is_released(self) -> None:
        worker = tarry.Worker(self.client)

        @worker.handle(self.q)
        async def handle(m: tarry.Message) -> None:
            self.client.push(self.q, 2, key="late")  # while the event loop stands still, the poll under way gets it
            while self.client.get(self.q, "late")["state"] != "leased":
                pass
            worker.stop()

        self.client.push(self.q, 1, key="first")
        self.assertIsNone(Running(self, worker).join())
        late: Any = self.client.get(self.q, "late")
        self.assertEqual((late["state"], late["attempt"]), ("ready", 0))

    def test_sigterm_of_an_idle_worker(self) -> None:
        program = self.program(0, 30)
        while self.client.get(self.q, "k")["state"] != "finished":
            pass
        began = time.monotonic()
        program.send_signal(signal.SIGTERM)
        program.communicate(timeout=PATIENCE)
        self.assertEqual(program.returncode, 0)
        self.assertLess(time.monotonic() - began, 10)  # and not the rest of its long poll
        self.client.push(self.q, 0, key="next")
        self.assertEqual(self.client.claim(self.q, "next")["attempt"], 1)

    def test_a_drain_that_takes_too_long(self) -> None:
        for kind in "sync", "async":
            with self.subTest(kind):
                self.q += kind
                program = self.program(PATIENCE, 0.1, kind)
                program.send_signal(signal.SIGINT)
                out, _ = program.communicate(timeout=PATIENCE)
                self.assertEqual((out, program.returncode), ("", 1))  # a TimeoutError
                got: Any = self.client.get(self.q, "k")
                self.assertEqual((got["state"], got["attempt"]), ("ready", 0))  # released: it was interrupted

    def test_a_cancelled_run_drains(self) -> None:
        worker, begun, done = tarry.Worker(self.client), threading.Event(), []

        @worker.handle(self.q)
        def handle(m: tarry.Message) -> None:
            begun.set()
            time.sleep(0.3)
            done.append(m.id)

        async def run() -> None:
            task = asyncio.create_task(worker.run_async())
            await asyncio.get_running_loop().run_in_executor(None, begun.wait, PATIENCE)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        self.client.push(self.q, 1, key="k", remember="1h")
        asyncio.run(run())
        self.assertEqual((len(done), self.client.get(self.q, "k")["state"]), (1, "finished"))


    def test_a_worker_goes_on_after_the_main_thread(self) -> None:
        program = python("-c", AFTER_MAIN, self.q, TARRY_SERVER=self.server.url)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        out, _ = program.communicate(timeout=PATIENCE)
        self.assertEqual((out, program.returncode), ("1\n2\n3\n", 0))

    def test_a_second_signal_kills(self) -> None:
        for kind in "sync", "async":
            with self.subTest(kind):
                self.q += kind
                program = self.program(10 * PATIENCE, PATIENCE, kind)
                while program.poll() is None:
                    program.send_signal(signal.SIGTERM)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        program.wait(0.1)
                self.assertEqual(program.returncode, -signal.SIGTERM)

    def test_a_server_that_is_back_sooner_than_said(self) -> None:
        worker, said, send = tarry.Worker(self.client), list[bool](), AsyncPool.send

        async def busy(pool: Any, call: Any, timeout: float = 0) -> Any:
            if call.path == "/v1/lease" and not said:
                said.append(True)
                raise tarry.Unavailable("maintenance", retry_after=1e6)
            return await send(pool, call, timeout)

        worker.handle(self.q)(lambda m: worker.stop())
        self.client.push(self.q, 1)
        with mock.patch("tarry._pool.AsyncPool.send", busy), mock.patch("tarry.worker.MOST_RETRY_AFTER", 0.1):
            self.assertIsNone(Running(self, worker).join())
        self.assertTrue(said)

    def test_a_token_that_cannot_be_read_at_times(self) -> None:
        calls = itertools.count()

        def token() -> str:
            if next(calls) % 2:
                raise OSError("it is being written")
            return "it"

        worker = tarry.Worker(tarry.Client(self.server.url, token=token))
        worker.handle(self.q)(lambda m: worker.stop() if m.body == 3 else None)
        for n in range(4):
            self.client.push(self.q, n, priority=n)
        self.assertIsNone(Running(self, worker).join())
        counts = self.client.queue(self.q)
        self.assertEqual((counts["ready"], counts["leased"]), (0, 0))


class Killed(ServerTest):
    def test_kill_9_of_the_server_under_load(self) -> None:
        """Nothing that was answered is lost, and the worker goes on by itself."""
        for kind in "sync", "async":
            with self.subTest(kind):
                self.kill_9(kind)

    def kill_9(self, kind: str) -> None:
        server = Server("disk:" + self.directory())
        self.addCleanup(lambda: server.kill())
        client = tarry.Client(server.url)
        self.addCleanup(client.close)
        lock, answered, handled, stop = threading.Lock(), set[str](), set[str](), threading.Event()
        progress = threading.Semaphore(0)
        worker = tarry.Worker(client, ttr="2s")

        def note(m: tarry.Message) -> None:
            with lock:
                handled.add(m.key)
            progress.release()

        if kind == "sync":
            worker.handle("q")(note)
        else:
            @worker.handle("q")
            async def handle(m: tarry.Message) -> None:
                note(m)

        def push(thread: int) -> None:
            n = 0
            while not stop.is_set():
                n += 1
                try:
                    if n % 2:
                        keys = [client.push("q", n, key=f"{thread}-{n}", delay="10ms")["key"]]
                    else:
                        batch = client.push_many({"queue": "q", "key": f"{thread}-{n}-{i}"} for i in range(20))
                        keys = [r["key"] for r in batch if not isinstance(r, tarry.Error)]
                except tarry.Unavailable:
                    stop.wait(0.01)
                    continue
                with lock:
                    answered.update(keys)

        running = Running(self, worker)
        pushers = [threading.Thread(target=push, args=(n,)) for n in range(4)]
        for thread in pushers:
            thread.start()
        try:
            for _ in range(3):
                for _ in range(500):
                    self.assertTrue(progress.acquire(timeout=PATIENCE), "the worker does not go on")
                server.kill()
                server.start()
                while progress.acquire(blocking=False):
                    pass
        finally:
            stop.set()
            for thread in pushers:
                thread.join()
        deadline = time.monotonic() + PATIENCE
        while answered - handled:
            self.assertTrue(progress.acquire(timeout=deadline - time.monotonic()), f"{len(answered - handled)} of {len(answered)} are lost")
        self.assertIsNone(running.stop())
        self.assertGreater(len(answered), 1500)
        counts = client.queue("q")
        self.assertEqual((counts["scheduled"], counts["dead"]), (0, 0))


if __name__ == "__main__":
    unittest.main()
