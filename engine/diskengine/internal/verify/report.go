package verify

import (
	"fmt"

	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Report is what a check found.
type Report struct {
	// Findings is what is wrong; a sound store has none. There are at most MaxFindings; More
	// is how many were left out.
	Findings []Finding
	More     int

	// Torn is where the log ends if it was not closed, as after a crash; opening drops what
	// follows. Nil: it was closed.
	Torn *wal.Torn

	// Leftovers are files that nothing names, as a crash may leave. Opening removes them.
	Leftovers []string

	// Tables is how many sstables there are, Entries how many messages and keys they have,
	// deleted ones too. Records is how many entries the log has from the replayed position on.
	Tables  int
	Entries int64
	Records int64

	// Queues are the queues that have a name, by name. Nil if something is wrong.
	Queues []Queue
}

// MaxFindings is the most findings of a report.
const MaxFindings = 1000

// Sound reports whether nothing is wrong.
func (r *Report) Sound() bool { return len(r.Findings) == 0 }

// Queue is what a queue holds.
type Queue struct {
	Name     string
	Number   uint32
	Live     int64 // messages that are pending or leased
	Dead     int64 // dead messages
	Finished int64 // remembered keys
	Listed   int64 // finished messages
}

// Finding is one thing that is wrong.
type Finding struct {
	File   string
	Offset int64 // in the file, or a position in the log if File is its directory; -1: none
	What   string
}

// String describes the finding in one line.
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
