package scenario

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// far returns the delay of message i, at random within 48 hours.
func far(i int) time.Duration { return Far(i, 48*time.Hour) }

// Far returns the delay of message i, at random from a minute to span, which must be longer.
func Far(i int, span time.Duration) time.Duration {
	return time.Minute + time.Duration(rand.NewPCG(uint64(i), 48).Uint64()%uint64(span-time.Minute))
}

const keyPrefix = "order-"

// Key returns the key of message i: order- and the number, or with -keys random 16 hexadecimal
// digits, unrelated to those of its neighbours.
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

// scatter maps each number to one far from those of its neighbours; gather is its inverse.
// Each step can be undone: an odd factor has an inverse modulo 2⁶⁴, and a number XORed with
// its own upper half keeps that half.
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
	inverse := uint64(oddFactor) // right in the last three bits; each step doubles that
	for range 5 {
		inverse *= 2 - oddFactor*inverse
	}
	return inverse
}()

// text is hexadecimal digits at random, of which bodies are parts. It is so long that few of
// those stored together are equal, so a store gains nothing by compressing repeats.
var text = sync.OnceValue(func() []byte {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, places*200+*BodySize)
	for i := range b {
		b[i] = "0123456789abcdef"[random.IntN(16)]
	}
	return b
})

const places = 4096

// Body returns the body of message i.
func Body(i int) []byte { return text()[i%places*200:][:*BodySize] }
