package httpengine

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

// underWay counts the requests that are under way.
type underWay struct {
	http.RoundTripper
	n atomic.Int32
}

func (u *underWay) RoundTrip(r *http.Request) (*http.Response, error) {
	u.n.Add(1)
	defer u.n.Add(-1)
	return u.RoundTripper.RoundTrip(r)
}

// A lease request ends with its call, also when the server does not answer: callers that
// give up again and again leave nothing behind.
func TestAbandonedLeasesLeaveNoRequests(t *testing.T) {
	const callers = 8
	asked := make(chan struct{}, 100*callers)
	e, _ := scripted(t, func(c net.Conn, in *bufio.Reader) {
		if read(in) == nil {
			asked <- struct{}{}
			_, _ = in.ReadByte() // until the client hangs up
		}
	})
	requests := &underWay{RoundTripper: e.client.Transport}
	e.client.Transport = requests
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for _, wait := range []time.Duration{0, time.Minute} {
		ctx, giveUp := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for range callers {
			calls.Go(func() {
				if _, err := e.lease(ctx, wire.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: wait}); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		for range callers {
			<-asked
		}
		giveUp()
		calls.Wait()
		if n := requests.n.Load(); n > 0 {
			t.Errorf("with a wait of %s: %d requests of %d calls that returned are under way", wait, n, callers)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
