package beanstalk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/server/access"
)

// Config sets up a Server. The zero value, and a nil Config, work.
type Config struct {
	// MaxJob bounds the body of a job that is put, in bytes. Default 65,535, as in beanstalkd;
	// at most the client's MaxBody.
	MaxJob int

	// ShutdownTimeout is how long Serve waits for commands under way after its context has
	// ended. Default 30 s.
	ShutdownTimeout time.Duration

	// Guard knows the tokens. With it a connection may do nothing before "auth SECRET".
	// Default: every connection may do everything.
	Guard *access.Guard

	// As names a token: connections that do not authenticate have its rights. Default: they
	// have none.
	As string

	// Audit gets a line for each change that an operator makes: pause-tube, kick, kick-job,
	// and delete with a token that may not push. Default: none.
	Audit *access.Audit

	// Logger gets the failures behind INTERNAL_ERROR, and what ends connections. Default: nothing is logged.
	Logger *slog.Logger
}

// DefaultMaxJob is the default of Config.MaxJob.
const DefaultMaxJob = 1<<16 - 1

// withDefaults returns a copy with every field set.
func (cfg *Config) withDefaults(maxBody int) Config {
	c := *cmp.Or(cfg, new(Config))
	c.MaxJob = min(cmp.Or(max(c.MaxJob, 0), DefaultMaxJob), maxBody)
	c.ShutdownTimeout = cmp.Or(max(c.ShutdownTimeout, 0), 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// limits bound what clients take. Tests lower them.
type limits struct {
	connections int64         // open ones; further ones are closed at once
	read        time.Duration // for each 64 KiB of a job of more than 1 KiB, and at rest without a token
	write       time.Duration // for each 64 KiB of answers, until the kernel has taken them
}

var defaultLimits = limits{connections: 16_384, read: 30 * time.Second, write: 30 * time.Second}

// maxBuffered bounds the memory of the buffers of all connections, unless MaxJob needs more: a
// buffer grows by copying. Without room, a job of more than 1 KiB gets OUT_OF_MEMORY.
const maxBuffered = 256 << 20

// able returns an error unless the engine can do all that the protocol needs.
func able(caps tarry.Capabilities) error {
	for _, need := range []struct {
		can  bool
		what string
	}{
		{caps.Cancel, "cancel"}, {caps.Get, "get"}, {caps.List && caps.Range, "lists"}, {caps.Count, "counters"},
		{caps.Extend, "extend"}, {caps.Pause, "pause"}, {caps.Redrive, "redrive"}, {caps.Reschedule, "reschedule"},
		{caps.IfState, "if_state"}, {caps.Claim && caps.ClaimIf, "claim with if_state"}, {caps.Priority, "priorities"},
		{caps.Reprioritize, "priorities of settlements"}, {caps.Peek, "peek"}, {caps.Find, "find"},
	} {
		if !need.can {
			return &tarry.Error{Op: "serve beanstalk", Err: tarry.ErrUnsupported, Hint: fmt.Sprintf(
				"the engine %s has no %s; mem, disk, redis, postgres and mysql have all that the protocol of beanstalkd needs", caps.Name, need.what)}
		}
	}
	return nil
}

var errNoGuard = errors.New("beanstalk: Config.As names a token, but there is no Guard")

// Server serves the protocol of beanstalkd. It may serve several listeners.
type Server struct {
	c      *tarry.Client
	cfg    Config
	limits limits
	memory memory
	tubes  tubes
	notes  notes

	counts   counts
	draining atomic.Bool
	began    time.Time
	id       string // for stats
	lines    *notify.Lines

	open  context.Context // ends with close
	close context.CancelFunc
}

// New returns a server of the client's engine. It fails with ErrUnsupported if the engine
// cannot do all that the protocol needs.
func New(c *tarry.Client, cfg *Config) (*Server, error) {
	if err := able(c.Capabilities()); err != nil {
		return nil, err
	}
	s := &Server{
		c: c, cfg: cfg.withDefaults(c.MaxBody()), limits: defaultLimits,
		began: time.Now(), id: fmt.Sprintf("%016x", rand.Uint64()), lines: notify.NewLines(10, 10*time.Second),
	}
	if s.cfg.As != "" && s.cfg.Guard == nil {
		return nil, errNoGuard
	}
	s.open, s.close = context.WithCancel(context.Background())
	s.memory.most = max(maxBuffered, 4*int64(s.cfg.MaxJob))
	s.tubes.init(c)
	return s, nil
}

// Drain makes the server answer DRAINING to every put from now on. All else goes on.
func (s *Server) Drain() { s.draining.Store(true) }

// Close ends all calls of Serve, as the end of their contexts does. It does not wait for them.
func (s *Server) Close() { s.close() }

// errCut is the error of Serve when commands were still under way at its end.
var errCut = errors.New("beanstalk: commands were still under way when the server's time to shut down was over")

// Serve serves the connections of a listener until ctx ends. Then it stops accepting, ends
// waiting reserves and closes each connection after its command under way. It waits for these up
// to Config.ShutdownTimeout. The jobs that connections hold become ready. It always closes the
// listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	open, end := context.WithCancel(ctx)
	defer end()
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	l := &listener{s: s, ctx: calls, open: open, conns: make(map[*conn]struct{})}
	defer context.AfterFunc(s.open, end)()
	defer context.AfterFunc(open, func() { _ = ln.Close() })()
	err := l.accept(ln)
	end()
	_ = ln.Close()
	l.each(func(c *conn) { c.deadline(past) })
	if duration.Returns(l.done.Wait, s.cfg.ShutdownTimeout) {
		return err
	}
	cut()
	l.each(func(c *conn) { go func() { _ = c.nc.Close() }() }) // the closing alert of TLS may have to wait
	duration.Returns(l.done.Wait, lastGrace)
	return errors.Join(err, errCut)
}

// lastGrace is how long Serve waits for connections after it has cut them.
const lastGrace = 5 * time.Second

// listener holds the connections of a call of Serve.
type listener struct {
	s    *Server
	ctx  context.Context // of the calls of its connections
	open context.Context // ends when its connections are to end

	mu    sync.Mutex
	conns map[*conn]struct{}
	done  sync.WaitGroup
}

// accept serves connections until the listener is to end.
func (l *listener) accept(ln net.Listener) error {
	for delay := time.Duration(0); ; {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			delay = 0
			l.start(nc)
		case l.open.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // no file descriptor is free, or the client has gone
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			l.s.warn("a connection could not be accepted", "error", err)
			duration.Sleep(l.open, delay)
		}
	}
}

// warn logs what may happen often.
func (s *Server) warn(text string, args ...any) {
	if left, ok := s.lines.Next(); ok {
		s.cfg.Logger.Warn(text, append(args, "not_told", left)...)
	}
}

// start serves a connection on a goroutine of its own.
func (l *listener) start(nc net.Conn) {
	if l.s.counts.conns.Add(1) > l.s.limits.connections {
		l.s.counts.conns.Add(-1)
		l.s.counts.refused.Add(1)
		_ = nc.Close()
		l.s.warn("there are as many connections as there may be", "from", nc.RemoteAddr().String(), "most", l.s.limits.connections)
		return
	}
	l.s.counts.allConns.Add(1)
	c := newConn(l, nc)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	l.done.Go(c.run)
}

// ended forgets a connection. It closes it last: a client that sees the end finds its jobs ready.
func (l *listener) ended(c *conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	l.s.counts.conns.Add(-1)
	_ = c.nc.Close()
}

// each calls f with each connection.
func (l *listener) each(f func(*conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		f(c)
	}
}
