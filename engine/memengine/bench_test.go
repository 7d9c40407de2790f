package memengine

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
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
		done += leaseAndAck(b, e, []engine.Want{{Queue: "q", Max: 1000}})
	}
}

// 10,000 messages that come due in one instant, in so many queues, leased and acked by
// the thousand. One operation is one message; what pushing them costs is not in it.
func BenchmarkSpread(b *testing.B) {
	const n = 10_000
	for _, queues := range []int{1, 100, n} {
		b.Run(strconv.Itoa(queues), func(b *testing.B) {
			names := make([]string, queues)
			for i := range names {
				names[i] = fmt.Sprint("queue-", i)
			}
			b.ReportAllocs()
			for done := 0; done < b.N; done += n {
				b.StopTimer()
				c := enginetest.NewClock()
				e := New(&Config{Now: c.Now})
				for i := range n {
					m := msg(names[i%queues], "", time.Hour)
					m.Body = make([]byte, 200)
					push(b, e, m)
				}
				c.Advance(time.Hour)
				runtime.GC()
				b.StartTimer()
				for from := 0; from < n; from += 1000 {
					wants := make([]engine.Want, min(queues, 1000))
					for i := range wants {
						wants[i] = engine.Want{Queue: names[(from+i)%queues], Max: 1000 / len(wants)}
					}
					leaseAndAck(b, e, wants)
				}
			}
		})
	}
}

// leaseAndAck returns how many there were.
func leaseAndAck(t testing.TB, e *Engine, wants []engine.Want) int {
	t.Helper()
	ctx := context.Background()
	g, err := e.Lease(ctx, wants)
	if err != nil {
		t.Fatal(err)
	}
	acks := make([]engine.Settlement, 0, 1000)
	for _, q := range g.Queues {
		for _, l := range q.Messages {
			acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
		}
	}
	settled, err := e.Settle(ctx, acks)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settled {
		if s.Err != nil {
			t.Fatal(s.Err)
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
		if n := leaseAndAck(b, e, []engine.Want{{Queue: "q", Max: len(msgs)}}); n != len(msgs) {
			b.Fatalf("leased %d", n)
		}
	}
}
