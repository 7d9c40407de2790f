-- migrate: up

-- Stores made before this version lack these columns.
ALTER TABLE {{message}} DROP COLUMN IF EXISTS last_error,
    ADD COLUMN IF NOT EXISTS worker text,
    ADD COLUMN IF NOT EXISTS failures bytea;

-- migrate: down
ALTER TABLE {{message}} DROP COLUMN worker, DROP COLUMN failures, ADD COLUMN last_error text;
