//go:build linux

package measure

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/page/measured"
	"github.com/tarryhq/tarry/bench/peer"
	"github.com/tarryhq/tarry/bench/scenario"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

var (
	system   = flag.String("system", "", "the system that is measured")
	part     = flag.String("part", "", "what is measured")
	seconds  = flag.Duration("for", 4*time.Second, "how long each kind of calls is measured")
	rate     = flag.Int("per-second", 1000, "messages due each second in the part late")
	binaries = flag.String("binaries", "", "directory with the commands tarry and nats-server")
	nodeDir  = flag.String("node", "../../node", "the directory bench/node")
	results  = flag.String("results", "", "file that results are appended to, a line of JSON each")
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m).Run()) }

// parts are what is measured of a system.
var parts = map[string]func(b *testing.B, p *place) measured.Result{
	"calls":   calls,
	"late":    late,
	"burst":   burst,
	"pending": pending,
}

// BenchmarkPart measures a part of a system; see the command page.
func BenchmarkPart(b *testing.B) {
	if *system == "" {
		b.Skip("-system names no system")
	}
	scenario.Once(b)
	if *part == "growth" {
		grow(b)
		return
	}
	p := systems[*system](b)
	r := parts[*part](b, p)
	r.Version = p.version
	tell(b, r)
}

// tell appends a result to the file.
func tell(b *testing.B, r measured.Result) {
	r.System, r.Part = *system, *part
	text, err := json.Marshal(r)
	scenario.Must(b, err)
	f, err := os.OpenFile(*results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	scenario.Must(b, err)
	_, err = fmt.Fprintf(f, "%s\n", text)
	scenario.Must(b, err)
	scenario.Must(b, f.Close())
}

// opened opens a system and warms it up.
func (p *place) opened(b *testing.B) scenario.System {
	s, err := p.open(b.Context())
	scenario.Must(b, err)
	b.Cleanup(func() { _ = s.Close() }) // its server may have been killed
	l := peer.Load{Kind: "push", Queue: aside, Clients: 8, Batch: 100, From: beyond, To: beyond + 800,
		First: time.Now().Add(24 * time.Hour), Spread: 48 * time.Hour}
	for range 2 {
		_, _, err = peer.Run(b.Context(), s, l)
		scenario.Must(b, err)
		l.Clients, l.Batch, l.From, l.To = scenario.Clients, 1, l.To, l.To+scenario.Clients
	}
	return s
}

// far is a load of messages that are not due for a day.
func far(clients, batch, from int) peer.Load {
	return peer.Load{Kind: "push", Queue: scenario.Queue, Clients: clients, Batch: batch, From: from, To: beyond,
		First: time.Now().Add(24 * time.Hour), Spread: 48 * time.Hour, For: *seconds}
}

// calls measures pushes of one caller, of many, in batches, and cancels.
func calls(b *testing.B, p *place) measured.Result {
	s, figures := p.opened(b), map[string]float64{}
	run := func(name string, l peer.Load) int {
		cpu := scenario.CPU()
		n, took, err := peer.Run(b.Context(), s, l)
		if errors.Is(err, errors.ErrUnsupported) {
			return 0
		}
		scenario.Must(b, err)
		figures[name+"/s"] = float64(n) / took.Seconds()
		figures[name+"-cpu-us"] = (scenario.CPU() - cpu).Seconds() * 1e6 / float64(n)
		return n
	}
	const single, many, batches = 0, beyond / 4, beyond / 2
	run("single", far(1, 1, single))
	n := run("push", far(scenario.Clients, 1, many))
	run("batch", far(8, 100, batches))
	l := far(scenario.Clients, 1, many)
	l.Kind, l.To = "cancel", many+n
	run("cancel", l)
	return measured.Result{Figures: figures}
}

// late measures messages that are due at a steady rate.
func late(b *testing.B, p *place) measured.Result {
	n := int(float64(*rate) * scenario.Span.Seconds())
	figures, late := p.deliver(b, p.opened(b), peer.Load{To: n, Step: time.Second / time.Duration(*rate)})
	return measured.Result{Figures: figures, Late: late}
}

// burst measures messages that are due in one instant.
func burst(b *testing.B, p *place) measured.Result {
	figures, _ := p.deliver(b, p.opened(b), peer.Load{To: *scenario.BurstSize})
	return measured.Result{Figures: figures}
}

// manyTimes as many messages pend on tarry's disk, which else has not written them yet.
const manyTimes = 10

// pending measures what messages take that are not due for a day, and the time from a kill -9
// until a push is answered again.
func pending(b *testing.B, p *place) measured.Result {
	if *system == "disk" {
		return pendingOnDisk(b)
	}
	s, figures := p.opened(b), map[string]float64{}
	memory, size := p.sizes(b, s)
	l, n := far(8, 100, 0), *scenario.Pending
	if *system == "http" {
		n *= manyTimes
	}
	l.To, l.For = n, 0
	_, _, err := peer.Run(b.Context(), s, l)
	scenario.Must(b, err)
	now, grown := p.sizes(b, s)
	figures["memory-B/msg"] = (now - memory) / float64(n)
	if v := (grown - size) / float64(n); v > preallocated {
		figures["disk-B/msg"] = v
	}
	if p.server != nil {
		p.recover(b, s, figures)
	}
	return measured.Result{Figures: figures}
}

// preallocated bytes or fewer on the disk, for each message, say nothing: the files had room.
const preallocated = 50

func (p *place) sizes(b *testing.B, s scenario.System) (memory, files float64) {
	if p.flush != nil {
		p.flush(b)
	}
	time.Sleep(2 * time.Second) // what it does afterwards
	if p.files != "" {
		files = sizeOf(p.files)
	}
	return p.memory(s), files
}

// counter is a System that knows how many messages pend.
type counter interface {
	Count(ctx context.Context, queue string) (int, error)
}

func (p *place) recover(b *testing.B, s scenario.System, figures map[string]float64) {
	before := count(b, s)
	p.server.Kill()
	began := time.Now()
	p.server.Restart()
	for {
		if again, err := p.open(b.Context()); err == nil {
			err = again.Push(b.Context(), aside, last, time.Now().Add(24*time.Hour))
			if err == nil {
				figures["back-s"] = time.Since(began).Seconds()
				if before >= 0 {
					figures["missing"] = float64(missing(b, again, before))
				}
				_ = again.Close()
				return
			}
			_ = again.Close()
		}
		if time.Since(began) > 2*time.Minute {
			b.Fatal("it does not serve again")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// missing returns how many messages there are less than before. Some servers serve while they
// still look for them.
func missing(b *testing.B, s scenario.System, before int) (n int) {
	for began := time.Now(); time.Since(began) < 15*time.Second; time.Sleep(100 * time.Millisecond) {
		if n = before - count(b, s); n <= 0 {
			break
		}
	}
	return n
}

// count returns how many messages pend; -1: the system does not know.
func count(b *testing.B, s scenario.System) int {
	c, ok := s.(counter)
	if !ok {
		return -1
	}
	n, err := c.Count(b.Context(), scenario.Queue)
	scenario.Must(b, err)
	return n
}
