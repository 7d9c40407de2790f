package diskengine_test

import (
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// amid is a context that does something whenever a call looks at it: between its steps.
type amid struct {
	context.Context
	do func()
}

func (a amid) Err() error {
	a.do()
	return a.Context.Err()
}

// TestForecastOfATimeThatGoesOn counts more minutes than one step does; between its steps a minute passes
// and an sstable comes. Each message is counted once, in its own minute.
func TestForecastOfATimeThatGoesOn(t *testing.T) {
	const minutes = 1000
	clock := enginetest.NewClock()
	p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{OnHeap: true}}
	e := p.open(t)
	defer e.Close()
	begin := clock.Now().Truncate(time.Minute)
	msgs := make([]engine.Message, minutes)
	for i := range msgs {
		msgs[i] = message("q", "", 0)
		msgs[i].Due = engine.When{At: begin.Add(time.Duration(i+10)*time.Minute + 30*time.Second)}
	}
	if err := pushAll(t, e, msgs...); err != nil {
		t.Fatal(err)
	}
	times := 0
	f, err := e.Forecast(amid{t.Context(), func() {
		times++
		clock.Advance(time.Minute)
		if err := pushAll(t, e, message("q", "", 2*minutes*time.Minute)); err != nil {
			t.Error(err)
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}}, "q", time.Minute, minutes*time.Minute)
	buckets := f.Buckets
	if err != nil || len(buckets) != minutes || f.Overdue != 0 || times < 3 {
		t.Fatalf("%d buckets, %d looks: %v", len(buckets), times, err)
	}
	for i, b := range buckets {
		from, want := buckets[0].From.Add(time.Duration(i)*time.Minute), int64(1)
		if b.From.Before(begin.Add(10 * time.Minute)) {
			want = 0
		}
		if !b.From.Equal(from) || b.Count != want {
			t.Fatalf("bucket %d begins at %v with %d, want %v with %d", i, b.From, b.Count, from, want)
		}
	}
}
