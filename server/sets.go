package server

import (
	"container/list"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server/access"
)

// sets are sets of queues. A poll names one by its id instead of naming all its queues again.
// The id cannot be guessed, so that only the set's client can poll it. A set without a poll
// under way rests, and may be dropped to make room for others.
type sets struct {
	most   int // queues of all sets together
	budget *budget

	mu      sync.Mutex
	byID    map[string]*set
	resting list.List // of *set; the first has rested longest
	queues  int
}

type set struct {
	*tarry.Leaser
	id     string
	owner  *access.Token // the token as it was read then; nil: none
	weight int
	held   int64         // bytes of the budget
	place  *list.Element // nil: a poll is under way
	lapse  *time.Timer
	rests  int // how often it has begun to rest

	queues   []string
	noted    time.Time // when the queues were last noted as those of the worker below
	notedFor *worker
}

const (
	// setRest is how long a set is kept without a poll.
	setRest = time.Minute
	// setCost is about how many bytes a queue of a set takes besides its name.
	setCost = 250
	// setLeast is the least number of queues that a set counts as.
	setLeast = 16
)

// add makes a set, with a poll under way; nil: there is no room.
func (s *sets) add(c *tarry.Client, queues []string, owner *access.Token) (*set, error) {
	weight, held := max(len(queues), setLeast), int64(0)
	for _, q := range queues {
		held += int64(len(q) + setCost)
	}
	gone, ok := s.reserve(weight, held)
	for _, o := range gone {
		o.Close()
	}
	if !ok {
		return nil, nil
	}
	l, err := c.Leaser(queues)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.queues -= weight
		s.budget.give(held)
		return nil, err
	}
	if s.byID == nil {
		s.byID = make(map[string]*set)
	}
	n := &set{Leaser: l, id: rand.Text(), owner: owner, weight: weight, held: held, queues: queues}
	s.byID[n.id] = n
	return n, nil
}

// reserve makes room for a set of this weight and size. The caller must close the sets dropped
// for it.
func (s *sets) reserve(weight int, held int64) (gone []*set, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.budget.take(held, 0) {
		return nil, false
	}
	room := s.most - s.queues
	for e := s.resting.Front(); e != nil && room < weight; e = e.Next() {
		n := e.Value.(*set)
		room += n.weight
		gone = append(gone, n)
	}
	if room < weight { // do not drop sets in vain
		s.budget.give(held)
		return nil, false
	}
	for _, n := range gone {
		s.drop(n)
	}
	s.queues += weight
	return gone, true
}

// drop removes a set that rests. Called with s.mu held.
func (s *sets) drop(n *set) {
	n.lapse.Stop()
	s.resting.Remove(n.place)
	s.forget(n)
}

// forget removes a set. Called with s.mu held.
func (s *sets) forget(n *set) {
	delete(s.byID, n.id)
	s.queues -= n.weight
	s.budget.give(n.held)
}

// end ends a set after its poll.
func (s *sets) end(n *set) {
	s.mu.Lock()
	s.forget(n)
	s.mu.Unlock()
	n.Close()
}

// take begins a poll of a set. Only the owner may: that token had the right to the queues.
// Once the file of tokens has been read again, no token is the owner. The client then names
// the queues anew, and its rights are checked.
func (s *sets) take(id string, owner *access.Token) (*set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byID[id]
	if n == nil || n.place == nil || n.owner != owner {
		return nil, refusal(http.StatusNotFound, "not_found", "set: there is none of this id that rests",
			"name the queues again; a set is kept for a minute without polls, and has one poll at a time")
	}
	n.lapse.Stop()
	s.resting.Remove(n.place)
	n.place = nil
	return n, nil
}

// put lets a set rest after its poll.
func (s *sets) put(n *set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.place = s.resting.PushBack(n)
	n.rests++
	rest := n.rests
	n.lapse = time.AfterFunc(setRest, func() { s.lapse(n, rest) })
}

// lapse ends a set that has rested too long, unless it has been polled since.
func (s *sets) lapse(n *set, rest int) {
	s.mu.Lock()
	over := n.place != nil && n.rests == rest && s.byID[n.id] == n
	if over {
		s.drop(n)
	}
	s.mu.Unlock()
	if over {
		n.Close()
	}
}
