package access

import (
	"net/netip"
	"sync"
	"time"
)

// failures are the requests without a valid token, by the host that they came from.
//
// It is no defence against guessing, which is hopeless anyway: it spares the log, and
// the processor, from a client that was given the wrong token and tries again at once.
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
	freeFailures = 3                     // that are not held up
	firstDelay   = 50 * time.Millisecond // of the next; each further doubles it
	mostDelay    = time.Second
	forgetAfter  = time.Minute // without a failure of the host
	mostHosts    = 10_000
	mostWaiting  = 64 // requests held up at a time; more are answered at once: they hold connections
)

// add counts a failure: it returns how many the host has had and how long to hold it up;
// done has to be called then.
func (f *failures) add(address string, now time.Time) (n int, wait time.Duration, done func()) {
	host := HostOf(address)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweep(now)
	if f.hosts[host] == nil && len(f.hosts) >= mostHosts {
		host = netip.Prefix{} // of all that there is no room for
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

// sweep forgets the hosts that have not failed for long. Called with f.mu held.
func (f *failures) sweep(now time.Time) {
	if f.hosts != nil && now.Sub(f.swept) < forgetAfter {
		return
	}
	f.swept = now
	if f.hosts == nil {
		f.hosts = make(map[netip.Prefix]*failing)
	}
	for host, h := range f.hosts {
		if now.Sub(h.last) >= forgetAfter {
			delete(f.hosts, host)
		}
	}
}

// HostOf is the host of an address, HOST:PORT: of IPv6 the network, as one host has all of
// it. Of what is no such address it is the zero Prefix.
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
