package cost

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	rounds = flag.Int("rounds", 60, "how often metrics are measured, and three times as often as traces")
	scale  = flag.Float64("scale", 1, "how many messages a turn takes, times what it does by default")
)

// comparisons are the ways that are measured in turns, beside the first of them.
var comparisons = []struct {
	name  string
	ways  []string
	share int // of the rounds
}{
	{"metrics", []string{"nothing", "metrics"}, 1},
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
			b.Run(c.name+"/store="+store, func(b *testing.B) {
				all := make([]*process, len(c.ways))
				for i, way := range c.ways {
					url := "mem:"
					if store == "disk" {
						url = "disk:" + b.TempDir()
					}
					all[i] = start(b, url, way, receiver.URL)
				}
				for _, j := range jobs {
					b.Run(j.name, func(b *testing.B) { j.compare(b, all, max(1, *rounds/c.share)) })
				}
			})
		}
	}
}

// compare has all do the job in turn, again and again, and reports what the first took and
// how much more the others did.
func (j *job) compare(b *testing.B, all []*process, rounds int) {
	n := int(float64(j.n) * *scale)
	for _, p := range all { // warms up
		j.measure(b, p, n)
	}
	cpu, took := make([][]float64, len(all)), make([][]float64, len(all))
	for b.Loop() {
		for round := range rounds {
			for i := range all {
				at := (i + round/2) % len(all)
				if round%2 == 1 {
					at = len(all) - 1 - at
				}
				c, t := j.measure(b, all[at], n)
				cpu[at], took[at] = append(cpu[at], c), append(took[at], t)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(rounds), "rounds")
	b.ReportMetric(1e6*median(cpu[0])/float64(n), "cpu-us/msg")
	b.ReportMetric(float64(n)/median(took[0]), "msgs/s")
	for i, p := range all[1:] {
		more, apart := compared(cpu[i+1], cpu[0])
		b.ReportMetric(more, p.way+"-%cpu")
		b.ReportMetric(apart, p.way+"-%cpu-apart")
		more, apart = compared(took[i+1], took[0])
		b.ReportMetric(more, p.way+"-%time")
		b.ReportMetric(apart, p.way+"-%time-apart")
	}
}

// compared is by how many percent one is more than the other, and how far the middle half
// of that lies apart.
func compared(with, without []float64) (more, apart float64) {
	ratios := make([]float64, len(with))
	for i := range ratios {
		ratios[i] = 100 * (with[i]/without[i] - 1)
	}
	slices.Sort(ratios)
	n := len(ratios)
	return median(ratios), ratios[3*n/4] - ratios[n/4]
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
	way string
	in  io.WriteCloser
	out *bufio.Reader
}

func start(b testing.TB, store, with, receiver string) *process {
	b.Helper()
	p := spawn(b, with, envStore+"="+store, envWith+"="+with, envReceiver+"="+receiver)
	addr, err := p.line()
	if err != nil {
		b.Fatal(err)
	}
	if p.target, err = dial(addr); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.close) // before its input ends
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
	b.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("the system with %s: %v", way, err)
		}
	})
	return &process{way: way, in: in, out: bufio.NewReader(out)}
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
