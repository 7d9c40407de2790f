-- migrate: up
-- What is to be done.
CREATE TABLE {{jobs}} (id bigint PRIMARY KEY, due timestamptz NOT NULL);
CREATE INDEX jobs_due ON {{jobs}} (due, id);

-- migrate: down
DROP TABLE {{jobs}};
