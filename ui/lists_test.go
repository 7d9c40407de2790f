package ui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// lease leases the next message of a queue for a worker.
func (w *world) lease(queue, worker string) engine.Lease {
	w.Helper()
	g, err := w.c.Engine().Lease(w.Context(), []engine.Want{{Queue: queue, Max: 1, Worker: worker}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		w.Fatal(g, err)
	}
	return g.Queues[0].Messages[0]
}

// columns are the heads of the list of messages, without that of the boxes.
const columns = `[...document.querySelectorAll(".messages th:not(.pick)")].map(e => e.innerText).join()`

// Lists and pages name the worker of a leased message, and the failures of one that failed.
func TestWorkersAndFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	id := w.push("mail", `{"to":"ann"}`, tarry.Key("ann"))
	for n := range 7 {
		m := w.lease("mail", fmt.Sprint("host:", n))
		w.settle(tarry.Settlement{Token: m.Token, Do: engine.Retry, When: &engine.When{}, Reason: fmt.Sprint("failure ", n)})
	}
	held := w.lease("mail", "host:now")

	p := w.open(desk, "#/queues/mail?state=leased")
	p.sees(".messages td.worker", "host:now")
	p.press(".messages", "ann")
	p.sees("#attempts-title ~ p", "Handled now by host:now")
	p.until(`[...document.querySelectorAll(".failures pre")].map(e => e.innerText).join() === "failure 6,failure 5,failure 4,failure 3,failure 2"`)
	p.sees(".failures li", "attempt 7")
	p.sees(".failures li", "by host:6")

	w.settle(tarry.Settlement{Token: held.Token, Do: engine.Bury, Reason: "no such address"})
	p.sees(".failures li:first-child", "by host:now")
	p.misses("#attempts-title ~ p", "Handled now")
	p.to("#/queues/mail?state=dead")
	p.sees(".messages td.worker", "host:now")
	p.sees(".messages td.error", "no such address")
	p.to("#/dead?queue=mail")
	p.press(".groups", "how it failed")
	p.sees(".groups .failures", "failure 6")
	p.sees(".groups .failures", "host:now")
	script := axe(t)
	p.accessible("failures of a group", script, "")
	p.press(".groups", "no such address")
	p.sees(".details", id.String())
	p.accessible("failures of a message", script, "")
	p = w.open(sizes[0], "#/queues/mail/messages/"+id.String())
	p.sees(".failures", "host:now")
	p.fits("failures of a message on a phone")
	p.to("#/dead?queue=mail")
	p.press(".groups", "how it failed")
	p.sees(".groups .failures", "host:now")
	p.fits("failures of a group on a phone")
}

// A list leaves out what is the same in every row. What has no key is named by its id.
func TestColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	w.push("q", `1`, tarry.In(time.Hour), tarry.Key("a"))
	id := w.push("q", `2`, tarry.In(time.Hour))
	p := w.open(desk, "#/queues/q")
	p.sees(".messages td.key", id.String())
	p.until(columns + ` === "Key,Body,Due,Pushed"`)
	w.push("q", `3`, tarry.In(time.Hour), tarry.Priority(7))
	p.until(columns + ` === "Key,Body,Due,Priority,Pushed"`)
	w.push("q", `4`, tarry.In(time.Hour), tarry.MaxAttempts(3))
	p.until(columns + ` === "Key,Body,Due,Attempt,Priority,Pushed"`)
}

// Lists show how bodies begin, on one line, and begin above the fold.
func TestPreviews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	in := tarry.In(time.Hour)
	w.push("q", `"`+strings.Repeat("é", 5000)+`"`, in, tarry.Key("long"))
	typed := func(key, kind string, body []byte) {
		t.Helper()
		d := w.draft("q", in, tarry.Key(key), tarry.ContentType(kind))
		d.Body = body
		w.pushAll([]tarry.Draft{d})
	}
	typed("json", "application/json", []byte("{\n  \"say\": \"two  spaces\",\n  \"n\": [1, 2]\n}"))
	typed("text", "text/plain", []byte("one\n\ttwo"))
	typed("bytes", "image/png", []byte{0x89, 'P', 'N', 'G', 0xff})
	want := map[string]string{"json": `{"say":"two  spaces","n":[1,2]}`, "long": `"` + strings.Repeat("é", 79) + "…", "text": "one two", "bytes": "5 bytes"}
	for _, l := range sizes {
		p := w.open(l, "#/queues/q")
		part := ".body"
		if l.width < 720 {
			part = ".narrow"
		}
		for key, body := range want {
			p.until(`[...document.querySelectorAll(".messages tr")].find(e => e.querySelector("a")?.innerText === ` + quoted(key) + `)?.querySelector("` + part + `").innerText === ` + quoted(body))
		}
		p.fits(fmt.Sprintf("a list, %d wide", l.width))
		if bottom := value[float64](p, `document.querySelector(".messages tbody tr").getBoundingClientRect().bottom`); bottom > float64(l.height) {
			t.Errorf("%d wide: the first message ends %v px down a page of %d", l.width, bottom, l.height)
		}
	}
}

// However large bodies are, a list reads few of them.
func TestPreviewsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	body, _ := json.Marshal(strings.Repeat("x", 900_000))
	for n := range 12 {
		w.push("q", string(body), tarry.In(time.Hour), tarry.Key(fmt.Sprint(n)))
	}
	p := w.open(desk, "#/queues/q")
	p.until(`document.querySelectorAll(".messages tbody tr").length === 12`)
	if shown := value[int](p, `[...document.querySelectorAll(".messages td.body")].filter(e => e.innerText.startsWith('"xxx')).length`); shown < 1 || shown > 10 { // the answer has 8 MiB
		t.Errorf("%d of 12 large bodies are shown", shown)
	}
	if n := value[int](p, `performance.getEntriesByType("resource").filter(e => e.name.includes("body=true")).length`); n != 1 {
		t.Errorf("bodies are asked for %d times", n)
	}
}

// A forecast begins with a span that has most messages, and grows with them. Labels of its axis
// are whole.
func TestForecastFits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	w.push("q", `{}`, tarry.In(30*time.Minute))
	p := w.open(desk, "#/queues/q")
	p.sees(".forecast .title", "1 message falls due in the next 1h")
	p.sees(`.forecast [aria-pressed="true"]`, "1h")
	p.sees(".picked", "Drag over the bars")
	p.until(`!!document.querySelector(".u-over")`)
	if room := value[float64](p, `document.querySelector(".uplot").getBoundingClientRect().right - document.querySelector(".u-over").getBoundingClientRect().right`); room < 28 {
		t.Errorf("the last label has %v px to the right of its bar", room)
	}
	for range 3 {
		w.push("q", `{}`, tarry.In(6*24*time.Hour))
	}
	p.sees(".forecast .title", "4 messages fall due in the next 7d")
	p.press(".forecast .segments", "1h")
	p.sees(".forecast .title", "1 message falls due in the next 1h")
}

// A finger touches the bars, on a phone after the forecast was asked for.
func TestForecastByTouch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	for n := range 60 {
		w.push("q", `{}`, tarry.In(time.Duration(n)*time.Minute))
	}
	p := w.open(look{360, 740, false}, "#/")
	p.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch), chromedp.Navigate(w.url+"#/queues/q"), chromedp.Reload())
	p.press("main", "Forecast and lateness")
	p.sees(".picked", "Touch a bar")
	p.misses(".picked", "Drag")
	p.until(`!!document.querySelector(".u-over")`)
	box := value[[]float64](p, `(r => [r.left, r.top, r.width, r.height])(document.querySelector(".u-over").getBoundingClientRect())`)
	at := []*input.TouchPoint{{X: box[0] + box[2]/2, Y: box[1] + box[3]/2}}
	tell(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: at})
	tell(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
	p.sees(".picked", "1 fall due")
}

// A queue that held something today stays on the first page when it is empty, also for who
// opens the page later.
func TestEmptiedQueueStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	w.push("once", `{}`, tarry.In(time.Hour), tarry.Key("k"))
	p := w.open(desk, "#/")
	p.sees(".queues .name", "once")
	p.misses(".queues .name", "empty")
	if _, err := w.c.Purge(t.Context(), "once", 0); err != nil {
		t.Fatal(err)
	}
	p.sees(".queues .name", "empty")
	p = w.open(sizes[0], "#/")
	p.sees(".queues .name", "empty")
	p.fits("an emptied queue on a phone")
	p.press(".queues .name", "once")
	p.sees(".empty", "No scheduled messages")
	w.push("once", `{}`, tarry.In(time.Hour))
	p.to("#/")
	p.misses(".queues .name", "empty")
	p.sees(".queues .name", "once")
}
