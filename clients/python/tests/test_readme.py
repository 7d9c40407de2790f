"""The programs in the pages run."""
from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
from typing import Any
from unittest import mock

from .support import ServerTest

ROOT = pathlib.Path(__file__).parents[3]


def programs(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


class Pages(ServerTest):
    def run_program(self, text: str, **names: Any) -> str:
        text = text.replace("http://127.0.0.1:8277", self.server.url)
        out = io.StringIO()
        with mock.patch.dict(os.environ, TARRY_SERVER=self.server.url), contextlib.redirect_stdout(out):
            exec(compile(text, "a program of a page", "exec"), names)
        return out.getvalue()

    def test_six_lines(self) -> None:
        for page in "README.md", "clients/python/README.md":
            with self.subTest(page):
                names: dict[str, Any] = {}
                cancelled = []

                def cancel_order(id: str) -> None:
                    cancelled.append(id)
                    names["w"].stop()

                names["cancel_order"] = cancel_order
                self.client.push("order.unpaid", {"id": "43"}, key="43")
                text = programs(page)[0].replace("http://127.0.0.1:8277", self.server.url)
                exec(compile(text, page, "exec"), names)
                self.assertEqual(cancelled, ["43"])
                counts = self.client.queue("order.unpaid")
                self.assertEqual((counts["scheduled"], counts["ready"], counts["leased"]), (0, 0, 0))

    def test_calls(self) -> None:
        said = self.run_program(programs("clients/python/README.md")[1])
        self.assertEqual(said, "ann b'\\x00\\x01'\n")
        self.assertEqual(self.client.call("POST", "/v1/queues/mail/purge", {})["count"], 4)

    def test_errors(self) -> None:
        text = programs("clients/python/README.md")[2]
        self.assertEqual(self.run_program(text), "it was cancelled or handled before\n")
        self.client.push("order.unpaid", 1, key="42")
        lease = self.client.claim("order.unpaid", "42")["lease"]
        self.assertRegex(self.run_program(text), "^too late: a worker has it")
        self.client.settle([{"lease": lease, "do": "ack"}])

    def test_worker(self) -> None:
        up, sent = iter([False, True, True]), []

        async def server_is_up() -> bool:
            return next(up)

        async def send(body: Any, headers: Any) -> bool:
            sent.append(body)
            if body == 3:
                names["w"].stop()
            return bool(body != 2)

        names: dict[str, Any] = {"server_is_up": server_is_up, "send": send}
        self.client.push_many({"queue": "mail", "key": str(n), "body": n, "priority": n} for n in (1, 2, 3))
        text = programs("clients/python/README.md")[3]
        with mock.patch.dict(os.environ, TARRY_SERVER=self.server.url), contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(text, "a worker", "exec"), names)
        self.assertEqual((sent, out.getvalue()), ([2, 3], "2 no answer\n"))
        self.assertEqual([m["key"] for m in self.client.list("mail", state="scheduled")], ["2", "1"])
