package server

import (
	"container/list"
	"errors"
	"hash/maphash"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// What a server remembers of workers.
const (
	maxWorkers = 1000
	maxServed  = 100_000         // queues of all workers together
	maxLeases  = 100_000         // leases in each of two generations
	seenWithin = 5 * time.Minute // how recently a worker that is there was seen
	setNoted   = time.Minute     // how often the queues of a set that is polled are noted
)

// workers are the workers that lease over HTTP. When there is no room, the one that was not
// seen for longest is forgotten.
type workers struct {
	began time.Time
	seed  maphash.Seed

	mu        sync.Mutex
	byID      map[workerID]*worker
	order     list.List // of *worker; the first was not seen for longest
	served    int       // queues of all workers
	forgotten time.Time // when the worker that was forgotten last had been seen

	// Leases by the hash of their token. When young is full, it becomes old.
	young, old map[uint64]given
}

// workerID is the name of a worker with one token. Without a name it is the address.
type workerID struct{ token, name, address string }

// worker is a worker. Its fields are guarded by workers.mu.
type worker struct {
	workerID
	address string // the last
	version string
	since   time.Time
	seen    time.Time
	queues  map[string]*served
	cut     bool // it has asked for more queues than are noted
	place   *list.Element
}

// served is what a worker did in one queue.
type served struct {
	seen            time.Time
	handled, failed int64
}

// given is a lease that a worker got.
type given struct {
	to    *worker
	queue *served
	until int64 // in milliseconds
}

func newWorkers() *workers {
	return &workers{
		began: time.Now(), seed: maphash.MakeSeed(),
		byID: make(map[workerID]*worker), young: make(map[uint64]given),
	}
}

// remoteHost returns the address of a request's client, without its port.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// workerAsks notes that a worker asks to lease from queues, and keeps it in x. Invalid names
// are not noted, since the request will fail.
func (s *Server) workerAsks(x *exchange, r *http.Request, name string, queues ...string) {
	if engine.CheckWorker("lease", "", name) != nil {
		return
	}
	id, address, version := workerID{name: name}, remoteHost(r), r.UserAgent()
	if name == "" {
		id.address = address
	}
	if x.token != nil {
		id.token = x.token.ID
	}
	ws := s.workers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.byID[id]
	if w == nil {
		w = &worker{workerID: id, since: x.began, queues: make(map[string]*served)}
		ws.byID[id], w.place = w, ws.order.PushBack(w)
		ws.makeRoom()
	}
	if w.address = address; printable(version) {
		w.version = engine.Clip(version)
	}
	ws.see(w, x.began)
	for _, q := range queues {
		if engine.CheckQueue("lease", q) != nil {
			continue
		}
		if v := ws.queue(w, q); v != nil {
			v.seen = x.began
		}
	}
	x.worker = w
}

// see notes that a worker is there. Called with ws.mu held.
func (ws *workers) see(w *worker, now time.Time) {
	w.seen = now
	if ws.byID[w.workerID] == w {
		ws.order.MoveToBack(w.place)
	}
}

// queue returns what a worker did in a queue; nil: there is no room. Called with ws.mu held.
func (ws *workers) queue(w *worker, name string) *served {
	v := w.queues[name]
	if v != nil {
		return v
	}
	if len(w.queues) >= wire.MaxQueues {
		w.cut = true
		return nil
	}
	v = new(served)
	w.queues[name] = v
	if ws.byID[w.workerID] == w {
		ws.served++
		ws.makeRoom()
	}
	return v
}

// makeRoom forgets workers as long as there are too many. Called with ws.mu held.
func (ws *workers) makeRoom() {
	for len(ws.byID) > maxWorkers || ws.served > maxServed {
		w := ws.order.Remove(ws.order.Front()).(*worker)
		delete(ws.byID, w.workerID)
		ws.served -= len(w.queues)
		ws.forgotten = w.seen
	}
}

// workerPolls notes that a worker polls a set. It notes the queues once a minute, since there
// may be very many.
func (s *Server) workerPolls(x *exchange, r *http.Request, name string, n *set) {
	s.workerAsks(x, r, name)
	if n.notedFor != x.worker || x.began.Sub(n.noted) >= setNoted {
		s.workerAsks(x, r, name, n.queues...)
		n.notedFor, n.noted = x.worker, x.began
	}
}

// gave notes leases that a worker gets.
func (ws *workers) gave(w *worker, ls []engine.Lease) {
	if w == nil || len(ls) == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := range ls {
		if len(ws.young) >= maxLeases {
			ws.old, ws.young = ws.young, make(map[uint64]given)
		}
		if v := ws.queue(w, ls[i].Queue); v != nil {
			ws.young[maphash.String(ws.seed, ls[i].Token)] = given{w, v, ls[i].Deadline.UnixMilli()}
		}
	}
}

// take returns the lease of a token and its hash, and forgets the lease. Called with ws.mu held.
func (ws *workers) take(token string) (h uint64, g given, ok bool) {
	h = maphash.String(ws.seed, token)
	if g, ok = ws.young[h]; ok {
		delete(ws.young, h)
	} else if g, ok = ws.old[h]; ok {
		delete(ws.old, h)
	}
	return h, g, ok
}

// tookBack notes that leases did not reach their worker.
func (ws *workers) tookBack(ls []engine.Lease) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := range ls {
		ws.take(ls[i].Token)
	}
}

// replaced notes the lease that a push with a token ended, unless that failed with err.
func (ws *workers) replaced(m *engine.Message, err error, now time.Time) {
	if m.Token != "" {
		ws.settled([]engine.Settlement{{Token: m.Token, Do: engine.Snooze}}, []engine.Settled{{Err: err}}, now)
	}
}

// settled notes what became of leases.
func (ws *workers) settled(all []engine.Settlement, out []engine.Settled, now time.Time) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := range all {
		h, g, ok := ws.take(all[i].Token)
		if !ok {
			continue
		}
		ws.see(g.to, now)
		g.queue.seen = now
		switch err := out[i].Err; {
		case errors.Is(err, engine.ErrLeaseLost):
		case err != nil:
			ws.young[h] = g
		case all[i].Do == engine.Ack:
			g.queue.handled++
		case all[i].Do == engine.Retry, all[i].Do == engine.Bury:
			g.queue.failed++
		case all[i].Do == engine.Extend:
			g.until = out[i].Until.UnixMilli()
			ws.young[h] = g
		}
	}
}
