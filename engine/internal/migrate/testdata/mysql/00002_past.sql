-- +goose Up
CREATE TABLE IF NOT EXISTS {{name "past"}} (id BIGINT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS {{name "dead"}} (id BIGINT PRIMARY KEY);

-- +goose Down
DROP TABLE IF EXISTS {{name "dead"}};
DROP TABLE IF EXISTS {{name "past"}};
