#!/usr/bin/env python3
"""Makes tarry/types.py from the document that a server answers at /openapi.json.

    python3 generate.py http://127.0.0.1:8277/openapi.json > tarry/types.py
"""
from __future__ import annotations

import json
import sys
import textwrap
from typing import Any
from urllib.request import urlopen

HEADER = '''"""The requests and answers of the HTTP API. Made by generate.py from /openapi.json; do not edit."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

# A duration: timedelta(minutes=30), or text such as "1500ms", "30m", "48h", "7d".
Duration = str | timedelta
# An instant: a datetime with a time zone, or RFC 3339.
Time = str | datetime
'''

# What the clients' methods take and answer. What these refer to is made too.
ROOTS = ("NewMessage", "BatchMessage", "Pushed", "Message", "FinishedMessage", "LeasedMessage", "MessagePage", "Reschedule",
         "Claim", "LeaseRequest", "Leased", "Settlement", "SettleResult", "Queue", "Counted", "Error")

# What a push takes besides the body is a type of its own: the keyword arguments of push.
BODY = {"NewMessage": ("body", "body_base64")}

Schema = dict[str, Any]


class Generator:
    """Writes a class for each schema, after those that it refers to."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas
        self.classes: dict[str, str] = {}
        for name in ROOTS:
            self.make(name)

    def make(self, name: str) -> str:
        if name not in self.classes:
            schema = self.schemas[name]
            self.request = schema.get("additionalProperties") is False  # it is read strictly
            body = BODY.get(name, ())
            fields = {k: self.field(k, s) for k, s in schema["properties"].items()}
            required = {k: v for k, v in fields.items() if k in schema.get("required", ())}
            optional = {k: v for k, v in fields.items() if k not in required and k not in body}
            base = self.write("_" + name, "TypedDict", "", required) if required else "TypedDict"
            if body:
                base = self.write("PushOptions", f"{base}, total=False", "What a push takes besides its body.", optional)
                optional = {k: fields[k] for k in body}
            self.write(name, f"{base}, total=False", schema["description"], optional)
        return name

    def write(self, name: str, base: str, doc: str, fields: dict[str, str]) -> str:
        doc = f'    """{doc}"""\n\n' if doc else ""
        self.classes[name] = f"class {name}({base}):\n{doc}" + "".join(fields.values())
        return name

    def field(self, name: str, schema: Schema) -> str:
        note = "\n".join(textwrap.wrap(schema.get("description", ""), 100)) + "\n"
        return textwrap.indent(note.strip() and note, "    # ") + f"    {name}: {self.type(schema)}\n"

    def type(self, schema: Schema) -> str:
        if "$ref" in schema:
            request = self.request
            name = self.make(schema["$ref"].rpartition("/")[2])
            self.request = request
            return name
        if "enum" in schema:
            values = ", ".join(json.dumps(v) for v in schema["enum"] if v is not None)
            return f"Literal[{values}]" + " | None" * (None in schema["enum"])
        several = [self.type(s) for s in schema.get("anyOf", schema.get("oneOf", ()))]
        kinds = schema.get("type", [])
        several += [self.plain(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
        return " | ".join(sorted(several, key="None".__eq__)) or "Any"

    def plain(self, kind: str, schema: Schema) -> str:
        if kind == "string" and self.request and schema.get("format") == "date-time":
            return "Time"
        if kind == "string" and self.request and "30m" in schema.get("examples", ()):
            return "Duration"
        if kind == "array":
            return f"{'Sequence' if self.request else 'list'}[{self.type(schema['items'])}]"
        if kind == "object":
            return f"{'Mapping' if self.request else 'dict'}[str, {self.type(schema['additionalProperties'])}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}[kind]


def generate(document: Schema) -> str:
    """Returns the text of tarry/types.py."""
    return "\n\n".join([HEADER, *Generator(document["components"]["schemas"]).classes.values()])


if __name__ == "__main__":
    with urlopen(sys.argv[1]) as answer:
        sys.stdout.write(generate(json.load(answer)))
