-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE {{name "jobs"}} ADD COLUMN IF NOT EXISTS priority int NOT NULL DEFAULT 0;
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_priority ON {{name "jobs"}} (priority);

-- +goose Down
ALTER TABLE {{name "jobs"}} DROP COLUMN IF EXISTS priority;
