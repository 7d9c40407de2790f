package wire

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// options reads a request whose fields are all optional. The request may be empty.
func (r *Reader) options(s *Shape, each func(field int)) {
	if len(r.data) > 0 {
		r.fields("request", s, each)
		r.end()
	}
}

// None is the shape of a request that has no fields.
var None = asked("None", "Nothing: there is no field.")

// Nothing reads a request that has no fields.
func (r *Reader) Nothing() { r.options(None, nil) }

// appendOption appends a request with one duration, or without fields if that is 0.
func appendOption(b []byte, name string, d time.Duration) []byte {
	if d <= 0 {
		return append(b, "{}"...)
	}
	return append(appendDuration(b, name, d), '}')
}

// AppendPause appends a request to pause; 0: for good.
func AppendPause(b []byte, d time.Duration) []byte { return appendOption(b, `{"for":`, d) }

// Pausing is the shape of a request to pause.
var Pausing = asked("Pause", "How long to pause.",
	may("for", isDuration, "more than nothing; without it: for good"))

// Pause reads a request to pause; 0: for good.
func (r *Reader) Pause() (d time.Duration) {
	r.options(Pausing, func(int) {
		if d = r.duration("for"); d == 0 {
			r.Wrong("for: must be longer than nothing; leave it out to pause for good")
		}
	})
	return d
}

// AppendPurge appends a request to purge.
func AppendPurge(b []byte, also engine.PurgeAlso) []byte {
	b = appendBool(b, `{"dead":`, also&engine.PurgeDead != 0)
	if also&engine.PurgeFinished != 0 {
		b = appendBool(b, `,"finished":`, true)
	}
	return append(b, '}')
}

// Purging is the shape of a request to purge.
var Purging = asked("Purge", "What to remove beside what is scheduled and ready.",
	may("dead", isFlag, "the dead messages too"),
	may("finished", isFlag, "the memory of finished messages too"))

// Purge reads a request to purge.
func (r *Reader) Purge() (also engine.PurgeAlso) {
	r.options(Purging, func(f int) {
		if r.flag(Purging.names[f]) {
			also |= engine.PurgeDead << f
		}
	})
	return also
}

// AppendRedrive appends a request to redrive the messages with these ids. Without ids, it is
// for the limit messages that died first; 0: all.
func AppendRedrive(b []byte, ids []engine.ID, limit int) []byte {
	if len(ids) == 0 {
		return append(appendInt(b, `{"limit":`, int64(max(limit, 0))), '}')
	}
	return append(appendAll(append(b, `{"ids":`...), ids, func(b []byte, id *engine.ID) []byte { return appendID(b, *id) }), '}')
}

// CountHeader says how many messages a request that failed midway has changed.
const CountHeader = "Tarry-Count"

// AppendCount appends an answer that is a count.
func AppendCount(b []byte, n int64) []byte { return append(appendInt(b, `{"count":`, n), '}') }

// AppendRedriven appends the answer to a redrive by ids.
func AppendRedriven(b []byte, n engine.Redriven) []byte {
	b = appendInt(b, `{"count":`, n.Redriven)
	return append(appendInt(b, `,"skipped":`, n.Skipped), '}')
}

// Counted is the shape of an answer that is a count.
var Counted = Redriven.only("Counted", "How many of what was concerned.", []string{"count"}, nil)

// Count reads an answer that is a count; of a redrive also how many were skipped.
func (r *Reader) Count() (count, skipped int64) {
	r.fields("answer", Redriven, func(f int) {
		switch f {
		case 0:
			count = r.count("count")
		case 1:
			skipped = r.count("skipped")
		default:
			r.skip()
		}
	})
	return count, skipped
}
