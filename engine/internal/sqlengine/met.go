package sqlengine

import "sync"

// met counts expired and dead messages that this process found and no grant has reported yet.
type met struct {
	mu     sync.Mutex
	queues map[int64]meetings
}

type meetings struct{ expired, died int }

func (m *met) add(queue int64, more meetings) {
	if more == (meetings{}) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.queues[queue]
	now.expired += more.expired
	now.died += more.died
	m.queues[queue] = now
}

// take returns and resets the counts of a queue.
func (m *met) take(queue int64) meetings {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.queues[queue]
	delete(m.queues, queue)
	return now
}
