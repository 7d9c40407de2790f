-- migrate: no transaction
-- migrate: up
ALTER TABLE {{jobs}} ADD COLUMN IF NOT EXISTS priority int NOT NULL DEFAULT 0;
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_priority ON {{jobs}} (priority);

-- migrate: down
ALTER TABLE {{jobs}} DROP COLUMN IF EXISTS priority;
