package beanstalk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/internal/wait"
)

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
	if wait.Return(l.done.Wait, s.cfg.ShutdownTimeout) {
		return err
	}
	cut()
	l.each(func(c *conn) { go func() { _ = c.nc.Close() }() }) // the closing alert of TLS may have to wait
	wait.Return(l.done.Wait, lastGrace)
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
			wait.Sleep(l.open, delay)
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
