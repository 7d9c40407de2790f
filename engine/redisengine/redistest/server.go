package redistest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/rueidis"
)

// Server is one Redis server, or one sentinel.
type Server struct {
	t     testing.TB
	path  string
	dir   string
	args  []string
	env   []string
	clock string

	port    int
	busPort int // of a node of a cluster

	mu      sync.Mutex
	process *process
	paused  bool
	admin   rueidis.Client // nil until asked for
}

// Start starts a server that keeps nothing on disk, unless Args say otherwise.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return start(t, newConfig(opts))
}

// confFile is, in its folder, what a server rewrites: after a failover it comes
// back as what it was last.
const confFile = "redis.conf"

func start(t testing.TB, c *config) *Server {
	t.Helper()
	s := newServer(t, c, "")
	s.args = slices.Concat([]string{"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"}, c.args)
	s.open()
	return s
}

// newServer prepares a server with a folder of its own and this configuration.
func newServer(t testing.TB, c *config, conf string) *Server {
	t.Helper()
	s := &Server{t: t, path: redisServer(t), dir: t.TempDir(), clock: c.clock}
	if err := os.WriteFile(filepath.Join(s.dir, confFile), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.clock != "" {
		s.env = clockEnv(libfaketime(t), s.dir)
		setClock(t, s.dir, s.clock)
	}
	return s
}

// open starts the server for the first time, on ports that turn out to be free.
func (s *Server) open() {
	s.t.Helper()
	s.t.Cleanup(s.Kill)
	err := errPortTaken
	for range 20 {
		s.port = freePort(s.t)
		if s.clustered() {
			s.busPort = freePort(s.t)
		}
		if err = s.run(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) run() error {
	cmd := exec.Command(s.path, confFile, "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port))
	cmd.Args = slices.Concat(cmd.Args, s.args)
	if s.clustered() {
		cmd.Args = append(cmd.Args, "--cluster-port", strconv.Itoa(s.busPort))
	}
	cmd.Dir = s.dir
	cmd.Env = slices.Concat(os.Environ(), s.env)
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process, s.paused = p, false
	return nil
}

func (s *Server) clustered() bool { return slices.Contains(s.args, "--cluster-enabled") }

// Addr is the server's host:port.
func (s *Server) Addr() string { return loopback(s.port) }

// URL is the server's redis:// URL.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Kill kills the server, as kill -9 does, and waits until it has ended.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.kill()
		if s.clock != "" {
			forgetClock(s.process.cmd.Process.Pid)
		}
	}
	s.hangUp()
}

// hangUp closes the connection for Do, lest it be found broken or unanswered.
func (s *Server) hangUp() {
	if s.admin != nil {
		s.admin.Close()
		s.admin = nil
	}
}

// Restart starts the server again where it was, killing it first if it runs, and
// waits until it has loaded its data and answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	// What it had forked may hold the port until it has ended, too.
	await(s.t, "the restart of "+s.Addr(), func() error {
		err := s.run()
		if err != nil && !errors.Is(err, errPortTaken) {
			s.t.Fatal(err)
		}
		return err
	})
}

// Pause makes the server stand still until Resume: its connections stay open, and
// nothing is answered.
func (s *Server) Pause() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp()
	stop(s.t, s.process.cmd.Process)
	s.paused = true
}

// Resume ends a Pause.
func (s *Server) Resume() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	cont(s.t, s.process.cmd.Process)
	s.paused = false
}

// Running says whether the server is neither killed nor paused.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && s.process.alive() && !s.paused
}

// SetClock steps the wall clock of a server that was started with a Clock.
func (s *Server) SetClock(spec string) {
	s.t.Helper()
	if s.clock == "" {
		s.t.Fatal("SetClock: the server was started without Clock")
	}
	setClock(s.t, s.dir, spec)
}

// Client returns a client of this server alone, which the test's end closes.
func (s *Server) Client() rueidis.Client {
	s.t.Helper()
	c, err := s.connect(false)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func (s *Server) connect(resp2 bool) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{s.Addr()},
		ForceSingleClient: true,
		DisableCache:      true,
		AlwaysRESP2:       resp2,
	})
}

// Do sends a command, which must succeed; its answer may be nil.
func (s *Server) Do(args ...string) rueidis.RedisMessage {
	s.t.Helper()
	m, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("%s: %q: %v", s.Addr(), args, err)
	}
	return m
}

// try sends a command, which may fail.
func (s *Server) try(args ...string) (rueidis.RedisMessage, error) {
	c, err := s.adminClient()
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	// Not the test's context, which has ended when its cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m, err := c.Do(ctx, c.B().Arbitrary(args...).Build()).ToMessage()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return m, err
}

func (s *Server) adminClient() (rueidis.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.admin == nil {
		s.admin, err = s.connect(true) // RESP3 puts "txt:" before the texts of INFO and the like
	}
	return s.admin, err
}
