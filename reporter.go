package tarry

import (
	"log/slog"
	"sync"
	"time"
)

// reporter writes to the log in a goroutine of its own, which lives only while there
// is something to write, so that a log that is slow holds up nobody. What comes while
// reportMax lines wait is counted and dropped.
type reporter struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting []line
	dropped int
	busy    bool
	done    sync.WaitGroup
}

type line struct {
	message string
	args    []any
}

const reportMax = 64

func (r *reporter) warn(message string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == reportMax {
		r.dropped++
		return
	}
	r.waiting = append(r.waiting, line{message, args})
	if !r.busy {
		r.busy = true
		r.done.Go(r.run)
	}
}

func (r *reporter) run() {
	for {
		r.mu.Lock()
		lines, dropped := r.waiting, r.dropped
		r.waiting, r.dropped = nil, 0
		r.busy = len(lines) > 0
		r.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		for _, l := range lines {
			r.log.Warn(l.message, l.args...)
		}
		if dropped > 0 {
			r.log.Warn("the log was too slow for more", "dropped", dropped)
		}
	}
}

// wait waits for what is to be written, at most for d.
func (r *reporter) wait(d time.Duration) { waitFor(&r.done, d) }
