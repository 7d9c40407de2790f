// Made by scripts/types.mjs of a server's /openapi.json. Do not edit.

/** A message to push. All fields may be missing. */
export interface NewMessage {
  /** your name for it, unique among the queue's live messages; not . or .. */
  key?: string | null;
  /** not before so long from now on; without delay and due: now */
  delay?: string | null;
  /** not before; instead of delay */
  due?: string | null;
  /** what to do when the key is held or remembered; default: reject */
  on_conflict?: null | "reject" | "keep" | "replace" | "keep_due" | "rearm";
  /** of replace: the newest lease of the message, which is then replaced although it is leased */
  lease?: string | null;
  /** any JSON value, kept byte for byte; the content type is then JSON */
  body?: unknown;
  /** any bytes instead of body */
  body_base64?: string | null;
  /** of the body; application/json when there is a body */
  content_type?: string | null;
  /** an object of strings; a repeated name has an array of strings, and an array of pairs keeps any order */
  headers?: null | Record<string, string | Array<string>> | Array<[string, string]>;
  /** lower first among ready ones; default: the queue's, else 1024 */
  priority?: number | null;
  /** leases after which it is dead; default: the queue's, else 20 */
  max_attempts?: number | null;
  /** how long a lease lasts, 1ms to 24h; default: the queue's, else 60s */
  ttr?: string | null;
  /** delays after the first, second, … failed attempt; the last repeats */
  backoff?: Array<string> | null;
  /** dropped when not leased this long after due; 0s: never; default: the queue's, else never */
  expire_after?: string | null;
  /** how long its key stays known when it has gone by ack, cancel or expiry; 0s: not at all; default: the queue's, else not at all */
  remember?: string | null;
  /** from its second attempt on it comes back apart from messages that lapsed with it, and is leased alone; default: the queue's, else true */
  isolate?: boolean | null;
}

/** A message of a batch. */
export interface BatchMessage {
  /** where to */
  queue: string;
  /** your name for it, unique among the queue's live messages; not . or .. */
  key?: string | null;
  /** not before so long from now on; without delay and due: now */
  delay?: string | null;
  /** not before; instead of delay */
  due?: string | null;
  /** what to do when the key is held or remembered; default: reject */
  on_conflict?: null | "reject" | "keep" | "replace" | "keep_due" | "rearm";
  /** of replace: the newest lease of the message, which is then replaced although it is leased */
  lease?: string | null;
  /** any JSON value, kept byte for byte; the content type is then JSON */
  body?: unknown;
  /** any bytes instead of body */
  body_base64?: string | null;
  /** of the body; application/json when there is a body */
  content_type?: string | null;
  /** an object of strings; a repeated name has an array of strings, and an array of pairs keeps any order */
  headers?: null | Record<string, string | Array<string>> | Array<[string, string]>;
  /** lower first among ready ones; default: the queue's, else 1024 */
  priority?: number | null;
  /** leases after which it is dead; default: the queue's, else 20 */
  max_attempts?: number | null;
  /** how long a lease lasts, 1ms to 24h; default: the queue's, else 60s */
  ttr?: string | null;
  /** delays after the first, second, … failed attempt; the last repeats */
  backoff?: Array<string> | null;
  /** dropped when not leased this long after due; 0s: never; default: the queue's, else never */
  expire_after?: string | null;
  /** how long its key stays known when it has gone by ack, cancel or expiry; 0s: not at all; default: the queue's, else not at all */
  remember?: string | null;
  /** from its second attempt on it comes back apart from messages that lapsed with it, and is leased alone; default: the queue's, else true */
  isolate?: boolean | null;
}

/** Messages to push. */
export interface Batch {
  messages: Array<BatchMessage>;
  /** all are kept, or none is and the first error answers; else each alone. Limits of GET /v1/info bound it: max_atomic, max_atomic_bytes */
  atomic?: boolean | null;
}

/** A push that did not fail. */
export interface Pushed {
  /** what the push did */
  outcome: "created" | "kept" | "replaced";
  /** ours */
  id: string;
  queue: string;
  /** empty: none */
  key: string;
  due: string | null;
  /** finished: nothing was pushed, as the key is remembered */
  state: "scheduled" | "ready" | "leased" | "dead" | "finished";
  /** how it went, if it is finished */
  ending?: "acked" | "cancelled" | "expired";
  /** when */
  ended?: string | null;
}

/** A push of a batch that failed. */
export interface PushFailed {
  /** what went wrong; beside it the message in the way, if there is one */
  error: Error;
  /** ours */
  id?: string;
  queue?: string;
  /** empty: none */
  key?: string;
  due?: string | null;
  /** finished: nothing was pushed, as the key is remembered */
  state?: "scheduled" | "ready" | "leased" | "dead" | "finished";
  /** how it went, if it is finished */
  ending?: "acked" | "cancelled" | "expired";
  /** when */
  ended?: string | null;
}

/** What became of each message. */
export interface PushResults {
  /** one for each item of the request, in its order */
  results: Array<Pushed | PushFailed>;
  /** how many of them failed */
  failed: number;
}

/** A live or dead message. Without a body where none was asked for. */
export interface Message {
  /** ours */
  id: string;
  queue: string;
  /** yours; empty: none */
  key: string;
  state: "scheduled" | "ready" | "leased" | "dead";
  /** not handled before */
  due: string | null;
  created: string | null;
  /** how often it was leased; snoozed and released ones not counted */
  attempt: number;
  /** leases after which it is dead */
  max_attempts: number;
  /** lower first among ready ones */
  priority: number;
  /** how long a lease lasts */
  ttr: string;
  /** delays after the first, second, … failed attempt; the last repeats */
  backoff?: Array<string>;
  /** dropped when not leased this long after due */
  expire_after?: string;
  /** how long its key stays known when it has gone */
  remember?: string;
  /** false: it is not isolated when it has lapsed */
  isolate?: boolean;
  /** when it is dropped unless leased */
  expires?: string | null;
  /** an object, where a repeated name has an array; with Tarry-Exact an array of pairs when a name is repeated */
  headers: Record<string, string | Array<string>> | Array<[string, string]>;
  /** of the body; empty: not said */
  content_type: string;
  /** when its content type is JSON and it is JSON, nested at most 50 deep */
  body?: unknown;
  /** else, and with Tarry-Exact */
  body_base64?: string;
  /** why the last attempt failed */
  last_error: string;
  /** the last 5 failed attempts, oldest first; not of a message leased to you */
  failures?: Array<FailedAttempt>;
  /** who has it, or acked or cancelled it, if that is known */
  worker?: string;
  /** when its lease began, if it is leased or was acked */
  started?: string | null;
  /** when it became dead */
  died?: string | null;
  /** when the lease ends, if it is leased */
  lease_expires?: string | null;
}

/** A failed attempt of a message. */
export interface FailedAttempt {
  /** when; of a lapse: the end of the lease */
  at: string | null;
  attempt: number;
  /** who had the lease; empty: not known */
  worker: string;
  /** why */
  error: string;
}

/** What is left of a message that has gone. Without created only its key is remembered. */
export interface FinishedMessage {
  /** ours */
  id: string;
  queue: string;
  /** yours; empty: none */
  key: string;
  state: "finished";
  /** not handled before */
  due: string | null;
  created?: string | null;
  /** how often it was leased; snoozed and released ones not counted */
  attempt?: number;
  /** why the last attempt failed */
  last_error?: string;
  /** the last 5 failed attempts, oldest first; not of a message leased to you */
  failures?: Array<FailedAttempt>;
  /** who has it, or acked or cancelled it, if that is known */
  worker?: string;
  /** when its lease began, if it is leased or was acked */
  started?: string | null;
  /** how it went */
  ending: "acked" | "cancelled" | "expired";
  /** when it went */
  ended: string | null;
  /** from when on its key is free; missing: it is free, or not known in a list */
  forgotten?: string | null;
}

/** A message that is leased to you. */
export interface LeasedMessage {
  /** ours */
  id: string;
  queue: string;
  /** yours; empty: none */
  key: string;
  state: "leased";
  /** not handled before */
  due: string | null;
  created: string | null;
  /** how often it was leased; snoozed and released ones not counted */
  attempt: number;
  /** leases after which it is dead */
  max_attempts: number;
  /** lower first among ready ones */
  priority: number;
  /** how long a lease lasts */
  ttr: string;
  /** delays after the first, second, … failed attempt; the last repeats */
  backoff?: Array<string>;
  /** dropped when not leased this long after due */
  expire_after?: string;
  /** how long its key stays known when it has gone */
  remember?: string;
  /** false: it is not isolated when it has lapsed */
  isolate?: boolean;
  /** when it is dropped unless leased */
  expires?: string | null;
  /** an object, where a repeated name has an array; with Tarry-Exact an array of pairs when a name is repeated */
  headers: Record<string, string | Array<string>> | Array<[string, string]>;
  /** of the body; empty: not said */
  content_type: string;
  /** when its content type is JSON and it is JSON, nested at most 50 deep */
  body?: unknown;
  /** else, and with Tarry-Exact */
  body_base64?: string;
  /** why the last attempt failed */
  last_error: string;
  /** who has it, or acked or cancelled it, if that is known */
  worker?: string;
  /** when its lease began, if it is leased or was acked */
  started?: string | null;
  /** when it became dead */
  died?: string | null;
  /** what settles it; it is yours alone */
  lease: string;
  /** when the lease ends, if it is leased */
  lease_expires: string | null;
}

/** A page of a list. */
export interface MessagePage {
  messages: Array<Message | FinishedMessage>;
  /** give it as after for the next page; empty: this is the last */
  next: string;
  /** with key_prefix or header: how many messages were read for this page */
  read?: number;
}

/** What was found in all queues. */
export interface FoundMessages {
  messages: Array<Message | FinishedMessage>;
  /** give it as after to search on; empty: all was searched */
  next: string;
  /** how many messages were read; with key: how many queues */
  read: number;
}

/** When a message is to be due: delay or due, one of them. */
export interface Reschedule {
  /** from now on */
  delay?: string | null;
  due?: string | null;
}

/** The messages to cancel. */
export interface Cancel {
  refs: Array<Ref>;
}

/** A message of a queue, by key or by id. */
export interface Ref {
  queue: string;
  key?: string | null;
  id?: string | null;
  /** cancel it only in this state; else it fails with stale */
  if_state?: null | "scheduled" | "ready" | "leased" | "dead";
}

/** What became of each message. */
export interface CancelResults {
  /** one for each item of the request, in its order */
  results: Array<CancelResult>;
  /** how many of them failed */
  failed: number;
}

/** What became of a message to cancel. It is named as the request did. */
export interface CancelResult {
  queue: string;
  key?: string;
  id?: string;
  /** it is gone */
  ok: boolean;
  /** why not */
  error?: Error;
}

/** What to lease, and how long to wait for it. Give queues or set. */
export interface LeaseRequest {
  /** how many messages at most; default: 1 */
  max?: number | null;
  /** from which; at most 100 without a wait */
  queues?: Array<string> | null;
  /** the id of a set of queues that the server keeps, instead of queues; needs a wait */
  set?: string | null;
  /** have the server keep the queues as a set; needs a wait */
  keep?: boolean | null;
  /** queues of which fewer than max are wanted */
  room?: Array<Room> | null;
  /** how long to wait for the first message, at most 1m; default: not at all */
  wait?: string | null;
  /** how long a lease lasts, 1ms to 24h; default: each message's own */
  ttr?: string | null;
  /** your name, which look-ups, lists and failures show; without control characters */
  worker?: string | null;
  /** a name of your own, new for each request, by which the wait can be ended */
  poll?: string | null;
}

/** How many messages of a queue are wanted at most. */
export interface Room {
  queue: string;
  /** 0: none */
  max: number;
}

/** What was leased. */
export interface Leased {
  /** those that are yours now; none when the wait is over */
  messages: Array<LeasedMessage>;
  /** when there may be more; null: not known */
  next_due: string | null;
  /** by the clock of the store */
  now: string;
  /** the id of the set of queues, if the server keeps one */
  set?: string;
  /** of the queues that were asked; after a wait of those alone that have something to tell */
  queues?: Array<LeasedQueue>;
  /** how long the request had waited when the messages were leased, rounded down; none: less than 1 ms */
  waited?: string;
}

/** What a lease request found in a queue. */
export interface LeasedQueue {
  queue: string;
  /** more is ready; not after a wait */
  more?: boolean;
  /** the queue's settings hold more back */
  held?: boolean;
  /** when there may be more; not after a wait */
  next_due?: string | null;
  /** messages that expired since that was last told */
  expired: number;
  /** messages that died since that was last told; a late settlement takes a death back, so that it may be negative */
  died: number;
  /** what went wrong with this queue */
  error?: Error;
}

/** How to claim. */
export interface Claim {
  /** how long a lease lasts, 1ms to 24h; default: the message's own */
  ttr?: string | null;
  /** your name, which look-ups, lists and failures show; without control characters */
  worker?: string | null;
}

/** Which wait to end. */
export interface EndLease {
  /** the name that the lease request gave */
  poll: string;
}

/** What became of leased messages. */
export interface Settle {
  settlements: Array<Settlement>;
}

/** What became of a leased message. */
export interface Settlement {
  /** what the message came with */
  lease: string;
  /**
   * ack: handled, it is gone
   * retry: failed; again after delay, else after the message's backoff, or dead when its attempts are used up
   * snooze: not now; the attempt does not count
   * release: not started; the attempt does not count
   * bury: hopeless, it is dead
   * extend: still at it; the lease ends ttr from now
   */
  do: "ack" | "retry" | "snooze" | "release" | "bury" | "extend";
  /** of retry and snooze: until when it rests */
  delay?: string | null;
  /** of retry and snooze, instead of delay */
  due?: string | null;
  /** of extend: how long a lease lasts, 1ms to 24h */
  ttr?: string | null;
  /** of retry and bury: why */
  reason?: string | null;
  /** of retry, snooze, release and bury: the message's own from now on */
  priority?: number | null;
}

/** What became of each settlement. */
export interface SettleResults {
  /** one for each item of the request, in its order */
  results: Array<SettleResult>;
  /** how many of them failed */
  failed: number;
}

/** What became of a settlement. */
export interface SettleResult {
  lease: string;
  /** it was settled */
  ok: boolean;
  /** of the message now */
  state?: "gone" | "scheduled" | "ready" | "leased" | "dead" | "finished";
  /** when the message is due, or the lease ends */
  until?: string | null;
  /** why not */
  error?: Error;
}

/** A page of queues: those that hold something, are paused or have settings. */
export interface QueuePage {
  queues: Array<Queue>;
  /** give it as after for the next page; empty: this is the last */
  next: string;
}

/** What a queue holds. An unknown queue is an empty one. */
export interface Queue {
  queue: string;
  scheduled: number;
  ready: number;
  leased: number;
  dead: number;
  /** remembered keys; one whose time is over may count until something has met it */
  finished: number;
  /** finished messages listed, counted likewise */
  history: number;
  /** of the scheduled ones; null: none, or not known */
  next_due: string | null;
  /** due of the one that is ready for longest; null: none, or not known */
  oldest_ready: string | null;
  paused: boolean;
  /** when the pause ends, if it does */
  paused_until?: string | null;
}

/** How many messages fall due, step by step. */
export interface Forecast {
  step: string;
  /** due before the first step, the minute of now */
  overdue: number;
  buckets: Array<Bucket>;
}

/** How many messages fall due within a step. */
export interface Bucket {
  /** when the step begins */
  from: string | null;
  count: number;
}

/** How many messages of all queues fall due in the next hour. */
export interface Forecasts {
  /** when the first step begins, the minute of now; null: no queue has scheduled messages */
  from: string | null;
  step: string;
  /** of the queues below together, one for each step */
  counts: Array<number>;
  /** those in which messages fall due, by name */
  queues: Array<{
    queue: string;
    /** one for each step */
    counts: Array<number>;
  }>;
  /** messages of further queues fall due, later than the first of each of these */
  more: boolean;
}

/** What happened to a queue, step by step, as far as it went through this server and since it started. */
export interface Trend {
  queue: string;
  /** when the first step begins; the last has not ended */
  from: string | null;
  span: string;
  step: string;
  total: {
    /** also what was there already, and was kept */
    pushed: number;
    /** claimed ones too */
    leased: number;
    acked: number;
    retried: number;
    /** snoozed ones too */
    released: number;
    /** leases that had been lost when they were to be settled */
    lost: number;
    died: number;
    expired: number;
    cancelled: number;
    /** from due to the start of handling, or to the lease over HTTP */
    lateness: {
      count: number;
      /** half of all took no longer; exact to a factor of √2; null: there are none */
      p50_ms: number | null;
      /** 99 of 100 took no longer */
      p99_ms: number | null;
      /** the longest */
      max_ms: number | null;
    };
    /** how long handlers ran, of the server's own workers alone */
    handling: {
      count: number;
      /** half of all took no longer; exact to a factor of √2; null: there are none */
      p50_ms: number | null;
      /** 99 of 100 took no longer */
      p99_ms: number | null;
      /** the longest */
      max_ms: number | null;
    };
  };
  /** one of each for each step */
  steps: {
    /** also what was there already, and was kept */
    pushed: Array<number>;
    /** claimed ones too */
    leased: Array<number>;
    acked: Array<number>;
    retried: Array<number>;
    /** snoozed ones too */
    released: Array<number>;
    /** leases that had been lost when they were to be settled */
    lost: Array<number>;
    died: Array<number>;
    expired: Array<number>;
    cancelled: Array<number>;
    /** from due to the start of handling, or to the lease over HTTP */
    lateness: {
      count: Array<number>;
      /** half of all took no longer; exact to a factor of √2; null: there are none */
      p50_ms: Array<number | null>;
      /** 99 of 100 took no longer */
      p99_ms: Array<number | null>;
      /** the longest */
      max_ms: Array<number | null>;
    };
    /** how long handlers ran, of the server's own workers alone */
    handling: {
      count: Array<number>;
      /** half of all took no longer; exact to a factor of √2; null: there are none */
      p50_ms: Array<number | null>;
      /** 99 of 100 took no longer */
      p99_ms: Array<number | null>;
      /** the longest */
      max_ms: Array<number | null>;
    };
  };
  /** how late messages were */
  heat: {
    /** where the buckets end, in milliseconds: the first holds what is shorter than the first bound, the last, which is one more than the bounds, what is longer than the last */
    bounds_ms: Array<number>;
    /** step, bucket and count of each that is not empty, in the order of the steps */
    cells: Array<[number, number, number]>;
  };
}

/** A page of what happened to the queues. */
export interface Trends {
  /** when the first step begins; the last has not ended */
  from: string | null;
  span: string;
  step: string;
  /** those to which something happened */
  queues: Array<{
    queue: string;
    /** also what was there already, and was kept */
    pushed: number;
    /** claimed ones too */
    leased: number;
    acked: number;
    retried: number;
    /** snoozed ones too */
    released: number;
    /** leases that had been lost when they were to be settled */
    lost: number;
    died: number;
    expired: number;
    cancelled: number;
    /** from due to the start of handling, or to the lease over HTTP */
    lateness: {
      count: number;
      /** half of all took no longer; exact to a factor of √2; null: there are none */
      p50_ms: number | null;
      /** 99 of 100 took no longer */
      p99_ms: number | null;
      /** the longest */
      max_ms: number | null;
    };
    /** how long handlers ran, of the server's own workers alone */
    handling: {
      count: number;
      /** half of all took no longer; exact to a factor of √2; null: there are none */
      p50_ms: number | null;
      /** 99 of 100 took no longer */
      p99_ms: number | null;
      /** the longest */
      max_ms: number | null;
    };
    /** one of each for each step */
    spark: {
      pushed: Array<number>;
      acked: Array<number>;
      /** of the lateness */
      p99_ms: Array<number | null>;
    };
  }>;
  /** give it as after for the next page; empty: this is the last */
  next: string;
}

/** What messages of a queue died of. */
export interface DeadGroups {
  /** the most frequent first, 200 at most */
  groups: Array<{
    /** with # for numbers, ids, addresses and times */
    error: string;
    /** the error of the first id as it is */
    example: string;
    count: number;
    first_died: string | null;
    last_died: string | null;
    /** of them all, as /redrive and /v1/cancel take them */
    ids: Array<string>;
    /** of the first id, oldest first */
    failures: Array<{
      at: string | null;
      attempt: number;
      worker: string;
      error: string;
    }>;
  }>;
  /** how many messages are in further groups */
  others: number;
  /** how many dead messages were looked at */
  seen: number;
  /** whether there are more, which died before */
  more: boolean;
}

/** The workers that a server knows. */
export interface Workers {
  /** by name */
  workers: Array<{
    /** empty: it gave none */
    name: string;
    /** from which it last asked; empty: elsewhere, or in the server itself */
    address: string;
    /** from which it asked to lease in the last 5 minutes, or holds leases; 100 at most */
    queues: Array<string>;
    /** there are more queues */
    more_queues: boolean;
    /** messages that it holds */
    leased: number;
    /** messages that it acked over HTTP */
    handled: number;
    /** attempts that it retried or buried over HTTP */
    failed: number;
    /** when it first asked; null: without an address */
    since: string | null;
    /** when it last asked, settled or extended; null: without an address */
    seen: string | null;
    /** the User-Agent of its requests */
    version: string;
    /** it holds leases in the store that this server did not give it */
    elsewhere: boolean;
  }>;
  /** there may be more: some were forgotten, or not all leases of the store were read */
  more: boolean;
}

/** The intakes of a server. */
export interface Intakes {
  /** in the order of their configuration */
  intakes: Array<{
    name: string;
    /** that it pushes to */
    queue: string;
    /** running, connecting or failing; more may come */
    state: string;
    /** when the state began */
    since: string | null;
    /** of what fails, for programs */
    code?: string;
    /** what fails, for people; may change */
    error?: string;
    /** what to do about it */
    hint?: string;
    /** messages that the source handed over */
    taken: number;
    /** of these, new or changed in the store */
    pushed: number;
    /** of these, found in the store already and not pushed again */
    doubles: number;
    /** of these, cancels that removed a message */
    cancelled: number;
    /** of these, cancels that found no message or came too late */
    missed: number;
    /** of these, set aside at the source */
    refused: number;
    /** of these, handed over before */
    redelivered: number;
    /** pushed again without a key after an unknown outcome: perhaps twice */
    doubtful: number;
    /** taken, and not settled yet */
    unacked: number;
    /** why the last message was refused */
    last_refused?: string;
  }>;
}

/** The settings of a queue, all of them: what is absent is unset. */
export interface Settings {
  settings: SettingValues;
  /** store them only if they have not changed since this was read; without it: overwrite */
  revision?: string | null;
}

/** What a queue can be set to. Limits act at once, on all who use it. */
export interface SettingValues {
  /** the default for pushes without one, like the next six; unset: 1024 */
  priority?: number | null;
  /** unset: 20 */
  max_attempts?: number | null;
  /** 1ms to 24h; unset: 60s */
  ttr?: string | null;
  backoff?: Array<string> | null;
  /** 0s, unset: never */
  expire_after?: string | null;
  /** 0s, unset: not at all */
  remember?: string | null;
  /** unset: true */
  isolate?: boolean | null;
  /** how long a dead message is kept, more than 0s; unset: for ever */
  dead_keep?: string | null;
  /** how many dead messages are kept: beyond that, those that died first are dropped; unset: any number */
  dead_max?: number | null;
  /** how long finished messages are listed; 0s: not at all; unset: as the store says */
  history?: string | null;
  /** how many finished messages are listed: beyond that, those that ended first are dropped; unset: as the store says */
  history_max?: number | null;
  /** how many live messages there may be; unset: any number */
  max_pending?: number | null;
  /** how many messages may be leased at a time, over all workers; unset: any number */
  in_flight?: number | null;
  /** how many leases may come at once after a quiet time; only with a rate; unset: what rate gives in 0.1 s, at least 1 */
  burst?: number | null;
  /** leases a second, at least one a day; unset: any number */
  rate?: number | null;
}

/** The settings of a queue: what is absent is unset. */
export interface StoredSettings {
  settings: StoredValues;
  /** changes whenever they do */
  revision: string;
}

/** What a queue is set to. */
export interface StoredValues {
  /** the default for pushes without one, like the next six; unset: 1024 */
  priority?: number;
  /** unset: 20 */
  max_attempts?: number;
  /** 1ms to 24h; unset: 60s */
  ttr?: string;
  backoff?: Array<string>;
  /** 0s, unset: never */
  expire_after?: string;
  /** 0s, unset: not at all */
  remember?: string;
  /** unset: true */
  isolate?: boolean;
  /** how long a dead message is kept, more than 0s; unset: for ever */
  dead_keep?: string;
  /** how many dead messages are kept: beyond that, those that died first are dropped; unset: any number */
  dead_max?: number;
  /** how long finished messages are listed; 0s: not at all; unset: as the store says */
  history?: string;
  /** how many finished messages are listed: beyond that, those that ended first are dropped; unset: as the store says */
  history_max?: number;
  /** how many live messages there may be; unset: any number */
  max_pending?: number;
  /** how many messages may be leased at a time, over all workers; unset: any number */
  in_flight?: number;
  /** how many leases may come at once after a quiet time; only with a rate; unset: what rate gives in 0.1 s, at least 1 */
  burst?: number;
  /** leases a second, at least one a day; unset: any number */
  rate?: number;
}

/** How long to pause. */
export interface Pause {
  /** more than nothing; without it: for good */
  for?: string | null;
}

/** What to remove beside what is scheduled and ready. */
export interface Purge {
  /** the dead messages too */
  dead?: boolean | null;
  /** the memory of finished messages too */
  finished?: boolean | null;
}

/** A schedule, all of it: what is absent is unset. */
export interface Schedule {
  /** when: a cron expression of five fields, or six that begin with the seconds; a name such as @daily; or @every and a duration of at least 1s */
  spec: string;
  /** of the cron expression; default: UTC */
  zone?: string | null;
  /** fires later by a part of this, always the same, that depends on the name; at most 24h; default: 0s */
  jitter?: string | null;
  /** which of the times fire that were missed by more than a minute; default: last */
  catch_up?: null | "last" | "skip" | "all";
  /** does not fire before; @every counts from here */
  start?: string | null;
  /** does not fire after */
  end?: string | null;
  /** what is pushed */
  message: ScheduleMessage;
  /** store it only if it has not changed since this was read; 0: if there is none yet; without it: overwrite */
  revision?: string | null;
}

/** A message that a schedule pushes. The schedule sets its key and due time, and remembers the key until the next time and a day. */
export interface ScheduleMessage {
  /** where to */
  queue: string;
  /** any JSON value, kept byte for byte; the content type is then JSON */
  body?: unknown;
  /** any bytes instead of body */
  body_base64?: string | null;
  /** of the body; application/json when there is a body */
  content_type?: string | null;
  /** an object of strings; a repeated name has an array of strings, and an array of pairs keeps any order */
  headers?: null | Record<string, string | Array<string>> | Array<[string, string]>;
  /** lower first among ready ones; default: the queue's, else 1024 */
  priority?: number | null;
  /** leases after which it is dead; default: the queue's, else 20 */
  max_attempts?: number | null;
  /** how long a lease lasts, 1ms to 24h; default: the queue's, else 60s */
  ttr?: string | null;
  /** delays after the first, second, … failed attempt; the last repeats */
  backoff?: Array<string> | null;
  /** dropped when not leased this long after due; 0s: never; default: the queue's, else never */
  expire_after?: string | null;
  /** how long its key stays known when it has gone by ack, cancel or expiry; 0s: not at all; default: the queue's, else not at all */
  remember?: string | null;
  /** from its second attempt on it comes back apart from messages that lapsed with it, and is leased alone; default: the queue's, else true */
  isolate?: boolean | null;
}

/** A schedule that need not be stored. With a message all of it is checked. */
export interface SchedulePreview {
  /** when: a cron expression of five fields, or six that begin with the seconds; a name such as @daily; or @every and a duration of at least 1s */
  spec: string;
  /** of the cron expression; default: UTC */
  zone?: string | null;
  /** fires later by a part of this, always the same, that depends on the name; at most 24h; default: 0s */
  jitter?: string | null;
  /** which of the times fire that were missed by more than a minute; default: last */
  catch_up?: null | "last" | "skip" | "all";
  /** does not fire before; @every counts from here */
  start?: string | null;
  /** does not fire after */
  end?: string | null;
  /** what its jitter depends on */
  name?: string | null;
  /** what is pushed */
  message?: ScheduleMessage;
}

/** When a schedule fires. */
export interface ScheduleTimes {
  /** the next times, jitter included; fewer than asked for: it ends */
  next: Array<string>;
  /** in words, for people; and what the changes of the clock in the next year do */
  explain: Array<string>;
}

/** A schedule. */
export interface StoredSchedule {
  name: string;
  /** when: a cron expression of five fields, or six that begin with the seconds; a name such as @daily; or @every and a duration of at least 1s */
  spec: string;
  /** of the cron expression; default: UTC */
  zone?: string;
  /** fires later by a part of this, always the same, that depends on the name; at most 24h; default: 0s */
  jitter?: string;
  /** which of the times fire that were missed by more than a minute; default: last */
  catch_up?: "last" | "skip" | "all";
  /** does not fire before; @every counts from here */
  start?: string;
  /** does not fire after */
  end?: string;
  /** what is pushed */
  message: StoredScheduleMessage;
  /** ended: no time is left */
  state: "active" | "paused" | "ended";
  /** changes whenever it is stored, paused or resumed */
  revision: string;
  /** when that was last */
  changed: string | null;
  /** when it fires next, jitter included; null: it does not */
  next: string | null;
  /** why it could not fire; it is tried again */
  error?: string;
  /** the last ten, the newest first; not in lists */
  runs?: Array<ScheduleRun>;
}

/** A message that a schedule pushes. In lists without its body. */
export interface StoredScheduleMessage {
  /** where to */
  queue: string;
  /** any JSON value, kept byte for byte; the content type is then JSON */
  body?: unknown;
  /** any bytes instead of body */
  body_base64?: string;
  /** of the body; application/json when there is a body */
  content_type?: string;
  /** an object of strings; a repeated name has an array of strings, and an array of pairs keeps any order */
  headers?: Record<string, string | Array<string>> | Array<[string, string]>;
  /** lower first among ready ones; default: the queue's, else 1024 */
  priority?: number;
  /** leases after which it is dead; default: the queue's, else 20 */
  max_attempts?: number;
  /** how long a lease lasts, 1ms to 24h; default: the queue's, else 60s */
  ttr?: string;
  /** delays after the first, second, … failed attempt; the last repeats */
  backoff?: Array<string>;
  /** dropped when not leased this long after due; 0s: never; default: the queue's, else never */
  expire_after?: string;
  /** how long its key stays known when it has gone by ack, cancel or expiry; 0s: not at all; default: the queue's, else not at all */
  remember?: string;
  /** from its second attempt on it comes back apart from messages that lapsed with it, and is leased alone; default: the queue's, else true */
  isolate?: boolean;
}

/** A message that a schedule has pushed, and what became of it. */
export interface ScheduleRun {
  /** for which time, without jitter */
  instant: string | null;
  /** when */
  pushed: string | null;
  /** of the message */
  key: string;
  /** of the message */
  id: string;
  /** it was triggered */
  manual: boolean;
  /** of the message; missing: not known any more */
  state?: "scheduled" | "ready" | "leased" | "dead" | "finished";
  /** how it went, if it is finished */
  ending?: "acked" | "cancelled" | "expired";
  /** how often it was leased */
  attempt?: number;
  /** when its lease began, if it is leased or was acked */
  started?: string | null;
  /** how long after its due time that was */
  late?: string;
  /** when it was finished or died */
  ended?: string | null;
  /** from started to ended */
  ran?: string;
  /** why its last attempt failed */
  error?: string;
}

/** A page of schedules. */
export interface SchedulePage {
  /** those overdue first, then by when they fire next; paused and ended ones last */
  schedules: Array<StoredSchedule>;
  /** give it as after for the next page; empty: this is the last */
  next: string;
}

/** Which dead messages become ready: those named, else those of which all of the rest holds, else all. */
export interface Redrive {
  /** goes with nothing else but the limit, which does not count then */
  ids?: Array<string> | null;
  /** how many, those that died first; 0: all */
  limit?: number | null;
  /** of one of these groups, by the error that /dead/groups tells of each */
  groups?: Array<string> | null;
  /** whose error contains this */
  error?: string | null;
  /** whose key begins so */
  key_prefix?: string | null;
  /** that died then or later */
  from?: string | null;
  /** that died before */
  to?: string | null;
  /** change nothing: tell how many it would be */
  dry_run?: boolean | null;
}

/** Which dead messages are dropped: those of which all of this holds, or all. */
export interface Drop {
  /** how many, those that died first; 0: all */
  limit?: number | null;
  /** of one of these groups, by the error that /dead/groups tells of each */
  groups?: Array<string> | null;
  /** whose error contains this */
  error?: string | null;
  /** whose key begins so */
  key_prefix?: string | null;
  /** that died then or later */
  from?: string | null;
  /** that died before */
  to?: string | null;
  /** change nothing: tell how many it would be */
  dry_run?: boolean | null;
}

/** Nothing: there is no field. */
export type None = Record<string, never>;

/** How many of what was concerned. */
export interface Counted {
  /** those that became ready, or are gone; of a dry run those that would */
  count: number;
}

/** How many dead messages became ready, or are gone. */
export interface Redriven {
  /** those that became ready, or are gone; of a dry run those that would */
  count: number;
  /** those that could not: they were dead no more by then, or a live message holds their key */
  skipped: number;
  /** of a filter: how many were looked at */
  seen?: number;
  /** of a filter: what died then or later was left alone; the same to in a later request chooses among the same */
  to?: string;
  /** in an answer of lines: this is the last */
  done?: boolean;
  /** in an answer of lines: what ended it before its time */
  error?: Error;
}

/** Which backup to make. */
export interface Backup {
  /** of the backup, a directory in the one that the server keeps for them */
  name: string;
}

/** The backup that was made. */
export interface BackedUp {
  name: string;
  /** what was answered before is in it */
  taken: string;
  /** it consists of */
  files: number;
  /** in them */
  bytes: number;
  /** of these bytes that were written; the others are shared with the store or the backup before */
  copied: number;
}

/** What a server tells of itself and of the engine behind it. */
export interface Info {
  version: string;
  engine: string;
  /** What the engine can do. */
  capabilities: {
    durable: boolean;
    keys: boolean;
    priority: boolean;
    expiry: boolean;
    cancel: boolean;
    reschedule: boolean;
    get: boolean;
    extend: boolean;
    give_back: boolean;
    remote_leases: boolean;
    claim: boolean;
    list: boolean;
    count: boolean;
    forecast: boolean;
    pause: boolean;
    purge: boolean;
    redrive: boolean;
    range: boolean;
    if_state: boolean;
    claim_if: boolean;
    peek: boolean;
    find: boolean;
    reprioritize: boolean;
    remember: boolean;
    isolate: boolean;
    history: boolean;
    failures: boolean;
    workers: boolean;
    settings: boolean;
    shares: boolean;
    atomic: boolean;
  };
  /** 0, and "0s" of max_delay: no limit */
  limits: {
    /** bytes of a message's body */
    max_body: number;
    /** live messages */
    max_pending: number;
    /** bytes of a request */
    max_request: number;
    /** messages, refs or settlements of a request */
    max_batch: number;
    /** messages of an atomic push */
    max_atomic: number;
    /** bytes of their bodies, headers and keys together */
    max_atomic_bytes: number;
    /** messages of a lease request */
    max_lease: number;
    /** of a lease request */
    max_wait: string;
    /** of a lease request */
    max_queues: number;
    /** of a lease request without a wait */
    max_queues_no_wait: number;
    min_ttr: string;
    max_ttr: string;
    /** bytes of a queue's name */
    max_queue_bytes: number;
    /** bytes of a key */
    max_key_bytes: number;
    /** headers of a message */
    max_headers: number;
    /** bytes of all header names and values of a message */
    max_header_bytes: number;
    /** entries of a backoff */
    max_backoffs: number;
    max_attempts: number;
    max_delay: string;
    /** the only ones there are, if not all are possible */
    delays?: Array<string>;
    /** how exactly dues are kept */
    precision: string;
    /** among how many ready messages of a queue the order is exact; 1: they go out as they fell due, more or less */
    order_window: number;
    max_forecast_steps: number;
  };
  /** whether it keeps what happened: /v1/trends */
  trends: boolean;
  now: string | null;
  /** clients that speak beanstalkd's protocol; missing where it is not served */
  beanstalk?: {
    connections: number;
    /** those that wait for a job */
    waiting: number;
  } | null;
}

/** The caller and its rights. */
export interface Caller {
  /** of the token; empty where the server asks for none */
  name: string;
  /** what the token may do; admin where the server asks for none */
  scopes: Array<string>;
  /** names and patterns of the queues on which it may */
  queues: Array<string>;
  /** from then on the token is worth nothing; null: never */
  expires: string | null;
}

/** The server is there. */
export interface Health {
  status: "ok" | "ready";
  /** what is wrong though requests are welcome, as of GET /v1/problems; missing without a valid token */
  problems?: Array<Problem>;
}

/** What is wrong, the worst first. */
export interface Problems {
  problems: Array<Problem>;
  /** there are more, or not all queues could be read */
  more: boolean;
}

/** What is wrong, and what to do about it. */
export interface Problem {
  /** server, store, intake, no_worker, late, deaths, schedule, paused or was_late; more may come */
  problem: string;
  /** missing: it is the server's or its store's */
  queue?: string;
  /** for people; may change */
  message: string;
  /** what to do about it */
  hint: string;
}

/** What every error looks like. */
export interface Failure {
  error: Error;
}

/** What went wrong. Programs act on the code. When a message is in the way of a single push, it is described too. */
export interface Error {
  /**
   * invalid: the request is wrong; the message begins with the field
   * unauthorized: a token is missing, wrong or expired
   * forbidden: the token does not allow it, or the server does not answer for this host or to a page of this origin
   * not_found: there is no such message or schedule
   * exists: a live message holds the key, or a finished one is remembered by it
   * leased: too late: a worker holds the message
   * stale: the message is in another state than if_state says, or the settings or the schedule are at another revision
   * not_due: claimed too early, or the queue is paused
   * lease_lost: the lease was settled, taken over or cancelled
   * too_large: the body or the request is over a limit
   * limit: a limit of the store, or of the queue's settings, is reached
   * unsupported: the engine cannot do that
   * unavailable: the store does not answer, or the server shuts down or holds all it may; the outcome is unknown
   * internal: the server failed, and its log says how; or its store is damaged, and the message says where
   */
  code: "invalid" | "unauthorized" | "forbidden" | "not_found" | "exists" | "leased" | "stale" | "not_due" | "lease_lost" | "too_large" | "limit" | "unsupported" | "unavailable" | "internal";
  /** for people; may change */
  message: string;
  /** what to do about it, for people; may be empty */
  hint: string;
  /** from when on trying again may help */
  until?: string | null;
  /** of the message in the way */
  id?: string;
  /** its queue */
  queue?: string;
  /** its key */
  key?: string;
  /** when it is due */
  due?: string | null;
  /** where it stands */
  state?: "scheduled" | "ready" | "leased" | "dead" | "finished";
  /** how it went, if it is finished */
  ending?: "acked" | "cancelled" | "expired";
  /** when */
  ended?: string | null;
}

/** What to add to the call: List the messages of a queue. */
export interface ListMessagesQuery {
  /** of this one alone; without it: ready, leased, scheduled, dead, one after another */
  state?: "scheduled" | "ready" | "leased" | "dead" | "finished";
  /** whose time is this or later: due of scheduled and ready ones, the lease's end of leased ones, death of dead ones, end of finished ones */
  from?: string;
  /** whose time is earlier */
  to?: string;
  /** by that time */
  order?: "asc" | "desc";
  /** whose key begins so */
  key_prefix?: string;
  /** with a header of this name, or of this name and, after : or =, this value */
  header?: string;
  /** of finished ones, those that ended so; needs their state */
  ending?: "acked" | "cancelled" | "expired";
  /** the next of the page before, of the same state, bounds and order */
  after?: string;
  /** messages at most */
  limit?: number;
  /** with bodies */
  body?: boolean;
}

/** What to add to the call: Find messages in all queues. */
export interface FindMessagesQuery {
  /** with this key: as GET of the key tells, of each queue */
  key?: string;
  /** whose key begins so */
  key_prefix?: string;
  /** with a header of this name, or of this name and, after : or =, this value */
  header?: string;
  /** the next of the answer before, to the same question */
  after?: string;
  /** messages at most */
  limit?: number;
  /** with bodies */
  body?: boolean;
}

/** What to add to the call: Cancel a message. */
export interface CancelMessageByKeyQuery {
  /** only if the message is in this state; else stale */
  if_state?: "scheduled" | "ready" | "leased" | "dead";
}

/** What to add to the call: Move a message to another time. */
export interface RescheduleMessageByKeyQuery {
  /** only if the message is in this state; else stale */
  if_state?: "scheduled" | "ready" | "leased" | "dead";
}

/** What to add to the call: Cancel a message. */
export interface CancelMessageQuery {
  /** only if the message is in this state; else stale */
  if_state?: "scheduled" | "ready" | "leased" | "dead";
}

/** What to add to the call: Move a message to another time. */
export interface RescheduleMessageQuery {
  /** only if the message is in this state; else stale */
  if_state?: "scheduled" | "ready" | "leased" | "dead";
}

/** What to add to the call: Lease a message if it is due. */
export interface ClaimMessageQuery {
  /** only if the message is in this state; else stale */
  if_state?: "scheduled" | "ready" | "leased" | "dead";
}

/** What to add to the call: Lease a message if it is due. */
export interface ClaimMessageByKeyQuery {
  /** only if the message is in this state; else stale */
  if_state?: "scheduled" | "ready" | "leased" | "dead";
}

/** What to add to the call: List the queues. */
export interface ListQueuesQuery {
  /** the next of the page before */
  after?: string;
  /** queues at most */
  limit?: number;
}

/** What to add to the call: Tell how many messages fall due when. */
export interface ForecastQueueQuery {
  /** whole minutes */
  step?: string;
  /** how far to look */
  span?: string;
}

/** What to add to the call: Tell what happened to a queue, and how late. */
export interface GetTrendQuery {
  /** how far back to look, 72h at most */
  span?: string;
  /** a multiple of 10s for a span of up to 15m, of 1m up to 6h, else of 10m, of which the span is a multiple; 1000 steps at most; without it the finest */
  step?: string;
}

/** What to add to the call: Tell what happened to the queues, and how late. */
export interface ListTrendsQuery {
  /** how far back to look, 72h at most */
  span?: string;
  /** as of one queue, but at most 100 steps; without it such that there are 30, or fewer */
  step?: string;
  /** names of queues, with commas between, 100 at most: only of these */
  queues?: string;
  /** the next of the page before */
  after?: string;
  /** queues at most */
  limit?: number;
}

/** What to add to the call: Be told of queues as they change, by server-sent events. */
export interface WatchQuery {
  /** names of queues to be told of within 250 ms, with commas between, 32 at most */
  queues?: string;
  /** of all other queues: nothing, those that change, or first all as they are; without it nothing where queues are named, else changes */
  overview?: "none" | "changes" | "all";
}

/** What to add to the call: List the schedules. */
export interface ListSchedulesQuery {
  /** the next of the page before */
  after?: string;
  /** schedules at most */
  limit?: number;
}

/** What to add to the call: Remove a schedule. */
export interface DeleteScheduleQuery {
  /** only if it has not changed since this was read */
  revision?: string;
}

/** What to add to the call: Tell when a schedule fires next. */
export interface NextOfScheduleQuery {
  /** how many of the next times */
  n?: number;
}

/** What to add to the call: Tell when a schedule would fire, or what is wrong with it. */
export interface PreviewScheduleQuery {
  /** how many of the next times */
  n?: number;
}

/** What to add to the call: Tell what is wrong, and what to do about it. */
export interface ListProblemsQuery {
  /** messages that have been ready for so long are late */
  late?: string;
}
