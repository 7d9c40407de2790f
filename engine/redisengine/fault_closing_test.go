package redisengine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// switching is a client that every now and then takes a connection which it has just
// closed, as rueidis does when it turns to another node.
type switching struct {
	rueidis.Client
	closed rueidis.Client
	calls  atomic.Int64
}

func (s *switching) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	if s.calls.Add(1)%7 == 0 {
		return s.closed.DoMulti(ctx, cmds...)
	}
	return s.Client.DoMulti(ctx, cmds...)
}

// TestFaultClosing has the client close connections: the engine is not closed by that,
// and a worker does not end.
func TestFaultClosing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := &switching{Client: s.Client(), closed: s.Client()}
	client.closed.Close()
	e, err := New(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	c := tarry.New(e, nil)
	t.Cleanup(func() { _ = c.Close() }) // it has not opened the engine
	l := outage.NewLedger(t, "q")
	l.Work(c, tarry.WorkerConfig{})
	stop := l.Produce(c, 0, 20*time.Millisecond)
	l.More(300, longWait)
	stop()
	l.Rest(longWait)
	outage.Counts(t, c, "q", longWait, 0, 0, 0)
	if err := l.Failure(); err != nil { // mostly the answer can be asked for
		fails(t, err, tarry.ErrUnavailable)
	}
}
