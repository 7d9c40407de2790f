-- migrate: up

-- A row for each message. Instants are milliseconds since 1970 (created: microseconds).
-- kind: 0 waiting with the usual priority, 1 waiting with another, 2 leased, 3 dead,
-- 4 finished and listed: without meta and body.
-- ends: when the kind ends: the due time or the lease's deadline; if dead or finished, since
-- when. ending: how it finished: 1 acked, 2 cancelled, 3 expired.
-- nonce: begins with 6 bytes of when the lease began. worker: who has or had it, or cancelled.
-- failures: the last five, as package codec writes them.
-- Columns that change precede the body: the WAL then has no copy of the body for each lease.
CREATE TABLE {{message}} (
    id         bigint   NOT NULL PRIMARY KEY,
    queue      bigint   NOT NULL,
    ends       bigint   NOT NULL,
    due        bigint   NOT NULL,
    created    bigint   NOT NULL,
    expires    bigint,
    priority   bigint   NOT NULL,
    attempt    bigint   NOT NULL,
    kind       smallint NOT NULL,
    ending     smallint,
    key        text     COLLATE "C",
    nonce      bytea,
    worker     text,
    failures   bytea,
    policy     bytea    NOT NULL,
    meta       bytea,
    body       bytea
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);

-- Orders the messages of a kind by ends, for leases, lists and the next due time.
-- It has id + 0, so that no query looks up an id in it.
CREATE INDEX message_ends ON {{message}} (queue, kind, ends, (id + 0));
-- A key has one live message.
CREATE UNIQUE INDEX message_key ON {{message}} (queue, key) WHERE kind < 3 AND key IS NOT NULL;
-- Finds the newest dead and the newest finished message of a key.
CREATE INDEX message_ended_key ON {{message}} (queue, key, kind, ends) WHERE kind >= 3 AND key IS NOT NULL;

-- The remembered keys of finished messages.
CREATE TABLE {{memory}} (
    queue     bigint   NOT NULL,
    key       text     COLLATE "C" NOT NULL,
    id        bigint   NOT NULL,
    due       bigint   NOT NULL,
    ended     bigint   NOT NULL,
    forgotten bigint   NOT NULL,
    ending    smallint NOT NULL,
    PRIMARY KEY (queue, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- Finds the memories that expire first.
CREATE INDEX memory_forgotten ON {{memory}} (queue, forgotten);

-- num is random.
CREATE TABLE {{queue}} (
    num       bigint  NOT NULL PRIMARY KEY,
    name      text    COLLATE "C" NOT NULL UNIQUE,
    paused    bigint  NOT NULL DEFAULT 0,
    revision  bigint  NOT NULL DEFAULT 0,
    base      bigint  NOT NULL DEFAULT 0,
    remembers boolean NOT NULL DEFAULT false,
    keeps     boolean NOT NULL DEFAULT true,
    settings  text
) WITH (fillfactor = 50);

-- The counts of a queue. count: 0 waiting, by the minute of the due time; 1 all waiting;
-- 2 leased; 3 dead; 4 remembered keys; 5 finished and listed. Transactions only add rows to tally_change, so that
-- none waits for a count. From time to time these rows are added up into tally.
CREATE TABLE {{tally}} (
    queue  bigint   NOT NULL,
    count  smallint NOT NULL,
    minute bigint   NOT NULL,
    n      bigint   NOT NULL,
    PRIMARY KEY (queue, count, minute)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE {{tally_change}} (
    seq     bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue   bigint   NOT NULL,
    count   smallint NOT NULL,
    minutes bigint[] NOT NULL,
    ns      bigint[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Processes reserve ids in blocks of 1000. A block's number is the next of this sequence plus
-- a number from the time.
CREATE SEQUENCE {{id_block}} AS bigint;

-- migrate: down
DROP SEQUENCE {{id_block}};
DROP TABLE {{tally_change}}, {{tally}}, {{queue}}, {{memory}}, {{message}};
