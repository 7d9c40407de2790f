package tarrytest

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
)

// Client is a client of messages in memory, with a clock that the test moves. It is safe for
// concurrent use. For a client with a Config of its own, call tarry.New with Client.Engine.
type Client struct {
	*tarry.Client

	t     testing.TB
	clock *clock
	store *store

	mu      sync.Mutex
	started []*running
}

// New returns a client that is closed when the test ends. Its clock starts at the present
// time and stands there.
func New(t testing.TB) *Client { return NewAt(t, time.Now()) }

// NewAt is New with a clock that starts at another time.
func NewAt(t testing.TB, start time.Time) *Client {
	return newClient(t, &clock{at: start.UTC().Truncate(time.Millisecond)})
}

// NewInBubble is New for a test inside a testing/synctest bubble. The clock is the bubble's:
// time.Sleep moves it too.
func NewInBubble(t testing.TB) *Client {
	return newClient(t, &clock{bubble: true})
}

func newClient(t testing.TB, now *clock) *Client {
	s := newStore(now)
	c := &Client{t: t, clock: now, store: s}
	c.Client = tarry.New(s, &tarry.Config{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error("tarrytest:", err)
		}
		if err := s.Close(); err != nil {
			t.Error("tarrytest:", err)
		}
	})
	return c
}

// Now returns the time of the client's clock.
func (c *Client) Now() time.Time { return c.clock.now() }

// Advance moves the clock by d; see AdvanceTo.
func (c *Client) Advance(d time.Duration) {
	c.t.Helper()
	c.AdvanceTo(c.Now().Add(d))
}

// AdvanceTo moves the clock to a later time. While workers run that Start started, it stops at
// each time at which they have something to do, and waits until it is done. Workers that the
// test runs otherwise learn of the new time, but AdvanceTo does not wait for them. In a bubble
// it waits for all. A handler must not call it.
func (c *Client) AdvanceTo(at time.Time) {
	c.t.Helper()
	now := c.Now()
	switch {
	case at.Before(now):
		c.t.Errorf("tarrytest: the clock cannot go back from %s to %s", now, at)
		return
	case c.clock.bubble:
		time.Sleep(at.Sub(now))
		synctest.Wait()
		return
	}
	c.mu.Lock()
	started := c.started
	c.mu.Unlock()
	most := c.store.leased(started) + mostHandled
	err := c.play(started, at, most)
	c.moveTo(at)
	if err == nil {
		err = c.finish(started, most)
	}
	if err != nil {
		c.t.Errorf("tarrytest: Advance: %v", err)
	}
}

// moveTo sets the clock, unless it is later already, and makes all who wait look again.
func (c *Client) moveTo(at time.Time) {
	if c.clock.bubble {
		time.Sleep(at.Sub(c.Now()))
	}
	c.clock.set(at)
	c.store.ask(c.store.known())
}

// Forget forgets what was pushed so far, for RequirePushed, RequireNothingPushed and Pushed.
// The messages stay.
func (c *Client) Forget() { c.store.forget() }

// Fail makes all calls that push, cancel and reschedule fail with err, until Fail(nil).
func (c *Client) Fail(err error) { c.store.failWith(err) }

// A clock stands until it is set, or is that of a bubble.
type clock struct {
	bubble bool
	mu     sync.Mutex
	at     time.Time
}

func (c *clock) now() time.Time {
	if c.bubble {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.at) {
		c.at = at.UTC()
	}
}
