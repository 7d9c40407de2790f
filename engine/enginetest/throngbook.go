package enginetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// book holds what the members of a throng know about each message from the answers so far.
type book struct {
	t   *testing.T
	now func() time.Time // never goes back

	mu     sync.Mutex
	events int64
	notes  map[engine.ID]*note
	newest map[string]engine.ID // by key, the last id that its owner got in an answer
	unsure map[string]int       // by key, pushes without an answer so far
	purges map[string]int       // purges under way, by the first letter of the queue's keys
	beside map[string]bool      // keys of which a push and a purge were under way at the same time
}

// note is what is known about one message.
type note struct {
	key     string
	created bool   // its push was answered
	unsure  int    // calls under way that end it
	gone    string // how it ended
	goneAt  int64  // the event at which that was known

	from, until time.Time // the lease that is certainly held; zero: none

	story []string // the history of the message, for debugging
}

func newBook(t *testing.T, now func() time.Time) *book {
	return &book{t: t, now: now, notes: map[engine.ID]*note{}, newest: map[string]engine.ID{}, unsure: map[string]int{}, purges: map[string]int{}, beside: map[string]bool{}}
}

// tell adds to the history of a message.
func (n *note) tell(format string, args ...any) {
	n.story = append(n.story, fmt.Sprintf(format, args...))
}

// wrong fails the test and prints the history of the message.
func (b *book) wrong(id engine.ID, format string, args ...any) {
	b.t.Errorf("id %v %s\n%s", id, fmt.Sprintf(format, args...), strings.Join(b.notes[id].story, "\n"))
}

// instant returns a new event number, greater than all before.
func (b *book) instant() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events++
	return b.events
}

func (b *book) note(id engine.ID, key string) *note {
	n := b.notes[id]
	if n == nil {
		n = &note{key: key}
		b.notes[id] = n
	}
	if key != "" && n.key != key {
		b.wrong(id, "is of key %s, and was of %s", key, n.key)
	}
	return n
}

func (b *book) pushing(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unsure[key]++
	if b.purges[key[:1]] > 0 {
		b.beside[key] = true
	}
}

func (b *book) answered(key string, r engine.PushResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unsure[key]--
	beside := b.beside[key]
	if b.unsure[key] == 0 {
		delete(b.beside, key)
	}
	if r.Err != nil || r.State == engine.Finished {
		return
	}
	n := b.note(r.ID, key)
	if beside { // the purge may have taken it
		n.unsure++
	}
	n.tell("pushed, outcome %v, due %v, %v", r.Outcome, r.Due, r.State)
	if r.Outcome == engine.Created {
		if n.created {
			b.wrong(r.ID, "was given twice")
		}
		n.created = true
	}
	b.newest[key] = r.ID
}

func (b *book) live(key string) engine.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest[key]
}

// ending begins a call that may end a message. settledEnd ends the call.
func (b *book) ending(id engine.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(id, "").unsure++
}

func (b *book) settledEnd(id engine.ID, how string, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.notes[id]
	n.unsure--
	n.tell("%s: %v", how, ended)
	if !ended {
		return
	}
	if n.gone != "" {
		b.wrong(id, "was %s, and is %s", n.gone, how)
	}
	b.events++
	n.gone, n.goneAt = how, b.events
}

// leased records a lease of a call that began after the numbered event.
func (b *book) leased(l engine.Lease, now time.Time, began int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.note(l.ID, l.Key)
	n.tell("leased from %v until %v, attempt %d", now, l.Deadline, l.Attempt)
	switch {
	case l.Due.After(now):
		b.wrong(l.ID, "is early: due %v", l.Due)
	case n.gone != "" && n.goneAt < began:
		b.wrong(l.ID, "was %s, and is leased after that", n.gone)
	case b.now().Before(n.until) && n.from.Before(l.Deadline):
		b.wrong(l.ID, "is leased while it was")
	case !strings.HasPrefix(string(l.Body), l.Key+":"):
		b.wrong(l.ID, "has the body %q", l.Body)
	}
	if l.Deadline.After(n.until) { // answers may come in another order than leases
		n.from, n.until = now, l.Deadline
	}
}

// found records the answer of a search that began after the numbered event.
func (b *book) found(id engine.ID, is bool, began int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.notes[id]
	if n == nil || !is {
		return
	}
	if n.tell("found"); n.gone != "" && n.goneAt < began {
		b.wrong(id, "was %s, and is found after that", n.gone)
	}
}

// letGo records that a lease is about to end.
func (b *book) letGo(id engine.ID, by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes[id].until = time.Time{}
	b.notes[id].tell("%s", by)
}

// ended records that the engine was reopened: leases may be gone.
func (b *book) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.notes {
		n.until = time.Time{}
		n.tell("the engine was opened again")
	}
}

// shown records a message in a list.
func (b *book) shown(i engine.Info) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.notes[i.ID] == nil && b.unsure[i.Key] == 0 {
		b.t.Errorf("id %v, key %s, is there and was never answered", i.ID, i.Key)
	}
	b.note(i.ID, i.Key).tell("listed as %v, due %v, attempt %d", i.State, i.Due, i.Attempt)
	if !strings.HasPrefix(string(i.Body), i.Key+":") {
		b.wrong(i.ID, "has the body %q", i.Body)
	}
}

// compare compares the book with the messages found, and settles its open questions by them.
func (b *book) compare(there map[engine.ID]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events++
	for id, n := range b.notes {
		switch {
		case there[id] && n.gone != "":
			b.wrong(id, "was %s, and is there", n.gone)
		case !there[id] && n.gone == "" && n.unsure == 0 && n.created:
			b.wrong(id, "is lost")
		case !there[id] && n.gone == "":
			n.gone, n.goneAt = "found gone", b.events
		}
		n.unsure = 0
	}
	clear(b.unsure)
	clear(b.beside)
}

// purging begins a purge of the queue whose keys have this first letter. purged ends it.
// Messages that exist meanwhile may be gone until the next check.
func (b *book) purging(first string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.purges[first]++
	for _, n := range b.notes {
		if n.key[:1] == first {
			n.unsure++
			n.tell("a purge begins")
		}
	}
	for key, n := range b.unsure {
		if n > 0 && key[:1] == first {
			b.beside[key] = true
		}
	}
}

func (b *book) purged(first string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.purges[first]--
}
