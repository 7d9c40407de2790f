package ui_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// A message is pushed, falls due, is handled and has gone, and each is seen within a second
// without anybody asking.
func TestLive(t *testing.T) {
	w := newWorld(t, kind{})
	p := w.open(desk, "#/queues/live.q")
	p.sees(".empty", "No scheduled messages")
	s := strained(p)
	var late []string
	for try := range 3 { // what the page lets wait is late each time
		if late = w.life(p, s, fmt.Sprint("soon", try)); len(late) == 0 {
			break
		}
		t.Log(late)
	}
	for _, l := range late {
		t.Error(l)
	}
	p.sees(".heat", " handled")
	w.push("live.q", `{}`, tarry.In(time.Hour))
	p.sees(".tabs", "Scheduled 1")
	p.to("#/")
	p.sees(".queues .wide", "s, ") // p50 and p99
}

// life has a message live before a page of its queue, and returns what of that was seen more
// than a second later than it happened, not counting what the machine itself is late.
func (w *world) life(p *tab, s *strain, key string) (late []string) {
	w.Helper()
	rows := func(state string) string {
		return `document.querySelector("#panel[aria-labelledby=tab-` + state + `] .messages")?.innerText.includes(` + quoted(key) + `)`
	}
	// seen has something happen, and tells when it did, and waits until that shows.
	seen := func(what, shows string, happen func() time.Time) {
		w.Helper()
		p.run(`void (window.seen = new Promise(done => { const look = () => (` + shows + `) ? done(Date.now()) : requestAnimationFrame(look); look() }))`)
		s.reset()
		then := happen()
		after := time.UnixMilli(value[int64](p, `window.seen`)).Sub(then)
		strained := s.most()
		w.Logf("%s is seen after %s, by a machine that is %s late", what, after, strained)
		if after-strained > time.Second {
			late = append(late, fmt.Sprintf("%s is seen after %s, though a timer, a request and a frame took but %s longer than they should", what, after, strained))
		}
	}
	p.press(".tabs", "Scheduled")
	seen("a push", rows("scheduled"), func() time.Time {
		w.push("live.q", `{}`, tarry.In(time.Hour), tarry.Key(key))
		return time.Now()
	})
	p.press(".tabs", "Ready")
	p.sees("#panel[aria-labelledby=tab-ready]", "No ready messages")
	seen("falling due", rows("ready"), func() time.Time {
		moved, err := w.c.Reschedule(w.Context(), tarry.ByKey(key).Of("live.q"), tarry.In(500*time.Millisecond))
		if err != nil {
			w.Fatal(err)
		}
		return moved.Due
	})
	p.press(".tabs", "Leased")
	p.sees("#panel[aria-labelledby=tab-leased]", "No leased messages")
	var lease tarry.Lease
	seen("a lease", rows("leased"), func() time.Time {
		got, err := w.c.Lease(w.Context(), tarry.LeaseRequest{Queues: []string{"live.q"}, Max: 1})
		if err != nil || len(got.Messages) != 1 {
			w.Fatal(got, err)
		}
		lease = got.Messages[0]
		return time.Now()
	})
	seen("an ack", "!"+rows("leased"), func() time.Time {
		w.settle(tarry.Settlement{Token: lease.Token, Do: engine.Ack})
		return time.Now()
	})
	return late
}

// strain tells how late a machine is with what pages and the server rest on, by doing that
// all the time: a timer, a request and a frame in the page, and a timer beside the server.
type strain struct {
	p     *tab
	begun atomic.Int64 // when the timer beside the server was set
	late  atomic.Int64 // the most that it was late
}

const strainTimer = 20 * time.Millisecond

func strained(p *tab) *strain {
	p.Helper()
	s := &strain{p: p}
	p.run(`void (async () => {
		const s = window.strain = {late: 0, begun: performance.now()};
		s.most = () => Math.max(s.late, performance.now() - s.begun - 20);
		for (;;) {
			s.begun = performance.now();
			await new Promise(r => setTimeout(r, 20));
			await fetch("v1/queues/other", {cache: "no-store"}).then(r => r.text()).catch(() => {});
			await new Promise(requestAnimationFrame);
			s.late = s.most();
		}
	})()`)
	stop, stopped := make(chan struct{}), make(chan struct{})
	s.begun.Store(time.Now().UnixNano())
	go func() {
		defer close(stopped)
		for {
			begun := time.Now()
			s.begun.Store(begun.UnixNano())
			select {
			case <-stop:
				return
			case <-time.After(strainTimer):
			}
			s.late.Store(max(s.late.Load(), int64(time.Since(begun)-strainTimer)))
		}
	}()
	p.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return s
}

// reset forgets what was.
func (s *strain) reset() {
	s.p.Helper()
	s.p.run(`window.strain.late = 0`)
	s.late.Store(0)
}

// most is the most that the machine was late since then. What shows has waited for the
// server once and for the page twice: for its event, and for what it then reads.
func (s *strain) most() time.Duration {
	s.p.Helper()
	beside := max(s.late.Load(), time.Now().UnixNano()-s.begun.Load()-int64(strainTimer))
	page := value[float64](s.p, `window.strain.most()`)
	return time.Duration(beside) + 2*time.Duration(page*float64(time.Millisecond))
}
