"""A client of tarry: messages that are delivered later, and cancelled by your own key."""
from __future__ import annotations

from . import types
from ._calls import VERSION as __version__
from ._calls import body
from .client import AsyncClient, Client
from .errors import (
    Error,
    Exists,
    Forbidden,
    Internal,
    Invalid,
    Leased,
    LeaseLost,
    Limit,
    NotDue,
    NotFound,
    Stale,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unsupported,
)
from .message import Bury, Message, Retry, Settled, Snooze
from .worker import Worker
