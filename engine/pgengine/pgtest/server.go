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

// What servers of other kinds have alike.
var (
	Main       = servertest.Main
	Settings   = servertest.Settings // lines of postgresql.conf
	Clock      = servertest.Clock
	StartProxy = servertest.StartProxy
	As         = servertest.As
)

// Option is a choice made on starting servers.
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

// Shared returns the URL of an empty database for a test that only needs some PostgreSQL,
// see servertest.SQL.
func Shared(t testing.TB) string {
	t.Helper()
	return postgres.Shared(t, func(t testing.TB) string { return Start(t, Settings("max_connections = 500")).URL() })
}

// Start starts a server with data of its own, which takes some 0.3 s, and for the first
// of a process one second more. Stop ends it in order, which cuts its connections.
//
// Without Settings fsync is off, as no test takes the machine's power away, and the rest
// is as PostgreSQL has it. What measures says "fsync = on".
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	c := servertest.Command{Dir: newFolder(t), Settings: []string{
		"fsync = off",
		"unix_socket_directories = ''",
		"shared_memory_type = mmap",
		"dynamic_shared_memory_type = mmap", // in its folder, which goes with it, killed or not
	}}
	c.Apply(opts)
	return start(t, c)
}

// start starts a server whose folder has its data.
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
	c.StopSignal = syscall.SIGINT // it waits for no client
	return &Server{t: t, SQLServer: postgres.Start(t, c)}
}

// Pool returns a pool for a URL, which the test's end closes.
func Pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
