package webhook

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/forward"
)

// BenchmarkLateness has 1,000 messages a second come due, and measures how long after its
// due time the first byte of each is at the target.
func BenchmarkLateness(b *testing.B) {
	b.Run("mem", func(b *testing.B) {
		for b.Loop() {
			benchLateness(b, memengine.New(nil))
		}
	})
	b.Run("disk", func(b *testing.B) {
		for b.Loop() {
			e, err := diskengine.Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			benchLateness(b, e)
		}
	})
}

func benchLateness(b *testing.B, e engine.Engine) {
	const n, rate, batch, lead = 8000, 1000, 100, time.Second
	defer e.Close()
	c := tarry.New(e, nil)
	defer c.Close()
	late := make([]time.Duration, n)
	var came atomic.Int64
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	at := serve(b, func(_ http.ResponseWriter, r *http.Request) {
		now := time.Now()
		due, err := time.Parse(time.RFC3339, r.Header.Get(forward.HeaderDue))
		i, err2 := strconv.Atoi(r.Header.Get(forward.HeaderKey))
		if err != nil || err2 != nil {
			b.Error(err, err2)
			return
		}
		late[i] = now.Sub(due)
		if came.Add(1) == n {
			stop()
		}
	})
	target := open(b, &Config{URL: at, Options: local()})
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 64})
	tarry.Handle(w, tarry.NewTopic[[]byte]("q"), target.Send)
	worked := make(chan error, 1)
	go func() { worked <- w.Run(ctx) }()
	for due, i := time.Now().Add(lead), 0; i < n; {
		drafts := make([]tarry.Draft, batch)
		for j := range drafts {
			drafts[j] = tarry.NewDraft("q", make([]byte, 200), tarry.At(due), tarry.Key(strconv.Itoa(i)))
			due, i = due.Add(time.Second/rate), i+1
		}
		if _, err := c.PushMany(b.Context(), drafts); err != nil {
			b.Fatal(err)
		}
		time.Sleep(time.Until(due.Add(-lead)))
	}
	if err := <-worked; err != nil {
		b.Fatal(err)
	}
	slices.Sort(late)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(late[n*p/100])/1e6, "ms-p"+strconv.Itoa(p))
	}
	b.ReportMetric(float64(late[n-1])/1e6, "ms-max")
	b.ReportMetric(0, "ns/op")
}
