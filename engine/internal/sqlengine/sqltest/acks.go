package sqltest

import (
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func acksOf(leases []engine.Lease) (acks []engine.Settlement) {
	for _, l := range leases {
		acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
	}
	return acks
}

// Acks do not wait for a transaction that has locked the queue.
func acksBesideBounded(t *testing.T, bed Bed) {
	e, other := bed.Open(t, nil), bed.Open(t, nil)
	_, err := e.Configure(t.Context(), "q", engine.Settings{MaxPending: 100}, "")
	ok(t, err)
	push(t, e, engine.Message{Queue: "q"}, engine.Message{Queue: "q"})
	leases := lease(t, other, 2)
	tx := bed.Begin(t, e)
	push(t, tx, engine.Message{Queue: "q", Due: engine.When{In: time.Hour}})
	r, err := other.Settle(patience(t), acksOf(leases))
	ok(t, err, errors.Join(r[0].Err, r[1].Err))
	if r[0].Queue != "q" {
		t.Errorf("the answer is about the queue %q", r[0].Queue)
	}
}
