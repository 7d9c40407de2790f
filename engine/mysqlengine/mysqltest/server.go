package mysqltest

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Main returns what runs the tests of a package, for its TestMain, and then ends what
// they shared. It does so for servers of other kinds, too.
func Main(m *testing.M) interface{ Run() int } { return servertest.Main(m) }

// Server is one MariaDB server, or one of MySQL where TARRY_TEST_ROOT names a system with that.
type Server struct {
	*servertest.Server
	t testing.TB

	mu    sync.Mutex
	admin *sql.DB // nil until asked for
}

// Start starts a server with data of its own, which takes some 0.7 s, and for the first
// of a process one second more. Stop ends it in order, which cuts its connections.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	c := &choice{}
	for _, o := range opts {
		o(c)
	}
	from := firstData(t)
	var dir string
	if c.grow == nil {
		dir = servertest.Folder(t, "")
	} else {
		var grow func(bytes int)
		dir, grow = servertest.SmallDisk(t, "", own()+c.bytes)
		*c.grow = func(bytes int) { grow(own() + bytes) }
	}
	servertest.Run(t, "", dir, "cp", "-R", "-p", from, dataDir)
	c.command.Program = program(t)
	c.command.Dir = dir
	c.command.Ready = []string{"ready for connections"}
	c.command.Args = func(ports []int) []string {
		args := slices.Concat([]string{
			"--no-defaults",
			"--user=root", // it refuses to run as root unless told to
			"--datadir=" + filepath.Join(dir, dataDir),
			"--bind-address=127.0.0.1",
			"--port=" + strconv.Itoa(ports[0]),
			"--socket=" + filepath.Join(dir, "socket"),
			"--pid-file=" + filepath.Join(dir, "pid"),
		}, frugal())
		if IsMySQL() {
			args = append(args, "--mysqlx=OFF")
		}
		for _, s := range c.settings {
			args = append(args, "--"+s)
		}
		return args
	}
	s := &Server{t: t, Server: servertest.Start(t, c.command)}
	t.Cleanup(s.hangUp)
	return s
}

// URL is that of the server's database mysql, for its superuser.
func (s *Server) URL() string { return "mysql://root@" + s.Addr() + "/mysql" }

// Kill kills the server, as kill -9 does, and waits until it has ended.
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

// Pause makes the server stand still until Resume: its connections stay open, and
// nothing is answered.
func (s *Server) Pause() {
	s.t.Helper()
	s.hangUp()
	s.Server.Pause()
}
