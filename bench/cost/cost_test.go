package cost

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	rounds = flag.Int("rounds", 60, "how often metrics are measured, and three times as often as traces; 5 rounds with the same processes")
	scale  = flag.Float64("scale", 1, "how many messages a turn takes, times what it does by default")
)

// comparisons are the ways that are measured in turns, beside the first of them.
var comparisons = []struct {
	name  string
	ways  []string
	share int // of the rounds
}{
	{"metrics", []string{"nothing", "metrics", "trends"}, 1},
	{"traces", []string{"nothing", "traces-0", "traces-1", "traces-100"}, 3},
}

// job is what a turn does.
type job struct {
	name   string
	n      int // messages
	before func(p *process, n int) error
	turn   func(p *process, n int) error
	after  func(p *process) error
}

var jobs = []job{
	{"push", 2_000, nil, func(p *process, n int) error { return p.push(n) }, (*process).purge},
	{"push-batch", 10_000, nil, func(p *process, n int) error { return p.pushBatch(n) }, (*process).purge},
	{"lease-settle", 4_000, func(p *process, n int) error { return p.fill(n) }, func(p *process, n int) error { return p.target.work(n) }, nil},
	{"library", 4_000, nil, (*process).library, nil},
}

func BenchmarkCost(b *testing.B) {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer receiver.Close()
	for _, store := range []string{"mem", "disk"} {
		for _, c := range comparisons {
			for _, j := range jobs {
				b.Run(c.name+"/store="+store+"/"+j.name, func(b *testing.B) {
					j.compare(b, c.ways, max(1, *rounds/c.share), func(way string) *process {
						url := "mem:"
						if store == "disk" {
							url = "disk:" + b.TempDir()
						}
						return start(b, url, way, receiver.URL, j.name != "library")
					})
				})
			}
		}
	}
}

// sitting is how many rounds the same processes do. Where the system has put a process in
// memory makes it a few percent quicker or slower for as long as it lives: only others tell
// that apart from what is measured.
const sitting = 5

// compare has all ways do the job in turn, again and again, and reports what the first took
// and how much more the others did.
func (j *job) compare(b *testing.B, ways []string, rounds int, start func(way string) *process) {
	n := int(float64(j.n) * *scale)
	sittings := max(2, rounds/sitting)
	more := make([]struct{ cpu, took []float64 }, len(ways)) // by sitting
	var cpu, took []float64                                  // of the first way
	for b.Loop() {
		for range sittings {
			all := make([]*process, len(ways))
			for _, i := range rand.Perm(len(ways)) { // who is started first is not quicker for that
				all[i] = start(ways[i])
				j.measure(b, all[i], n) // warms up
			}
			c, t := j.sit(b, all, max(1, rounds/sittings), n)
			for i := range ways {
				more[i].cpu, more[i].took = append(more[i].cpu, compared(c[i], c[0])), append(more[i].took, compared(t[i], t[0]))
			}
			cpu, took = append(cpu, c[0]...), append(took, t[0]...)
			for _, p := range all {
				p.stop()
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1e6*median(cpu)/float64(n), "cpu-us/msg")
	b.ReportMetric(float64(n)/median(took), "msgs/s")
	for i, way := range ways[1:] {
		b.ReportMetric(mean(more[i+1].cpu), way+"-%cpu")
		b.ReportMetric(within(more[i+1].cpu), way+"-%cpu-within")
		b.ReportMetric(mean(more[i+1].took), way+"-%time")
		b.ReportMetric(within(more[i+1].took), way+"-%time-within")
	}
}

// sit has processes do the job by turns, in any order.
func (j *job) sit(b *testing.B, all []*process, rounds, n int) (cpu, took [][]float64) {
	cpu, took = make([][]float64, len(all)), make([][]float64, len(all))
	for range rounds {
		for _, at := range rand.Perm(len(all)) {
			c, t := j.measure(b, all[at], n)
			cpu[at], took[at] = append(cpu[at], c), append(took[at], t)
		}
	}
	return cpu, took
}

// compared is by how many percent one is more than the other: the median of the rounds.
func compared(with, without []float64) float64 {
	ratios := make([]float64, len(with))
	for i := range ratios {
		ratios[i] = 100 * (with[i]/without[i] - 1)
	}
	return median(ratios)
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// within is how far the mean may lie from what it would be of endlessly many, 19 times of 20.
func within(v []float64) float64 {
	m, n, sum := mean(v), float64(len(v)), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	student := 1.96 + 2.5/(n-1) + 8.25/math.Pow(n-1, 3) // nearly
	return student * math.Sqrt(sum/(n-1)/n)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// measure has a process do the job once, and returns the processors' time that it used and
// how long it took, in seconds.
func (j *job) measure(b testing.TB, p *process, n int) (cpu, took float64) {
	b.Helper()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	if j.before != nil {
		check(j.before(p, n))
	}
	before, err := p.number("begin")
	check(err)
	start := time.Now()
	check(j.turn(p, n))
	took = time.Since(start).Seconds()
	after, err := p.number("end")
	check(err)
	if j.after != nil {
		check(j.after(p))
	}
	return float64(after-before) / 1e9, took
}

// process is a system that is measured.
type process struct {
	*target
	in   io.WriteCloser
	out  *bufio.Reader
	stop func()
}

// start starts one; serves: as tarry serve runs, and not as a program would.
func start(b testing.TB, store, with, receiver string, serves bool) *process {
	b.Helper()
	env := []string{envStore + "=" + store, envWith + "=" + with, envReceiver + "=" + receiver}
	if serves {
		env = append(env, envServes+"=true")
	}
	p := spawn(b, with, env...)
	addr, err := p.line()
	if err != nil {
		b.Fatal(err)
	}
	if p.target, err = dial(addr); err != nil {
		b.Fatal(err)
	}
	return p
}

// spawn starts this program as a system of its own, until the benchmark has ended.
func spawn(b testing.TB, way string, env ...string) *process {
	b.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p := &process{in: in, out: bufio.NewReader(out)}
	p.stop = sync.OnceFunc(func() {
		if p.target != nil {
			p.close()
		}
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("the system with %s: %v", way, err)
		}
	})
	b.Cleanup(p.stop)
	return p
}

func (p *process) line() (string, error) {
	line, err := p.out.ReadString('\n')
	return strings.TrimSpace(line), err
}

// number tells the process something and reads its answer.
func (p *process) number(word string) (int64, error) {
	if _, err := fmt.Fprintln(p.in, word); err != nil {
		return 0, err
	}
	line, err := p.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(line, 10, 64)
}

// library has the process push and handle messages by itself.
func (p *process) library(n int) error {
	if _, err := fmt.Fprintln(p.in, "work", n); err != nil {
		return err
	}
	_, err := p.line()
	return err
}
