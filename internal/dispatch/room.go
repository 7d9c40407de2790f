package dispatch

import "sync/atomic"

// Room is how much a worker can start. The worker writes the numbers and the dispatcher
// reads them, so that neither waits for a lock of the other. Of them those that are on
// their way are to be taken away; a worker counts them when they have been delivered.
type Room struct {
	Free  atomic.Int64             // slots
	Ahead atomic.Int64             // slots, and what to lease ahead
	Of    map[string]*atomic.Int64 // slots of queues that have their own, within the others
}

// room tells how many more messages of a queue a subscription can take, and whether it
// can take none of any queue. Called with Dispatcher.mu held.
func (s *Subscription) room(queue string, held bool) (n int, full bool) {
	if s.answer != nil {
		return s.answer.room(queue, s.taken)
	}
	if n = int(s.Room.Ahead.Load()) - s.taken; n <= 0 {
		return 0, true
	}
	if held { // what is leased ahead is kept from others who could begin it
		n = min(n, int(s.Room.Free.Load())-s.taken)
	}
	if of := s.Room.Of[queue]; of != nil {
		n = min(n, int(of.Load()))
	}
	return max(0, n), false
}

// canTake tells how many messages of a queue a subscription can take that a call has
// brought, beside those on their way to it. Called with Dispatcher.mu held.
func (s *Subscription) canTake(queue string, held bool) (n int) {
	if s.answer != nil {
		return s.answer.leftOf(queue)
	}
	n, _ = s.room(queue, held)
	return n
}
