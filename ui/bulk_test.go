package ui_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// choose ticks the box of a message in a list.
func (p *tab) choose(key string) {
	p.Helper()
	p.click(`[...document.querySelectorAll(".messages tbody tr")].find(e => e.querySelector("a").innerText === ` + quoted(key) + `)?.querySelector(".pick input")`)
}

// Messages chosen in a list are changed together: those that are still in the state that was
// shown. Others are left alone, and told of.
func TestChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	keys := []string{"a", "b", "c", "d", "e", "f"}
	for _, key := range keys {
		w.push("q", `{}`, tarry.In(time.Hour), tarry.Key(key))
	}
	state := func(key string) engine.State {
		t.Helper()
		m, err := w.c.Get(t.Context(), tarry.ByKey(key).Of("q"))
		if err != nil {
			t.Fatal(err)
		}
		return m.State
	}
	p := w.open(desk, "#/queues/q")
	p.choose("a")
	p.choose("b")
	p.choose("c")
	p.sees(".chosen", "3 chosen")
	p.choose("c")
	p.sees(".chosen", "2 chosen")

	// It can be undone until it begins, and the messages are still chosen.
	goOn := p.holds()
	p.press(".chosen", "Cancel…")
	p.sees("dialog", "2 chosen messages of q are deleted for good")
	p.press("dialog", "Cancel 2")
	p.press(".progress", "Undo")
	p.sees(".toast", "Nothing was cancelled")
	goOn()
	p.sees(".chosen", "2 chosen")
	if state("a") != engine.Scheduled || state("b") != engine.Scheduled {
		t.Error("messages are cancelled though it was undone")
	}

	goOn = p.holds()
	p.press(".chosen", "Cancel…")
	p.press("dialog", "Cancel 2")
	p.sees(".works", "Cancelling 2 messages of q")
	if _, err := w.c.Reschedule(t.Context(), tarry.ByKey("b").Of("q"), tarry.In(0)); err != nil {
		t.Fatal(err)
	}
	goOn()
	p.sees(".toast.bad", "1 message is cancelled. Left alone: 1 in another state by now.")
	if a, b := state("a"), state("b"); a != engine.Finished || b != engine.Ready {
		t.Errorf("a is %s and b is %s, one cancelled and one ready meanwhile", a, b)
	}

	p.choose("c")
	p.choose("d")
	goOn = p.holds()
	p.press(".chosen", "Reschedule…")
	p.fill("due", "2037-01-02T03:04:05") // in Berlin
	p.press("dialog", "Reschedule 2")
	p.sees(".works", "Rescheduling 2 messages")
	if err := w.c.Cancel(t.Context(), tarry.ByKey("d").Of("q")); err != nil {
		t.Fatal(err)
	}
	goOn()
	p.sees(".toast.bad", "1 message is due 2037-01-02 03:04:05. Left alone: 1 gone by then.")
	if m, err := w.c.Get(t.Context(), tarry.ByKey("c").Of("q")); err != nil || !m.Due.Equal(time.Date(2037, 1, 2, 2, 4, 5, 0, time.UTC)) {
		t.Errorf("c is due at %s, %v", m.Due, err)
	}

	// All that are shown, made ready.
	p.until(`document.querySelectorAll(".messages tbody tr").length === 3`)
	p.run(`document.querySelector(".messages th input").checked || document.querySelector(".messages th input").click()`)
	p.sees(".chosen", "3 chosen")
	p.press(".chosen", "Reschedule…")
	p.fill("due", "")
	p.press("dialog", "Reschedule 3")
	p.sees(".toast", "3 messages are ready")
	p.press(".tabs", "Ready")
	p.until(`document.querySelectorAll(".messages tbody tr").length === 4`)
	p.misses("main", "chosen") // in another list nothing is
}

// Dead letters chosen in a list are redriven or dropped, also by keys and on a phone.
func TestChosenDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{tokens: true})
	var ids []tarry.ID
	for n := range 4 {
		ids = append(ids, w.push("q", `{}`, tarry.Key(fmt.Sprint("k", n))))
		w.settle(tarry.Settlement{Token: w.lease("q", "host:1").Token, Do: engine.Bury, Reason: "no"})
	}
	enter := func(l look, token string) *tab {
		t.Helper()
		p := w.open(l, "")
		p.fill("token", token)
		p.press("form", "Log in")
		p.sees("h1", "Queues")
		p.to("#/queues/q?state=dead")
		p.sees(".messages", "k3")
		return p
	}
	p := enter(desk, w.token("reader", access.Read))
	if n := value[int](p, `document.querySelectorAll(".pick").length`); n != 0 {
		t.Errorf("a reader is offered %d boxes", n)
	}
	operator := w.token("operator", access.Read|access.Operate)
	p = enter(desk, operator)
	p.do(chromedp.KeyEvent("jxjx"))
	p.sees(".chosen", "2 chosen")
	p.accessible("chosen messages", axe(t), "")
	goOn := p.holds()
	p.press(".chosen", "Redrive…")
	p.press("dialog", "Redrive 2")
	p.sees(".works", "Redriving 2 messages of q")
	if err := w.c.Cancel(t.Context(), tarry.ByID(ids[0]).Of("q")); err != nil {
		t.Fatal(err)
	}
	goOn()
	p.sees(".toast.bad", "1 dead letter is ready again. 1 had changed meanwhile")
	p.misses(".messages", "k1")

	p = enter(sizes[0], operator)
	p.choose("k2")
	p.choose("k3")
	p.sees(".chosen", "2 chosen")
	p.fits("chosen messages on a phone")
	p.accessible("chosen messages on a phone", axe(t), "")
	p.press(".chosen", "Drop…")
	p.press("dialog", "Drop 2")
	p.sees(".toast", "2 messages are dropped")
	if q, err := w.c.Queue(t.Context(), "q"); err != nil || q.Dead != 0 || q.Ready != 1 {
		t.Errorf("%+v, %v", q, err)
	}
}
