package memengine

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// Messages due in one instant, leased and acked by the thousand. One operation is
// one message; what pushing them costs is not in it.
func BenchmarkBurst(b *testing.B) {
	c := enginetest.NewClock()
	e := New(&Config{Now: c.Now})
	for from := 0; from < b.N; from += 1000 {
		msgs := make([]engine.Message, min(1000, b.N-from))
		for i := range msgs {
			msgs[i] = msg("q", "", time.Hour)
			msgs[i].Body = make([]byte, 200)
		}
		if _, err := e.Push(b.Context(), msgs); err != nil {
			b.Fatal(err)
		}
	}
	c.Advance(time.Hour)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		done += leaseAndAck(b, e, 1000)
	}
}

func leaseAndAck(b *testing.B, e *Engine, n int) int {
	ctx := context.Background()
	g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: n}})
	if err != nil {
		b.Fatal(err)
	}
	acks := make([]engine.Settlement, len(g.Queues[0].Messages))
	for i, l := range g.Queues[0].Messages {
		acks[i] = engine.Settlement{Token: l.Token, Do: engine.Ack}
	}
	settled, err := e.Settle(ctx, acks)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range settled {
		if s.Err != nil {
			b.Fatal(s.Err)
		}
	}
	return len(acks)
}

// One collection while a million messages wait.
func BenchmarkCollect(b *testing.B) {
	e := New(&Config{Now: enginetest.NewClock().Now})
	fill(b, e, 1_000_000)
	runtime.GC()
	for b.Loop() {
		runtime.GC()
	}
	runtime.KeepAlive(e)
}

// A message pushed, leased and acked while a million others wait, collections
// included.
func BenchmarkBesideMillion(b *testing.B) {
	c := enginetest.NewClock()
	e := New(&Config{Now: c.Now})
	fill(b, e, 1_000_000)
	runtime.GC()
	body := make([]byte, 200)
	msgs := make([]engine.Message, 100)
	for i := range msgs {
		msgs[i] = msg("q", "", 0)
		msgs[i].Body = body
	}
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += len(msgs) {
		if _, err := e.Push(b.Context(), msgs); err != nil {
			b.Fatal(err)
		}
		if n := leaseAndAck(b, e, len(msgs)); n != len(msgs) {
			b.Fatalf("leased %d", n)
		}
	}
}
