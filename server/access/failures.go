package access

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// failures counts the requests without a valid token, by host.
//
// It is no defence against guessing, which is hopeless anyway. It protects the log and the
// processor from a client that has the wrong token and retries at once.
type failures struct {
	mu      sync.Mutex
	hosts   map[netip.Prefix]*failing
	swept   time.Time
	waiting int
}

type failing struct {
	count int
	last  time.Time
}

const (
	freeFailures = 3                     // these are not delayed
	firstDelay   = 50 * time.Millisecond // of the next; each further one doubles it
	mostDelay    = time.Second
	forgetAfter  = time.Minute // a host without a failure for this long is forgotten
	mostHosts    = 10_000
	mostWaiting  = 64 // requests delayed at a time, since they hold connections; any more are answered at once
)

// add counts a failure. It returns how many the host has had and how long to delay it. done
// must be called after the delay.
func (f *failures) add(address string, now time.Time) (n int, wait time.Duration, done func()) {
	host := HostOf(address)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep(now)
	if f.hosts[host] == nil && len(f.hosts) >= mostHosts {
		host = netip.Prefix{} // shared by all hosts for which there is no room
	}
	h := f.hosts[host]
	if h == nil || now.Sub(h.last) >= forgetAfter {
		h = new(failing)
		f.hosts[host] = h
	}
	h.count++
	h.last = now
	if over := h.count - freeFailures; over > 0 && f.waiting < mostWaiting {
		f.waiting++
		return h.count, min(firstDelay<<min(over-1, 10), mostDelay), f.done
	}
	return h.count, 0, func() {}
}

func (f *failures) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
}

// sweep forgets the hosts without a recent failure. Called with f.mu held.
func (f *failures) sweep(now time.Time) {
	if f.hosts != nil && now.Sub(f.swept) < forgetAfter {
		return
	}
	f.swept = now
	if f.hosts == nil {
		f.hosts = make(map[netip.Prefix]*failing)
	}
	maps.DeleteFunc(f.hosts, func(_ netip.Prefix, h *failing) bool { return now.Sub(h.last) >= forgetAfter })
}

// HostOf returns the host of an address, HOST:PORT. For IPv6 it is the /64 network, since one
// host may own all of it. For anything else it is the zero Prefix.
func HostOf(address string) netip.Prefix {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return p
}

// refusals bounds the lines about forbidden changes, since any token could fill the disk with
// them. A later line says how many were left out.
type refusals struct {
	by    map[refuser]*refused
	swept time.Time
	all   *rate.Limiter
	left  int // lines left out since the last sum
	since time.Time
	timer *time.Timer // runs until the sum is written; nil: nothing was left out
}

// refuser is a token at a host.
type refuser struct{ token, host string }

type refused struct {
	limit *rate.Limiter
	last  time.Time // when something was last refused
}

const (
	freeRefusals = 10          // lines for a token at a host; then one a second
	allRefusals  = 100         // lines for all together; then one a second
	mostRefusers = 1000        // counted apart; all others count as one
	sumAfter     = time.Minute // how long after the first line left out the sum is written
)

func newRefusals() refusals {
	return refusals{by: make(map[refuser]*refused), all: rate.NewLimiter(1, allRefusals)}
}

// free reports whether there may be another line about a token at a host.
func (r *refusals) free(t *Token, host string, now time.Time) bool {
	key := refuser{host: host}
	if t != nil {
		key.token = t.ID
	}
	if r.by[key] == nil && len(r.by) >= mostRefusers && now.Sub(r.swept) >= sumAfter {
		r.swept = now
		maps.DeleteFunc(r.by, func(_ refuser, c *refused) bool { return now.Sub(c.last) >= sumAfter })
	}
	if r.by[key] == nil && len(r.by) >= mostRefusers {
		key = refuser{} // shared by all for which there is no room
	}
	c := r.by[key]
	if c == nil {
		c = &refused{limit: rate.NewLimiter(1, freeRefusals)}
		r.by[key] = c
	}
	c.last = now
	return c.limit.AllowN(now, 1) && r.all.AllowN(now, 1)
}

// Refused writes a line about a change that was forbidden to a client at host; t may be nil.
// When there are many, some lines are left out. A token at a host gets ten and then one a
// second, and all together get a hundred and then one a second. How many lines were left out
// is written within a minute, and by Close.
func (a *Audit) Refused(t *Token, host string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, r := time.Now(), &a.refusals
	if r.free(t, host, now) || a.closed {
		a.note(now, args)
		return
	}
	if r.left++; r.timer == nil {
		r.since = now
		r.timer = time.AfterFunc(sumAfter, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.sum()
		})
	}
}

// sum writes how many lines were left out. Called with a.mu held.
func (a *Audit) sum() {
	r := &a.refusals
	if r.timer == nil {
		return
	}
	r.timer.Stop()
	n := r.left
	r.timer, r.left = nil, 0
	a.note(time.Now(), []any{"what", "refusals left out", "count", n, "since", r.since.UTC(), "result", "forbidden"})
}

// Close writes how many lines were left out. Later lines are written without a bound. It does
// not close the writer.
func (a *Audit) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.timer.Stop()
	a.sum()
}
