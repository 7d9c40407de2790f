package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/memengine"
)

// trial is a target of a test, opened as trial://NAME.
type trial struct {
	send  func(ctx context.Context, m *tarry.Message[[]byte]) error // nil: it takes all
	close func()                                                    // nil: at once

	mu             sync.Mutex
	opened, closed int
	got            []arrival
	came           chan struct{} // holds a token for each arrival
}

type arrival struct {
	queue, body string
	attempt     uint32
	at          time.Time
}

var trials sync.Map // *trial by name

func init() {
	Register("trial", func(u *url.URL, o *Options) (Target, error) {
		v, ok := trials.Load(u.Host)
		if !ok {
			return nil, invalid("no trial is named %q", u.Host)
		}
		tr := v.(*trial)
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.opened++
		return tr, nil
	})
}

// newTrial makes a target, whose URL it returns.
func newTrial(t *testing.T, name string, send func(ctx context.Context, m *tarry.Message[[]byte]) error) (*trial, string) {
	t.Helper()
	tr := &trial{send: send, came: make(chan struct{}, 100_000)}
	if _, twice := trials.LoadOrStore(name, tr); twice {
		t.Fatalf("there is a trial named %s already", name)
	}
	t.Cleanup(func() { trials.Delete(name) })
	return tr, "trial://" + name
}

func (tr *trial) Send(ctx context.Context, m *tarry.Message[[]byte]) error {
	tr.mu.Lock()
	tr.got = append(tr.got, arrival{m.Queue, string(m.Body), m.Attempt, time.Now()})
	tr.mu.Unlock()
	tr.came <- struct{}{}
	if tr.send != nil {
		return tr.send(ctx, m)
	}
	return nil
}

func (tr *trial) Close() error {
	tr.mu.Lock()
	tr.closed++
	tr.mu.Unlock()
	if tr.close != nil {
		tr.close()
	}
	return nil
}

// arrivals returns what came, of which there must be n.
func (tr *trial) arrivals(t *testing.T, n int) []arrival {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.got) != n {
		t.Errorf("%d messages came, want %d: %v", len(tr.got), n, tr.got)
	}
	return tr.got
}

func (tr *trial) counts() (opened, closed int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.opened, tr.closed
}

// hangs is the Send of a target that never answers, but honours its context.
func hangs(ctx context.Context, _ *tarry.Message[[]byte]) error {
	<-ctx.Done()
	return fmt.Errorf("no answer: %w", context.Cause(ctx))
}

// times out as a target does whose server never answers.
func timesOut(ctx context.Context, m *tarry.Message[[]byte]) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	return hangs(ctx, m)
}

// site is a router that runs on a store in memory.
type site struct {
	*Router
	t   *testing.T
	c   *tarry.Client
	log *lines
	run chan error
	end context.CancelFunc
}

// newSite begins a router, whose end the test must call.
func newSite(t *testing.T, cfg RouterConfig, routes ...Route) *site {
	t.Helper()
	c, err := tarry.Open(context.Background(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	return newSiteOn(t, c, cfg, routes...)
}

func newSiteOn(t *testing.T, c *tarry.Client, cfg RouterConfig, routes ...Route) *site {
	t.Helper()
	s := &site{t: t, c: c, log: new(lines), run: make(chan error, 1)}
	cfg.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	s.Router = NewRouter(c, &cfg)
	if err := s.Set(routes); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.end = context.WithCancel(context.Background())
	go func() { s.run <- s.Run(ctx) }()
	return s
}

// close ends the router and the client, and returns what Run did.
func (s *site) close() error {
	s.end()
	err := <-s.run
	if err := s.c.Close(); err != nil {
		s.t.Error(err)
	}
	return err
}

// done ends the router in good order.
func (s *site) done() {
	s.t.Helper()
	if err := s.close(); err != nil {
		s.t.Errorf("Run: %v", err)
	}
}

func (s *site) push(queue, body string, opts ...tarry.PushOption) {
	s.t.Helper()
	if _, err := tarry.NewTopic[string](queue).Push(context.Background(), s.c, body, opts...); err != nil {
		s.t.Fatal(err)
	}
}

// holds returns what a queue holds.
func (s *site) holds(queue string) tarry.QueueInfo {
	s.t.Helper()
	q, err := s.c.Queue(context.Background(), queue)
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// with returns the lines that hold a text.
func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

var errDown = errors.New("connection refused")
