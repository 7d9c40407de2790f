package wire

import "github.com/tarryhq/tarry/engine"

// AppendReschedule appends a request to move a message.
func AppendReschedule(b []byte, due engine.When) []byte {
	start := len(b)
	b = append(appendWhenOrNow(b, due), '}')
	b[start] = '{' // for the comma
	return b
}

var rescheduleFields = []string{"delay", "due"}

// Reschedule reads a request to move a message.
func (r *Reader) Reschedule() (due engine.When) {
	switch r.fields("request", rescheduleFields, func(f int) {
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
	cancelFields = []string{"refs"}
	refFields    = []string{"queue", "key", "id", "if_state"}
)

// Cancel reads a request to cancel many messages, and what is wrong with each.
func (r *Reader) Cancel() (refs []engine.Ref, bad []error) {
	r.batch(cancelFields, func() {
		var ref engine.Ref
		r.fields("ref", refFields, func(f int) {
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
		refs, bad = append(refs, ref), append(bad, r.wrong())
	})
	return refs, bad
}

var cancelledFields = []string{"queue", "key", "id", "ok", "error"}

// Cancelled reads the answer to the cancelling of one message; nil: it is gone.
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
