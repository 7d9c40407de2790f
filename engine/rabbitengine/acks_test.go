package rabbitengine

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// What was acknowledged does not come back, however many that were when the engine is closed.
func TestAcksOutlastTheConnection(t *testing.T) {
	t.Parallel()
	quorum(t, func(t *testing.T, url string, cfg Config) {
		e := opened(t, url, cfg)
		const n = 500
		msgs := make([]engine.Message, n)
		for i := range msgs {
			msgs[i].Queue = "q"
		}
		_, err := e.Push(t.Context(), msgs)
		ok(t, err)
		var acks []engine.Settlement
		for len(acks) < n {
			for _, l := range leased(t, e, n, time.Minute) {
				acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
			}
		}
		settled, err := e.Settle(t.Context(), acks)
		ok(t, err)
		for _, s := range settled {
			ok(t, s.Err)
		}
		ok(t, e.Close())

		last := pushed(t, opened(t, url, cfg), engine.Message{})
		if l := leased(t, opened(t, url, cfg), 1, time.Minute)[0]; l.ID != last.ID {
			t.Errorf("%v comes again", l.ID)
		}
	})
}
