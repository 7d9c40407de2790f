package diskengine

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine/internal/figure"
)

// measured is what a disk counts of what is done on it.
type measured struct {
	syncs    figure.Times // of the log
	log      atomic.Int64 // bytes written to it, zeros ahead included
	tables   atomic.Int64 // to tables
	other    atomic.Int64
	again    atomic.Int64 // operations that were tried again
	failures atomic.Int64 // of flushes and compactions
}

// wrote counts bytes written to a file.
func (m *measured) wrote(name string, n int) {
	switch {
	case isLog(name):
		m.log.Add(int64(n))
	case isTable(name):
		m.tables.Add(int64(n))
	default:
		m.other.Add(int64(n))
	}
}

// synced counts a sync that began at start.
func (m *measured) synced(name string, start time.Time) {
	if isLog(name) {
		m.syncs.Since(start)
	}
}

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }
