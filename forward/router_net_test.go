package forward_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/httpengine"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/forward"
	_ "github.com/tarryhq/tarry/forward/webhook"
	"github.com/tarryhq/tarry/server"
)

// receiver is an HTTP server that tells of what comes.
func receiver(t *testing.T, answer func(http.ResponseWriter, *http.Request)) (url string, came <-chan string) {
	t.Helper()
	c := make(chan string, 10_000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c <- r.Header.Get("Tarry-Queue")
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, c
}

// run runs a router until the test ends, or the function returned is called.
func run(t *testing.T, c *tarry.Client, cfg forward.RouterConfig, routes forward.Routes) (stop func() error) {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	for i := range routes {
		routes[i].Options.AllowPrivate = true
		if routes[i].Options.Timeout == 0 {
			routes[i].Options.Timeout = time.Minute // on a busy machine too
		}
	}
	r := forward.NewRouter(c, &cfg)
	if err := r.Set(routes); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func open(t *testing.T, store string) *tarry.Client {
	t.Helper()
	c, err := tarry.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func push(t *testing.T, c *tarry.Client, queue string) {
	t.Helper()
	if _, err := tarry.NewTopic[string](queue).Push(t.Context(), c, "body"); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, came <-chan string) string {
	t.Helper()
	select {
	case queue := <-came:
		return queue
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
		return ""
	}
}

// All that goes to the one that answers gets there while two others hold as many
// connections as they may, one of which never answers, and one is not there.
func TestDeadWebhookDelaysNoOther(t *testing.T) {
	const slots, n = 4, 200
	let := make(chan struct{})
	hang, hanging := receiver(t, func(http.ResponseWriter, *http.Request) { <-let })
	live, came := receiver(t, nil)
	c := open(t, "mem:")
	stop := run(t, c, forward.RouterConfig{DrainTimeout: -1}, forward.Routes{
		{Queue: "hang.*", Target: hang, Concurrency: slots, Options: forward.Options{Timeout: time.Hour}},
		{Queue: "dead.*", Target: "http://127.0.0.1:1", Concurrency: slots},
		{Queue: "live.*", Target: live, Concurrency: slots},
	})
	for i := range 20 {
		push(t, c, fmt.Sprint("hang.", i))
	}
	for range slots {
		await(t, hanging)
	}
	for i := range n {
		push(t, c, fmt.Sprint("dead.", i%10))
		push(t, c, fmt.Sprint("live.", i%10))
	}
	for range n {
		await(t, came)
	}
	if more := len(hanging); more > 0 {
		t.Errorf("%d more messages than there are slots went to the target that hangs", more)
	}
	_ = stop() // what hangs is cut
	close(let)
}

// The store is another tarry server, which waits by itself: no hint comes of what others
// push.
func TestRouterOnARemoteStore(t *testing.T) {
	inner := open(t, "mem:")
	srv := httptest.NewServer(server.New(inner, nil))
	defer srv.Close()
	c := open(t, srv.URL+"?timeout=10m")
	live, came := receiver(t, nil)
	stop := run(t, c, forward.RouterConfig{ListEvery: 20 * time.Millisecond}, forward.Routes{
		{Queue: "named", Target: live}, {Queue: "found.*", Target: live},
	})
	for _, by := range []*tarry.Client{inner, c} {
		for _, queue := range []string{"named", "found.1", "found.2", "found.1"} {
			push(t, by, queue)
			if got := await(t, came); got != queue {
				t.Errorf("from %s came a message, want one of %s", got, queue)
			}
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	_ = c.Close()
}
