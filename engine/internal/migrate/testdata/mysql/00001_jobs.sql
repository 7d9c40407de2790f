-- migrate: up
-- What is to be done.
CREATE TABLE {{jobs}} (id BIGINT PRIMARY KEY, due DATETIME(6) NOT NULL, KEY due (due, id));

-- migrate: down
DROP TABLE {{jobs}};
