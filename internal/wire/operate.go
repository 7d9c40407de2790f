package wire

import (
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// None is a request that has no fields.
var None = requestObject[struct{}]("None", "Nothing: there is no field.").orNothing()

// Pausing is a request to pause; 0: for good.
var Pausing = requestObject("Pause", "How long to pause.",
	optional("for", asDuration.checked(func(r *Reader, _ string, d time.Duration) {
		if d == 0 {
			r.Wrong("for: must be longer than nothing; leave it out to pause for good")
		}
	}), itself, "more than nothing; without it: for good")).orNothing()

// Purging is a request to purge.
var Purging = requestObject("Purge", "What to remove beside what is scheduled and ready.",
	optional("dead", part(engine.PurgeDead), itself, "the dead messages too"),
	optional("finished", part(engine.PurgeFinished), itself, "the memory of finished messages too")).orNothing()

// part returns the kind of flags that add something to what is purged.
func part(p engine.PurgeAlso) kind[engine.PurgeAlso] {
	return kind[engine.PurgeAlso]{
		is: isFlag,
		read: func(r *Reader, name string, also *engine.PurgeAlso) {
			if r.flag(name) {
				*also |= p
			}
		},
		append: func(b []byte, also *engine.PurgeAlso) []byte { return strconv.AppendBool(b, *also&p != 0) },
		zero:   func(also *engine.PurgeAlso) bool { return *also&p == 0 },
	}
}

// CountHeader says how many messages a request that failed midway has changed.
const CountHeader = "Tarry-Count"

// Counted is an answer that is a count.
var Counted = Redriven.only("Counted", "How many of what was concerned.", []string{"count"}, nil)
