package outage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Locks are locks of another session, held until release is called.
type Locks struct {
	Rows  func() (release func()) // on all messages
	Table func() (release func()) // on the messages' table
}

// Locked makes another session lock all messages, and then their whole table, for longer than
// the server's lock timeout. Calls that need them wait until their contexts end, unless the
// server ends their statements: then they fail with the hint. All other calls, and all later
// ones, succeed.
func Locked(t *testing.T, url string, locks Locks, hint string) {
	c := Open(t, url)
	push := func(ctx context.Context, key string) error {
		_, err := c.Push(ctx, queue, nil, tarry.Key(key), tarry.In(time.Hour), tarry.OnConflict(tarry.Keep))
		return err
	}
	cancel := func(ctx context.Context, key string) error { return c.Cancel(ctx, tarry.ByKey(key).Of(queue)) }
	waits := func(call func(context.Context, string) error, key string) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer stop()
		err := call(ctx, key)
		if held := errors.Is(err, tarry.ErrUnavailable) && strings.Contains(err.Error(), "another transaction holds"); !held && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it says %v", err)
		}
	}
	ctx := t.Context()
	l := NewLedger(t, queue)
	l.Work(c, tarry.WorkerConfig{LeaseTTR: leaseTTR})
	check(t, push(ctx, "held"))

	release := locks.Rows()
	l.Push(c, "soon", 10*time.Millisecond)
	check(t, push(ctx, "free"))
	check(t, cancel(ctx, "free"))
	waits(cancel, "held")
	l.Rest(patience)
	released := make(chan bool)
	time.AfterFunc(200*time.Millisecond, func() {
		defer close(released)
		release()
	})
	check(t, cancel(ctx, "held"))
	<-released

	l.Push(c, "behind", 300*time.Millisecond)
	release = locks.Table()
	waits(push, "late")
	if hint != "" {
		_, err := c.Queue(ctx, queue)
		Says(t, err, tarry.ErrUnavailable, hint)
	}
	release()
	l.Rest(patience)
	check(t, push(ctx, "late"))
	Counts(t, c, queue, patience, 1, 0, 0)
	if undone(t, c, "locked") == 0 {
		t.Error("no figure tells of the locks")
	}
}
