"""A client of tarry: messages that are delivered later, and cancelled by your own key."""
from . import types
from ._calls import VERSION as __version__, body
from .client import AsyncClient, Client
from .errors import Error, Exists, Forbidden, Internal, Invalid, Leased, LeaseLost, Limit, NotDue, NotFound
from .errors import Stale, TooLarge, Unauthorized, Unavailable, Unsupported
from .message import Bury, Message, Retry, Settled, Snooze
from .worker import Worker

__all__ = [
    "AsyncClient", "Bury", "Client", "Error", "Exists", "Forbidden", "Internal", "Invalid", "LeaseLost", "Leased",
    "Limit", "Message", "NotDue", "NotFound", "Retry", "Settled", "Snooze", "Stale", "TooLarge", "Unauthorized",
    "Unavailable", "Unsupported", "Worker", "__version__", "body", "types",
]
