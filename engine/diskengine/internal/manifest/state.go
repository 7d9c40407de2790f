package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// State is what a manifest says.
type State struct {
	// Store is what the store is called, part of the checksums of its log and runs. Secret is
	// what keys are hashed with in the runs. Neither changes.
	Store  uint64
	Secret [16]byte

	// Begun says that a segment of the log was begun, durably: there is always one from then on. Where
	// it is not set a log without any is that of a first opening that was cut off.
	Begun bool

	// Replay is the position in the log from which it is replayed: what came before is in the
	// runs.
	Replay uint64

	// The least numbers that were never used: of messages, queues, and files, which are runs,
	// marks and bodies. What the log says from Replay on may take them further.
	NextID    uint64
	NextQueue uint32
	NextFile  uint64

	// Runs are the runs that count, by their numbers.
	Runs []Run
}

// Run is one that counts.
type Run struct {
	Number  uint64
	Area    uint8  // what it holds: the caller's
	Entries uint32 // that were ever in it; at least 1
	Alive   uint32 // of them, by Marks
	Bytes   uint64 // of its file

	// Marks is the number of the file that says who of the run has died; 0: nobody. Several
	// runs may share one. Deaths that the log tells from Replay on may be missing there.
	Marks uint64
}

// MaxRuns is how many runs a manifest names at most.
const MaxRuns = 1 << 16

// check says what is wrong with a state.
func (s *State) check() error {
	if s.NextID == 0 || s.NextQueue == 0 || s.NextFile == 0 {
		return errors.New("the next id, queue or file is 0")
	}
	if len(s.Runs) > MaxRuns {
		return fmt.Errorf("%d runs; at most %d are allowed", len(s.Runs), MaxRuns)
	}
	last := uint64(0)
	for _, r := range s.Runs {
		switch {
		case r.Number <= last:
			return fmt.Errorf("run %d stands behind run %d", r.Number, last)
		case r.Number >= s.NextFile || r.Marks >= s.NextFile:
			return fmt.Errorf("run %d, marks %d: the next file is %d", r.Number, r.Marks, s.NextFile)
		case r.Entries == 0 || r.Entries > math.MaxInt32 || r.Alive > r.Entries || r.Marks == 0 && r.Alive != r.Entries:
			return fmt.Errorf("run %d has %d entries of which %d are alive", r.Number, r.Entries, r.Alive)
		}
		last = r.Number
	}
	return nil
}

// Clone returns a state that shares nothing with s.
func (s *State) Clone() State {
	c := *s
	c.Runs = slices.Clone(s.Runs)
	return c
}

// Run finds a run by its number.
func (s *State) Run(number uint64) (Run, bool) {
	i, found := slices.BinarySearchFunc(s.Runs, number, func(r Run, n uint64) int { return cmp.Compare(r.Number, n) })
	if !found {
		return Run{}, false
	}
	return s.Runs[i], true
}

// Names reports whether a number is that of a file that counts, a run or marks. Bodies are named
// by their messages.
func (s *State) Names(file uint64) bool {
	return file != 0 && slices.ContainsFunc(s.Runs, func(r Run) bool { return r.Number == file || r.Marks == file })
}
