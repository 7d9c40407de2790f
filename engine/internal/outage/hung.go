package outage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Hung makes the network swallow everything for a while. Calls must end with their contexts,
// and a worker must go on when the network does, with its old connections or with new ones.
func Hung(t *testing.T, url string) {
	beside := Open(t, url)
	p := servertest.StartProxy(t, url)
	c := Open(t, p.URL())
	l := NewLedger(t, queue)
	l.Work(c, tarry.WorkerConfig{LeaseTTR: leaseTTR})
	l.Push(c, "far", time.Hour)
	for _, cut := range []bool{false, true} {
		stop := l.Produce(c, 0, 20*time.Millisecond)
		l.More(20, patience)
		p.Hang(true)
		ref := tarry.ByKey("far").Of(queue)
		for name, call := range map[string]func(context.Context) error{
			"push": func(ctx context.Context) error {
				_, err := c.Push(ctx, queue, nil, tarry.Key("far"), tarry.OnConflict(tarry.Keep))
				return err
			},
			"get":    func(ctx context.Context) error { _, err := c.Get(ctx, ref); return err },
			"rearm":  func(ctx context.Context) error { _, err := c.Reschedule(ctx, ref, tarry.In(time.Hour)); return err },
			"counts": func(ctx context.Context) error { _, err := c.Queue(ctx, queue); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			began := time.Now()
			err := call(ctx)
			cancel()
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		}
		if cut {
			p.Cut()
		}
		p.Hang(false)
		t.Logf("all went on after %v", l.More(20, patience))
		stop()
		l.Rest(patience)
	}
	l.Settled(beside, patience)
}
