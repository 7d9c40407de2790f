package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

// The bounds of a scan for workers.
const (
	workersRest = time.Second
	maxHeld     = 10_000 // leases that are read
	maxHeldOf   = 1000   // of each queue
)

var callWorkers = &call{
	id: "listWorkers", group: groupServer, does: "List the workers",
	more: "They are those that leased, waited or settled here in the last 5 minutes or hold leases from here, at most 1000, and others that hold leases in the store. " +
		"A token is told of workers on queues that it may read, and of these queues alone. All who ask share one scan, at least 1 s apart.",
	answers: ok("The workers.", wire.WorkersAnswer.Ref()),
}

// foundWorkers is what a scan found. It is never changed.
type foundWorkers struct {
	all []foundWorker
	cut bool // there may be more
}

// foundWorker is a worker, without the sums over its queues.
type foundWorker struct {
	wire.Worker
	queues []workerQueue
	cut    bool // there may be more queues
}

// workerQueue is a queue of a worker.
type workerQueue struct {
	name                    string
	now                     bool // the worker is there: it asked lately, or holds leases
	leased, handled, failed int64
}

// listWorkers lists the workers that the token may see.
func (s *Server) listWorkers(x *exchange, r *http.Request) error {
	found, err := s.workerScan.get(r.Context(), patience)
	if gone := r.Context().Err(); gone != nil {
		return gone
	}
	told := wire.Workers{Workers: []wire.Worker{}, More: found.cut || err != nil}
	for i := range found.all {
		if w, some := found.all[i].seen(x.maySeeTrend); some {
			told.Workers = append(told.Workers, w)
		}
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &told) })
}

// seen returns a worker with the queues that a token may see; false: there are none.
func (f *foundWorker) seen(may func(queue string) bool) (w wire.Worker, some bool) {
	w = f.Worker
	w.Queues, w.More = []string{}, f.cut
	for _, q := range f.queues {
		if !may(q.name) {
			continue
		}
		w.Leased, w.Handled, w.Failed = w.Leased+q.leased, w.Handled+q.handled, w.Failed+q.failed
		if q.now {
			w.Queues, some = append(w.Queues, q.name), true
		}
	}
	if slices.Sort(w.Queues); len(w.Queues) > wire.MaxWorkerQueues {
		w.Queues, w.More = w.Queues[:wire.MaxWorkerQueues], true
	}
	return w, some
}

// scanWorkers finds the workers of this server and of its process, and then others that hold
// leases.
func (s *Server) scanWorkers(ctx context.Context) (foundWorkers, error) {
	found := s.workers.list(time.Now())
	holders, cut, err := findHolders(ctx, s.c)
	s.scanFailed(err)
	here := make(map[holding]*workerQueue) // nil: its leases are counted
	for _, w := range found.all {
		for _, q := range w.queues {
			here[holding{w.Name, q.name}] = nil
		}
	}
	for name, queues := range s.c.Running() {
		queues = slices.Compact(slices.Sorted(slices.Values(queues)))
		w := foundWorker{Worker: wire.Worker{Name: name}, queues: make([]workerQueue, len(queues))}
		for i, q := range queues {
			w.queues[i] = workerQueue{name: q, now: true}
			here[holding{name, q}] = &w.queues[i]
		}
		if !slices.Equal(queues, []string{tarry.ScheduleQueue}) { // every server runs schedules
			found.all = append(found.all, w)
		}
	}
	for _, w := range holders {
		w.queues = slices.DeleteFunc(w.queues, func(q workerQueue) bool {
			own, counted := here[holding{w.Name, q.name}]
			if own != nil {
				own.leased = q.leased
			}
			return counted
		})
		if len(w.queues) > 0 {
			found.all = append(found.all, w)
		}
	}
	slices.SortStableFunc(found.all, func(a, b foundWorker) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address))
	})
	found.cut = found.cut || cut
	return found, err
}

// list returns the workers that are there.
func (ws *workers) list(now time.Time) (found foundWorkers) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	leased, holds := make(map[*served]int64), make(map[*worker]bool)
	for _, leases := range []map[uint64]given{ws.old, ws.young} {
		for _, g := range leases {
			if g.until > now.UnixMilli() {
				leased[g.queue]++
				holds[g.to] = true
			}
		}
	}
	for _, w := range ws.byID {
		if now.Sub(w.seen) > seenWithin && !holds[w] {
			continue
		}
		f := foundWorker{cut: w.cut, Worker: wire.Worker{
			Name: w.name, Address: w.address, Since: wire.Time{Time: w.since}, Seen: wire.Time{Time: w.seen}, Version: w.version,
		}}
		for name, q := range w.queues {
			f.queues = append(f.queues, workerQueue{name, leased[q] > 0 || now.Sub(q.seen) <= seenWithin, leased[q], q.handled, q.failed})
		}
		found.all = append(found.all, f)
	}
	found.cut = now.Sub(ws.forgotten) <= seenWithin
	return found
}

// asked returns the queues for which a worker asked within seenWithin. whole: no other can
// have been asked for.
func (ws *workers) asked(now time.Time) (queues map[string]bool, whole bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	queues, whole = make(map[string]bool), now.Sub(ws.forgotten) > seenWithin
	for _, w := range ws.byID {
		if now.Sub(w.seen) > seenWithin {
			continue
		}
		whole = whole && !w.cut
		for name, q := range w.queues {
			if now.Sub(q.seen) <= seenWithin {
				queues[name] = true
			}
		}
	}
	return queues, whole
}

// Worker is a worker that holds leases.
type Worker = wire.Worker

// holding is a worker and a queue of which it holds leases.
type holding struct{ worker, queue string }

// WorkersOf finds the workers with names that hold leases in a client's store, by name. It
// reads at most 10,000 leases, 1,000 of each queue; more: there are others.
func WorkersOf(ctx context.Context, c *tarry.Client) (workers []Worker, more bool, err error) {
	found, more, err := findHolders(ctx, c)
	for i := range found {
		w, _ := found[i].seen(func(string) bool { return true })
		workers = append(workers, w)
	}
	slices.SortFunc(workers, func(a, b Worker) int { return cmp.Compare(a.Name, b.Name) })
	return workers, more, err
}

// findHolders finds the holders of leases in a store. With an error it returns those found before.
func findHolders(ctx context.Context, c *tarry.Client) (found []foundWorker, cut bool, err error) {
	if caps := c.Capabilities(); !caps.Count || !caps.List || !caps.Workers {
		return nil, false, nil
	}
	at, read := make(map[string]int), 0
	for q, err := range c.AllQueues(ctx) {
		if err != nil {
			return found, true, err
		}
		if q.Leased == 0 {
			continue
		}
		if read >= maxHeld || len(found) >= maxWorkers {
			return found, true, nil
		}
		page, err := c.ListPage(ctx, tarry.ListQuery{Queue: q.Queue, State: tarry.Leased, Limit: maxHeldOf})
		if err != nil {
			return found, true, err
		}
		read += len(page.Messages)
		cut = cut || page.Next != ""
		leased := make(map[string]int64) // by name
		for _, m := range page.Messages {
			leased[m.Worker]++
		}
		delete(leased, "")
		for name, n := range leased {
			i, known := at[name]
			if !known {
				i = len(found)
				at[name], found = i, append(found, foundWorker{Worker: wire.Worker{Name: name, Elsewhere: true}})
			}
			found[i].queues = append(found[i].queues, workerQueue{name: q.Queue, now: true, leased: n})
		}
	}
	return found, cut, nil
}
