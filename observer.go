package tarry

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/internal/trouble"
)

// EventKind is what happened.
type EventKind uint8

// The kinds of events. The settlements are told when the engine has confirmed them.
const (
	Started      EventKind = iota + 1 // a handler is about to run
	Acked                             // handled
	Dropped                           // the guard found no reason for it any more
	Retried                           // failed; comes back at Until
	Snoozed                           // put off until Until
	Released                          // given back unhandled: the worker drains, or the lease was too old to begin
	Buried                            // dead by the handler's wish
	Died                              // dead because its attempts are used up
	Expired                           // dropped because it was past its ExpireAfter
	LeaseLost                         // the lease was lost before the handler began, while it ran, or before it could be settled
	EngineFailed                      // the engine could not be asked, or a settlement not be delivered
	SelfSettled                       // its handler says that it has settled it by itself
	Stuck                             // its handler has not returned though its context ended 5 s before
	Unstuck                           // its handler, which was stuck, has returned
	Unconfirmed                       // its result was told, but whether that counted is not known: see ErrUnconfirmed
)

var eventNames = [...]string{"", "started", "acked", "dropped", "retried", "snoozed", "released",
	"buried", "died", "expired", "lease_lost", "engine_failed", "self_settled", "stuck", "unstuck", "unconfirmed"}

// String returns the kind's name in lower case.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "event(" + strconv.Itoa(int(k)) + ")"
}

// Event is what a worker's observer is told. Fields that have no meaning for its
// kind are zero.
type Event struct {
	Kind     EventKind
	Queue    string
	ID       ID
	Key      string
	Attempt  uint32
	Due      time.Time
	Until    time.Time     // Retried, Snoozed: when it comes back
	Lateness time.Duration // start of the handler − due, by the engine's clock
	Duration time.Duration // how long the handler ran
	Count    int           // how many messages: 1, but for Expired and Died of messages that no handler saw
	Err      error         // what the handler returned, or what failed
}

// maxUntold is how many events the observer may be behind before the worker leases
// no more.
const maxUntold = 4096

// observe tells the meter, and has the observer told, without waiting for it.
func (w *Worker) observe(events ...Event) {
	if w.c.meter.handles() {
		w.c.meter.Handled(events)
	}
	w.observeAlone(events...)
}

// observeAlone is observe of what the meter is told elsewhere.
func (w *Worker) observeAlone(events ...Event) {
	if w.cfg.Observer != nil {
		w.events.add(events...)
	}
}

// tell tells the observer, whose panics harm nobody.
func (w *Worker) tell(e Event) {
	defer func() {
		if p := recover(); p != nil {
			w.cfg.Logger.Error("the observer panicked", "event", e.Kind, "panic", p, stack())
		}
	}()
	w.cfg.Observer(e)
}

// deaf reports whether the observer is so far behind that nothing more should begin.
func (w *Worker) deaf() bool {
	if w.events.untold.Load() < maxUntold {
		return false
	}
	w.held.Store(true)
	return w.events.untold.Load() >= maxUntold // or it has caught up just before
}

// heard goes on leasing when the observer has caught up.
func (w *Worker) heard() {
	if w.held.Load() && w.events.untold.Load() < maxUntold/2 && w.held.Swap(false) {
		w.mu.Lock()
		w.tellRoom()
		w.mu.Unlock()
		w.c.dispatch.Freed()
	}
}

// event describes what happened to a delivery whose handler has run for took.
func (d *delivery) event(kind EventKind, took time.Duration, err error) Event {
	e := Event{
		Kind: kind, Queue: d.lease.Queue, ID: d.lease.ID, Key: d.lease.Key,
		Attempt: d.lease.Attempt, Due: d.lease.Due, Count: 1, Err: err,
	}
	if !d.started.IsZero() {
		e.Lateness = d.started.Sub(d.due)
		e.Duration = took
	}
	return e
}

func (d *delivery) attrs(err error) []any {
	return []any{"queue", d.lease.Queue, "id", d.lease.ID, "key", d.lease.Key, "attempt", d.lease.Attempt, slog.Any("error", err)}
}

// What the log is told of, at most a line a minute for each queue after the first.
var (
	handlerFailed  = trouble.Kind{Text: "a handler failed", Level: slog.LevelWarn}
	messageDied    = trouble.Kind{Text: "a message is dead", Level: slog.LevelWarn, First: 10}
	messagesLapsed = trouble.Kind{Text: "messages are dead: their last lease lapsed", Level: slog.LevelWarn, First: 10}
	lostLease      = trouble.Kind{Text: "a lease was lost while its handler ran", Level: slog.LevelWarn, First: 10}
	stuckHandler   = trouble.Kind{Text: "a handler is stuck: it has not returned though its context has ended", Level: slog.LevelWarn, First: 10}
	cameAgain      = trouble.Kind{Text: "a message came again while its handler still runs here; it was put off", Level: slog.LevelWarn}
	unsettled      = trouble.Kind{Text: "a result came too late, or could not be told to the engine", Level: slog.LevelWarn, First: 10}
	unconfirmed    = trouble.Kind{Text: "results were told, but the engine's answers were lost", Level: slog.LevelInfo}
	unrenewed      = trouble.Kind{Text: "leases could not be renewed", Level: slog.LevelWarn}
)
