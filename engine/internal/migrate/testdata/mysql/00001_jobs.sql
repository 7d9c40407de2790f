-- +goose Up
-- What is to be done.
CREATE TABLE {{name "jobs"}} (id BIGINT PRIMARY KEY, due DATETIME(6) NOT NULL, KEY due (due, id));

-- +goose Down
DROP TABLE {{name "jobs"}};
