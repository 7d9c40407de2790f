-- migrate: up

-- worker: who has the lease. failures: the last five, as package codec writes them.
ALTER TABLE {{message}} DROP COLUMN last_error,
    ADD COLUMN worker VARBINARY(100) NULL AFTER nonce,
    ADD COLUMN failures BLOB NULL AFTER worker;

-- migrate: down
ALTER TABLE {{message}} DROP COLUMN worker, DROP COLUMN failures, ADD COLUMN last_error BLOB NULL;
