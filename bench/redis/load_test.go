package redis

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// each has n clients make calls for the numbers 0 to count-1, batch at a time, as
// fast as they can.
func each(b *testing.B, n, count, batch int, call func(ctx context.Context, from, to int) error) {
	b.Helper()
	ctx, end := context.WithTimeout(b.Context(), longest)
	defer end()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var (
		next    atomic.Int64
		callers sync.WaitGroup
	)
	for range min(n, (count+batch-1)/batch) {
		callers.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(batch))) - batch
				if from >= count {
					return
				}
				if err := call(ctx, from, min(from+batch, count)); err != nil {
					fail(err)
				}
			}
		})
	}
	callers.Wait()
	must(b, context.Cause(ctx))
}

// fill schedules n messages, each a day or more away.
func fill(b *testing.B, s system, queue string, n int) {
	b.Helper()
	soonest := time.Now().Add(24 * time.Hour)
	each(b, clients, n, 500, func(ctx context.Context, from, to int) error {
		return s.pushMany(ctx, queue, from, to, func(i int) time.Time { return soonest.Add(far(i)) })
	})
}

// far spreads messages at random over 48 hours.
func far(i int) time.Duration {
	return time.Minute + time.Duration(rand.NewPCG(uint64(i), 48).Uint64()%uint64(48*time.Hour-time.Minute))
}

const keyPrefix = "order-"

func key(i int) string { return keyPrefix + strconv.Itoa(i) }

// index returns the i of key.
func index(key string) int {
	i, err := strconv.Atoi(strings.TrimPrefix(key, keyPrefix))
	if err != nil {
		panic("a message that was not pushed: " + key)
	}
	return i
}

// bodies are 200 bytes of hexadecimal digits each.
var bodies = func() (all [256][]byte) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		for range 200 {
			all[i] = append(all[i], "0123456789abcdef"[random.IntN(16)])
		}
	}
	return all
}()

func body(i int) []byte { return bodies[i%len(bodies)] }
