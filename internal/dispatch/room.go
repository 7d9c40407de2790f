package dispatch

import "sync/atomic"

// Room is how many messages a worker can start. The worker writes the numbers and the
// dispatcher reads them, so that neither waits for a lock of the other. They include
// messages on their way: a worker subtracts them on delivery. Held goes the other way.
type Room struct {
	Free  atomic.Int64             // slots
	Ahead atomic.Int64             // slots plus messages to lease ahead
	Of    map[string]*atomic.Int64 // slots of queues with a limit of their own
	Held  atomic.Int64             // queues with more messages that are held back
}

// room returns how many more messages of a queue a subscription can take, and whether it is
// full for every queue.
func (s *Subscription) room(queue string, held bool) (n int, full bool) {
	if s.answer != nil {
		return s.answer.room(queue, s.onTheWay)
	}
	if n = int(s.Room.Ahead.Load()) - s.onTheWay; n <= 0 {
		return 0, true
	}
	if held { // leasing ahead would keep them from workers that could start them
		n = min(n, int(s.Room.Free.Load())-s.onTheWay)
	}
	if of := s.Room.Of[queue]; of != nil {
		n = min(n, int(of.Load()))
	}
	return max(0, n), false
}

// canTake returns how many messages of a queue a subscription can take from a finished
// call, besides those on their way. Called with Dispatcher.mu held.
func (s *Subscription) canTake(queue string, held bool) (n int) {
	if s.answer != nil {
		return s.answer.leftOf(queue)
	}
	n, _ = s.room(queue, held)
	return n
}
