package server

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/trend"
)

// Config sets up a Server. The zero value, and a nil Config, work.
type Config struct {
	// Version is what GET /v1/info names as the server's version. Default "dev".
	Version string

	// Hosts are the names and addresses that the server answers for, beyond
	// loopback (localhost, names below it, 127.0.0.0/8, ::1) and the address that a
	// connection came in on. Each is as CheckHost wants it: tarry.example.com,
	// *.example.com for all names below, 192.0.2.7 or 2001:db8::7; any other matches
	// nothing. Default: none.
	Hosts []string

	// MaxRequest bounds the body of a request in bytes; what is larger gets 413.
	// Default 8 MiB, or what two of the client's largest message bodies need.
	MaxRequest int

	// MaxBuffered bounds the memory of all requests at work, of their answers until clients
	// have read them, and of the names of queues in sets. A request counts 16 KiB, its
	// headers, and the size of its buffers. One too many gets 503; small ones, as nearly all
	// are, have 16 MiB more. Connections that wait for their clients cost at most 48 MiB on
	// top. Default 256 MiB, or four of the largest requests; at least two of these.
	MaxBuffered int64

	// MaxConnections bounds the connections that Serve holds. When one more comes, Serve
	// closes one that has waited for its client for at least 100 ms: the longest waiting of
	// the address (of IPv6 the network) with the most of these. One that waits for the rest
	// of a body goes only if no other waits. If none waits, the new one gets 503. Waiting
	// lease requests may take seven in eight, wherever the Server is mounted; one more gets
	// 503. Default 4096.
	MaxConnections int

	// MaxViewers bounds the clients of GET /v1/live, each with a connection of its own; one
	// more gets 503. Default 1000, and no more than half of MaxConnections.
	MaxViewers int

	// MaxSetQueues bounds the queues of all sets together. A set is kept for a client that
	// polls many queues, so that it need not name them each time; a queue takes some 250
	// bytes and its name. Beyond the bound the sets that rested for longest go; if none
	// rests, none is made. Default 200,000; negative: none is kept.
	MaxSetQueues int

	// MaxHeader bounds the request line and headers together, in bytes; more gets
	// 431. Default 32 KiB; at most 1 MiB.
	MaxHeader int

	// ReadHeaderTimeout is how long a client may take to send the headers of a
	// request. Default 10 s.
	ReadHeaderTimeout time.Duration

	// ReadTimeout is how long a client may take to send each 64 KiB of the body of a
	// request, and the rest. Default 30 s.
	ReadTimeout time.Duration

	// WriteTimeout is how long a client may take to read each 64 KiB of an answer, and
	// the rest; then its connection is cut, and what it was to lease is released. As
	// kernels pass data on in larger pieces, only 256 KiB within each timeout are safe.
	// Default 30 s.
	WriteTimeout time.Duration

	// IdleTimeout is how long a connection may rest between requests. Default 3 min.
	IdleTimeout time.Duration

	// ShutdownTimeout is how long Serve waits for requests under way once its
	// context has ended. Default 30 s.
	ShutdownTimeout time.Duration

	// Guard tells whose token a request has and what it allows. Default: every request is
	// allowed.
	Guard *access.Guard

	// Audit gets a line for each change that an operator makes or was not allowed to make:
	// pause, resume, purge, redrive, settings, backups, and cancels and reschedules by a
	// token without the right to push. A line that cannot be written stops no change: see
	// access.Audit. Default: none.
	Audit *access.Audit

	// TLS has Serve take connections over TLS alone, with HTTP/1.1 in it. Default: that of
	// Certificate, if there is one.
	TLS *tls.Config

	// Certificate is what the server shows over TLS. GET /readyz says, to clients with a
	// token, when it ends within 14 days or the last quarter of its lifetime, whichever is
	// less. See TLSFiles. Default: none.
	Certificate *Certificate

	// Logger gets panics and errors of class 5xx: all while they are few, one a minute for a
	// full disk, each with how many were left out before it. Default: nothing is logged.
	Logger *slog.Logger

	// Metrics answers GET /metrics, such as tarryprom.Metrics.Handler. Default: there is
	// no such path.
	Metrics http.Handler

	// Trends answers GET /v1/trends and /v1/queues/{queue}/trend; its Meter has to be the
	// client's, or one of them. Default: these answer 501.
	Trends *trend.Recorder

	// BackupDir is where POST /v1/backup makes backups, each in a subdirectory of its name.
	// It needs the scope admin on all queues. Default: no backups.
	BackupDir string

	// Answered, if not nil, is called for each answered request, concurrently, with its
	// route, such as /v1/queues/{queue}/messages, or "other"; its method, or "other"; the
	// status; and the time from its headers to the end of its answer.
	Answered func(route, method string, status int, took time.Duration)
}

// The defaults and bounds of a Config.
const (
	DefaultMaxBuffered    = 256 << 20
	DefaultMaxConnections = 4096
	DefaultMaxViewers     = 1000
	DefaultMaxSetQueues   = 200_000

	defaultMaxRequest = 8 << 20
	defaultMaxHeader  = 32 << 10
	mostMaxHeader     = 1 << 20
)

// withDefaults returns a copy with every field set.
func (cfg *Config) withDefaults(maxBody int) Config {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.MaxRequest <= 0 {
		c.MaxRequest = max(defaultMaxRequest, 2*maxBody+64<<10)
	}
	if c.MaxBuffered <= 0 {
		c.MaxBuffered = max(DefaultMaxBuffered, 4*int64(c.MaxRequest))
	}
	c.MaxBuffered = max(c.MaxBuffered, 2*int64(c.MaxRequest))
	if c.MaxConnections <= 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.MaxViewers <= 0 {
		c.MaxViewers = DefaultMaxViewers
	}
	c.MaxViewers = min(c.MaxViewers, max(c.MaxConnections/2, 1))
	if c.MaxSetQueues == 0 {
		c.MaxSetQueues = DefaultMaxSetQueues
	}
	if c.MaxHeader <= 0 {
		c.MaxHeader = defaultMaxHeader
	}
	c.MaxHeader = min(c.MaxHeader, mostMaxHeader)
	if c.TLS == nil && c.Certificate != nil {
		c.TLS = c.Certificate.TLS()
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.ReadHeaderTimeout, 10 * time.Second},
		{&c.ReadTimeout, 30 * time.Second},
		{&c.WriteTimeout, 30 * time.Second},
		{&c.IdleTimeout, 3 * time.Minute},
		{&c.ShutdownTimeout, 30 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return c
}
