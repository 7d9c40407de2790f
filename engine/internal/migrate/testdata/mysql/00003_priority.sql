-- +goose Up
ALTER TABLE {{name "jobs"}} ADD COLUMN priority INT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE {{name "jobs"}} DROP COLUMN priority;
