package bench

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// stalled takes no push while it stalls.
type stalled struct {
	engine.Engine
	from, to time.Time
}

func (s *stalled) Push(ctx context.Context, items []engine.Message) ([]engine.PushResult, error) {
	if now := time.Now(); !now.Before(s.from) && now.Before(s.to) {
		select {
		case <-time.After(s.to.Sub(now)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Engine.Push(ctx, items)
}

// A store that stalls for a second delays every push that the rate gives in that second, not
// only the few that have a client.
func TestStallsShowInTheLatencyOfARate(t *testing.T) {
	for name, to := range map[string]time.Duration{"over": 2 * time.Second, "not over at the end": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				store := &stalled{memengine.New(nil), start.Add(time.Second), start.Add(to)}
				c := tarry.New(store, nil)
				defer c.Close()
				tr := &trial{Config: Config{Clients: 2, BackgroundRate: 1000}, c: c, queue: "q"}
				stop := tr.pushInBackground(t.Context())
				time.Sleep(3*time.Second - time.Millisecond)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				least, rate := 950.0, 990.0
				if to == time.Hour {
					least, rate = 1900, 330
				}
				if r := tr.result; r.BackgroundP99 < least || r.BackgroundP999 < r.BackgroundP99 || r.BackgroundPushes < rate || r.BackgroundPushes > rate+15 {
					t.Errorf("p99 %v ms at %v/s; want at least %v ms at about %v/s", r.BackgroundP99, r.BackgroundPushes, least, rate)
				}
			})
		})
	}
}
