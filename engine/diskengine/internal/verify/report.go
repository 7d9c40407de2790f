package verify

import (
	"fmt"

	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Report is what a check found.
type Report struct {
	// Findings is what is wrong: nothing in a sound store. There are at most MaxFindings; More
	// is how many were left out.
	Findings []Finding
	More     int

	// Torn is where the log ends that was not closed, as after a crash; what is behind is
	// dropped on opening. Nil: it was closed.
	Torn *wal.Torn

	// Leftovers are files that nothing names, as a crash leaves them: opening removes them.
	Leftovers []string

	// Tables is how many sstables there are, Entries how many messages and keys they hold, dead and
	// alive, Records how many entries of the log there are behind them.
	Tables  int
	Entries int64
	Records int64

	// Queues are those that have a name, by it. Nil where something is wrong.
	Queues []Queue
}

// MaxFindings is how many findings a report holds.
const MaxFindings = 1000

// Sound reports whether nothing is wrong.
func (r *Report) Sound() bool { return len(r.Findings) == 0 }

// Queue is what lives in a queue.
type Queue struct {
	Name     string
	Number   uint32
	Live     int64 // messages that wait or are leased
	Dead     int64 // messages that are kept though they failed
	Finished int64 // keys that are remembered
}

// Finding is something that is wrong.
type Finding struct {
	File   string
	Offset int64 // in the file, or a position in the log where File is its directory; -1: none
	What   string
}

// String is one line.
func (f Finding) String() string {
	if f.Offset < 0 {
		return fmt.Sprintf("%s: %s", f.File, f.What)
	}
	return fmt.Sprintf("%s, offset %d: %s", f.File, f.Offset, f.What)
}

func (r *Report) add(file string, off int64, format string, args ...any) {
	if len(r.Findings) == MaxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, Finding{File: file, Offset: off, What: fmt.Sprintf(format, args...)})
}
