package redisengine

import (
	"fmt"
	"math/rand"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestZZ(t *testing.T) {
	u, _ := url.Parse("redis://127.0.0.1:7777?shards=1&prefix=zz")
	e, err := Open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	n, _ := strconv.Atoi(os.Getenv("ZZ"))
	e.client.Do(t.Context(), e.client.B().Arbitrary("CONFIG", "RESETSTAT").Build())
	t0 := time.Now()
	const all = 200000
	for i := 0; i < all; {
		var msgs []engine.Message
		for range n {
			msgs = append(msgs, engine.Message{Queue: "q", Key: strconv.Itoa(i), Due: engine.When{In: time.Duration(rand.Int63n(int64(48 * time.Hour)))},
				Content: engine.Content{Body: make([]byte, 200)}, Policy: engine.Policy{Priority: 1024, MaxAttempts: 20, TTR: time.Minute}})
			i++
		}
		e.Push(t.Context(), msgs)
	}
	d := time.Since(t0)
	info, _ := e.client.Do(t.Context(), e.client.B().Info().Section("commandstats").Build()).ToString()
	inner, outer := 0.0, 0.0
	for _, l := range strings.Split(info, "\r\n") {
		i := strings.Index(l, "usec=")
		if i < 0 {
			continue
		}
		v, _ := strconv.ParseFloat(l[i+5:strings.Index(l, ",usec_per")], 64)
		if strings.Contains(l, "evalsha") {
			outer = v
		} else {
			inner += v
			fmt.Println(l[8:strings.Index(l, ":")], v/all)
		}
	}
	fmt.Printf("wall %.2f µs/msg, script %.2f, inner %.2f\n", float64(d.Microseconds())/all, outer/all, inner/all)
	e.client.Do(t.Context(), e.client.B().Arbitrary("FLUSHALL").Build())
}
