package diskengine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// message is one of a queue that is due in a time.
func message(queue, key string, in time.Duration) engine.Message {
	return engine.Message{Queue: queue, Key: key, Due: engine.When{In: in},
		Terms: engine.Terms{MaxAttempts: 20, TTR: time.Minute}}
}

// noise is bytes that cannot be compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// noiseOf is such bytes of a source.
func noiseOf(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// pushAll pushes messages, and returns the first error.
func pushAll(t testing.TB, e engine.Engine, msgs ...engine.Message) error {
	t.Helper()
	r, err := e.Push(t.Context(), msgs)
	for i := 0; i < len(r) && err == nil; i++ {
		err = r[i].Err
	}
	return err
}

// lease leases messages for another process.
func lease(t testing.TB, e engine.Engine, queue string, most int) []engine.Lease {
	t.Helper()
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: most, Remote: true, TTR: time.Hour}})
	if err == nil {
		err = g.Queues[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
	return g.Queues[0].Messages
}

// settle settles leases alike.
func settle(t testing.TB, e engine.Engine, leases []engine.Lease, do engine.Action) {
	t.Helper()
	all := make([]engine.Settlement, len(leases))
	for i, l := range leases {
		all[i] = engine.Settlement{Token: l.Token, Do: do, TTR: time.Hour}
	}
	out, err := e.Settle(t.Context(), all)
	for i := 0; i < len(out) && err == nil; i++ {
		err = out[i].Err
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill pushes n messages of 1 kB in calls of 50, as far as there is space, and returns the keys of
// those that were kept.
func fill(t testing.TB, e engine.Engine, queue string, n int, in time.Duration) (kept []string, err error) {
	t.Helper()
	for at := 0; at < n; at += 50 {
		var some []engine.Message
		for i := at; i < min(n, at+50); i++ {
			m := message(queue, fmt.Sprint(queue, "-", i), in)
			m.Body = noise(1000)
			some = append(some, m)
		}
		if err := pushAll(t, e, some...); err != nil {
			return kept, err
		}
		for _, m := range some {
			kept = append(kept, m.Key)
		}
	}
	return kept, nil
}

// await waits until something is so that the background brings about.
func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute still not: %s", what)
		}
	}
}

// reads waits until a figure is what it is to be.
func reads(t testing.TB, e engine.Engine, name, label string, is func(float64) bool) {
	t.Helper()
	await(t, name+" of "+label, func() bool { return is(enginetest.FigureOf(t, e, name, label)) })
}

func positive(v float64) bool { return v > 0 }
func none(v float64) bool     { return v == 0 }
