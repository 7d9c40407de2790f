package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// toldWorkers returns the names and queues in an answer.
func toldWorkers(t *testing.T, w *httptest.ResponseRecorder) (names []string) {
	t.Helper()
	var told wire.Workers
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body, err)
	}
	for _, o := range told.Workers {
		names = append(names, fmt.Sprintf("%s%v%d%v", o.Name, o.Queues, o.Handled, o.More))
	}
	return names
}

// A token is told of the queues that it may read, and of what workers did there. Workers of
// one name with two tokens are two.
func TestWorkersOfTokens(t *testing.T) {
	g := newGuarded(t)
	all := g.create("all", access.Admin, []string{"*"}, time.Time{})
	mine := g.create("mine", access.Read|access.Work|access.Push, []string{"mine.*"}, time.Time{})
	for secret, queues := range map[string][]string{all: {"mine.a", "theirs", "theirs"}, mine: {"mine.b"}} {
		for _, q := range queues {
			g.ask(all, "POST", "/v1/queues/"+q+"/messages", `{}`)
			got := g.ask(secret, "POST", "/v1/lease", fmt.Sprintf(`{"queues":[%q],"worker":"w"}`, q))
			var leased struct{ Messages []struct{ Lease string } }
			if err := json.Unmarshal(got.Body.Bytes(), &leased); err != nil || len(leased.Messages) != 1 {
				t.Fatal(got.Body, err)
			}
			g.ask(secret, "POST", "/v1/settle", fmt.Sprintf(`{"settlements":[{"lease":%q,"do":"ack"}]}`, leased.Messages[0].Lease))
		}
	}
	g.ask(all, "POST", "/v1/lease", `{"queues":["theirs"],"worker":"hidden"}`)
	for secret, want := range map[string][]string{
		all:  {"hidden[theirs]0false", "w[mine.a theirs]3false", "w[mine.b]1false"},
		mine: {"w[mine.a]1false", "w[mine.b]1false"},
	} {
		got := toldWorkers(t, g.ask(secret, "GET", "/v1/workers", ""))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("they are %q, want %q", got, want)
		}
	}
}

// asks has workers ask without a network.
func asks(s *Server, name string, queues ...string) *worker {
	x := &exchange{s: s, began: time.Now()}
	s.workerAsks(x, httptest.NewRequest("POST", "/", nil), name, queues...)
	return x.worker
}

func newBare(t *testing.T) *Server {
	c := tarry.New(memengine.New(nil), nil)
	t.Cleanup(func() { _ = c.Close() })
	return New(c, nil)
}

// A million names, and very many queues and leases, take bounded memory. What was forgotten is
// told, and who was seen last is kept.
func TestWorkersAreBounded(t *testing.T) {
	s := newBare(t)
	x, r := &exchange{s: s, began: time.Now()}, httptest.NewRequest("POST", "/", nil)
	for i := range 1_000_000 {
		s.workerAsks(x, r, fmt.Sprint("w", i), "q")
	}
	found := s.workers.list(time.Now())
	if len(found.all) != maxWorkers || len(s.workers.byID) != maxWorkers || s.workers.order.Len() != maxWorkers || s.workers.served != maxWorkers || !found.cut {
		t.Errorf("%d are listed of %d, with %d queues, cut: %v", len(found.all), len(s.workers.byID), s.workers.served, found.cut)
	}
	for _, w := range found.all {
		if len(w.Name) != len("w999000") || w.Name < "w999000" {
			t.Fatalf("%s was kept", w.Name)
		}
	}

	many := make([]string, wire.MaxQueues)
	for n := range 12 {
		for i := range many {
			many[i] = fmt.Sprintf("q%d-%d", n, i)
		}
		asks(s, fmt.Sprint("of many ", n), many...)
	}
	if n := len(s.workers.byID); n != maxServed/wire.MaxQueues || s.workers.served != maxServed {
		t.Errorf("%d workers are kept with %d queues", n, s.workers.served)
	}
	if _, whole := s.workers.asked(time.Now()); whole {
		t.Error("all queues that were asked for are known")
	}
	w := asks(s, "of many 11", "one-more")
	if !w.cut || len(w.queues) != wire.MaxQueues {
		t.Errorf("it has %d queues, cut: %v", len(w.queues), w.cut)
	}
	got := httptest.NewRecorder()
	r = httptest.NewRequest("GET", "/v1/workers", nil)
	r.Host = "localhost"
	s.ServeHTTP(got, r)
	if names := toldWorkers(t, got); len(names) != 10 || !strings.HasPrefix(names[0], "of many 10[q10-0 q10-1 q10-10 ") || !strings.HasSuffix(names[0], "]0true") {
		t.Errorf("%d are told, the first %q", len(names), names[0])
	}

	until := time.Now().Add(time.Hour)
	for i := range 250_000 {
		s.workers.gave(w, []engine.Lease{{Info: engine.Info{Queue: "q11-0", Deadline: until}, Token: fmt.Sprint(i)}})
	}
	if y, o := len(s.workers.young), len(s.workers.old); y != 50_000 || o != maxLeases {
		t.Errorf("of 250,000 leases %d and %d are kept", y, o)
	}
	s.workers.settled([]engine.Settlement{{Token: "249999", Do: engine.Ack}, {Token: "100000", Do: engine.Ack}, {Token: "0", Do: engine.Ack}}, make([]engine.Settled, 3), time.Now())
	if n := w.queues["q11-0"].handled; n != 2 {
		t.Errorf("%d are handled", n)
	}
}

// A worker that was forgotten while it holds a lease is no longer counted, and a new one of its
// name begins anew.
func TestForgottenWorkerSettles(t *testing.T) {
	s := newBare(t)
	w := asks(s, "early", "q")
	s.workers.gave(w, []engine.Lease{{Info: engine.Info{Queue: "q", Deadline: time.Now().Add(time.Hour)}, Token: "t"}})
	for i := range maxWorkers {
		asks(s, fmt.Sprint("w", i), "q")
	}
	s.workers.settled([]engine.Settlement{{Token: "t", Do: engine.Ack}}, make([]engine.Settled, 1), time.Now())
	s.workers.gave(w, []engine.Lease{{Info: engine.Info{Queue: "new", Deadline: time.Now().Add(time.Hour)}, Token: "u"}})
	if s.workers.served != maxWorkers || s.workers.order.Len() != maxWorkers {
		t.Errorf("%d queues of %d workers", s.workers.served, s.workers.order.Len())
	}
	if again := asks(s, "early", "q"); again == w || again.queues["q"].handled != 0 {
		t.Error("it was kept")
	}
}

// unwritable is the writer of an answer to a client that has gone.
type unwritable struct{ *httptest.ResponseRecorder }

func (unwritable) Write([]byte) (int, error) { return 0, errors.New("gone") }

// Leases that did not reach their worker are not its own.
func TestLeasesOfAClientThatHasGone(t *testing.T) {
	s := newBare(t)
	if _, err := s.c.Push(t.Context(), "q", nil); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"queues":["q"],"worker":"w"}`, `{"queues":["q"],"wait":"1s","worker":"w"}`} {
		r := httptest.NewRequest("POST", "/v1/lease", strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(unwritable{httptest.NewRecorder()}, r)
		if found := s.workers.list(time.Now()); len(found.all) != 1 || found.all[0].queues[0].leased != 0 || len(s.workers.young) != 0 {
			t.Errorf("%s: %+v, and %d leases", body, found.all, len(s.workers.young))
		}
		if q, err := s.c.Queue(t.Context(), "q"); err != nil || q.Ready != 1 {
			t.Errorf("%s: %+v, %v", body, q, err)
		}
	}
}

// What no worker may be named, and no queue, is not noted.
func TestInvalidNamesAreNotNoted(t *testing.T) {
	s := newBare(t)
	if w := asks(s, "a\nb", "q"); w != nil || len(s.workers.byID) != 0 {
		t.Errorf("noted are %v", s.workers.byID)
	}
	if w := asks(s, "w", "q", "no queue"); len(w.queues) != 1 {
		t.Errorf("noted are the queues %v", w.queues)
	}
}

// Where a worker has asked for more queues than are noted, it is not said that none asked.
func TestNoWorkerAmongTooManyQueues(t *testing.T) {
	s := newBare(t)
	if _, err := s.c.Push(t.Context(), "q", nil); err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		found, err := s.scan(t.Context(), 0)
		if err != nil || len(found) != 1 || found[0].Problem != "no_worker" || !strings.HasSuffix(found[0].Message, want) {
			t.Errorf("found %+v, %v; want %q", found, err, want)
		}
	}
	is("and no worker has asked this server since it started")
	for i := range wire.MaxQueues + 1 {
		asks(s, "w", fmt.Sprint("other", i))
	}
	is("and none is leased")
}
