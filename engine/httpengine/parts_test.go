package httpengine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// transport answers requests instead of a server.
type transport func(r *http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// oneEach returns an engine whose server takes one item a request.
func oneEach(t *testing.T, serve transport) *Engine {
	t.Helper()
	e, err := prepare(&url.URL{Scheme: "http", Host: "127.0.0.1"}, &Options{Transport: serve})
	if err != nil {
		t.Fatal(err)
	}
	e.limits = wire.Limits{MaxBatch: 1, MaxLease: 1, MaxRequest: 1 << 20}
	return e
}

// What a call had not asked for when its context ended, or when the engine was closed, was
// surely not done, and is not asked for any more: Close waits for one request and not for all
// the others.
func TestALongCallEndsBetweenItsRequests(t *testing.T) {
	three := []engine.Ref{{Queue: "q", Key: "a"}, {Queue: "q", Key: "b"}, {Queue: "q", Key: "c"}}
	for name, call := range map[string]func(ctx context.Context, e *Engine) (all []error, err error){
		"cancel": func(ctx context.Context, e *Engine) ([]error, error) { return e.Cancel(ctx, three) },
		"settle": func(ctx context.Context, e *Engine) (all []error, err error) {
			got, err := e.Settle(ctx, make([]engine.Settlement, 3))
			for _, g := range got {
				all = append(all, g.Err)
			}
			return all, err
		},
		"push": func(ctx context.Context, e *Engine) (all []error, err error) {
			got, err := e.Push(ctx, []engine.Message{{Queue: "q"}, {Queue: "q"}, {Queue: "q"}})
			for _, g := range got {
				all = append(all, g.Err)
			}
			return all, err
		},
	} {
		for _, closes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				e := oneEach(t, func(r *http.Request) (*http.Response, error) {
					asked.Add(1)
					select { // it hangs
					case <-r.Context().Done():
						return nil, r.Context().Err()
					case <-time.After(time.Hour):
						return nil, io.ErrUnexpectedEOF
					}
				})
				want := context.Canceled
				if closes {
					want = engine.ErrClosed
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					all, err := call(ctx, e)
					if err != nil || len(all) != 3 {
						t.Errorf("%s: %v, %v", name, all, err)
						return
					}
					for i, err := range all[1:] {
						if !errors.Is(err, want) || strings.Contains(err.Error(), engine.HintUnknown) {
							t.Errorf("%s, item %d: %v, want %v", name, i+1, err, want)
						}
					}
				}()
				synctest.Wait()
				start := time.Now()
				if closes {
					_ = e.Close()
				} else {
					cancel()
				}
				<-done
				if took := time.Since(start); took > e.timeout || asked.Load() != 1 {
					t.Errorf("%s: %d requests, %s", name, asked.Load(), took)
				}
				_ = e.Close()
			})
		}
	}
}

// Close waits for a lease of several queues that is given up midway, and so for the release of
// what was leased by then: else it would rest until its lease lapses.
func TestALeaseGivenUpWhileClosingIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var e *Engine
		leases, released := 0, 0
		e = oneEach(t, func(r *http.Request) (*http.Response, error) {
			answer := `{"results":[{"lease":"x","ok":true,"state":"ready"}],"failed":0}`
			switch r.URL.Path {
			case "/v1/settle":
				released++
			case "/v1/lease":
				if leases++; leases > 1 {
					e.calls.Close()
					cancel()
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				now := time.Now()
				answer = string(wire.AppendLeased(nil, &wire.Leased{
					Now: now, Queues: []wire.Granted{{Queue: "a"}},
					Messages: []engine.Lease{{Token: "x", Info: engine.Info{ID: 1, Queue: "a", State: engine.Leased, Due: now, Created: now, Attempt: 1}}},
				}, wire.Exactly))
			}
			return &http.Response{StatusCode: http.StatusOK, ContentLength: int64(len(answer)), Body: io.NopCloser(strings.NewReader(answer))}, nil
		})
		_, err := e.Lease(ctx, []engine.Want{{Queue: "a", Max: 1}, {Queue: "b", Max: 1}})
		if !errors.Is(err, context.Canceled) || released != 1 {
			t.Errorf("%d of 1 were released: %v", released, err)
		}
		_ = e.Close()
	})
}
