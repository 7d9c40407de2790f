package scenario

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// far spreads messages at random over 48 hours.
func far(i int) time.Duration {
	return time.Minute + time.Duration(rand.NewPCG(uint64(i), 48).Uint64()%uint64(48*time.Hour-time.Minute))
}

const keyPrefix = "order-"

// Key is that of message i.
func Key(i int) string { return keyPrefix + strconv.Itoa(i) }

// Index returns the i of Key.
func Index(key string) int {
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

// Body is that of message i.
func Body(i int) []byte { return bodies[i%len(bodies)] }
