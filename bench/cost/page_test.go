package cost

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// What the page of a queue reads when that has changed, and how long it rests between, at
// least: as in ui/web/src.
var readings = []struct {
	path  string
	least time.Duration
}{
	{"/v1/queues/orders/messages?state=scheduled&limit=50", 400 * time.Millisecond}, // messages.tsx
	{"/v1/queues/orders/forecast?step=900s&span=86400s", time.Second},               // forecast.tsx
	{"/v1/queues/orders/trend?span=15m&step=10s", 2 * time.Second},                  // heat.tsx
}

// page is what one shows who looks at a queue.
type page struct {
	crowd   *crowd
	changes []chan struct{} // one of each reading
	readers sync.WaitGroup
}

// company is with how many who look a page rests no longer than alone: as in
// ui/web/src/reading.ts.
const company = 20

func newPage(ctx context.Context, c *crowd) *page {
	p := &page{crowd: c}
	for _, r := range readings {
		change := make(chan struct{}, 1)
		p.changes = append(p.changes, change)
		p.readers.Go(func() {
			for {
				select {
				case <-change:
				case <-ctx.Done():
					return
				}
				rest := time.NewTimer(time.Duration(float64(r.least) * max(1, float64(c.size)/company*(0.75+rand.Float64()/2))))
				p.read(ctx, r.path)
				select {
				case <-rest.C:
				case <-ctx.Done():
					rest.Stop()
					return
				}
			}
		})
	}
	return p
}

// changed has what is shown read again.
func (p *page) changed() {
	for _, c := range p.changes {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (p *page) read(ctx context.Context, path string) {
	r, err := http.NewRequestWithContext(ctx, "GET", p.crowd.url+path, nil)
	if err != nil {
		panic(err) // the paths are fine
	}
	resp, err := p.crowd.http.Do(r)
	if err != nil {
		return // he has gone, or the server, which the one who pushes tells
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		p.crowd.reads.Add(1)
	}
}
