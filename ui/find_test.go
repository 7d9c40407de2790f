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

// search writes into the box of every page, and enters it.
func (p *tab) search(text string) {
	p.Helper()
	p.fill("search", text)
	p.run(`document.querySelector("[name=search]").form.requestSubmit()`)
}

// found are the queue, key and state of what a search has found.
const found = `[...document.querySelectorAll(".messages tbody tr")].map(r => [...r.cells].slice(0, 3).map(c => c.innerText.trim().split("\n")[0]).join("|")).sort().join("\n")`

// All queues are searched by key, by the beginning of keys, and by header.
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	in := tarry.In(time.Hour)
	w.push("order.unpaid", `{}`, in, tarry.Key("order-42"), tarry.Header("tenant", "acme"))
	w.push("order.unpaid", `{}`, in, tarry.Key("order-43"))
	w.push("mail", `{}`, tarry.Key("order-42"))
	w.settle(tarry.Settlement{Token: w.lease("mail", "host:1").Token, Do: engine.Bury, Reason: "no such address"})
	w.push("mail", `{}`, in, tarry.Key("tenant:acme:7"))
	w.push("sms", `{}`, in, tarry.Header("tenant", "acme"))
	script := axe(t)
	for _, l := range sizes {
		p := w.open(l, "#/")
		p.sees(".queues", "sms")
		p.search("order-42")
		p.until(found + ` === "order-42|mail|dead\norder-42|order.unpaid|scheduled"`)
		where := fmt.Sprintf("what was found, %d wide", l.width)
		p.fits(where)
		p.accessible(where, script, "")
		p.press(".messages", "order-42")
		p.sees("h1", "order-42")

		p.to("#/")
		p.search("order-4*")
		p.until(found + ` === "order-42|mail|dead\norder-42|order.unpaid|scheduled\norder-43|order.unpaid|scheduled"`)
		p.search("tenant:acme")
		p.until(`document.querySelectorAll(".messages tbody tr").length === 2`)
		p.sees(".messages", "sms")
		p.search("tenant:acme:7") // a key, though it looks like a header
		p.sees("h1", "tenant:acme:7")
		p.to("#/")
		p.search("order-44")
		p.sees(".empty", "No message is found")
		p.sees(".empty", "in 3 queues")
		p.fits("nothing is found")
	}
}

// A search goes on where it stopped, and says how far it came. A token finds what it may read.
func TestSearchGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{tokens: true})
	in := tarry.In(time.Hour)
	w.push("secret", `{}`, in, tarry.Key("k-1"))
	w.push("mail", `{}`, in, tarry.Key("k-1"))
	for n := range 120 {
		w.push("mail", `{}`, in, tarry.Key(fmt.Sprint("many-", n)))
	}
	p := w.open(desk, "")
	p.fill("token", w.token("reader", access.Read, "mail"))
	p.press("form", "Log in")
	p.sees(".queues", "mail")
	p.do(chromedp.KeyEvent("s"))
	p.until(`document.activeElement.name === "search"`)
	p.run(`document.activeElement.value = ""`) // to which the key came, too, as no keyboard would do
	p.do(chromedp.KeyEvent("k-1\r"))
	p.sees("h1", "k-1")
	p.sees(".crumbs", "mail")
	p.search("many-*")
	p.sees(".after", "100 messages found, 10")
	p.press(".after", "Go on")
	p.sees(".after", "120 messages found")
	p.misses(".after", "so far")
	p.run(`document.activeElement.blur()`)
	p.do(chromedp.KeyEvent("jj")) // from message to message, past the links of a row
	p.until(`document.activeElement === document.querySelector(".messages tbody tr:nth-child(2) .key a")`)
	p.until(`document.querySelectorAll(".messages tbody tr").length === 120`)
}

// What became of an order is known three clicks from the first page, and at once by its number.
func TestWhatBecameOfAnOrder(t *testing.T) {
	t.Parallel()
	c := newClock(time.Hour)
	w := newWorld(t, kind{now: c.now})
	c.in(w, "order.unpaid", "42", tarry.In(30*time.Minute))
	c.in(w, "order.paid", "43", tarry.MaxAttempts(2))
	c.wind(time.Minute)
	if err := w.c.Cancel(t.Context(), tarry.ByKey("42").Of("order.unpaid")); err != nil {
		t.Fatal(err)
	}
	cancelled := c.now()
	w.settle(tarry.Settlement{Token: w.lease("order.paid", "alice-1").Token, Do: engine.Retry, When: &engine.When{}, Reason: "the bank is away"})
	c.wind(time.Minute)
	w.settle(tarry.Settlement{Token: w.lease("order.paid", "bob-2").Token, Do: engine.Retry, Reason: "no such account"})
	died := c.now()

	stamp := func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
	for _, l := range sizes {
		p := w.open(l, "#/")
		wasCancelled := func() {
			t.Helper()
			p.sees("h1", "42")
			p.sees(".badge", "cancelled")
			p.sees(".life .now", "Cancelled")
			p.until(`document.querySelector(".life .now time").dateTime === ` + quoted(stamp(cancelled)))
			p.sees(".life .now", "it was due")
		}
		hasDied := func() {
			t.Helper()
			p.sees("h1", "43")
			p.sees(".life .bad", "Dead")
			p.until(`document.querySelector(".life .bad time").dateTime === ` + quoted(stamp(died)))
			p.until(`[...document.querySelectorAll(".failures li")].map(e => e.querySelector("bdi.mono").innerText + ": " + e.querySelector("pre").innerText).join() === "bob-2: no such account,alice-1: the bank is away"`)
		}
		p.press(".queues .name", "order.unpaid")
		p.press(".tabs", "Finished")
		p.press(".messages", "42")
		wasCancelled()
		p.to("#/")
		p.press(".figures", "1")
		p.press(".groups .what", "no such account")
		hasDied()
		for key, is := range map[string]func(){"42": wasCancelled, "43": hasDied} {
			p.to("#/")
			p.sees("h1", "Queues")
			p.search(key)
			is()
		}
	}
}
