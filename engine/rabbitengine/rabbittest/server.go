package rabbittest

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Parts that the kinds of servers share.
var (
	Main       = servertest.Main
	Settings   = servertest.Settings  // lines of rabbitmq.conf; the last of repeated settings wins
	Arguments  = servertest.Arguments // of the Erlang runtime, for options that rabbitmq.conf lacks
	StartProxy = servertest.StartProxy
)

// Option configures a broker at its start.
type Option = servertest.Option

// Plugins enables plugins, such as "rabbitmq_management". Name the plugins that they need,
// too.
func Plugins(names ...string) Option {
	return func(c *servertest.Command) { c.Plugins = append(c.Plugins, names...) }
}

// Server is one broker.
type Server struct {
	*servertest.Server
	t    testing.TB
	name string   // node name
	env  []string // environment of the broker and its tools

	asked sync.Mutex // serializes Eval
}

// patience is how long a broker may take to start: seconds of processor time on a shared
// machine.
const patience = 5 * time.Minute

// Start starts a broker with its own data. Stop shuts it down cleanly.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return start(t, opts, startDaemon(t), "rabbit")
}

// startDaemon starts an epmd, where the nodes of a cluster find each other, and returns its
// port.
func startDaemon(t testing.TB) int {
	t.Helper()
	s := servertest.Start(quiet{t}, servertest.Command{
		Program: servertest.Installed(t, "epmd", "erlang-base"),
		Args: func(ports []int) []string {
			// Without -d it prints nothing when it is ready.
			return []string{"-d", "-address", "127.0.0.1", "-port", strconv.Itoa(ports[0])}
		},
		Ready: []string{"epmd running"},
	})
	return s.Port(0)
}

// quiet is a test that never logs a server's output.
type quiet struct{ testing.TB }

// Failed returns false, so that nothing is logged at the end.
func (quiet) Failed() bool { return false }

// start starts the node with this name.
func start(t testing.TB, opts []Option, daemon int, name string) *Server {
	t.Helper()
	dir := servertest.Folder(t, "")
	c := servertest.Command{
		Program:  "env",
		Dir:      dir,
		Ports:    2,
		Ready:    []string{"Server startup complete"},
		Patience: patience,
		Settings: slices.Clone(frugal),
	}
	c.Apply(opts)
	s := &Server{t: t, name: name + "@localhost"}
	home, env := newHome(t, &c)
	s.env = append([]string{
		"HOME=" + dir, // for the cookie
		"ERL_EPMD_PORT=" + strconv.Itoa(daemon),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "plugins"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		"RABBITMQ_LOGS=-",
		"RABBITMQ_NODENAME=" + s.name,
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"detached=1", // the script execs the broker
	}, env...)
	c.Env, c.Arguments = s.env, nil // the environment has the arguments
	c.Files = map[string]string{
		".erlang.cookie": cookie,
		"plugins":        "[" + strings.Join(c.Plugins, ",") + "].\n",
		"rabbitmq.conf":  strings.Join(c.Settings, "\n") + "\n",
	}
	c.Args = func(ports []int) []string {
		return []string{
			"RABBITMQ_NODE_PORT=" + strconv.Itoa(ports[0]),
			"RABBITMQ_DIST_PORT=" + strconv.Itoa(ports[1]),
			filepath.Join(home, "sbin", "rabbitmq-server"),
		}
	}
	s.Server = servertest.Start(t, c)
	return s
}

// cookie is the shared secret of the nodes.
const cookie = "tarry"

// frugal lists the settings of every broker.
var frugal = []string{
	"log.console = true",
	"log.file = false",
	"collect_statistics_interval = 60000",
	"raft.wal_max_size_bytes = 33554432",
}

// URL returns the URL of the broker's vhost "/", for its superuser.
func (s *Server) URL() string { return "amqp://guest:guest@" + s.Addr() }
