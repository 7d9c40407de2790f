-- migrate: up
ALTER TABLE {{jobs}} ADD COLUMN priority INT NOT NULL DEFAULT 0;

-- migrate: down
ALTER TABLE {{jobs}} DROP COLUMN priority;
