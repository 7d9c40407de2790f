//go:build linux

package rawhttp

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/process"
)

var (
	conns    = flag.Int("conns", 64, "connections")
	requests = flag.Int("requests", 20_000, "requests a turn")
	turns    = flag.Int("turns", 5, "turns of each server")
	sleep    = flag.Duration("sleep", time.Millisecond, "how long the trivial server sleeps for each request")
)

// BenchmarkRaw compares a push a request, and a lease of one message and its ack, with as many
// requests to the trivial servers.
func BenchmarkRaw(b *testing.B) {
	for _, l := range loads {
		b.Run(l.name, l.compare)
	}
}

// load is what the clients of a turn do.
type load struct {
	name    string
	calls   int // requests of a call
	prepare func(c *client, key int) error
	call    func(c *client, key int) error
}

var loads = []load{
	{"push", 1, nil, (*client).push},
	{"lease-ack", 2, (*client).pushDue, (*client).work},
}

// Each server does what is measured.
func TestLoads(t *testing.T) {
	for _, l := range loads {
		for _, s := range systems {
			if used, took := l.turn(t, s.start(t), 2000); used <= 0 || took <= 0 {
				t.Errorf("%s of %s took %v, %v of a processor", l.name, s.name, took, used)
			}
		}
	}
}

// compare reports the medians of each server's turns, and of the ratios within a round.
func (l *load) compare(b *testing.B) {
	all := make([]*server, len(systems))
	for i, s := range systems {
		all[i] = s.start(b)
		l.turn(b, all[i], *requests/4)
	}
	cpu, rate := make([][]float64, len(all)), make([][]float64, len(all))
	for range *turns {
		for _, i := range rand.Perm(len(all)) {
			used, took := l.turn(b, all[i], *requests)
			cpu[i] = append(cpu[i], float64(used.Nanoseconds())/1e3/float64(*requests))
			rate[i] = append(rate[i], float64(*requests)/took.Seconds())
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, s := range systems {
		b.ReportMetric(median(cpu[i]), s.name+"-cpu-us/req")
		b.ReportMetric(median(rate[i]), s.name+"-req/s")
		if i > 0 {
			b.ReportMetric(median(ratios(cpu[0], cpu[i])), "x-"+s.name+"-cpu")
		}
	}
}

// turn returns the processor time that the server used for n requests, and how long they took.
func (l *load) turn(b testing.TB, s *server, n int) (used, took time.Duration) {
	n /= l.calls
	first, call := s.keys, l.call
	s.keys += n
	if s.trivial {
		call = func(c *client, key int) (err error) {
			for range l.calls {
				err = c.push(key)
			}
			return err
		}
	} else if l.prepare != nil {
		each(b, s.clients, n, func(c *client, i int) error { return l.prepare(c, first+i) })
	}
	before, began := process.Used(b, s.pid), time.Now()
	each(b, s.clients, n, func(c *client, i int) error { return call(c, first+i) })
	return process.Used(b, s.pid) - before, time.Since(began)
}

func ratios(of, to []float64) (all []float64) {
	for i := range of {
		all = append(all, of[i]/to[i])
	}
	return all
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
