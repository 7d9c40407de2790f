package sqlengine

import "sync"

// unreported counts expired and dead messages that this process found and no grant has reported yet.
type unreported struct {
	mu     sync.Mutex
	queues map[int64]endings
}

type endings struct{ expired, died int }

func (m *unreported) add(queue int64, more endings) {
	if more == (endings{}) {
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
func (m *unreported) take(queue int64) endings {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.queues[queue]
	delete(m.queues, queue)
	return now
}
