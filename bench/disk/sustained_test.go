//go:build linux

package disk

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

var (
	sustained = flag.Int("sustained", 20_000_000, "messages that are pushed in batches, one after the other")
	chunk     = flag.Int("chunk", 1_000_000, "messages of a turn of these")
)

// room is about what so many messages take of the disk, with what is about to be merged.
func room(messages int) int64 {
	const beside = 50 // the body: key, terms, indexes
	return int64(messages) * int64(*scenario.BodySize+beside) * 16 / 10
}

// BenchmarkSustained pushes many messages in batches, to all systems in turns of a chunk.
// Who is not at its turn is stopped, and what each wrote has come to the device by the end
// of its turn.
func BenchmarkSustained(b *testing.B) {
	scenario.Once(b)
	demand(b, os.TempDir(), room(*sustained))
	all := make([]*stream, 0)
	for _, s := range pushing() {
		all = append(all, newStream(b, s, b.TempDir()))
	}
	for turn, from := 0, 0; from < *sustained; turn, from = turn+1, from+*chunk {
		for _, s := range order(all, turn) {
			s.push(b, from, min(from+*chunk, *sustained))
		}
	}
	for _, s := range all {
		b.Run("impl="+s.system.name, s.report)
	}
}

// stream is a process that is pushed to, in turns.
type stream struct {
	*process
	meter   *meter
	soonest time.Time
	sums    // of all turns
}

// sums are what pushes took.
type sums struct {
	messages           int
	seconds, cpu       float64
	slowest            float64 // messages a second in the slowest turn
	written            int64
	unknown            bool // how much that is
	rss, mostRSS, disk int64
}

func newStream(b *testing.B, s system, in string) *stream {
	p := start(b, s, "obey", 1, "-dir", in)
	return &stream{process: p, meter: meterOf(b, in), soonest: time.Now().Add(24 * time.Hour)}
}

func (s *stream) push(b *testing.B, from, to int) {
	s.meter.written(b)
	s.resume(b)
	a := s.ask(b, command{Do: "push", From: from, To: to, Soonest: s.soonest, Spread: 48 * time.Hour, Clients: fewClients, Batch: batchSize})
	s.pause(b)
	written, known := s.meter.written(b)
	s.add(to-from, a, written, known)
}

func (s *sums) add(messages int, a answer, written int64, known bool) {
	if rate := float64(messages) / a.Seconds; s.messages == 0 || rate < s.slowest {
		s.slowest = rate
	}
	s.messages += messages
	s.seconds += a.Seconds
	s.cpu += a.CPU
	s.written += written
	s.unknown = s.unknown || !known
	s.rss, s.mostRSS, s.disk = a.RSS, a.Most, a.Disk
}

func (s *sums) report(b *testing.B) {
	n := float64(s.messages)
	scenario.Report(b, n/s.seconds, "msgs/s")
	scenario.Report(b, s.slowest, "slowest-msgs/s")
	scenario.Report(b, 1e6*s.cpu/n, "cpu-us/msg")
	scenario.Report(b, float64(s.rss)/1e6, "rss-MB")
	scenario.Report(b, float64(s.mostRSS)/1e6, "most-rss-MB")
	if s.disk > 0 {
		scenario.Report(b, float64(s.disk)/n, "disk-B/msg")
	}
	if !s.unknown {
		scenario.Report(b, float64(s.written)/n, "written-B/msg")
	}
}
