package migrate

// Dialect holds the differences between the databases.
type Dialect struct {
	dbms string

	// atomic: statements that change tables can be rolled back.
	atomic bool

	// before and after quote the name of a store's table. There and in all statements, {{.}}
	// is the store's name.
	before, after string

	create, exists, list string

	// Both are queries that return true or false; lock waits for at most a second. The
	// argument is the store's name.
	lock, unlock string
}

// The statements for one version, the same in both databases.
const (
	record = "INSERT INTO {{migrations}} (version) VALUES (%d)"
	forget = "DELETE FROM {{migrations}} WHERE version = %d"
)

// Postgres keeps each store in its own schema, which is created if it is missing. The
// connections must go to the server itself, or through a PgBouncer in session mode:
// transaction mode loses the lock.
var Postgres = Dialect{
	dbms:   "PostgreSQL",
	atomic: true,
	before: `"{{.}}"."`,
	after:  `"`,
	// CREATE SCHEMA IF NOT EXISTS needs the right to create one even if it exists.
	create: `DO $$ BEGIN
	IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = '{{.}}') THEN
		CREATE SCHEMA "{{.}}";
	END IF;
END $$;
CREATE TABLE IF NOT EXISTS {{migrations}} (
	version bigint PRIMARY KEY,
	applied timestamptz NOT NULL DEFAULT now()
)`,
	exists: `SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = '{{.}}' AND tablename = 'migrations')`,
	list:   `SELECT version, extract(epoch FROM applied)::bigint FROM {{migrations}} ORDER BY version DESC`,
	// Waiting within a statement would block CREATE INDEX CONCURRENTLY, which waits for all
	// other statements.
	lock:   `SELECT pg_try_advisory_lock(hashtextextended('tarry migrations ' || $1, 0))`,
	unlock: `SELECT pg_advisory_unlock(hashtextextended('tarry migrations ' || $1, 0))`,
}

// MySQL, or MariaDB, keeps a store in tables with a prefix, in the database of the
// connections.
var MySQL = Dialect{
	dbms:   "MySQL or MariaDB",
	before: "`{{.}}_",
	after:  "`",
	create: `CREATE TABLE IF NOT EXISTS {{migrations}} (
	version BIGINT PRIMARY KEY,
	applied TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)`,
	exists: `SELECT COUNT(*) > 0 FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = '{{.}}_migrations'`,
	list: `SELECT version, UNIX_TIMESTAMP(applied) FROM {{migrations}} ORDER BY version DESC`,
	// These locks belong to the server, not to the database, and have short names.
	lock:   `SELECT GET_LOCK(CONCAT('tarry ', SHA2(CONCAT(DATABASE(), '.', ?), 224)), 1) = 1`,
	unlock: `SELECT COALESCE(RELEASE_LOCK(CONCAT('tarry ', SHA2(CONCAT(DATABASE(), '.', ?), 224))) = 1, FALSE)`,
}
