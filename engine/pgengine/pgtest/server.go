package pgtest

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx of database/sql

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Parts that the kinds of servers share.
var (
	Main       = servertest.Main
	Settings   = servertest.Settings // lines of postgresql.conf
	StartProxy = servertest.StartProxy
	As         = servertest.As
)

// Option configures a server at its start.
type Option = servertest.Option

var postgres = servertest.SQL{
	Variable: "TARRY_TEST_POSTGRES_URL",
	URL:      "postgres://postgres@%s/postgres?sslmode=disable",
	Open:     func(url string) (*sql.DB, error) { return sql.Open("pgx", url) },
	Drop:     "DROP DATABASE %s WITH (FORCE)",
}

// Server is one PostgreSQL server.
type Server struct {
	*servertest.SQLServer
	t testing.TB
}

// Shared returns the URL of an empty database for a test that needs no control of the server:
// see servertest.SQL.
func Shared(t testing.TB) string {
	t.Helper()
	return postgres.Shared(t, func(t testing.TB) string { return Start(t, Settings("max_connections = 500")).URL() })
}

// Start starts a server with its own data. It takes about 0.3 s, and one second more for the
// first server of a process. Stop shuts the server down cleanly and ends its connections.
//
// By default fsync is off, because no test cuts the power, and everything else has
// PostgreSQL's default. Measurements should set "fsync = on".
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	c := servertest.Command{Dir: newFolder(t), Settings: []string{
		"fsync = off",
		"unix_socket_directories = ''",
		"shared_memory_type = mmap",
		"dynamic_shared_memory_type = mmap", // in its directory, which is removed even if the server was killed
	}}
	c.Apply(opts)
	return start(t, c)
}

// start starts a server whose directory has its data.
func start(t testing.TB, c servertest.Command) *Server {
	t.Helper()
	c.Program = installed(t, "postgres")
	c.User = runner()
	c.Files = map[string]string{filepath.Join(dataDir, "postgresql.conf"): strings.Join(c.Settings, "\n") + "\n"}
	c.Args = func(ports []int) []string {
		return []string{"-D", dataDir, "-h", "127.0.0.1", "-p", strconv.Itoa(ports[0])}
	}
	c.Ready = []string{
		"database system is ready to accept connections",
		"database system is ready to accept read-only connections", // a replica
	}
	c.StopSignal = syscall.SIGINT // does not wait for clients
	return &Server{t: t, SQLServer: postgres.Start(t, c)}
}

// Pool returns a pool for a URL. The end of the test closes it.
func Pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
