-- migrate: up

-- One row a message. Instants are milliseconds since 1970 (created: microseconds).
-- kind: 0 waiting with the usual priority, 1 waiting with another, 2 leased, 3 dead.
-- ends: when that ends: due time, deadline of the lease, or since when it is dead.
-- due: NULL where that is ends. The defaults are what most messages have when they come: the
-- server takes its time to parse each value.
-- grave: 0, so that a key has one live message; of one that is dead 32768 times since when,
-- plus its id modulo 32768. A body of up to 8192 bytes is in body, one that is longer in large.
-- A queue has a row of each kind at the end of time, of an id below 0, where who looks for
-- the first of a kind stops.
-- Keys are bytes, of which each counts. by_end is what falls due, lapses and died, each in
-- its order: leases, lists, the next due time.
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
    `key`      VARBINARY(512)   NULL,
    nonce      BINARY(16)       NULL,
    policy     VARBINARY(1024)  NOT NULL DEFAULT 0x00,
    last_error BLOB             NULL,
    meta       BLOB             NULL,
    body       VARBINARY(8192)  NULL,
    large      LONGBLOB         NULL,
    KEY by_end (queue, kind, ends, id, priority),
    UNIQUE KEY by_key (queue, `key`, grave)
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

-- The keys that finished messages left behind.
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

-- num is drawn at random.
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

-- How many there are, by queue. count: 0 waiting, by the minute of their due times; 1 all
-- that wait, 2 leased, 3 dead, 4 remembered keys. Transactions add rows to tally_change,
-- which are added up into tally now and then: so no transaction waits for a count. What
-- changes of 0 add up to is there the change of 1.
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

-- Ids are handed to processes in blocks; last is the last of them. A block begins no lower than
-- the microseconds since 1970.
CREATE TABLE IF NOT EXISTS {{id_block}} (
    one  TINYINT NOT NULL PRIMARY KEY,
    last BIGINT  NOT NULL
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO {{id_block}} VALUES (1, 0);

-- migrate: down
DROP TABLE IF EXISTS {{id_block}}, {{tally_change}}, {{tally}}, {{queue}}, {{memory}}, {{message}};
