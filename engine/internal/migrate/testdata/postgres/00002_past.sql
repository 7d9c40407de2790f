-- +goose Up
CREATE TABLE {{name "past"}} (id bigint PRIMARY KEY);
-- +goose StatementBegin
CREATE FUNCTION {{name "keep"}}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO {{name "past"}} VALUES (old.id);
	RETURN old;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER keep AFTER DELETE ON {{name "jobs"}} FOR EACH ROW EXECUTE FUNCTION {{name "keep"}}();

-- +goose Down
DROP TRIGGER keep ON {{name "jobs"}};
DROP FUNCTION {{name "keep"}}();
DROP TABLE {{name "past"}};
