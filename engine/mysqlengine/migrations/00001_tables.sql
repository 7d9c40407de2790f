-- migrate: up

-- A row for each message. Instants are milliseconds since 1970 (created: microseconds).
-- kind: 0 waiting with the usual priority, 1 waiting with another, 2 leased, 3 dead,
-- 4 finished and listed: without meta and body.
-- ends: when the kind ends: the due time or the lease's deadline; if dead or finished, since
-- when. ending: how it finished: 1 acked, 2 cancelled, 3 expired.
-- nonce: begins with 6 bytes of when the lease began. worker: who has or had it, or cancelled.
-- failures: the last five, as package codec writes them.
-- due: NULL if it equals ends. Most new messages have the defaults, which are left out,
-- because the server takes time to parse each value.
-- grave: 0 while live, so that a key has one live message. If dead, 32768 times the time of
-- death, plus the id modulo 32768. If finished, likewise, but negative.
-- A body of up to 8192 bytes is in body, a longer one in large.
-- Each queue has fence rows of each kind at the end of time, with ids below 0. A search for
-- the first row of a kind stops there.
-- Keys are compared byte by byte. by_end orders the messages of a kind by ends, for leases,
-- lists and the next due time.
CREATE TABLE IF NOT EXISTS {{message}} (
    id         BIGINT           NOT NULL PRIMARY KEY,
    queue      BIGINT           NOT NULL DEFAULT 0,
    ends       BIGINT           NOT NULL,
    due        BIGINT           NULL,
    created    BIGINT           NOT NULL DEFAULT 0,
    expires    BIGINT           NULL,
    grave      BIGINT           NOT NULL DEFAULT 0,
    attempt    BIGINT           NOT NULL DEFAULT 0,
    priority   BIGINT           NOT NULL DEFAULT 1024,
    size       INT UNSIGNED     NOT NULL DEFAULT 0,
    kind       TINYINT          NOT NULL DEFAULT 0,
    ending     TINYINT          NULL,
    `key`      VARBINARY(512)   NULL,
    nonce      BINARY(16)       NULL,
    worker     VARBINARY(100)   NULL,
    failures   BLOB             NULL,
    policy     VARBINARY(1024)  NOT NULL DEFAULT 0x00,
    meta       BLOB             NULL,
    body       VARBINARY(8192)  NULL,
    large      LONGBLOB         NULL,
    KEY by_end (queue, kind, ends, id, priority),
    UNIQUE KEY by_key (queue, `key`, grave)
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

-- The remembered keys of finished messages.
CREATE TABLE IF NOT EXISTS {{memory}} (
    queue     BIGINT         NOT NULL,
    `key`     VARBINARY(512) NOT NULL,
    id        BIGINT         NOT NULL,
    due       BIGINT         NOT NULL,
    ended     BIGINT         NOT NULL,
    forgotten BIGINT         NOT NULL,
    ending    TINYINT        NOT NULL,
    PRIMARY KEY (queue, `key`),
    KEY by_end (queue, forgotten)
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

-- num is random.
CREATE TABLE IF NOT EXISTS {{queue}} (
    num       BIGINT          NOT NULL PRIMARY KEY,
    name      VARBINARY(200)  NOT NULL UNIQUE,
    paused    BIGINT          NOT NULL DEFAULT 0,
    revision  BIGINT          NOT NULL DEFAULT 0,
    base      BIGINT          NOT NULL DEFAULT 0,
    remembers BOOLEAN         NOT NULL DEFAULT FALSE,
    keeps     BOOLEAN         NOT NULL DEFAULT TRUE,
    settings  BLOB            NULL
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

-- The counts of a queue. count: 0 waiting, by the minute of the due time; 1 all waiting;
-- 2 leased; 3 dead; 4 remembered keys; 5 finished and listed. Transactions only add rows to tally_change, so that
-- none waits for a count. From time to time these rows are added up into tally.
-- Changes of count 1 are not written: they are the sums of the changes of count 0.
CREATE TABLE IF NOT EXISTS {{tally}} (
    queue   BIGINT  NOT NULL,
    `count` TINYINT NOT NULL,
    minute  BIGINT  NOT NULL,
    n       BIGINT  NOT NULL,
    PRIMARY KEY (queue, `count`, minute)
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS {{tally_change}} (
    seq     BIGINT     NOT NULL AUTO_INCREMENT PRIMARY KEY,
    queue   BIGINT     NOT NULL,
    `count` TINYINT    NOT NULL,
    changes MEDIUMTEXT CHARACTER SET ascii NOT NULL -- JSON: [[minute, n], ...]
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

-- Processes reserve ids in blocks. last is the last reserved id. A block begins at or above
-- the microseconds since 1970.
CREATE TABLE IF NOT EXISTS {{id_block}} (
    one  TINYINT NOT NULL PRIMARY KEY,
    last BIGINT  NOT NULL
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO {{id_block}} VALUES (1, 0);

-- migrate: down
DROP TABLE IF EXISTS {{id_block}}, {{tally_change}}, {{tally}}, {{queue}}, {{memory}}, {{message}};
