-- migrate: up
CREATE TABLE {{past}} (id bigint PRIMARY KEY);
CREATE FUNCTION {{keep}}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO {{past}} VALUES (old.id);
	RETURN old;
END
$$;
CREATE TRIGGER keep AFTER DELETE ON {{jobs}} FOR EACH ROW EXECUTE FUNCTION {{keep}}();

-- migrate: down
DROP TRIGGER keep ON {{jobs}};
DROP FUNCTION {{keep}}();
DROP TABLE {{past}};
