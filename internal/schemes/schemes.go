// Package schemes keeps what opens URLs, by their schemes: packages register there from
// init, so that programs have what they import.
package schemes

import (
	"maps"
	"slices"
	"sync"
)

// Openers are openers by scheme. The zero value has none. Its methods may be called from many
// goroutines.
type Openers[O any] struct {
	mu  sync.RWMutex
	all map[string]O
}

// Register adds an opener of what; a scheme registered twice panics.
func (r *Openers[O]) Register(what, scheme string, open O) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, dup := r.all[scheme]; dup {
		panic("tarry: " + what + " scheme registered twice: " + scheme)
	}
	if r.all == nil {
		r.all = make(map[string]O)
	}
	r.all[scheme] = open
}

// Of returns the opener of a scheme, if there is one.
func (r *Openers[O]) Of(scheme string) (open O, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	open, ok = r.all[scheme]
	return open, ok
}

// Names returns the schemes, sorted.
func (r *Openers[O]) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.all))
}
