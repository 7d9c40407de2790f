//go:build linux

package disk

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

var (
	huge      = flag.Int("huge", 0, "messages that pend in BenchmarkHuge")
	hugeDir   = flag.String("huge-dir", "", "a directory that keeps their store for the next run; \"\": it is made anew")
	hugeSmall = flag.Int("huge-small", 1_000_000, "messages of the store beside it")
)

// hugeSpread is over what time messages of BenchmarkHuge fall due, hugeLead how long after
// they are made: a store that is kept pends for so long.
const (
	hugeSpread = 30 * 24 * time.Hour
	hugeLead   = 24 * time.Hour
)

// BenchmarkHuge measures a store in which a great many messages pend beside one with few:
// cancels and pushes in turns. Then its process is killed in the middle of pushes, and each
// message is looked for.
func BenchmarkHuge(b *testing.B) {
	scenario.Once(b)
	if *huge == 0 {
		b.Skip("-huge says no number")
	}
	s := measuredStore()
	large, small := makeHuge(b, s), makeSmall(b, s)
	open := []*side{{label: "large", made: large}, {label: "small", made: small}}
	for _, o := range open {
		o.process = start(b, s, "obey", 1, "-dir", o.made.dir)
	}
	for _, o := range open {
		o.ask(b, command{Do: "rest"})
		o.pause(b)
	}
	must(b, large.forget()) // until what is cancelled has been pushed anew
	for turn := range *turns {
		for _, do := range []string{"cancel", "push"} {
			for _, o := range order(open, turn) {
				b.Run("side="+o.label+"/do="+do, func(b *testing.B) { o.turn(b, do, turn) })
			}
		}
	}
	must(b, large.write())
	open[0].resume(b)
	open[0].ask(b, command{Do: "more"})
	open[0].kill()
	open[1].kill()
	b.Run("side=large/do=reopen", func(b *testing.B) {
		report(b, start(b, s, "reopen", 1, "-dir", large.dir, "-pending", strconv.Itoa(*huge), "-count").figures(b))
	})
}

// side is one of the two stores.
type side struct {
	*process
	label string
	made  made
}

// turn cancels some messages, jumping about among all, or pushes those anew, and reports
// what that took. The other one is stopped meanwhile.
func (o *side) turn(b *testing.B, do string, turn int) {
	n := min(*pushes, o.made.Messages/2)
	o.resume(b)
	a := o.ask(b, command{Do: do, From: turn * n, To: (turn + 1) * n, Among: o.made.Messages,
		Soonest: o.made.Soonest, Spread: hugeSpread, Clients: scenario.Clients, Batch: 1})
	o.pause(b)
	scenario.Report(b, float64(n)/a.Seconds, "msgs/s")
	scenario.Report(b, 1e6*a.CPU/float64(n), "cpu-us/msg")
	scenario.Report(b, float64(a.RSS)/float64(o.made.Messages), "rss-B/msg")
	scenario.Report(b, float64(a.Most)/1e6, "most-rss-MB")
	scenario.Report(b, float64(a.Disk)/float64(o.made.Messages), "disk-B/msg")
}

// made says which store a directory holds.
type made struct {
	dir      string
	Store    string
	Messages int
	Keys     string
	Body     int
	Soonest  time.Time // when the first message falls due
}

// makeHuge makes the large store, unless there is one of the same kind.
func makeHuge(b *testing.B, s system) made {
	dir := *hugeDir
	if dir == "" {
		dir = b.TempDir()
	}
	m := made{dir: filepath.Join(dir, "store"), Store: s.store, Messages: *huge, Keys: *scenario.Keys, Body: *scenario.BodySize}
	kept, err := readMade(m)
	must(b, err)
	if kept == nil {
		demand(b, dir, room(*huge))
		b.Run("side=large/do=fill", func(b *testing.B) { m.fill(b, s).report(b) })
		return m
	}
	fmt.Fprintf(os.Stderr, "%s holds %d messages\n", kept.dir, kept.Messages)
	return *kept
}

func makeSmall(b *testing.B, s system) made {
	m := made{dir: b.TempDir(), Messages: *hugeSmall}
	m.fill(b, s)
	return m
}

// fill pushes the messages of a store, a chunk after the other.
func (m *made) fill(b *testing.B, s system) *sums {
	m.Soonest = time.Now().Add(hugeLead).Truncate(time.Hour)
	must(b, os.MkdirAll(m.dir, 0o700))
	p := start(b, s, "obey", 1, "-dir", m.dir)
	filled := new(sums)
	for from := 0; from < m.Messages; from += *chunk {
		to := min(from+*chunk, m.Messages)
		filled.add(to-from, p.ask(b, command{Do: "push", From: from, To: to, Soonest: m.Soonest, Spread: hugeSpread, Clients: fewClients, Batch: batchSize}), 0, false)
		fmt.Fprintf(os.Stderr, "%d of %d pushed, %.0f a second\n", to, m.Messages, float64(filled.messages)/filled.seconds)
	}
	p.figures(b) // it has closed the store
	return filled
}

const madeFile = "made.json"

// file stands beside the store.
func (m *made) file() string { return filepath.Join(filepath.Dir(m.dir), madeFile) }

func (m *made) forget() error {
	if err := os.Remove(m.file()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (m *made) write() error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(m.file(), append(text, '\n'), 0o600)
}

// readMade tells which store a directory holds, nil for none. One that is of another kind
// than what is wanted is left alone, and so is one that was not made to its end.
func readMade(want made) (*made, error) {
	text, err := os.ReadFile(want.file())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(want.dir); err == nil {
			return nil, fmt.Errorf("%s was not made to its end, or left while messages were cancelled: remove it", want.dir)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := new(made)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w", want.file(), err)
	}
	m.dir, want.Soonest = want.dir, m.Soonest
	if *m != want {
		return nil, fmt.Errorf("%s holds %d messages with %s keys and bodies of %d bytes in %s: name another directory", m.dir, m.Messages, m.Keys, m.Body, m.Store)
	}
	return m, nil
}
