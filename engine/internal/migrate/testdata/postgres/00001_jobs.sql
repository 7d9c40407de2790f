-- +goose Up
-- What is to be done.
CREATE TABLE {{name "jobs"}} (id bigint PRIMARY KEY, due timestamptz NOT NULL);
CREATE INDEX jobs_due ON {{name "jobs"}} (due, id);

-- +goose Down
DROP TABLE {{name "jobs"}};
