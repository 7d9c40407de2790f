//go:build linux

package beanstalk

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/process"
	"github.com/tarryhq/tarry/bench/scenario"
)

var (
	turns     = flag.Int("turns", 5, "how often the servers take turns")
	puts      = flag.Int("puts", 300_000, "jobs of each turn of puts")
	pipelined = flag.Int("pipelined", 800_000, "jobs of each turn of pipelined puts")
	pairs     = flag.Int("pairs", 300_000, "jobs of each turn that are reserved and deleted")
	settle    = flag.Duration("settle", 10*time.Second, "how long a server rests before its memory is measured")
)

const (
	clients      = 64 // that each wait for an answer
	fewClients   = 8  // that pipeline
	batch        = 100
	untilRelease = 3 * time.Second // for how long the tube is paused
)

// compare has all servers take turns, with another first in each.
func compare(b *testing.B, run func(b *testing.B, sys system, s *server)) {
	scenario.Once(b)
	for turn := range *turns {
		for i := range systems {
			sys := systems[(turn+i)%len(systems)]
			b.Run("impl="+sys.name, func(b *testing.B) { run(b, sys, sys.start(b)) })
		}
	}
}

// rate reports how many jobs a second were done by n clients that share total jobs, and what
// a job cost the server.
func rate(b *testing.B, s *server, n, total int, do func(c *client, jobs int) error) {
	before, began := process.Used(b, s.pid), time.Now()
	each(b, s, n, func(c *client) error { return do(c, total/n) })
	took := time.Since(began)
	done := float64(total / n * n)
	scenario.Report(b, done/took.Seconds(), "jobs/s")
	scenario.Report(b, float64((process.Used(b, s.pid)-before).Microseconds())/done, "cpu-us/job")
}

func BenchmarkPut(b *testing.B) {
	compare(b, func(b *testing.B, sys system, s *server) {
		rate(b, s, clients, *puts/sys.slower, func(c *client, n int) error { return c.put(n, 1, 0) })
	})
}

func BenchmarkPipelined(b *testing.B) {
	compare(b, func(b *testing.B, sys system, s *server) {
		rate(b, s, fewClients, *pipelined/sys.slower, func(c *client, n int) error { return c.put(n, batch, 0) })
	})
}

func BenchmarkPairs(b *testing.B) {
	compare(b, func(b *testing.B, sys system, s *server) {
		fill(b, s, *pairs/sys.slower/clients*clients, 0)
		rate(b, s, clients, *pairs/sys.slower, (*client).work)
	})
}

// BenchmarkBurst has workers wait at a paused tube full of ready jobs. Its figure is the time
// from the end of the pause to the last DELETED.
func BenchmarkBurst(b *testing.B) {
	compare(b, func(b *testing.B, _ system, s *server) {
		total := *scenario.BurstSize / clients * clients
		fill(b, s, total, 0)
		must(b, dial(b, s).ask(fmt.Sprintf("pause-tube default %d", int(untilRelease.Seconds())), "PAUSED"))
		due := time.Now().Add(untilRelease)
		each(b, s, clients, func(c *client) error { return c.work(total / clients) })
		took := time.Since(due)
		if took <= 0 {
			b.Fatal("the jobs were handled during the pause")
		}
		scenario.Report(b, took.Seconds(), "s")
	})
}

// BenchmarkPending measures the memory of jobs that are not due for a day.
func BenchmarkPending(b *testing.B) {
	compare(b, func(b *testing.B, sys system, s *server) {
		n := *scenario.Pending
		if sys.name != "tarry-disk" {
			n /= 10 // the others keep all bodies in memory
		}
		fill(b, s, batch, 0) // what it needs in any case
		before := process.Resident(b, s.pid)
		fill(b, s, n, 24*time.Hour)
		time.Sleep(*settle)
		scenario.Report(b, (process.Resident(b, s.pid)-before)/float64(n), "B/job")
	})
}

// fill puts jobs as fast as it can.
func fill(b testing.TB, s *server, n int, delay time.Duration) {
	b.Helper()
	must(b, dial(b, s).put(n%fewClients, batch, delay))
	each(b, s, fewClients, func(c *client) error { return c.put(n/fewClients, batch, delay) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
