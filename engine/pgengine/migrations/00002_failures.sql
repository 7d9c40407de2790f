-- migrate: up

-- worker: who has the lease. failures: the last five, as package codec writes them.
ALTER TABLE {{message}} DROP COLUMN last_error,
    ADD COLUMN worker text,
    ADD COLUMN failures bytea;

-- migrate: down
ALTER TABLE {{message}} DROP COLUMN worker, DROP COLUMN failures, ADD COLUMN last_error text;
