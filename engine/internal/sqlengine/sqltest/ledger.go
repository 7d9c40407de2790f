package sqltest

import (
	"fmt"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// ledger records the leases and ends of messages, as the callers of engines see them.
type ledger struct {
	mu   sync.Mutex
	now  int                     // how many calls there were
	gone map[engine.ID]int       // when an answer said that a message is gone
	held map[engine.ID]time.Time // until when it is leased
}

func newLedger() *ledger {
	return &ledger{gone: make(map[engine.ID]int), held: make(map[engine.ID]time.Time)}
}

// begin begins a call.
func (l *ledger) begin() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	return l.now
}

// leased records the leases of a call, and returns what is wrong with them.
func (l *ledger) leased(begun int, g *engine.Grant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range g.Queues[0].Messages {
		if m.Due.After(g.Now) {
			return fmt.Errorf("%s is leased at %v, before it is due at %v", m.Key, g.Now, m.Due)
		}
		if gone, ok := l.gone[m.ID]; ok && gone < begun {
			return fmt.Errorf("%s is leased when it has gone", m.Key)
		}
		now := time.Now()
		if !m.Deadline.After(now) {
			continue // it may be leased again by now
		}
		if l.held[m.ID].After(now) {
			return fmt.Errorf("%s is leased while another holds it until %v", m.Key, l.held[m.ID])
		}
		l.held[m.ID] = m.Deadline
	}
	return nil
}

// settle records a settlement that is about to begin.
func (l *ledger) settle(id engine.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, id)
}

// went records that a message is gone.
func (l *ledger) went(id engine.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	l.gone[id] = l.now
}
