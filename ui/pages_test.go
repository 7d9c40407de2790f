package ui_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/demo"
	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/ui"
)

// axe is axe-core, "" where it is not installed.
func axe(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		if os.Getenv("TARRY_TEST_UI") == "require" {
			t.Fatalf("%v, and TARRY_TEST_UI=require: run make ui", err)
		}
		t.Log("SKIPPED: axe-core is not in ui/web/node_modules: accessibility is not checked; make ui installs it")
	}
	return string(b)
}

// accessible checks a page by axe-core, by one rule or by all of them.
func (p *tab) accessible(where, script, rule string) {
	p.Helper()
	if script == "" {
		return
	}
	if !value[bool](p, `!!window.axe`) {
		p.run(script + ";0")
	}
	only := ""
	if rule != "" {
		only = `, runOnly: ` + quoted(rule)
	}
	found := value[[]string](p, `axe.run(document, {resultTypes: ["violations"]`+only+`}).then(r => r.violations.filter(v => v.impact === "serious" || v.impact === "critical")
		.map(v => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + n.failureSummary).join(" | ")))`)
	for _, f := range found {
		p.Errorf("%s: %s", where, f)
	}
}

// fits checks that nothing reaches beyond the window's side, and that labels are whole.
func (p *tab) fits(where string) {
	p.Helper()
	if over := value[string](p, `document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("main *, .top *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .segments, .tabs, .life, .offscreen, .sheet")).slice(0, 3).map(e => e.outerHTML.slice(0, 160)).join("\n") || "it"`); over != "" {
		p.Errorf("%s reaches beyond the window: %s", where, over)
	}
	if cut := value[string](p, `[...document.querySelectorAll("th, dt, h2, .tabs, .tabs button, .segments, .segments button, .actions button, .top nav a")].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && !e.closest(".offscreen")).slice(0, 3).map(e => e.outerHTML.slice(0, 160)).join("\n")`); cut != "" {
		p.Errorf("%s: a label is cut: %s", where, cut)
	}
}

// Every page, at three sizes, dark and light, with a backlog and many queues.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{shop: demo.New(demo.Speed)})
	script := axe(t)
	at := []struct{ name, at, selector, text string }{
		{"queues", "#/", ".queues .row", "price.import"},
		{"problems", "#/?only=problems", ".queues .row", "report.export"},
		{"queue", "#/queues/subscription.renew", ".messages tbody", "c-"},
		{"queue, dead", "#/queues/merchant.notify?state=dead", ".messages tbody", "410 Gone"},
		{"message", w.last("subscription.renew"), ".json", "4.90 EUR"},
		{"dead letters", "#/dead?queue=merchant.notify", ".groups", "410 Gone"},
		{"about", "#/about", ".abilities", "forecast"},
	}
	for _, l := range sizes {
		p := w.open(l, "#/")
		for _, a := range at {
			where := fmt.Sprintf("%s, %d wide", a.name, l.width)
			p.to(a.at)
			p.sees(a.selector, a.text)
			p.fits(where)
			if spaced := value[string](p, `document.querySelector("main").innerText.match(/\b[0-9.]+ (ms|s|m|min|h|d|y)\b/)?.[0] ?? ""`); spaced != "" {
				t.Errorf("%s: a duration is written %q, others as the API writes them", where, spaced)
			}
			p.accessible(where, script, "")
			p.dim(!l.dark)
			p.accessible(where+", the other colours", script, "color-contrast") // on which alone the other rules do not rest
			p.dim(l.dark)
		}
	}
	// What is far down a list of 10,000 queues is found by scrolling, filtering and sorting.
	w.accounts(10_000)
	p := w.open(desk, "#/")
	p.sees("h1 + span", "10,007")
	p.run(`scrollTo(0, document.body.scrollHeight)`)
	p.sees(".queues .name", "subscription.renew")
	p.until(`[...document.querySelectorAll(".queues .row")].find(e => e.innerText.includes("subscription.renew")).querySelector(".spark path")`)
	if rows := value[int](p, `document.querySelectorAll(".queues .row").length`); rows > 100 {
		t.Errorf("%d rows of queues are in the document", rows)
	}
	p.run(`scrollTo(0, 0)`)
	p.run(`(() => { const f = document.querySelector("main input[type=search]"); f.value = "7777"; f.dispatchEvent(new Event("input", {bubbles: true})) })()`)
	p.sees(".queues .name", "account.07777.trial")
	p.misses(".queues .name", "order.unpaid")
	p.to("#/?by=dead")
	p.do(chromedp.Reload())
	p.until(`document.querySelector(".queues .rows .name")?.innerText.includes("merchant.notify")`)
}

// Each action does what it says, asks first and tells how many it hits, at each size.
func TestEveryAction(t *testing.T) {
	t.Parallel()
	for _, l := range sizes {
		t.Run(fmt.Sprint(l.width), func(t *testing.T) {
			t.Parallel()
			everyAction(t, l)
		})
	}
}

func everyAction(t *testing.T, l look) {
	w := newWorld(t, kind{})
	script := axe(t)
	q := "order.unpaid"
	for i := range 5 {
		w.push(q, `{"n":1}`, tarry.In(time.Hour), tarry.Key(fmt.Sprint("k", i)))
	}
	w.push(q, `{}`, tarry.Key("due"))
	p := w.open(l, "#/queues/"+q)
	asked := make(map[string]bool)
	yes := func(title, says, button string) {
		t.Helper()
		p.sees("dialog h2", title)
		p.sees("dialog", says)
		p.fits(title)
		if !asked[title] {
			asked[title] = true
			p.accessible(title, script, "")
		}
		p.press("dialog", button)
		p.until(`!document.querySelector("dialog")`)
	}
	info := func() tarry.QueueInfo {
		t.Helper()
		i, err := w.c.Queue(w.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	get := func(key string) tarry.Info {
		t.Helper()
		m, err := w.c.Get(t.Context(), tarry.ByKey(key).Of(q))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}

	p.press(".actions", "Pause")
	p.fill("for", "10m")
	yes("Pause the queue?", "1 message that is ready will wait", "Pause")
	p.sees(".notice", "Paused until")
	if i := info(); !i.Paused || time.Until(i.PausedUntil) > 10*time.Minute {
		t.Errorf("%+v", i)
	}
	p.undo("is paused")
	p.sees(".toast", "is resumed")
	p.press(".actions", "Pause")
	yes("Pause the queue?", "", "Pause")
	p.press(".actions", "Resume")
	yes("Resume the queue?", "1 message is ready", "Resume")
	p.sees(".actions", "Pause")
	if info().Paused {
		t.Error("it is paused yet")
	}

	p.press(".actions", "Settings")
	p.fill("max_attempts", "3")
	p.fill("backoff", "15s 30s")
	p.fill("history", "2d")
	yes("Settings", q, "Save")
	s, revision, err := w.c.Settings(t.Context(), q)
	if err != nil || s.Defaults.MaxAttempts != 3 || len(s.Defaults.Backoff) != 2 || s.History != 48*time.Hour {
		t.Errorf("%+v %v %v", s, revision, err)
	}
	p.undo("are saved")
	p.sees(".toast", "old settings are back")

	p.press(".actions", "Settings")
	p.fill("dead_keep", "7d")
	yes("Settings", q, "Save")
	p.press(".actions", "Settings")
	p.until(`document.querySelector("dialog [name=dead_keep]")?.value === "7d"`)
	p.press("dialog", "Back")

	p.press(".actions", "Push")
	p.fill("key", "by hand")
	p.fill("body", `{"big":12345678901234567890}`)
	p.fill("delay", "2h")
	yes("Push a message", "", "Push")
	if m := get("by hand"); string(m.Body) != `{"big":12345678901234567890}` || m.ContentType != "application/json" {
		t.Errorf("%+v", m)
	}
	p.press(".actions", "Push")
	p.fill("key", "by hand")
	p.press("dialog", "Push")
	p.sees("dialog .trouble", "taken")
	p.press("dialog", "Back")

	p.run(`(() => { const f = document.querySelector("main input[name=find]"); f.value = "by hand"; f.form.requestSubmit() })()`)
	p.sees("h1", "by hand")
	p.sees(".json", "12345678901234567890")
	p.run(`navigator.clipboard.writeText = t => (window.copied = t, Promise.resolve())`)
	p.press(".actions", "Copy as curl")
	p.until(`window.copied?.includes('"body":{"big":12345678901234567890}') && window.copied.includes("/v1/queues/order.unpaid/messages")`)
	was := get("by hand").Due
	p.press(".actions", "In 5m")
	yes("Make it due in 5m?", "by hand", "Reschedule")
	p.sees(".toast", "It is due")
	if in := time.Until(get("by hand").Due); in > 5*time.Minute {
		t.Errorf("it is due in %s", in)
	}
	p.undo("It is due")
	p.sees(".toast", "again")
	if due := get("by hand").Due; !due.Equal(was) {
		t.Errorf("it is due at %s, and was at %s", due, was)
	}
	p.press(".actions", "Reschedule")
	p.fill("due", "2037-01-02T03:04:05") // in Berlin
	yes("Reschedule the message", "by hand", "Reschedule")
	p.sees(".life", "in 10y")
	if due := get("by hand").Due; !due.Equal(time.Date(2037, 1, 2, 2, 4, 5, 0, time.UTC)) {
		t.Errorf("it is due at %s", due)
	}
	p.press(".actions", "Run now")
	yes("Make it ready now?", "by hand", "Run now")
	p.sees(".badge", "ready")
	p.press(".actions", "Bury")
	p.fill("reason", "no use")
	yes("Bury the message?", "by hand", "Bury")
	p.sees("pre.error", "no use")
	p.press(".actions", "Redrive")
	yes("Redrive the dead letter?", "by hand", "Redrive")
	p.sees(".badge", "ready")
	p.press(".actions", "Cancel")
	yes("Cancel the message?", "by hand", "Cancel it")
	p.misses(".messages", "by hand")
	p.undo("is gone")
	p.sees("h1", "by hand")
	if m := get("by hand"); string(m.Body) != `{"big":12345678901234567890}` {
		t.Errorf("%+v", m)
	}

	p.to("#/queues/" + q)
	goOn := p.holds()
	p.press(".actions", "Purge")
	yes("Purge the queue?", "7 messages", "Purge")
	p.sees(".works", "Purging")
	p.press(".works", "Undo")
	p.sees(".toast", "Nothing was purged")
	goOn()
	if i := info(); i.Scheduled+i.Ready != 7 {
		t.Errorf("a purge that was taken back: %+v", i)
	}
	p.press(".actions", "Purge")
	yes("Purge the queue?", "7 messages", "Purge")
	p.sees(".toast", "7 messages are gone")
	if i := info(); i.Scheduled+i.Ready != 0 {
		t.Errorf("%+v", i)
	}
	for _, deed := range []string{"pause", "resume", "settings", "redrive", "purge"} {
		if !strings.Contains(w.audit.String(), `"what":"`+deed+`"`) {
			t.Errorf("the audit log does not tell of %s:\n%s", deed, w.audit)
		}
	}
}

// Dead letters are grouped by error, redriven and dropped by it, some at a time.
func TestDeadLetters(t *testing.T) {
	w := newWorld(t, kind{shop: demo.New(demo.Speed)})
	p := w.open(desk, "#/dead")
	dead := func() int64 {
		t.Helper()
		i, err := w.c.Queue(t.Context(), "merchant.notify")
		if err != nil {
			t.Fatal(err)
		}
		return i.Dead
	}
	all := dead()
	p.sees(".groups", "invalid signature")
	p.until(`document.querySelectorAll(".groups > li").length === 4`)
	// An error leads to the messages that died of it, and to no others.
	died := value[int](p, `Number([...document.querySelectorAll(".groups > li")].find(e => e.innerText.includes("invalid signature")).querySelector("strong").innerText)`)
	p.press(".groups .what", "401 Unauthorized: invalid signature")
	p.sees(".bar", "Died of # Unauthorized: invalid signature")
	p.until(fmt.Sprintf(`document.querySelectorAll(".messages tbody tr").length === %d`, min(died, 50)))
	p.until(`[...document.querySelectorAll(".messages td.error")].every(e => e.innerText === "401 Unauthorized: invalid signature")`)
	p.run(`document.querySelector(".messages td.key a").click()`)
	p.sees(".crumbs", "merchant.notify")
	p.sees("pre.error", "invalid signature")
	p.to("#/dead")
	p.sees(".groups", "invalid signature")
	p.run(`(() => { const f = document.querySelector("main input[type=search]"); f.value = "gone"; f.dispatchEvent(new Event("input", {bubbles: true})) })()`)
	p.until(`document.querySelectorAll(".groups > li").length === 1`)
	n := value[int64](p, `Number(document.querySelector(".groups strong").innerText)`)
	redrive := func() {
		t.Helper()
		p.press(".actions", "Redrive these")
		p.sees("dialog", fmt.Sprint(n, " dead letters"))
		p.sees("dialog", "Until then it can be undone")
		p.press("dialog", "Redrive ")
	}
	goOn := p.holds()
	redrive()
	p.until(`document.activeElement.innerText === "Undo"`) // also without a mouse
	p.press(".progress", "Undo")
	p.sees(".toast", "Nothing was redriven")
	goOn()
	if left := dead(); left != all {
		t.Errorf("%d of %d are dead though nothing was to be redriven", left, all)
	}
	redrive()
	w.push("merchant.notify", `{}`, tarry.Priority(0))
	got, err := w.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"merchant.notify"}, Max: 1})
	if err != nil || len(got.Messages) != 1 {
		t.Fatal(got, err)
	}
	w.settle(tarry.Settlement{Token: got.Messages[0].Token, Do: engine.Bury, Reason: "410 Gone: the endpoint was removed"}) // after it was counted
	p.sees(".toast", fmt.Sprint(n, " dead letters are ready again"))
	if left := dead(); left != all+1-n {
		t.Errorf("%d of %d are dead, %d were redriven", left, all+1, n)
	}
	p.run(`(() => { const f = document.querySelector("main input[type=search]"); f.value = ""; f.dispatchEvent(new Event("input", {bubbles: true})) })()`)
	goOn = p.holds()
	p.press(".actions", "Drop all")
	p.press("dialog", "Drop ")
	p.press(".progress", "Undo")
	p.sees(".toast", "Nothing was dropped")
	goOn()
	if left := dead(); left != all+1-n {
		t.Errorf("%d are dead though nothing was to be dropped", left)
	}
	goOn = p.holds()
	p.press(".actions", "Drop all")
	p.press("dialog", "Drop ")
	p.to("#/") // it goes on wherever the viewer goes
	p.sees(".works", "Dropping")
	goOn()
	p.sees(".toast", "dead letters are gone")
	p.misses(".works", "Dropping")
	if left := dead(); left != 0 {
		t.Errorf("%d are dead", left)
	}
	p.to("#/dead?queue=merchant.notify")
	p.sees(".empty", "No dead letters")
	if audit := w.audit.String(); !strings.Contains(audit, `"filter":{"groups":["# Gone: the endpoint was removed"]`) || !strings.Contains(audit, fmt.Sprintf(`"count":%d,`, n)) {
		t.Errorf("the audit log:\n%s", audit)
	}
}

// gated is an engine that cancels when it is told to.
type gated struct {
	engine.Whole
	gate chan struct{}
}

func (g *gated) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	<-g.gate
	return g.Whole.Cancel(ctx, refs)
}

// How far it is is seen, and it can be stopped between chunks.
func TestDeadLettersProgress(t *testing.T) {
	g := &gated{gate: make(chan struct{}, 2)}
	w := newWorld(t, kind{engine: func(e engine.Whole) engine.Engine { g.Whole = e; return g }})
	w.pushAll(slices.Repeat([]tarry.Draft{w.draft("q")}, 1200))
	for range 2 {
		got, err := w.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 600})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			w.settle(tarry.Settlement{Token: m.Token, Do: engine.Bury, Reason: "no"})
		}
	}
	p := w.open(look{360, 740, true}, "#/dead")
	p.press(".actions", "Drop all")
	p.sees("dialog", "1,200 dead letters")
	p.press("dialog", "Drop 1,200")
	p.until(`!!document.querySelector(".works progress")`)
	g.gate <- struct{}{}
	p.sees(".works", "500 done")
	p.until(`document.querySelector(".works progress").value === 500 && document.querySelector(".works progress").max === 1200`)
	p.fits("dead letters that are being dropped")
	p.accessible("dead letters that are being dropped", axe(t), "")
	p.press(".works", "Stop")
	p.sees(".toast", "Stopped. At least 500 dead letters are gone")
	for range 2 { // what counted has ended, and the server knows, too, that the page has gone
		select {
		case <-w.left:
		case <-time.After(*timeout):
			t.Error("the server goes on though the page has gone")
		}
	}
	close(g.gate) // what was under way, and what should not be
	for begun := time.Now(); !strings.Contains(w.audit.String(), "the client has gone"); {
		if time.Since(begun) > *timeout {
			t.Fatalf("the audit log: %s", w.audit)
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.sees(".groups strong", "200")
	if q, err := w.c.Queue(t.Context(), "q"); err != nil || q.Dead != 200 {
		t.Errorf("%+v, %v", q, err)
	}
	if audit := w.audit.String(); !strings.Contains(audit, `"count":1000,`) {
		t.Errorf("the audit log: %s", audit)
	}
}

// One viewer too many is told so, sees what changes some seconds later, and all as soon as
// another one has gone.
func TestTooManyViewers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{viewers: 1})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "GET", w.url+"v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	p := w.open(desk, "#/")
	p.sees(".trouble", "not live: as many watch as may")
	p.sees(".tools", "Not connected")
	w.push("mail", `{}`, tarry.In(time.Hour), tarry.Key("ann"))
	p.sees(".queues", "mail")
	p.to("#/queues/mail")
	p.sees(".trouble", "not live: as many watch as may")
	leave()
	p.sees(".tools", "Live")
	p.until(`!document.querySelector(".trouble")`)
}

// The more look, the longer a page rests before it reads again what changes all the time.
func TestPagesOfManyReadLess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	c := client()
	for range 60 {
		r, err := http.NewRequestWithContext(ctx, "GET", w.url+"v1/live?queues=busy", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
	}
	p := w.open(desk, "#/queues/busy")
	p.sees(".empty", "No scheduled messages")
	const read = `performance.getEntriesByType("resource").filter(e => e.name.includes("/messages?")).map(e => e.startTime)`
	for n := 0; value[int](p, read+`.length`) < 3; n++ {
		w.push("busy", `{}`, tarry.In(time.Hour), tarry.Key(fmt.Sprint(n)))
	}
	all := value[[]float64](p, read)
	if rest := all[2] - all[1]; rest < 800 { // 0.75 × 60 × 20 ms at least, alone 400 ms
		t.Errorf("beside 60 others it is read again after %.0f ms", rest)
	}
}

// What others wrote shows as text, and changes nothing around it.
func TestHostileText(t *testing.T) {
	w := newWorld(t, kind{})
	q := "a+/;.$_()--x"
	w.push(q, `{"`+`a":`+quoted(hostile)+`,"deep":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`, tarry.In(time.Hour), tarry.Key(hostile), tarry.Header(hostile[:60], hostile))
	big := tarry.NewTopic[string](q)
	if _, err := big.Push(t.Context(), w.c, hostile+strings.Repeat("\u05e9<b>\x01", 100_000), tarry.In(time.Hour), tarry.Key("big")); err != nil {
		t.Fatal(err)
	}
	w.push(q, `{"`+strings.Repeat("x", 1000)+`":[`+strings.Repeat("1,", 200_000)+`2]}`, tarry.In(time.Hour), tarry.Key("long"))
	w.push(q, `{}`, tarry.Key("dead"))
	got, err := w.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{q}, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.settle(tarry.Settlement{Token: got.Messages[0].Token, Do: engine.Bury, Reason: hostile})

	p := w.open(look{360, 740, false}, "#/")
	whole := func(where string) {
		t.Helper()
		p.fits(where)
		if id := value[string](p, `document.body.id + document.querySelectorAll("main img, main script").length`); id != "0" {
			t.Errorf("%s: the text was taken for more than text: %q", where, id)
		}
	}
	p.sees(".queues .name", q)
	whole("overview")
	p.run(`document.querySelector(".queues .name a").click()`)
	p.sees("h1", q)
	p.sees(".messages", "⟨U+202E⟩")
	whole("queue")
	for _, key := range []string{"<img", "big", "long"} {
		p.to("#/queues/" + strings.NewReplacer("+", "%2B", "/", "%2F", ";", "%3B", "$", "%24").Replace(q))
		p.press(".messages", key)
		p.sees("h1", key)
		p.until(`document.querySelector(".sheet")?.innerText.length > 50`)
		whole("message " + key)
		if size := value[int](p, `document.querySelector(".sheet").innerText.length`); size > 100_000 {
			t.Errorf("%s: %d characters are shown at once", key, size)
		}
	}
	p.press(".body", "Hex")
	p.sees("pre.hex", "00000000  7b")
	p.to("#/dead")
	p.sees(".groups", "␇")
	whole("dead letters")
	p.search("<img*")
	p.sees(".messages", "⟨U+202E⟩")
	whole("search")
	p.search("</script><script>document.body.id='pwned'</script>")
	p.sees(".empty", "<script>")
	whole("a search for nothing")
	w.push(q, `{}`)
	w.takes(q, `<img src=x onerror="document.body.id='pwned'">`+"\u202e")
	p.to("#/workers")
	p.sees(".workers", "<img")
	whole("workers")
}

// Who has a token logs in, sees what it may see and is offered what it may do.
func TestLogIn(t *testing.T) {
	for _, k := range []kind{{tokens: true}, {tokens: true, tls: true, path: "/in/here"}} {
		w := newWorld(t, k)
		w.push("mail", `{}`, tarry.In(time.Hour), tarry.Key("ann"))
		w.push("other", `{}`, tarry.In(time.Hour))
		reader, operator := w.token("reader", access.Read, "mail"), w.token("operator", access.Read|access.Operate)
		p := w.open(desk, "")
		p.sees("h1", "tarry")
		p.accessible("log in", axe(t), "")
		p.fill("token", "tarry_wrong")
		p.press("form", "Log in")
		p.sees(".login .trouble", "not known here")
		logIn := func(token string) {
			t.Helper()
			p.fill("token", token)
			p.press("form", "Log in")
			p.misses("form", "Log in")
			p.to("#/")
			p.sees("h1", "Queues")
		}
		logIn(reader)
		p.sees(".queues", "mail")
		p.misses(".queues", "other")
		p.sees(".tools", "read only")
		for _, at := range []string{"#/queues/mail", "#/queues/mail/messages/1"} {
			p.to(at)
			p.sees("h1", map[bool]string{true: "ann", false: "mail"}[strings.Contains(at, "messages")])
			if buttons := value[string](p, `[...document.querySelectorAll("main .actions button")].map(b => b.innerText).filter(t => /Push|Pause|Purge|Run|Resch|Cancel|min/.test(t)).join()`); buttons != "" {
				t.Errorf("%s: who may only read is offered %s", at, buttons)
			}
		}
		if status := value[int](p, `fetch("v1/queues/mail/purge", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}).then(r => r.status)`); status != 403 {
			t.Errorf("who may only read purges: %d", status)
		}
		if seen := value[string](p, `document.cookie + JSON.stringify(localStorage)`); strings.Contains(seen, "tarry-") || strings.Contains(seen, reader) {
			t.Errorf("scripts can read %q", seen)
		}
		p.press(".tools", "Log out")
		p.sees("h1", "tarry")
		p.until(`!!document.querySelector(".login")`)
		logIn(operator)
		p.to("#/queues/mail")
		p.sees(".actions", "Purge")
		p.misses(".actions", "Push")
		// Its token is revoked while it looks.
		if _, err := w.file.Revoke("operator"); err != nil {
			t.Fatal(err)
		}
		w.guard.Refresh()
		p.until(`!!document.querySelector(".login")`)
		p.forgive()
	}
}

// A dashboard that is read-only offers nothing else, also without tokens.
func TestReadOnlyPages(t *testing.T) {
	w := newWorld(t, kind{ui: ui.Config{ReadOnly: true}})
	w.push("mail", `{}`, tarry.In(time.Hour))
	p := w.open(desk, "#/queues/mail")
	p.sees(".tools", "read only")
	p.sees(".messages", "1")
	if n := value[int](p, `[...document.querySelectorAll("main .actions button")].filter(b => b.innerText !== "Settings…").length`); n != 0 {
		t.Errorf("%d buttons", n)
	}
}

// Everything can be done by keys.
func TestKeys(t *testing.T) {
	w := newWorld(t, kind{})
	w.push("a", `{}`, tarry.In(time.Hour), tarry.Key("first"))
	w.push("b", `{}`, tarry.In(time.Hour), tarry.Key("second"))
	p := w.open(desk, "#/")
	p.sees(".queues", "a")
	key := func(keys string) {
		t.Helper()
		p.do(chromedp.KeyEvent(keys))
	}
	// A key is heard as soon as the page is there.
	script := tell(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		new MutationObserver((_, o) => {
			if (!document.querySelector(".tools")) return;
			o.disconnect();
			document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "?", bubbles: true}));
		}).observe(document, {subtree: true, childList: true})`})
	p.do(chromedp.Reload())
	p.sees("dialog", "This help")
	tell(p, page.RemoveScriptToEvaluateOnNewDocument, page.RemoveScriptToEvaluateOnNewDocumentParams(script))
	key("\x1b")
	p.until(`!document.querySelector("dialog")`)
	p.sees(".queues .rows", "b")
	key("jj")
	p.until(`document.activeElement.innerText === "b"`)
	key("\r")
	p.sees("h1", "b")
	p.sees(".messages", "second")
	key("j")
	p.until(`document.activeElement.innerText === "second"`)
	key("\r")
	p.sees(".json", "{}")
	key("t")
	p.sees(".tools", "Exact")
	key("z")
	p.sees(".details", "UTC")
	key("u")
	p.sees(".messages", "second")
	key("/")
	p.until(`document.activeElement.name === "find"`)
	p.run(`document.activeElement.value = ""`) // to which the key came, too, as no keyboard would do
	key("second\r")
	p.sees(".json", "{}")
	p.run(`document.activeElement.blur()`)
	key("gd")
	p.sees("h1", "Dead letters")
	key("gw")
	p.sees("h1", "Workers")
	key("gq")
	p.sees("h1", "Queues")
	// By the tabulator one gets to the content past what is on every page, and a question
	// keeps the focus, and gives it back.
	p.do(chromedp.Reload())
	p.sees("h1", "Queues")
	key("\t")
	p.until(`document.activeElement.classList.contains("skip")`)
	p.to("#/queues/a")
	p.sees(".messages", "first")
	p.run(`[...document.querySelectorAll(".actions button")].find(b => b.innerText.startsWith("Pause")).focus()`)
	key("\r")
	p.sees("dialog h2", "Pause the queue?")
	p.until(`document.querySelector("dialog").contains(document.activeElement)`)
	key("\x1b")
	p.until(`document.activeElement.innerText.startsWith("Pause")`)
}

// The forecast goes from a minute to a year, and what is dragged over is listed.
func TestForecast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	for i, in := range []time.Duration{30 * time.Minute, 20 * time.Hour, 6 * 24 * time.Hour, 29 * 24 * time.Hour, 300 * 24 * time.Hour} {
		w.push("q", `{}`, tarry.In(in), tarry.Key(fmt.Sprint("k", i)))
	}
	p := w.open(desk, "#/queues/q")
	for i, name := range []string{"1h", "1d", "7d", "30d", "1y"} {
		p.press(".forecast .segments", name)
		p.sees(".forecast .title", fmt.Sprintf("%d message", i+1))
		p.sees(".forecast .title", "the next "+name)
	}
	w.push("q", `{}`, tarry.At(time.Now().Add(-time.Hour)))
	// Where the title tells of other bars they can be dragged over.
	p.run(`window.chart = document.querySelector(".u-over"), new MutationObserver((_, o) => {
		if (!document.querySelector(".forecast .title").innerText.includes("the next 1d")) return;
		o.disconnect();
		window.drawn = document.querySelector(".u-over") !== chart;
	}).observe(document.querySelector(".forecast"), {subtree: true, childList: true, characterData: true})`)
	p.press(".forecast .segments", "1d")
	p.sees(".forecast .title", "1 overdue, 2 messages")
	if !value[bool](p, `drawn`) {
		t.Error("the title tells of other bars than are drawn")
	}
	p.sees(".notice", "no worker has asked this server since it started") // moves the chart down
	box := value[[]float64](p, `(r => [r.left, r.top, r.width, r.height])(document.querySelector(".u-over").getBoundingClientRect())`)
	x := func(share float64) float64 { return box[0] + box[2]*share }
	p.do(chromedp.DragAndDropXY(x(0.7), box[1]+50, x(0.97), box[1]+50, 5))
	p.sees(".picked", "1 fall due")
	p.sees(".messages", "k1")
	p.misses(".messages", "k0")
	p.press(".picked", "Zoom in")
	p.sees(".forecast .title", "in the span shown")
	p.press(".picked", "Clear")
	p.sees(".messages", "k4")
	w.push("q", `{}`, tarry.In(59*time.Second))
	p.press(".forecast .segments", "1m")
	p.sees(".forecast .title", "1 message falls due in the next 1m")
	tell(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
}

// What is wrong is shown as the server tells it, with what to do; a pause for which no
// message waits is none of it.
func TestProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	w.push("late", `{}`, tarry.At(time.Now().Add(-time.Hour)))
	if err := w.c.Pause(t.Context(), "idle", 0); err != nil {
		t.Fatal(err)
	}
	p := w.open(desk, "#/")
	p.sees(".worst", "1 message is due, the oldest for 1h")
	p.sees(".worst", "start a worker")
	p.misses(".worst", "idle")
	p.sees(".queues .rows", "no worker")
	p.sees(".queues .rows", "paused")
	p.press(".segments", "Problems")
	p.sees(".queues .rows", "late")
	p.misses(".queues .rows", "idle")
	p.to("#/about")
	p.sees("#limits-title + .details", "no limit")
	p.misses("#limits-title + .details", "0s")
	p.to("#/queues/late")
	p.sees(".notice", "no worker has asked this server since it started")
	if err := w.c.Pause(t.Context(), "late", 0); err != nil {
		t.Fatal(err)
	}
	p.sees(".notice", "and the queue is paused")
	p.sees(".notice", "tarry resume late ends the pause")

	p.run(`(() => {
		const real = window.fetch
		window.fetch = (at, ...more) => String(at).includes("v1/problems") ? Promise.resolve(new Response('{"error":{"code":"internal","message":"odd"}}', {status: 500})) : real(at, ...more)
		window.mend = () => (window.fetch = real)
	})()`)
	p.sees(".trouble", "Problems cannot be read: odd")
	p.sees(".notice", "and the queue is paused")
	p.to("#/")
	p.sees(".trouble", "Problems cannot be read: odd")
	p.run(`mend()`)
	p.until(`!document.querySelector(".trouble")`)
}

// A lapse fails an attempt after the message was due, a retry before it is due again.
func TestLifeOfAMessageThatFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	lapsed := w.push("q", `{}`, tarry.TTR(time.Millisecond))
	retried := w.push("r", `{}`)
	for _, q := range []string{"q", "r"} {
		g, err := w.c.Engine().Lease(t.Context(), []engine.Want{{Queue: q, Max: 1}})
		if err != nil || len(g.Queues[0].Messages) != 1 {
			t.Fatal(err, g)
		}
		if q == "r" {
			w.settle(tarry.Settlement{Token: g.Queues[0].Messages[0].Token, Do: engine.Retry, When: &engine.When{In: time.Hour}})
		}
	}
	p := w.open(desk, "#/")
	for at, want := range map[string]string{
		fmt.Sprintf("#/queues/q/messages/%s", lapsed):  "Pushed Due Failed Ready Leased Handled",
		fmt.Sprintf("#/queues/r/messages/%s", retried): "Pushed Failed Due again Ready Leased Handled",
	} {
		p.to(at)
		p.until(`[...document.querySelectorAll(".life strong")].map(e => e.innerText).join(" ") === "` + want + `"`)
	}
}
