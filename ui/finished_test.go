package ui_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// clock is a clock that a test winds on.
type clock struct{ at atomic.Int64 }

func newClock(ago time.Duration) *clock {
	c := new(clock)
	c.at.Store(time.Now().Add(-ago).Truncate(time.Millisecond).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()) }
func (c *clock) wind(d time.Duration) { c.at.Add(int64(d)) }
func (c *clock) in(w *world, q, k string, opts ...tarry.PushOption) tarry.ID {
	w.Helper()
	return w.push(q, `{}`, append(opts, tarry.Key(k), tarry.TTR(time.Hour))...)
}

// outcomes has messages of a queue end in each way, and returns their ids.
func (w *world) outcomes(c *clock) (acked, cancelled, expired tarry.ID) {
	w.Helper()
	acked = c.in(w, "order", "order-41")
	c.wind(5 * time.Second)
	w.settle(tarry.Settlement{Token: w.lease("order", "alice-1").Token, Do: engine.Retry, When: &engine.When{}, Reason: "payment is down"})
	c.wind(30 * time.Second)
	lease := w.lease("order", "bob-2")
	c.wind(2 * time.Minute)
	w.settle(tarry.Settlement{Token: lease.Token, Do: engine.Ack})
	cancelled = c.in(w, "order", "order-42", tarry.In(30*time.Minute))
	c.wind(time.Second)
	if err := w.c.Cancel(w.Context(), tarry.Ref{Queue: "order", Key: "order-42", By: "carol"}); err != nil {
		w.Fatal(err)
	}
	expired = c.in(w, "order", "order-43", tarry.ExpireAfter(time.Second))
	c.wind(time.Minute)
	if g, err := w.c.Engine().Lease(w.Context(), []engine.Want{{Queue: "order", Max: 1}}); err != nil || len(g.Queues[0].Messages) > 0 {
		w.Fatal(g, err)
	}
	return acked, cancelled, expired
}

// Finished messages are listed, the newest first, by how they ended: how late they were, how
// long they ran, and whose they were. The page of one says the same.
func TestFinished(t *testing.T) {
	t.Parallel()
	c := newClock(time.Hour)
	w := newWorld(t, kind{now: c.now})
	acked, _, _ := w.outcomes(c)
	const cells = `[...document.querySelectorAll(".messages tbody tr")].map(r => [...r.cells].filter((_, i) => [0, 1, 3, 4, 5].includes(i)).map(c => c.innerText).join("|")).join("\n")`
	script := axe(t)
	for _, l := range sizes {
		p := w.open(l, "#/queues/order")
		p.press(".tabs", "Finished")
		p.until(`document.querySelectorAll(".messages tbody tr").length === 3`)
		where := fmt.Sprintf("finished messages, %d wide", l.width)
		p.fits(where)
		p.accessible(where, script, "")
		if l == desk {
			p.until(columns + ` === "Key,Outcome,Ended,Late by,Ran for,By,Attempt,Pushed"`)
			p.until(cells + ` === "order-43|expired|–|–|–\norder-42|cancelled|–|–|carol\norder-41|handled|30s|2m|bob-2"`)
		}
		p.press(".segments", "Cancelled")
		p.until(`[...document.querySelectorAll(".messages td.key a")].map(e => e.innerText).join() === "order-42"`)
		if l == desk {
			p.until(columns + ` === "Key,Ended,By,Pushed"`)
		}
		p.press(".messages", "order-42")
		p.sees(".life .now", "Cancelled")
		p.sees(".life .now", "it was due")
		p.sees(".details", "Cancelled by")
		p.sees(".details", "carol")
		p.misses("main", "Handled by")
		p.to("#/queues/order?state=finished&ending=acked")
		p.press(".messages", "order-41")
		p.sees("h1", "order-41")
		p.sees(".badge", "handled")
		p.sees("#attempts-title ~ p", "Handled by bob-2")
		p.sees(".failures", "payment is down")
		p.sees(".failures", "by alice-1")
		for _, text := range []string{"Late by\n30s", "Ran for\n2m", "Id\n" + acked.String()} {
			p.until(`document.querySelector(".details").innerText.includes(` + quoted(text) + `)`)
		}
		p.fits("a finished message")
		p.accessible("a finished message", script, "")
	}
	// It is live: what is cancelled now is there.
	p := w.open(desk, "#/queues/order?state=finished")
	p.sees(".tabs", "Finished 3")
	p.press(".segments", "Handled")
	p.until(columns + ` === "Key,Ended,Late by,Ran for,By,Pushed"`)
	p.press(".segments", "All")
	c.in(w, "order", "order-44", tarry.In(time.Hour))
	if err := w.c.Cancel(t.Context(), tarry.ByKey("order-44").Of("order")); err != nil {
		t.Fatal(err)
	}
	p.sees(".messages", "order-44")
	p.sees(".tabs", "Finished 4")
}

// What is far back among finished messages is found step by step, and a list that has not
// come to its end says so.
func TestFinishedFarBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	w.push("q", `{}`, tarry.Key("first"))
	w.settle(tarry.Settlement{Token: w.lease("q", "host:1").Token, Do: engine.Ack})
	const n = 20_100
	w.pushAll(slices.Repeat([]tarry.Draft{w.draft("q", tarry.In(time.Hour))}, n))
	if _, err := w.c.CancelWhere(t.Context(), tarry.Filter{Queue: "q", States: []tarry.State{tarry.Scheduled}}); err != nil {
		t.Fatal(err)
	}
	p := w.open(desk, "#/queues/q?state=finished&ending=acked")
	p.sees(".after", "0 messages shown")
	p.press(".after", "Show more")
	p.sees(".messages", "first")
	p.sees(".after", "1 message shown")
	p.sees(".messages th", "Ran for")
	p.misses(".after", "Show more")
	p.press(".segments", "Expired")
	p.sees(".after", "0 messages shown")
	p.press(".after", "Show more")
	p.sees(".empty", "No finished messages with this outcome")
}
