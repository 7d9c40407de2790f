"""The requests and answers of the HTTP API. Made by generate.py from /openapi.json; do not edit."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

# A duration: timedelta(minutes=30), or text such as "1500ms", "30m", "48h", "7d".
Duration = str | timedelta
# An instant: a datetime with a time zone, or RFC 3339.
Time = str | datetime


class PushOptions(TypedDict, total=False):
    """What a push takes besides its body."""

    # your name for it, unique among the queue's live messages; not . or ..
    key: str | None
    # not before so long from now on; without delay and due: now
    delay: Duration | None
    # not before; instead of delay
    due: Time | None
    # what to do when the key is held or remembered; default: reject
    on_conflict: Literal["reject", "keep", "replace", "keep_due", "rearm"] | None
    # of replace: the newest lease of the message, which is then replaced although it is leased
    lease: str | None
    # of the body; application/json when there is a body
    content_type: str | None
    # an object of strings; a repeated name has an array of strings, and an array of pairs keeps any order
    headers: Mapping[str, str | Sequence[str]] | Sequence[Sequence[str]] | None
    # lower first among ready ones; default: the queue's, else 1024
    priority: int | None
    # leases after which it is dead; default: the queue's, else 20
    max_attempts: int | None
    # how long a lease lasts, 1ms to 24h; default: the queue's, else 60s
    ttr: Duration | None
    # delays after the first, second, … failed attempt; the last repeats
    backoff: Sequence[Duration] | None
    # dropped when not leased this long after due; 0s: never; default: the queue's, else never
    expire_after: Duration | None
    # how long its key stays known when it has gone by ack, cancel or expiry; 0s: not at all; default: the
    # queue's, else not at all
    remember: Duration | None
    # from its second attempt on it comes back apart from messages that lapsed with it, and is leased
    # alone; default: the queue's, else true
    isolate: bool | None


class NewMessage(PushOptions, total=False):
    """A message to push. All fields may be missing."""

    # any JSON value, kept byte for byte; the content type is then JSON
    body: Any
    # any bytes instead of body
    body_base64: str | None


class _BatchMessage(TypedDict):
    # where to
    queue: str


class BatchMessage(_BatchMessage, total=False):
    """A message of a batch."""

    # your name for it, unique among the queue's live messages; not . or ..
    key: str | None
    # not before so long from now on; without delay and due: now
    delay: Duration | None
    # not before; instead of delay
    due: Time | None
    # what to do when the key is held or remembered; default: reject
    on_conflict: Literal["reject", "keep", "replace", "keep_due", "rearm"] | None
    # of replace: the newest lease of the message, which is then replaced although it is leased
    lease: str | None
    # any JSON value, kept byte for byte; the content type is then JSON
    body: Any
    # any bytes instead of body
    body_base64: str | None
    # of the body; application/json when there is a body
    content_type: str | None
    # an object of strings; a repeated name has an array of strings, and an array of pairs keeps any order
    headers: Mapping[str, str | Sequence[str]] | Sequence[Sequence[str]] | None
    # lower first among ready ones; default: the queue's, else 1024
    priority: int | None
    # leases after which it is dead; default: the queue's, else 20
    max_attempts: int | None
    # how long a lease lasts, 1ms to 24h; default: the queue's, else 60s
    ttr: Duration | None
    # delays after the first, second, … failed attempt; the last repeats
    backoff: Sequence[Duration] | None
    # dropped when not leased this long after due; 0s: never; default: the queue's, else never
    expire_after: Duration | None
    # how long its key stays known when it has gone by ack, cancel or expiry; 0s: not at all; default: the
    # queue's, else not at all
    remember: Duration | None
    # from its second attempt on it comes back apart from messages that lapsed with it, and is leased
    # alone; default: the queue's, else true
    isolate: bool | None


class _Pushed(TypedDict):
    # what the push did
    outcome: Literal["created", "kept", "replaced"]
    # ours
    id: str
    queue: str
    # empty: none
    key: str
    due: str | None
    # finished: nothing was pushed, as the key is remembered
    state: Literal["scheduled", "ready", "leased", "dead", "finished"]


class Pushed(_Pushed, total=False):
    """A push that did not fail."""

    # how it went, if it is finished
    ending: Literal["acked", "cancelled", "expired"]
    # when
    ended: str | None


class _FailedAttempt(TypedDict):
    # when; of a lapse: the end of the lease
    at: str | None
    attempt: int
    # who had the lease; empty: not known
    worker: str
    # why
    error: str


class FailedAttempt(_FailedAttempt, total=False):
    """A failed attempt of a message."""



class _Message(TypedDict):
    # ours
    id: str
    queue: str
    # yours; empty: none
    key: str
    state: Literal["scheduled", "ready", "leased", "dead"]
    # not handled before
    due: str | None
    created: str | None
    # how often it was leased; snoozed and released ones not counted
    attempt: int
    # leases after which it is dead
    max_attempts: int
    # lower first among ready ones
    priority: int
    # how long a lease lasts
    ttr: str
    # an object, where a repeated name has an array; with Tarry-Exact an array of pairs when a name is
    # repeated
    headers: dict[str, str | list[str]] | list[list[str]]
    # of the body; empty: not said
    content_type: str
    # why the last attempt failed
    last_error: str


class Message(_Message, total=False):
    """A live or dead message. Without a body where none was asked for."""

    # delays after the first, second, … failed attempt; the last repeats
    backoff: list[str]
    # dropped when not leased this long after due
    expire_after: str
    # how long its key stays known when it has gone
    remember: str
    # false: it is not isolated when it has lapsed
    isolate: bool
    # when it is dropped unless leased
    expires: str | None
    # when its content type is JSON and it is JSON, nested at most 50 deep
    body: Any
    # else, and with Tarry-Exact
    body_base64: str
    # the last 5 failed attempts, oldest first; not of a message leased to you
    failures: list[FailedAttempt]
    # who has it, or acked or cancelled it, if that is known
    worker: str
    # when its lease began, if it is leased or was acked
    started: str | None
    # when it became dead
    died: str | None
    # when the lease ends, if it is leased
    lease_expires: str | None


class _FinishedMessage(TypedDict):
    # ours
    id: str
    queue: str
    # yours; empty: none
    key: str
    state: Literal["finished"]
    # not handled before
    due: str | None
    # how it went
    ending: Literal["acked", "cancelled", "expired"]
    # when it went
    ended: str | None


class FinishedMessage(_FinishedMessage, total=False):
    """What is left of a message that has gone. Without created only its key is remembered."""

    created: str | None
    # how often it was leased; snoozed and released ones not counted
    attempt: int
    # why the last attempt failed
    last_error: str
    # the last 5 failed attempts, oldest first; not of a message leased to you
    failures: list[FailedAttempt]
    # who has it, or acked or cancelled it, if that is known
    worker: str
    # when its lease began, if it is leased or was acked
    started: str | None
    # from when on its key is free; missing: it is free, or not known in a list
    forgotten: str | None


class _LeasedMessage(TypedDict):
    # ours
    id: str
    queue: str
    # yours; empty: none
    key: str
    state: Literal["leased"]
    # not handled before
    due: str | None
    created: str | None
    # how often it was leased; snoozed and released ones not counted
    attempt: int
    # leases after which it is dead
    max_attempts: int
    # lower first among ready ones
    priority: int
    # how long a lease lasts
    ttr: str
    # an object, where a repeated name has an array; with Tarry-Exact an array of pairs when a name is
    # repeated
    headers: dict[str, str | list[str]] | list[list[str]]
    # of the body; empty: not said
    content_type: str
    # why the last attempt failed
    last_error: str
    # what settles it; it is yours alone
    lease: str
    # when the lease ends, if it is leased
    lease_expires: str | None


class LeasedMessage(_LeasedMessage, total=False):
    """A message that is leased to you."""

    # delays after the first, second, … failed attempt; the last repeats
    backoff: list[str]
    # dropped when not leased this long after due
    expire_after: str
    # how long its key stays known when it has gone
    remember: str
    # false: it is not isolated when it has lapsed
    isolate: bool
    # when it is dropped unless leased
    expires: str | None
    # when its content type is JSON and it is JSON, nested at most 50 deep
    body: Any
    # else, and with Tarry-Exact
    body_base64: str
    # who has it, or acked or cancelled it, if that is known
    worker: str
    # when its lease began, if it is leased or was acked
    started: str | None
    # when it became dead
    died: str | None


class _MessagePage(TypedDict):
    messages: list[Message | FinishedMessage]
    # give it as after for the next page; empty: this is the last
    next: str


class MessagePage(_MessagePage, total=False):
    """A page of a list."""

    # with key_prefix or header: how many messages were read for this page
    read: int


class Reschedule(TypedDict, total=False):
    """When a message is to be due: delay or due, one of them."""

    # from now on
    delay: Duration | None
    due: Time | None


class Claim(TypedDict, total=False):
    """How to claim."""

    # how long a lease lasts, 1ms to 24h; default: the message's own
    ttr: Duration | None
    # your name, which look-ups, lists and failures show; without control characters
    worker: str | None


class _Room(TypedDict):
    queue: str
    # 0: none
    max: int


class Room(_Room, total=False):
    """How many messages of a queue are wanted at most."""



class LeaseRequest(TypedDict, total=False):
    """What to lease, and how long to wait for it. Give queues or set."""

    # how many messages at most; default: 1
    max: int | None
    # from which; at most 100 without a wait
    queues: Sequence[str] | None
    # the id of a set of queues that the server keeps, instead of queues; needs a wait
    set: str | None
    # have the server keep the queues as a set; needs a wait
    keep: bool | None
    # queues of which fewer than max are wanted
    room: Sequence[Room] | None
    # how long to wait for the first message, at most 1m; default: not at all
    wait: Duration | None
    # how long a lease lasts, 1ms to 24h; default: each message's own
    ttr: Duration | None
    # your name, which look-ups, lists and failures show; without control characters
    worker: str | None
    # a name of your own, new for each request, by which the wait can be ended
    poll: str | None


class _Error(TypedDict):
    # invalid: the request is wrong; the message begins with the field unauthorized: a token is missing,
    # wrong or expired forbidden: the token does not allow it, or the server does not answer for this host
    # or to a page of this origin not_found: there is no such message or schedule exists: a live message
    # holds the key, or a finished one is remembered by it leased: too late: a worker holds the message
    # stale: the message is in another state than if_state says, or the settings or the schedule are at
    # another revision not_due: claimed too early, or the queue is paused lease_lost: the lease was
    # settled, taken over or cancelled too_large: the body or the request is over a limit limit: a limit
    # of the store, or of the queue's settings, is reached unsupported: the engine cannot do that
    # unavailable: the store does not answer, or the server shuts down or holds all it may; the outcome is
    # unknown internal: the server failed, and its log says how; or its store is damaged, and the message
    # says where
    code: Literal["invalid", "unauthorized", "forbidden", "not_found", "exists", "leased", "stale", "not_due", "lease_lost", "too_large", "limit", "unsupported", "unavailable", "internal"]
    # for people; may change
    message: str
    # what to do about it, for people; may be empty
    hint: str


class Error(_Error, total=False):
    """What went wrong. Programs act on the code. When a message is in the way of a single push, it is described too."""

    # from when on trying again may help
    until: str | None
    # of the message in the way
    id: str
    # its queue
    queue: str
    # its key
    key: str
    # when it is due
    due: str | None
    # where it stands
    state: Literal["scheduled", "ready", "leased", "dead", "finished"]
    # how it went, if it is finished
    ending: Literal["acked", "cancelled", "expired"]
    # when
    ended: str | None


class _LeasedQueue(TypedDict):
    queue: str
    # messages that expired since that was last told
    expired: int
    # messages that died since that was last told; a late settlement takes a death back, so that it may be
    # negative
    died: int


class LeasedQueue(_LeasedQueue, total=False):
    """What a lease request found in a queue."""

    # more is ready; not after a wait
    more: bool
    # the queue's settings hold more back
    held: bool
    # when there may be more; not after a wait
    next_due: str | None
    # what went wrong with this queue
    error: Error


class _Leased(TypedDict):
    # those that are yours now; none when the wait is over
    messages: list[LeasedMessage]
    # when there may be more; null: not known
    next_due: str | None
    # by the clock of the store
    now: str


class Leased(_Leased, total=False):
    """What was leased."""

    # the id of the set of queues, if the server keeps one
    set: str
    # of the queues that were asked; after a wait of those alone that have something to tell
    queues: list[LeasedQueue]
    # how long the request had waited when the messages were leased, rounded down; none: less than 1 ms
    waited: str


class _Settlement(TypedDict):
    # what the message came with
    lease: str
    # ack: handled, it is gone retry: failed; again after delay, else after the message's backoff, or dead
    # when its attempts are used up snooze: not now; the attempt does not count release: not started; the
    # attempt does not count bury: hopeless, it is dead extend: still at it; the lease ends ttr from now
    do: Literal["ack", "retry", "snooze", "release", "bury", "extend"]


class Settlement(_Settlement, total=False):
    """What became of a leased message."""

    # of retry and snooze: until when it rests
    delay: Duration | None
    # of retry and snooze, instead of delay
    due: Time | None
    # of extend: how long a lease lasts, 1ms to 24h
    ttr: Duration | None
    # of retry and bury: why
    reason: str | None
    # of retry, snooze, release and bury: the message's own from now on
    priority: int | None


class _SettleResult(TypedDict):
    lease: str
    # it was settled
    ok: bool


class SettleResult(_SettleResult, total=False):
    """What became of a settlement."""

    # of the message now
    state: Literal["gone", "scheduled", "ready", "leased", "dead", "finished"]
    # when the message is due, or the lease ends
    until: str | None
    # why not
    error: Error


class _Queue(TypedDict):
    queue: str
    scheduled: int
    ready: int
    leased: int
    dead: int
    # remembered keys; one whose time is over may count until something has met it
    finished: int
    # finished messages listed, counted likewise
    history: int
    # of the scheduled ones; null: none, or not known
    next_due: str | None
    # due of the one that is ready for longest; null: none, or not known
    oldest_ready: str | None
    paused: bool


class Queue(_Queue, total=False):
    """What a queue holds. An unknown queue is an empty one."""

    # when the pause ends, if it does
    paused_until: str | None


class _Counted(TypedDict):
    # those that became ready, or are gone; of a dry run those that would
    count: int


class Counted(_Counted, total=False):
    """How many of what was concerned."""

