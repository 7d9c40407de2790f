package link

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var errDown = errors.New("down")

// line counts what is dialled and hung up; each dial takes a second.
type line struct {
	mu     sync.Mutex
	dials  int
	hungUp []int
	down   bool
}

func (l *line) dial(ctx context.Context) (int, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	if l.down {
		return 0, errDown
	}
	return l.dials, nil
}

func (l *line) hangUp(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hungUp = append(l.hungUp, n)
}

func send(l *Link[int]) (conn int, err error) {
	err = l.Send(context.Background(), func(_ context.Context, c int) error { conn = c; return nil })
	return conn, err
}

func TestConnectionsAreMadeOnceAndAnewAfterTheyFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer line
		l := New(10*time.Second, peer.dial, peer.hangUp)
		peer.down = true
		if _, err := send(l); !errors.Is(err, errDown) {
			t.Fatalf("the target is down, and Send says %v", err)
		}
		peer.down = false
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if c, err := send(l); c != 2 || err != nil {
					t.Errorf("connection %d, %v", c, err)
				}
			})
		}
		all.Wait()
		l.GiveUp(1) // an old one
		l.GiveUp(2)
		l.GiveUp(2)
		if c, err := send(l); c != 3 || err != nil {
			t.Errorf("connection %d, %v, after the second was given up", c, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if len(peer.hungUp) != 2 || peer.hungUp[0] != 2 || peer.hungUp[1] != 3 {
			t.Errorf("hung up %v", peer.hungUp)
		}
		if _, err := send(l); !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestWhoWaitsForAConnectionMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer line
		l := New(10*time.Second, peer.dial, peer.hangUp)
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := l.Send(ctx, func(context.Context, int) error { t.Error("sent"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not sent") {
			t.Errorf("left with %v", err)
		}
		if c, err := send(l); c != 1 || err != nil {
			t.Errorf("connection %d, %v, where the dial should have gone on", c, err)
		}
	})
}

func TestSendsEndWithTheTimeoutAndCloseWaitsForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer line
		l := New(10*time.Second, peer.dial, peer.hangUp)
		began := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			err := l.Send(t.Context(), func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("closed after %v", took)
		}
		all.Wait()
	})
}
