package server

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/trend"
)

// Config sets up a Server. The zero value, and a nil Config, work.
type Config struct {
	// Version is the server's version in GET /v1/info. Default "dev".
	Version string

	// Hosts are the names and addresses that the server answers for. It always answers for
	// loopback (localhost, names below it, 127.0.0.0/8, ::1) and for the address that a
	// connection came in on. Each entry is one that CheckHost accepts: tarry.example.com,
	// *.example.com for all names below, 192.0.2.7 or 2001:db8::7. Any other matches nothing.
	// Default: none.
	Hosts []string

	// MaxRequest bounds the body of a request in bytes; a larger one gets 413. Default 8 MiB,
	// or enough for two of the client's largest message bodies.
	MaxRequest int

	// MaxBuffered bounds the memory of all requests at work, of their answers until clients
	// have read them, and of the queue names in sets. A request counts 16 KiB, its headers,
	// and the size of its buffers. When there is no room, a request gets 503. Nearly all
	// requests are small, and these have 16 MiB more. Connections that wait for their clients
	// cost at most 48 MiB on top. Default 256 MiB, or four of the largest requests; at least
	// two of these.
	MaxBuffered int64

	// MaxConnections bounds the connections that Serve holds. When one more comes, Serve
	// closes one that has waited for its client for at least 100 ms. It picks the one that has
	// waited longest, at the address (the network for IPv6) where waiting connections cost the
	// most memory. A connection that waits for the rest of a body is closed only if no other
	// waits. If none waits, the new one gets 503. Waiting lease requests may take seven
	// connections in eight, wherever the Server is mounted; any more get 503. Default 4096.
	MaxConnections int

	// MaxViewers bounds the clients of GET /v1/live, each with a connection of its own; any
	// more get 503. Default 1000, and at most half of MaxConnections.
	MaxViewers int

	// MaxSetQueues bounds the queues of all sets together. A set is kept for a client that
	// polls many queues, so that it need not name them each time. A queue takes about 250
	// bytes and its name. When there is no room, the sets that have rested longest are
	// dropped; if that is not enough, no new set is made. Default 200,000; negative: no sets.
	MaxSetQueues int

	// ReadHeaderTimeout is how long a client may take to send the headers of a
	// request. Default 10 s.
	ReadHeaderTimeout time.Duration

	// ReadTimeout is how long a client may take to send each 64 KiB of a request body, and
	// what is left at its end. Default 30 s.
	ReadTimeout time.Duration

	// WriteTimeout is how long a client may take to read each 64 KiB of an answer, and what is
	// left at its end. Then its connection is cut, and the leases in the answer are released.
	// Kernels pass data on in larger pieces, so a client is only safe if it reads 256 KiB
	// within each timeout. Default 30 s.
	WriteTimeout time.Duration

	// IdleTimeout is how long a connection may rest between requests. Default 3 min.
	IdleTimeout time.Duration

	// ShutdownTimeout is how long Serve waits for requests under way after its context has
	// ended. Default 30 s.
	ShutdownTimeout time.Duration

	// Guard finds a request's token, and so what it allows. Default: every request is allowed.
	Guard *access.Guard

	// Audit gets a line for each change that an operator makes or is not allowed to make.
	// These are pause, resume, purge, redrive, drop, settings and backups. Cancel and
	// reschedule count if the token may not push. A line that cannot be written stops no
	// change: see access.Audit. Default: none.
	Audit *access.Audit

	// TLS makes Serve accept only TLS connections, with HTTP/1.1 in them. Default: the
	// configuration of Certificate, if there is one.
	TLS *tls.Config

	// Certificate is the one that the server shows over TLS. GET /readyz tells clients with a
	// token that it ends soon: within 14 days, or in the last quarter of its lifetime if that
	// is shorter. See TLSFiles. Default: none.
	Certificate *Certificate

	// Logger gets panics and 5xx errors. When there are many, some are left out (for a full
	// disk, all but one a minute), and the next line says how many. Default: nothing is
	// logged.
	Logger *slog.Logger

	// Metrics answers GET /metrics, such as tarryprom.Metrics.Handler. Default: that path does
	// not exist.
	Metrics http.Handler

	// Trends answers GET /v1/trends and /v1/queues/{queue}/trend. Its Meter must be one of the
	// client's. Default: these answer 501.
	Trends *trend.Recorder

	// BackupDir is where POST /v1/backup makes backups, each in a subdirectory with its name.
	// The call needs the scope admin on all queues. Default: no backups.
	BackupDir string

	// Beanstalk returns how many connections clients of beanstalkd's protocol have to this
	// process, and how many of them wait for a job. GET /v1/info tells it. Default: it is not
	// served.
	Beanstalk func() (connections, waiting int64)

	// Intakes returns what the intakes of this process do, as intake.Runner.Status. Default:
	// there are none.
	Intakes func() []intake.Status

	// Answered, if not nil, is called after each answered request, concurrently. route is such
	// as /v1/queues/{queue}/messages, or "other"; method may be "other" too. took is the time
	// from the end of the request's headers to the end of its answer.
	Answered func(route, method string, status int, took time.Duration)
}

// The defaults and bounds of a Config.
const (
	DefaultMaxBuffered    = 256 << 20
	DefaultMaxConnections = 4096
	DefaultMaxViewers     = 1000
	DefaultMaxSetQueues   = 200_000

	defaultMaxRequest = 8 << 20
	maxHeader         = 32 << 10 // request line and headers together, in bytes; more gets 431
)

// withDefaults returns a copy with every field set.
func (cfg *Config) withDefaults(maxBody int) Config {
	c := *cmp.Or(cfg, new(Config))
	c.Version = cmp.Or(c.Version, "dev")
	c.MaxRequest = cmp.Or(max(c.MaxRequest, 0), max(defaultMaxRequest, 2*maxBody+64<<10))
	c.MaxBuffered = cmp.Or(max(c.MaxBuffered, 0), max(DefaultMaxBuffered, 4*int64(c.MaxRequest)))
	c.MaxBuffered = max(c.MaxBuffered, 2*int64(c.MaxRequest))
	c.MaxConnections = cmp.Or(max(c.MaxConnections, 0), DefaultMaxConnections)
	c.MaxViewers = cmp.Or(max(c.MaxViewers, 0), DefaultMaxViewers)
	c.MaxViewers = min(c.MaxViewers, max(c.MaxConnections/2, 1))
	c.MaxSetQueues = cmp.Or(c.MaxSetQueues, DefaultMaxSetQueues)
	if c.TLS == nil && c.Certificate != nil {
		c.TLS = c.Certificate.TLS()
	}
	c.ReadHeaderTimeout = cmp.Or(max(c.ReadHeaderTimeout, 0), 10*time.Second)
	c.ReadTimeout = cmp.Or(max(c.ReadTimeout, 0), 30*time.Second)
	c.WriteTimeout = cmp.Or(max(c.WriteTimeout, 0), 30*time.Second)
	c.IdleTimeout = cmp.Or(max(c.IdleTimeout, 0), 3*time.Minute)
	c.ShutdownTimeout = cmp.Or(max(c.ShutdownTimeout, 0), 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}
