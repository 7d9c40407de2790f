package access

import (
	"net/netip"
	"sync"
	"time"
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
	for host, h := range f.hosts {
		if now.Sub(h.last) >= forgetAfter {
			delete(f.hosts, host)
		}
	}
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
