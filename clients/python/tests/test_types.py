"""What is made from the server's document, and what mypy says."""
from __future__ import annotations

import ast
import json
import os
import pathlib
import shutil
import subprocess
import typing
import unittest
import urllib.request

import generate
import tarry
from tarry import _calls, errors, types

from .support import ServerTest

ROOT = pathlib.Path(__file__).parent.parent


class Types(ServerTest):
    def document(self) -> typing.Any:
        with urllib.request.urlopen(self.server.url + "/openapi.json") as answer:
            return json.load(answer)

    def test_types_are_those_of_the_server(self) -> None:
        made = generate.generate(self.document())
        self.assertEqual(made, (ROOT / "tarry/types.py").read_text(),
                         "run make client")
        for name in dir(types):
            typing.get_type_hints(getattr(types, name)) if name[0].isupper() and isinstance(getattr(types, name), type) else None

    def test_each_code_has_a_class(self) -> None:
        codes = self.document()["components"]["schemas"]["Error"]["properties"]["code"]["enum"]
        self.assertEqual(set(codes), set(errors.BY_CODE))
        for error in errors.BY_CODE.values():
            self.assertIs(getattr(tarry, error.__name__), error)

    def test_filters_are_those_of_the_server(self) -> None:
        parameters = self.document()["paths"]["/v1/queues/{queue}/messages"]["get"]["parameters"]
        names = {p["name"] for p in parameters if p.get("in") == "query"} - {"after"}
        self.assertEqual(names, {name.rstrip("_") for name in _calls.Filters.__annotations__})


class Source(unittest.TestCase):
    def test_python_3_10_reads_it(self) -> None:
        for file in ROOT.glob("**/*.py"):
            ast.parse(file.read_text(), str(file), feature_version=(3, 10))

    def test_mypy(self) -> None:
        mypy = shutil.which("mypy")
        if not mypy:
            self.assertNotEqual(os.environ.get("TARRY_TEST_SERVERS"), "require", "mypy is not installed")
            self.skipTest("mypy is not installed")
        done = subprocess.run([mypy, "--cache-dir", os.devnull, "tarry", "tests", "generate.py"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
