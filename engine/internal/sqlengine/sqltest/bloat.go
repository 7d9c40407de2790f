package sqltest

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var (
	bloat    = flag.Int("bloat", 0, "how many messages TestBloat pushes and acks; 0: it is skipped")
	snapshot = flag.Duration("snapshot", 10*time.Minute, "how long TestBloat continues beside an old snapshot")
)

const (
	bloatRound = 20_000
	bloatFew   = 5 // rounds of one figure
)

// Bloat pushes and acks -bloat messages, and then more while an old snapshot is open, which
// hold opens. It fails if that becomes much slower. It logs state with the rates.
func Bloat(t *testing.T, e engine.Engine, hold func() (end func()), state func() string) {
	began := time.Now()
	var rates []float64
	round := func() {
		rates = append(rates, churn(t, e, "q", bloatRound))
		t.Logf("%4.0f s: %d messages, %.0f/s; %s", time.Since(began).Seconds(), bloatRound*len(rates), rates[len(rates)-1], state())
	}
	lately := func() float64 {
		some := slices.Sorted(slices.Values(rates[len(rates)-bloatFew:]))
		return some[bloatFew/2]
	}
	for len(rates) < bloatFew {
		round()
	}
	start := lately()
	for bloatRound*len(rates) < *bloat {
		round()
	}
	end := lately()
	t.Logf("at the start %.0f/s, at the end %.0f/s: %.2f", start, end, end/start)
	if end < 0.8*start {
		t.Error("messages that are gone make it slow")
	}
	defer hold()()
	held := time.Now()
	worst := end
	for n := 1; time.Since(held) < *snapshot; n++ {
		if round(); n >= bloatFew {
			worst = min(worst, lately())
		}
	}
	t.Logf("beside an old snapshot at worst %.0f/s: %.2f", worst, worst/end)
	if worst < end/2 {
		t.Error("an old snapshot makes it slow")
	}
}

// BloatAsked skips a test unless -bloat asks for it.
func BloatAsked(t *testing.T) {
	if *bloat == 0 {
		t.Skip("it takes long; run it by -bloat 5000000")
	}
}
