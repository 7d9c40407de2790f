package work

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/notify"
)

// Kind is the kind of an Event.
type Kind uint8

// The kinds of events; package tarry says what each means.
const (
	Started Kind = iota + 1
	Acked
	Dropped
	Retried
	Snoozed
	Released
	Buried
	Died
	Expired
	LeaseLost
	EngineFailed
	SelfSettled
	Stuck
	Unstuck
	Unconfirmed
)

var names = [...]string{"", "started", "acked", "dropped", "retried", "snoozed", "released",
	"buried", "died", "expired", "lease_lost", "engine_failed", "self_settled", "stuck", "unstuck", "unconfirmed"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return "event(" + strconv.Itoa(int(k)) + ")"
}

// Event is what a worker's observer gets. Fields that do not apply to its kind are zero.
type Event struct {
	Kind     Kind
	Queue    string
	ID       engine.ID
	Key      string
	Attempt  uint32
	Due      time.Time
	Until    time.Time     // Retried, Snoozed: when it comes back
	Lateness time.Duration // from its due time to the start of the handler, by the engine's clock
	Duration time.Duration // how long the handler ran
	Count    int           // messages: 1, or more for Expired and Died of messages that no handler saw
	Err      error         // what the handler returned, or what failed
}

// maxPendingEvents is how many events may wait for the observer before the worker stops
// leasing.
const maxPendingEvents = 4096

// observe passes events to the meter, and queues them for the observer.
func (w *Worker) observe(events ...Event) {
	if w.cfg.Handled != nil {
		w.cfg.Handled(events)
	}
	w.observeAlone(events...)
}

// observeAlone is observe for events that the meter gets elsewhere.
func (w *Worker) observeAlone(events ...Event) {
	if w.cfg.Observer != nil {
		w.events.Add(events...)
	}
}

// tell calls the observer, and logs its panics.
func (w *Worker) tell(e Event) {
	defer func() {
		if p := recover(); p != nil {
			w.cfg.Logger.Error("the observer panicked", "event", e.Kind, "panic", p, stack())
		}
	}()
	w.cfg.Observer(e)
}

// observerBehind reports whether the observer is so far behind that leasing must stop.
func (w *Worker) observerBehind() bool {
	if w.events.Pending() < maxPendingEvents {
		return false
	}
	w.held.Store(true)
	return w.events.Pending() >= maxPendingEvents // it may have caught up just now
}

// observerReturned resumes leasing when the observer has caught up.
func (w *Worker) observerReturned() {
	if w.held.Load() && w.events.Pending() < maxPendingEvents/2 && w.held.Swap(false) {
		w.mu.Lock()
		w.updateRoom()
		w.mu.Unlock()
		w.cfg.Dispatch.Freed()
	}
}

// event returns the event of a delivery. Its handler ran for took.
func (d *Delivery) event(kind Kind, took time.Duration, err error) Event {
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

func (d *Delivery) attrs(err error) []any {
	return []any{"queue", d.lease.Queue, "id", d.lease.ID, "key", d.lease.Key, "attempt", d.lease.Attempt, slog.Any("error", err)}
}

// Kinds of logged trouble: after the first lines, each queue gets at most one a minute.
var (
	handlerFailed  = notify.Trouble{Text: "a handler failed", Level: slog.LevelWarn}
	messageDied    = notify.Trouble{Text: "a message is dead", Level: slog.LevelWarn, First: 10}
	messagesLapsed = notify.Trouble{Text: "messages are dead: their last lease lapsed", Level: slog.LevelWarn, First: 10}
	lostLease      = notify.Trouble{Text: "a lease was lost while its handler ran", Level: slog.LevelWarn}
	stuckHandler   = notify.Trouble{Text: "a handler is stuck: it has not returned though its context has ended", Level: slog.LevelWarn}
	cameAgain      = notify.Trouble{Text: "a message came again while its handler still runs here; it was postponed", Level: slog.LevelWarn}
	unsettled      = notify.Trouble{Text: "a result came too late, or could not be sent to the engine", Level: slog.LevelWarn, First: 10}
	unconfirmed    = notify.Trouble{Text: "results were sent, but the engine's answers were lost", Level: slog.LevelInfo}
	unrenewed      = notify.Trouble{Text: "leases could not be renewed", Level: slog.LevelWarn}
)
