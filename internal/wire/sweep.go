package wire

import (
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// MaxGroups is the most groups of dead messages that an answer has, or a request may choose.
const MaxGroups = 200

// Sweep is a request to redrive or drop dead messages: those with the given ids, or else
// those that meet all the other conditions.
type Sweep struct {
	IDs       []engine.ID
	Limit     int      // 0: all
	Groups    []string // nil: any
	Error     string   // "": any
	KeyPrefix string
	From, To  time.Time
	DryRun    bool
}

// Filters reports whether a request chooses among the dead messages.
func (s *Sweep) Filters() bool {
	return s.Groups != nil || s.Error != "" || s.KeyPrefix != "" || !s.From.IsZero() || !s.To.IsZero()
}

// Redriving and Dropping are the shapes of requests to redrive and to drop.
var (
	Redriving = asked("Redrive", "Which dead messages become ready: those named, else those of which all of the rest holds, else all.",
		may("ids", schema.Array(isID, engine.MaxBatch).With("minItems", 1), "goes with nothing else but the limit, which does not count then"),
		may("limit", schema.Whole(0, math.MaxInt32), "how many, those that died first; 0: all"),
		may("groups", schema.Array(schema.Text(0, MaxCause), MaxGroups).With("minItems", 1), "of one of these groups, by the error that /dead/groups tells of each"),
		may("error", schema.Text(1, engine.MaxReason), "whose error contains this"),
		may("key_prefix", schema.Text(1, engine.MaxKeyBytes), "whose key begins so"),
		may("from", isTime, "that died then or later"),
		may("to", isTime, "that died before"),
		may("dry_run", isFlag, "change nothing: tell how many it would be"))
	Dropping = Redriving.only("Drop", "Which dead messages are dropped: those of which all of this holds, or all.", nil, Redriving.without("ids"))
)

// Redrive reads a request to redrive.
func (r *Reader) Redrive() (s Sweep) {
	if len(r.data) > 0 {
		r.sweep(Redriving, &s)
	}
	if s.IDs != nil && (s.Filters() || s.DryRun) {
		r.Wrong("ids: do not go with a filter or dry_run")
	}
	return s
}

// Drop reads a request to drop, which must not be empty.
func (r *Reader) Drop() (s Sweep) {
	r.sweep(Dropping, &s)
	return s
}

func (r *Reader) sweep(shape *Shape, s *Sweep) {
	r.fields("request", shape, func(f int) {
		switch name := shape.names[f]; name {
		case "ids":
			r.texts(name, engine.MaxBatch, func(text string) {
				id, err := engine.ParseID(text)
				if err != nil {
					r.Wrong("ids: %q is not an id", engine.Clip(text))
				}
				s.IDs = append(s.IDs, id)
			})
			if len(s.IDs) == 0 {
				r.Wrong("ids: is empty; leave it out to redrive all")
			}
		case "limit":
			s.Limit = int(r.whole(name, math.MaxInt32))
		case "groups":
			r.texts(name, MaxGroups, func(text string) {
				if len(text) > MaxCause {
					r.Wrong("groups: longer than %d bytes", MaxCause)
				}
				s.Groups = append(s.Groups, text)
			})
			if len(s.Groups) == 0 {
				r.Wrong("groups: is empty; leave it out for all of them")
			}
		case "error":
			s.Error = r.part(name, engine.MaxReason)
		case "key_prefix":
			s.KeyPrefix = r.part(name, engine.MaxKeyBytes)
		case "from":
			s.From = r.time(name)
		case "to":
			s.To = r.time(name)
		case "dry_run":
			s.DryRun = r.flag(name)
		}
	})
	r.end()
	if !s.From.IsZero() && !s.To.IsZero() && !s.From.Before(s.To) {
		r.Wrong("to: nothing lies between from and to")
	}
}

// part reads a text of 1 to most bytes. An empty text would choose all messages, perhaps
// only because the caller forgot to set a variable.
func (r *Reader) part(name string, most int) string {
	text := r.text(name)
	switch {
	case text == "":
		r.Wrong("%s: is empty; leave it out for all of them", name)
	case len(text) > most:
		r.Wrong("%s: longer than %d bytes", name, most)
	}
	return text
}

// Swept is the progress of a redrive or drop, or its end.
type Swept struct {
	Count, Skipped, Seen int64
	To                   time.Time // zero: there was nothing
	Done                 bool
	Failed               *Error // nil: it did not fail
}

// Redriven is the shape of the answer to a redrive and to a drop.
var Redriven = answered("Redriven", "How many dead messages became ready, or are gone.",
	must("count", isCount, "those that became ready, or are gone; of a dry run those that would"),
	must("skipped", isCount, "those that could not: they were dead no more by then, or a live message holds their key"),
	may("seen", isCount, "of a filter: how many were looked at"),
	may("to", isTime, "of a filter: what died then or later was left alone; the same to in a later request chooses among the same"),
	may("done", isFlag, "in an answer of lines: this is the last"),
	may("error", errorFields.Ref(), "in an answer of lines: what ended it before its time"))

// AppendSwept appends the progress of a redrive or drop. With line it is a line of an answer
// made of lines.
func AppendSwept(b []byte, s *Swept, line bool) []byte {
	b = appendInt(b, `{"count":`, s.Count)
	b = appendInt(b, `,"skipped":`, s.Skipped)
	b = appendInt(b, `,"seen":`, s.Seen)
	if !s.To.IsZero() {
		b = appendTime(b, `,"to":`, s.To)
	}
	if line {
		b = appendBool(b, `,"done":`, s.Done)
	}
	if s.Failed != nil {
		b = appendError(append(b, ','), s.Failed)
	}
	return append(b, '}')
}
