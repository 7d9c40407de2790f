package pgtest

import (
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Main returns what runs the tests of a package, for its TestMain, and then ends what
// they shared. It does so for servers of other kinds, too.
func Main(m *testing.M) interface{ Run() int } { return servertest.Main(m) }

// Server is one PostgreSQL server.
type Server struct {
	*servertest.Server
	t testing.TB

	mu    sync.Mutex
	admin *pgxpool.Pool // nil until asked for
}

// Start starts a server with data of its own, which takes some 0.3 s, and for the first
// of a process one second more. Stop ends it in order, which cuts its connections.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	c := newConfig(opts)
	c.command.Dir = newFolder(t)
	configure(t, c.command.Dir, append([]string{
		"fsync = off",
		"unix_socket_directories = ''",
		"shared_memory_type = mmap",
		"dynamic_shared_memory_type = mmap", // in its folder, which goes with it, killed or not
	}, c.settings...))
	return start(t, c.command)
}

// start starts a server whose folder is ready.
func start(t testing.TB, c servertest.Command) *Server {
	t.Helper()
	c.Program = installed(t, "postgres")
	c.User = runner()
	c.Args = func(ports []int) []string {
		return []string{"-D", dataDir, "-h", "127.0.0.1", "-p", strconv.Itoa(ports[0])}
	}
	c.Ready = []string{
		"database system is ready to accept connections",
		"database system is ready to accept read-only connections", // a replica
	}
	c.StopSignal = syscall.SIGINT // it waits for no client
	s := &Server{t: t, Server: servertest.Start(t, c)}
	t.Cleanup(s.hangUp)
	return s
}

// URL is that of the server's database postgres, for its superuser.
func (s *Server) URL() string {
	return "postgres://postgres@" + s.Addr() + "/postgres?sslmode=disable"
}

// Kill kills the server, as kill -9 does all its processes, and waits until these have
// ended.
func (s *Server) Kill() {
	s.Server.Kill()
	s.hangUp()
}

// Stop ends the server in order, without waiting for its clients.
func (s *Server) Stop() {
	s.t.Helper()
	s.hangUp()
	s.Server.Stop()
}

// Restart starts the server again where it was, killing it first if it runs, and waits
// until it has recovered its data and answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.hangUp()
	s.Server.Restart()
}

// Pause makes all the server's processes stand still until Resume: its connections stay
// open, and nothing is answered.
func (s *Server) Pause() {
	s.t.Helper()
	s.hangUp()
	s.Server.Pause()
}
