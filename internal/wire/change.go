package wire

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Rescheduling is a request to move a message.
var Rescheduling = requestObject("Reschedule", "When a message is to be due: delay or due, one of them.",
	optional("delay", asDuration, func(w *engine.When) *time.Duration { return &w.In }, "from now on").
		unless(func(w *engine.When) bool { return !w.At.IsZero() }),
	optional("due", asExact, func(w *engine.When) *time.Time { return &w.At }, ""),
).checked(func(r *Reader, got Fields, _ *engine.When) {
	const delay, due = 0, 1
	switch {
	case !got.Has(delay) && !got.Has(due):
		r.Wrong("delay: is missing, and so is due; give one")
	case got.Has(delay) && got.Has(due):
		r.Wrong("delay: give delay or due, not both")
	}
})

// Cancelling is a request to cancel many messages.
var Cancelling = requestObject("Cancel", "The messages to cancel.",
	required("refs", items(refFields, "ref"), itself, ""))

var refFields = requestObject("Ref", "A message of a queue, by key or by id.",
	required("queue", asQueue, func(ref *engine.Ref) *string { return &ref.Queue }, ""),
	optional("key", asText.described(isKey), func(ref *engine.Ref) *string { return &ref.Key }, ""),
	optional("id", asID, func(ref *engine.Ref) *engine.ID { return &ref.ID }, ""),
	optional("if_state", asStanding, func(ref *engine.Ref) *engine.State { return &ref.IfState }, "cancel it only in this state; else it fails with stale"),
).checked(func(r *Reader, got Fields, ref *engine.Ref) {
	const key, id = 1, 2
	switch {
	case ref.Queue == "":
		r.Wrong("queue: is missing")
	case !got.Has(key) && !got.Has(id):
		r.Wrong("key: is missing, and so is id; give one")
	case got.Has(key) && got.Has(id):
		r.Wrong("key: give key or id, not both")
	case got.Has(key) && ref.Key == "":
		r.Wrong("key: is empty")
	}
})

// Cancelled is the result for a message to cancel.
type Cancelled struct {
	engine.Ref
	OK  bool
	Err error // read as an *Error
}

// CancelResult is the result for a message to cancel, and CancelResults describes the answer
// to a request to cancel many.
var (
	CancelResult = answerObject("CancelResult", "What became of a message to cancel. It is named as the request did.",
		required("queue", asText, func(c *Cancelled) *string { return &c.Queue }, ""),
		optional("key", asText, func(c *Cancelled) *string { return &c.Key }, "").
			unless(func(c *Cancelled) bool { return c.ID != 0 }),
		optional("id", asID, func(c *Cancelled) *engine.ID { return &c.ID }, ""),
		required("ok", asFlag, func(c *Cancelled) *bool { return &c.OK }, "it is gone"),
		optional("error", asFailure, func(c *Cancelled) *error { return &c.Err }, "why not"))
	CancelResults = results("CancelResults", "What became of each message.", CancelResult.Ref())
)
