"""The errors of the HTTP API, a class for each code. Act on the class: texts and hints may change."""
from __future__ import annotations

import json
import re

from . import types


class Error(Exception):
    """A call failed. hint says what may help; it may be empty."""

    code = ""

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str, hint: str = "", status: int = 0, retry_after: float = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status  # of HTTP; 0: there was no answer, or it is the error of one item
        self.retry_after = retry_after  # seconds; 0: not said
        self.details: types.Error | None = None  # as the server sent it; until says from when on trying again may help

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Invalid(Error):
    """The request is wrong; the message begins with the field."""


class Unauthorized(Error):
    """There is no token, or one that is unknown, revoked or expired."""


class Forbidden(Error):
    """The token may not do that, or the server does not answer for this host."""


class NotFound(Error):
    """There is no such message."""


class Exists(Error):
    """A message holds the key, or is remembered by it; details describes it."""


class Leased(Error):
    """Too late: a worker holds the message."""


class Stale(Error):
    """The message is in another state than if_state says, or the settings are at another revision."""


class NotDue(Error):
    """Claimed too early, or the queue is paused."""


class LeaseLost(Error):
    """The lease was settled, taken over or cancelled."""


class TooLarge(Error):
    """The body or the request is over the limit."""


class Limit(Error):
    """A limit of the store or of the queue's settings is reached, or the disk is full."""


class Internal(Error):
    """The server failed, and its log says how. Trying again does not help."""


class Unsupported(Error):
    """The engine cannot do that."""


class Unavailable(Error):
    """There was no answer, or the store does not answer. Unless the hint says otherwise, the outcome is unknown."""


BY_CODE = {c.code: c for c in Error.__subclasses__()}


def from_details(details: types.Error, status: int = 0, retry_after: float = 0) -> Error:
    """Returns the error that the server describes."""
    error = BY_CODE.get(details["code"], Error)(details["message"], details["hint"], status, retry_after)
    error.code = details["code"]
    error.details = details
    return error


def from_answer(status: int, body: bytes, retry_after: str) -> Error:
    """Returns the error of an answer that is not a success."""
    seconds = float(retry_after) if retry_after.isdecimal() else 0.0
    try:
        return from_details(json.loads(body)["error"], status, seconds)
    except (ValueError, LookupError, TypeError, RecursionError):  # of a proxy, or of the server's net/http
        return Unavailable(f"not an answer of tarry: status {status}: {body[:200].decode(errors='replace').strip()}", "", status, seconds)
