package server

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// calling is a writer that calls back when something is written.
type calling struct {
	*httptest.ResponseRecorder
	wrote func()
}

func (c calling) Write(b []byte) (int, error) {
	defer c.wrote()
	return c.ResponseRecorder.Write(b)
}

// No further chunk is begun by a token that has been revoked, or by a server that shuts
// down.
func TestSweepEnds(t *testing.T) {
	for reason, end := range map[string]func(g *guarded, stop func()){
		"was revoked or has expired": func(g *guarded, _ func()) {
			if _, err := g.file.Revoke("ann"); err != nil {
				g.Error(err)
			}
			g.guard.Refresh()
		},
		"the server shuts down": func(_ *guarded, stop func()) { stop() },
	} {
		g := newGuarded(t)
		secret := g.create("ann", access.Operate, []string{"q"}, time.Time{})
		for i := range 600 {
			if _, err := g.c.PushDraft(t.Context(), tarry.NewDraft("q", nil, tarry.Key(fmt.Sprint(i)))); err != nil {
				t.Fatal(err)
			}
		}
		leased, err := g.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 600})
		if err != nil {
			t.Fatal(err)
		}
		var all []tarry.Settlement
		for i := range leased.Messages {
			all = append(all, tarry.Settlement{Token: leased.Messages[i].Token, Do: engine.Bury})
		}
		if _, err := g.c.Settle(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(t.Context())
		defer stop()
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), stoppingKey{}, running), "POST", "/v1/queues/q/drop", strings.NewReader("{}"))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", linesType)
		r.Header.Set("Authorization", "Bearer "+secret)
		w := calling{httptest.NewRecorder(), sync.OnceFunc(func() { end(g, stop) })}
		g.ServeHTTP(w, r)
		if lines := strings.Split(w.Body.String(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], `{"count":500,`) || !strings.Contains(lines[1], reason) {
			t.Errorf("%s: %s", reason, w.Body)
		}
		if q, err := g.c.Queue(t.Context(), "q"); err != nil || q.Dead != 100 {
			t.Errorf("%s: %+v, %v", reason, q, err)
		}
	}
}
