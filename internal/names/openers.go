package names

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Openers maps the schemes of URLs to what opens them. Packages register their schemes in init,
// so a program supports the schemes of the packages that it imports. The zero value is empty.
// It is safe for concurrent use.
type Openers[O any] struct {
	mu  sync.RWMutex
	all map[string]O
}

// Register adds the opener of a scheme. It panics if the scheme is registered already; what
// names the kind of scheme in the message.
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

// Find parses a URL and returns the opener of its scheme, or a hint: what is wrong, and what to
// do. what names the kind of scheme.
func (r *Openers[O]) Find(what, example, rawURL string) (u *url.URL, open O, hint string) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The parse error repeats the URL, which may contain a password.
		return nil, open, "the " + what + " is not a URL; an example is " + example + "; percent-encode anything in a password but letters and digits"
	}
	open, ok := r.Of(u.Scheme)
	if !ok {
		hint = fmt.Sprintf("no %s has the scheme %q; known here: %s; programs import the %[1]s's package", what, u.Scheme, strings.Join(r.Names(), ", "))
	}
	return u, open, hint
}

// Names returns the schemes, sorted.
func (r *Openers[O]) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.all))
}
