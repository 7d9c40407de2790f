//go:build linux

package workertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

const (
	scheduleProcesses = 4
	schedulesOfEach   = 5 // of each kind
	scheduleSpan      = 20 * time.Second
)

// RunSchedules runs four processes that fire the schedules of one store, and handle what
// comes of them. It kills and replaces them at random, and changes schedules meanwhile. Each
// instant of each schedule must make one message, none may be early, and none may be missing.
// open is as for RunProcesses.
func RunSchedules(t *testing.T, open func() (url string)) {
	if os.Getenv(processURL) != "" {
		firing(t)
		return
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	url := open()
	client, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := &crew{
		t: t, url: url, queue: fmt.Sprint("schedules-", seed), client: client,
		rng: rand.New(rand.NewPCG(seed, 0)), lines: make(chan line, 10_000),
	}
	c.compare()
	for range scheduleProcesses {
		c.team = append(c.team, c.start(0))
	}
	for range scheduleProcesses {
		c.await("up")
	}
	f := &fired{crew: c, since: make(map[string]time.Time), ids: make(map[string]string)}
	f.set()
	for _, m := range c.team {
		m.tell()
	}
	f.watch()
	f.remove()
	for _, m := range c.team {
		c.ending.Go(m.stop)
	}
	c.ending.Wait()
	f.check()
}

// firing is a process of RunSchedules. It works until its standard input ends.
func firing(t *testing.T) {
	c, err := tarry.Open(t.Context(), os.Getenv(processURL), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := new(process)
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Schedules: true, LeaseTTR: processTTR, OnError: func(tarry.Info, error) {}})
	tarry.Handle(w, tarry.NewTopic[string](os.Getenv(processQueue)), func(_ context.Context, m *tarry.Message[string]) error {
		p.say("ran", m.Key, m.ID, m.Due.UnixMicro(), p.now())
		if m.Body == "fails" {
			return tarry.Bury(nil)
		}
		return nil
	})
	p.run(t, w)
}

// fired is what has come of the schedules.
type fired struct {
	*crew
	since map[string]time.Time // the first instant of each schedule
	ids   map[string]string    // the message of each key
	until time.Time            // the last instant that must have come
}

func (f *fired) set() {
	for kind, body := range []string{"acked", "fails", "edited", "triggered"} {
		for i := range schedulesOfEach {
			s, err := tarry.NewSchedule(fmt.Sprintf("%s/%s/%d", f.queue, body, i), fmt.Sprintf("@every %ds", 1+i%3), tarry.NewTopic[string](f.queue), body)
			if err != nil {
				f.t.Fatal(err)
			}
			s.Jitter, s.CatchUp = time.Duration(kind)*300*time.Millisecond, tarry.CatchUpAll
			info, err := f.client.SetSchedule(f.t.Context(), s, "0")
			if err != nil {
				f.t.Fatal(err)
			}
			f.since[s.Name] = info.Next.Add(-s.Offset())
		}
	}
}

// watch kills processes and changes schedules for a while.
func (f *fired) watch() {
	end := time.Now().Add(scheduleSpan)
	kill, change := time.NewTimer(time.Second), time.NewTicker(150*time.Millisecond)
	defer change.Stop()
	for time.Now().Before(end) || f.killed < kills { // changes may have to wait for leases of killed ones
		select {
		case l := <-f.lines:
			f.read(l)
		case <-kill.C:
			f.kill(f.team[f.rng.IntN(len(f.team))])
			kill.Reset(time.Second + time.Duration(f.rng.Int64N(int64(2*time.Second))))
		case <-change.C:
			f.change()
		}
	}
	// A lapse of a process killed last may take so long.
	f.until = time.Now().Truncate(time.Second)
	for f.missing() != "" {
		f.read(f.next())
	}
}

// change sets a schedule to another body, or triggers one.
func (f *fired) change() {
	i := f.rng.IntN(schedulesOfEach)
	if f.rng.IntN(2) == 0 {
		_, err := f.client.TriggerSchedule(f.t.Context(), fmt.Sprintf("%s/triggered/%d", f.queue, i))
		f.changed(err)
		return
	}
	name := fmt.Sprintf("%s/edited/%d", f.queue, i)
	s, err := f.client.Schedule(f.t.Context(), name)
	if err == nil {
		s.Draft.Body = fmt.Append(nil, "edited", f.rng.IntN(1000))
		_, err = f.client.SetSchedule(f.t.Context(), s.Schedule, s.Revision)
	}
	f.changed(err)
}

// changed checks the answer to a change. A killed process keeps the schedule it held until
// its lease lapses.
func (f *fired) changed(err error) (ok bool) {
	leased := errors.Is(err, tarry.ErrLeased)
	if err != nil && !(leased && f.killed > 0) {
		f.t.Error(err)
	}
	return !leased
}

// read records what a process says.
func (f *fired) read(l line) {
	switch l.what[0] {
	case "up":
		l.by.tell()
	case "ran":
		key, id := l.what[1], l.what[2]
		if old, ok := f.ids[key]; ok && old != id {
			f.t.Errorf("%s came as the messages %s and %s", key, old, id)
		}
		f.ids[key] = id
		if due, at := number(l.what[3]), number(l.what[4]); at+f.ahead < due {
			f.t.Errorf("%s ran %d µs early", key, due-at)
		}
	default:
		f.t.Errorf("a process says %q", l.what)
	}
}

// missing returns the key of an instant that has not come, or "".
func (f *fired) missing() string {
	for name, at := range f.since {
		every := time.Duration(1+number(name[strings.LastIndex(name, "/")+1:])%3) * time.Second
		for ; !at.After(f.until); at = at.Add(every) {
			if key := name + "@" + at.UTC().Format(time.RFC3339); f.ids[key] == "" {
				return key
			}
		}
	}
	return ""
}

// remove removes the schedules.
func (f *fired) remove() {
	for name := range f.since {
		for !f.changed(f.client.RemoveSchedule(f.t.Context(), name, "")) {
			f.t.Logf("%s is leased", name) // the call has waited for seconds
		}
	}
}

func (f *fired) check() {
	for len(f.lines) > 0 {
		f.read(<-f.lines)
	}
	f.t.Logf("%d messages of %d schedules, %d processes were killed", len(f.ids), len(f.since), f.killed)
	if f.killed < kills {
		f.t.Errorf("only %d processes were killed", f.killed)
	}
}
