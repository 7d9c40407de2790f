package scenario

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// far spreads messages at random over 48 hours.
func far(i int) time.Duration { return Far(i, 48*time.Hour) }

// Far spreads messages at random from a minute to a span that is longer.
func Far(i int, span time.Duration) time.Duration {
	return time.Minute + time.Duration(rand.NewPCG(uint64(i), 48).Uint64()%uint64(span-time.Minute))
}

const keyPrefix = "order-"

// Key is that of message i: order- and the number, or with -keys random 16 hexadecimal
// digits that tell nothing of those of its neighbours.
func Key(i int) string {
	if *Keys == "random" {
		return fmt.Sprintf("%016x", scatter(uint64(i)))
	}
	return keyPrefix + strconv.Itoa(i)
}

// Index returns the i of Key.
func Index(key string) int {
	if *Keys == "random" {
		if n, err := strconv.ParseUint(key, 16, 64); err == nil {
			return int(gather(n))
		}
	} else if i, err := strconv.Atoi(strings.TrimPrefix(key, keyPrefix)); err == nil {
		return i
	}
	panic("a message that was not pushed: " + key)
}

// scatter gives each number another one far from those of its neighbours, and gather
// takes that back. Each step can be taken back for itself: an odd factor has an inverse
// modulo 2⁶⁴, and a number that is combined with its own upper half keeps that half.
func scatter(n uint64) uint64 {
	for range 2 {
		n *= oddFactor
		n ^= n >> 32
	}
	return n
}

func gather(n uint64) uint64 {
	for range 2 {
		n ^= n >> 32
		n *= oddInverse
	}
	return n
}

const oddFactor = 0x9e3779b97f4a7c15

var oddInverse = func() uint64 {
	inverse := uint64(oddFactor) // right in the last three bits; each step doubles these
	for range 5 {
		inverse *= 2 - oddFactor*inverse
	}
	return inverse
}()

// bodies are 200 bytes of hexadecimal digits each, so many that few of those that are stored
// together are the same: a store that packs them wins nothing by that.
var bodies = func() (all [4096][]byte) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		for range 200 {
			all[i] = append(all[i], "0123456789abcdef"[random.IntN(16)])
		}
	}
	return all
}()

// Body is that of message i.
func Body(i int) []byte { return bodies[i%len(bodies)][:min(*BodySize, 200)] }
