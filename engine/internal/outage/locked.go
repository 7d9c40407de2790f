package outage

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/ledger"
)

// Locks are what another session holds until release.
type Locks struct {
	Rows  func() (release func()) // all messages that there are
	Table func() (release func()) // that of the messages
}

// Locked has another session lock messages, and all of their table, for longer than the
// settings of the server let anybody wait. Calls that need them fail then, with the hint, or
// where they are tried again succeed if the lock is let go soon; all others, and all that
// follow, go on.
func Locked(t *testing.T, url string, locks Locks, again bool, hint string) {
	c := Open(t, url)
	ctx := t.Context()
	push := func(key string) error {
		_, err := c.Push(ctx, queue, nil, tarry.Key(key), tarry.In(time.Hour), tarry.OnConflict(tarry.Keep))
		return err
	}
	cancel := func(key string) error { return c.Cancel(ctx, tarry.ByKey(key).Of(queue)) }
	l := ledger.New(t, queue)
	l.Work(c, tarry.WorkerConfig{LeaseTTR: leaseTTR})
	check(t, push("held"))

	release := locks.Rows()
	l.Push(c, "soon", 10*time.Millisecond)
	check(t, push("free"))
	check(t, cancel("free"))
	Says(t, cancel("held"), tarry.ErrUnavailable, hint)
	l.Rest(patience)
	release()
	check(t, cancel("held"))

	if again {
		check(t, push("held"))
		release = locks.Rows()
		soon := time.AfterFunc(200*time.Millisecond, release)
		check(t, cancel("held"))
		soon.Stop()
	}

	l.Push(c, "behind", 300*time.Millisecond)
	release = locks.Table()
	Says(t, push("late"), tarry.ErrUnavailable, hint)
	release()
	l.Rest(patience)
	check(t, push("late"))
	ledger.Counts(t, c, queue, patience, 1, 0, 0)
}
