//go:build linux

package measure

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/page/measured"
	"github.com/tarryhq/tarry/bench/peer"
	"github.com/tarryhq/tarry/bench/scenario"
)

var (
	growTo  = flag.Int("grow-to", 10_000_000, "messages that pend at the end of the part growth")
	dir     = flag.String("dir", "", "directory of the store of BenchmarkStep")
	has     = flag.Int("has", 0, "messages that pend in the store of BenchmarkStep")
	fillTo  = flag.Int("fill-to", 0, "messages that pend there at its end")
	measure = flag.Bool("measure", false, "have BenchmarkStep measure calls and lateness, too")
)

// grow has ever more messages pend in one store on disk. Each step is a process that ends as by
// kill -9, so that the next tells how long the store takes to serve again.
func grow(b *testing.B) {
	in := b.TempDir()
	for n, before := 1000, 0; n <= *growTo; n, before = n*10, n {
		r := step(b, in, before, n, true)
		back := step(b, in, n, n, false).Figures
		for _, name := range []string{"back-s", "missing"} {
			r.Figures[name] = back[name]
		}
		r.Figures["pending"] = float64(n)
		tell(b, r)
	}
}

func pendingOnDisk(b *testing.B) measured.Result {
	in, n := b.TempDir(), manyTimes**scenario.Pending
	r := step(b, in, 0, n, false)
	back := step(b, in, n, n, false).Figures
	r.Figures["back-s"], r.Figures["missing"] = back["back-s"], back["missing"]
	return r
}

// step runs BenchmarkStep in a process.
func step(b *testing.B, in string, has, fillTo int, measure bool) (r measured.Result) {
	cmd := exec.Command(os.Args[0], "-test.run", "^$", "-test.bench", "^BenchmarkStep$", "-test.benchtime", "1x",
		"-dir", in, "-has", strconv.Itoa(has), "-fill-to", strconv.Itoa(fillTo), "-measure="+strconv.FormatBool(measure),
		"-for", seconds.String(), "-span", scenario.Span.String(), "-per-second", strconv.Itoa(*rate))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	scenario.Must(b, err)
	scenario.Must(b, cmd.Start())
	found := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		found = found || json.Unmarshal(lines.Bytes(), &r) == nil && r.Figures != nil
	}
	_ = cmd.Wait() // it was killed
	if !found {
		b.Fatalf("the step to %d messages failed", fillTo)
	}
	return r
}

// BenchmarkStep opens the store of -dir, fills it, measures, and ends as by kill -9.
func BenchmarkStep(b *testing.B) {
	if *dir == "" {
		b.Skip("-dir names no directory")
	}
	p := onDisk(*dir)
	began := time.Now()
	s, err := p.open(b.Context())
	scenario.Must(b, err)
	scenario.Must(b, s.Push(b.Context(), aside, last, time.Now().Add(24*time.Hour)))
	figures := map[string]float64{"back-s": time.Since(began).Seconds(), "missing": float64(*has - count(b, s))}
	memory, size := p.sizes(b, s)
	if l := far(8, 100, *has); *fillTo > *has {
		l.To, l.For = *fillTo, 0
		_, _, err := peer.Run(b.Context(), s, l)
		scenario.Must(b, err)
		now, grown := p.sizes(b, s)
		figures["memory-B/msg"] = (now - memory) / float64(*fillTo-*has)
		if v := (grown - size) / float64(*fillTo-*has); v > preallocated {
			figures["disk-B/msg"] = v
		}
		memory = now
	}
	figures["memory-MB"] = memory / 1e6
	r := measured.Result{Figures: figures}
	if *measure {
		exchange(b, s, figures)
		f, late := p.deliver(b, among{s, *fillTo}, peer.Load{From: *fillTo, To: *fillTo + int(float64(*rate)*scenario.Span.Seconds()), Step: time.Second / time.Duration(*rate)})
		for _, name := range []string{"early", "lost", "twice", "max-ms"} {
			figures[name] = f[name]
		}
		r.Late = late
	}
	text, err := json.Marshal(r)
	scenario.Must(b, err)
	fmt.Printf("\n%s\n", text)
	scenario.Must(b, syscall.Kill(os.Getpid(), syscall.SIGKILL))
}

// exchange pushes and cancels messages in turn, a thousand at a time, so that as many stay.
func exchange(b *testing.B, s scenario.System, figures map[string]float64) {
	const some = 1000
	var pushing, cancelling time.Duration
	n, cpu := 0, scenario.CPU()
	for began := time.Now(); time.Since(began) < *seconds; n += some {
		l := far(scenario.Clients, 1, beyond+n)
		l.To, l.For = l.From+some, 0
		_, took, err := peer.Run(b.Context(), s, l)
		scenario.Must(b, err)
		pushing += took
		l.Kind = "cancel"
		_, took, err = peer.Run(b.Context(), s, l)
		scenario.Must(b, err)
		cancelling += took
	}
	figures["push/s"] = float64(n) / pushing.Seconds()
	figures["cancel/s"] = float64(n) / cancelling.Seconds()
	figures["cpu-us"] = (scenario.CPU() - cpu).Seconds() * 1e6 / float64(n)
}

// among is a System in whose queue others pend.
type among struct {
	scenario.System
	others int
}

// Empty says whether no more than the others are left.
func (s among) Empty(ctx context.Context, queue string) (bool, error) {
	n, err := s.System.(counter).Count(ctx, queue)
	return n <= s.others, err
}
