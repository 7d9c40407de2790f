package rabbitengine

import (
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// While a deleted queue awaits the cancels of its consumers, calls end in time, and polls get
// what other queues have.
func TestNothingWaitsForCancels(t *testing.T) {
	t.Parallel()
	e := opened(t, rabbittest.Shared(t), Config{Queues: Quorum})
	s := now(t, e)
	pushed(t, e, engine.Message{}) // the queues of both stand, and the poll of q flows
	leased(t, e, 1, time.Hour)
	gone := func() {
		s.mu.Lock()
		s.declared[brokerQueue{queue: "gone"}] = time.Now().Add(time.Minute)
		s.mu.Unlock()
	}
	gone()
	for _, queues := range [][]string{{"gone"}, {"gone", "q"}} {
		if len(queues) == 2 {
			pushed(t, e, engine.Message{})
		}
		since := time.Now()
		got, err := e.LeaseWait(patience(t), engine.Wait{Queues: queues, Max: 1, For: time.Duration(len(queues)*len(queues)) * 5 * time.Second})
		ok(t, err)
		if took := time.Since(since); len(got.Messages) != len(queues)-1 || len(got.Told) != 0 || took > 20*time.Second {
			t.Errorf("%d of %q came after %v, told %v", len(got.Messages), queues, took, got.Told)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	since := time.Now()
	r, err := e.Push(ctx, []engine.Message{{Queue: "gone"}})
	if ok(t, err); r[0].Err == nil || time.Since(since) > 20*time.Second {
		t.Errorf("%v after %v", r[0].Err, time.Since(since))
	}
	s.forget(brokerQueue{queue: "gone"})
	done := make(chan error, 1)
	go func() {
		_, err := e.Push(patience(t), []engine.Message{{Queue: "gone"}})
		done <- err
	}()
	got, err := e.LeaseWait(patience(t), engine.Wait{Queues: []string{"gone"}, Max: 1, For: time.Minute})
	ok(t, <-done)
	if ok(t, err); len(got.Messages) != 1 {
		t.Errorf("%+v", got)
	}
}
