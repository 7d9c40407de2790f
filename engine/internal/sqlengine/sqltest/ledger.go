package sqltest

import (
	"fmt"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// ledger is who has which messages, as those see it who call engines.
type ledger struct {
	mu   sync.Mutex
	now  int                     // how many calls there were
	gone map[engine.ID]int       // when it was answered that a message has gone
	held map[engine.ID]time.Time // until when somebody has it
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

// leased says what is wrong with leases of a call.
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
			continue // somebody else may have it by now
		}
		if l.held[m.ID].After(now) {
			return fmt.Errorf("%s is leased while another holds it until %v", m.Key, l.held[m.ID])
		}
		l.held[m.ID] = m.Deadline
	}
	return nil
}

// settle takes note of a settlement that is about to be made.
func (l *ledger) settle(id engine.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, id)
}

// went takes note of a message that has gone.
func (l *ledger) went(id engine.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	l.gone[id] = l.now
}
