package redistest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Server is one Redis server, or one sentinel.
type Server struct {
	*servertest.Server
	t testing.TB

	mu    sync.Mutex
	admin rueidis.Client // nil until needed
}

// Start starts a server that stores nothing on disk, unless Args say otherwise.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return start(t, newConfig(opts))
}

// Shared returns the URL of a server for a test that needs no control over it. If
// TARRY_TEST_REDIS_URL is set, that server is used, whatever it holds. Otherwise one is
// started for this test, in about 20 ms.
func Shared(t testing.TB) string {
	t.Helper()
	return servertest.Shared("TARRY_TEST_REDIS_URL", func() string { return Start(t).URL() })
}

// confFile is the file in its directory that a server rewrites: after a failover it restarts
// in its last role.
const confFile = "redis.conf"

func start(t testing.TB, c *config) *Server {
	t.Helper()
	c.args = slices.Concat([]string{"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"}, c.args)
	return run(t, c, "")
}

// run starts a server with its own directory and this configuration.
func run(t testing.TB, c *config, conf string) *Server {
	t.Helper()
	command := servertest.Command{
		Program: servertest.Installed(t, "redis-server", "redis-server"),
		Dir:     t.TempDir(),
		Ready:   []string{"Ready to accept connections", "Sentinel ID is"}, // data loaded, or a sentinel
		Env:     c.env,
		Clock:   c.clock,
	}
	clustered := slices.Contains(c.args, "--cluster-enabled")
	if clustered {
		command.Ports = 2
	}
	command.Args = func(ports []int) []string {
		args := slices.Concat([]string{confFile, "--bind", "127.0.0.1", "--port", strconv.Itoa(ports[0])}, c.args)
		if clustered {
			args = append(args, "--cluster-port", strconv.Itoa(ports[1]))
		}
		return args
	}
	if err := os.WriteFile(filepath.Join(command.Dir, confFile), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, Server: servertest.Start(t, command)}
	t.Cleanup(s.hangUp)
	return s
}

// URL is the server's redis:// URL.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Kill kills the server, as kill -9 does, and waits until it has exited.
func (s *Server) Kill() {
	s.Server.Kill()
	s.hangUp()
}

// Restart kills the server if it runs, starts it again on the same address and data, and
// waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.hangUp()
	s.Server.Restart()
}

// Pause stops the server until Resume: its connections stay open, and nothing is answered.
func (s *Server) Pause() {
	s.t.Helper()
	s.hangUp()
	s.Server.Pause()
}

// hangUp closes the connection of Do, so that the next Do makes a new one.
func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin != nil {
		s.admin.Close()
		s.admin = nil
	}
}

// Client returns a client of this server alone, which is closed at the end of the test.
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

// Do sends a command that must succeed. Its answer may be nil.
func (s *Server) Do(args ...string) rueidis.RedisMessage {
	s.t.Helper()
	m, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("%s: %q: %v", s.Addr(), args, err)
	}
	return m
}

// try sends a command that may fail.
func (s *Server) try(args ...string) (rueidis.RedisMessage, error) {
	c, err := s.adminClient()
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	// Not the test's context: that has ended when cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
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
