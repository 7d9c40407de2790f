package migrate

// Dialect is what differs between the databases.
type Dialect struct {
	dbms string

	// atomic says that a failed migration leaves nothing.
	atomic bool

	// quote gives the full name of what a store calls so.
	quote func(store, name string) string

	// The statements are templates, as the migrations are.
	create, exists, list, record, forget string

	// Both answer by true or false. The first waits for no more than a second; a single
	// argument names the lock.
	lock, unlock string
}

// Postgres keeps each store in a schema of its own, which is made if it is not there.
// The connections must lead to the server itself, or through a PgBouncer in session
// mode: in transaction mode its lock is lost.
var Postgres = Dialect{
	dbms:   "PostgreSQL",
	atomic: true,
	quote:  func(store, name string) string { return `"` + store + `"."` + name + `"` },
	create: `DO $$ BEGIN
	IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = '{{.}}') THEN
		CREATE SCHEMA "{{.}}";
	END IF;
END $$;
CREATE TABLE {{name "migrations"}} (
	version bigint PRIMARY KEY,
	applied timestamptz NOT NULL DEFAULT now()
)`,
	exists: `SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = '{{.}}' AND tablename = 'migrations')`,
	list:   `SELECT version, extract(epoch FROM applied)::bigint FROM {{name "migrations"}} ORDER BY version DESC`,
	record: `INSERT INTO {{name "migrations"}} (version) VALUES ($1)`,
	forget: `DELETE FROM {{name "migrations"}} WHERE version = $1`,
	// Waiting within a statement would hold up CREATE INDEX CONCURRENTLY, which waits
	// for all others.
	lock:   `SELECT pg_try_advisory_lock(hashtextextended('tarry migrations ' || $1, 0))`,
	unlock: `SELECT pg_advisory_unlock(hashtextextended('tarry migrations ' || $1, 0))`,
}

// MySQL, or MariaDB, keeps a store in the tables with a prefix, in the database of the
// connections.
var MySQL = Dialect{
	dbms:  "MySQL or MariaDB",
	quote: func(store, name string) string { return "`" + store + "_" + name + "`" },
	create: `CREATE TABLE {{name "migrations"}} (
	version BIGINT PRIMARY KEY,
	applied TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)`,
	exists: `SELECT COUNT(*) > 0 FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = '{{.}}_migrations'`,
	list:   `SELECT version, UNIX_TIMESTAMP(applied) FROM {{name "migrations"}} ORDER BY version DESC`,
	record: `INSERT INTO {{name "migrations"}} (version) VALUES (?)`,
	forget: `DELETE FROM {{name "migrations"}} WHERE version = ?`,
	// Such locks are the server's, not the database's, and their names are short.
	lock:   `SELECT GET_LOCK(CONCAT('tarry ', SHA2(CONCAT(DATABASE(), '.', ?), 224)), 1) = 1`,
	unlock: `SELECT COALESCE(RELEASE_LOCK(CONCAT('tarry ', SHA2(CONCAT(DATABASE(), '.', ?), 224))) = 1, FALSE)`,
}
