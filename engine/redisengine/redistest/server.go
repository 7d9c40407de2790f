package redistest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Parts that the kinds of servers share.
var (
	Args  = servertest.Arguments // of redis-server; the last of repeated arguments wins
	Env   = servertest.Env
	Clock = servertest.Clock
)

type (
	// Option configures the servers of a test.
	Option = servertest.Option

	// Proxy forwards connections to a server and injects faults.
	Proxy = servertest.Proxy
)

// NodeOption applies options to one of the Nodes of a cluster or of Sentinels.
func NodeOption(i int, opts ...Option) Option {
	return func(c *servertest.Command) {
		if c.Node == i {
			c.Apply(opts)
		}
	}
}

// StartProxy starts a proxy for the server at a host:port.
func StartProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	return servertest.StartProxy(t, "redis://"+to)
}

// Server is one Redis server, or one sentinel.
type Server struct {
	*servertest.Server
	t testing.TB

	mu    sync.Mutex
	admin rueidis.Client // nil until needed
}

// Shared returns the URL of a server for a test that needs no control over it. If
// TARRY_TEST_REDIS_URL is set, that server is used, whatever it holds. Otherwise one is
// started for this test, in about 20 ms.
func Shared(t testing.TB) string {
	t.Helper()
	return servertest.Shared("TARRY_TEST_REDIS_URL", func() string { return Start(t).URL() })
}

// Start starts a server that stores nothing on disk, unless Args say otherwise.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return start(t, 0, opts)
}

// start starts a node. The arguments of the options come last.
func start(t testing.TB, node int, opts []Option, args ...string) *Server {
	t.Helper()
	c := servertest.Command{Node: node}
	c.Arguments = slices.Concat([]string{"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"}, args)
	c.Apply(opts)
	return run(t, c, "")
}

// confFile is the file in its directory that a server rewrites: after a failover it restarts
// in its last role.
const confFile = "redis.conf"

// run starts a server with its own directory and this configuration.
func run(t testing.TB, c servertest.Command, conf string) *Server {
	t.Helper()
	c.Program = servertest.Installed(t, "redis-server", "redis-server")
	c.Files = map[string]string{confFile: conf}
	c.Ready = []string{"Ready to accept connections", "Sentinel ID is"} // data loaded, or a sentinel
	c.Ports = 2
	clustered := slices.Contains(c.Arguments, "--cluster-enabled")
	c.Args = func(ports []int) []string {
		args := []string{confFile, "--bind", "127.0.0.1", "--port", strconv.Itoa(ports[0])}
		if clustered {
			args = append(args, "--cluster-port", strconv.Itoa(ports[1]))
		}
		return args
	}
	s := &Server{t: t}
	c.HangUp = s.hangUp
	s.Server = servertest.Start(t, c)
	return s
}

// URL is the server's redis:// URL.
func (s *Server) URL() string { return "redis://" + s.Addr() }

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
