package wire

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// AppendReschedule appends a request to move a message.
func AppendReschedule(b []byte, due engine.When) []byte {
	start := len(b)
	b = append(appendWhenOrNow(b, due), '}')
	b[start] = '{' // in place of the comma
	return b
}

// Rescheduling is the shape of a request to move a message.
var Rescheduling = asked("Reschedule", "When a message is to be due: delay or due, one of them.",
	may("delay", isDuration, "from now on"),
	may("due", isTime, ""))

// Reschedule reads a request to move a message.
func (r *Reader) Reschedule() (due engine.When) {
	switch r.fields("request", Rescheduling, func(f int) {
		if f == 0 {
			due = engine.When{In: r.duration("delay")}
		} else {
			due = engine.When{At: r.time("due")}
		}
	}) {
	case 0:
		r.Wrong("delay: is missing, and so is due; give one")
	case 3:
		r.Wrong("delay: give delay or due, not both")
	}
	r.end()
	return due
}

// AppendCancel appends a request to cancel many messages.
func AppendCancel(b []byte, refs []engine.Ref) []byte {
	return append(appendAll(append(b, `{"refs":`...), refs, appendRef), '}')
}

func appendRef(b []byte, ref *engine.Ref) []byte {
	b = appendText(b, `{"queue":`, ref.Queue)
	if ref.ID != 0 {
		b = appendID(append(b, `,"id":`...), ref.ID)
	} else {
		b = appendText(b, `,"key":`, ref.Key)
	}
	if ref.IfState != engine.Gone {
		b = appendWord(b, `,"if_state":`, ref.IfState.String())
	}
	return append(b, '}')
}

var (
	// Cancelling is the shape of a request to cancel many messages.
	Cancelling = asked("Cancel", "The messages to cancel.",
		must("refs", schema.Array(refFields.Ref(), engine.MaxBatch), ""))
	refFields = asked("Ref", "A message of a queue, by key or by id.",
		must("queue", isQueue, ""),
		may("key", isKey, ""),
		may("id", isID, ""),
		may("if_state", isStanding, "cancel it only in this state; else it fails with stale"))
)

// Cancel reads a request to cancel many messages. bad has the error of each, or nil.
func (r *Reader) Cancel() (refs []engine.Ref, bad []error) {
	r.batch(Cancelling, func() {
		var ref engine.Ref
		seen := r.fields("ref", refFields, func(f int) {
			switch f {
			case 0:
				ref.Queue = r.queueName()
			case 1:
				ref.Key = r.text("key")
			case 2:
				ref.ID = r.id("id")
			case 3:
				if s, ok := r.bytes("if_state"); ok {
					var err error
					if ref.IfState, err = state("if_state", string(s)); err != nil {
						r.Wrong("%v", err)
					}
				}
			}
		})
		const key, id = 1 << 1, 1 << 2
		switch {
		case ref.Queue == "":
			r.Wrong("queue: is missing")
		case seen&(key|id) == 0:
			r.Wrong("key: is missing, and so is id; give one")
		case seen&key != 0 && seen&id != 0:
			r.Wrong("key: give key or id, not both")
		case seen&key != 0 && ref.Key == "":
			r.Wrong("key: is empty")
		}
		refs, bad = append(refs, ref), append(bad, r.wrong())
	})
	return refs, bad
}

// CancelResults is the shape of the answer to a request to cancel many messages.
var (
	CancelResults   = results("CancelResults", "What became of each message.", cancelledFields.Ref())
	cancelledFields = answered("CancelResult", "What became of a message to cancel. It is named as the request did.",
		must("queue", isText, ""),
		may("key", isText, ""),
		may("id", isID, ""),
		must("ok", isFlag, "it is gone"),
		may("error", errorFields.Ref(), "why not"))
)

// Cancelled reads the result for one message to cancel; nil: it is gone.
func (r *Reader) Cancelled() (e *Error) {
	r.fields("result", cancelledFields, func(f int) {
		if f == 4 {
			e = r.failure()
		} else {
			r.skip()
		}
	})
	return e
}
