package ui_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/intake"
)

// takes leases a message over HTTP, and returns its lease.
func (w *world) takes(queue, worker string) string {
	w.Helper()
	answer := w.post("v1/lease", fmt.Sprintf(`{"queues":[%q],"worker":%q}`, queue, worker))
	_, lease, held := strings.Cut(answer, `"lease":"`)
	if !held {
		w.Fatal(answer)
	}
	lease, _, _ = strings.Cut(lease, `"`)
	return lease
}

// post calls the API.
func (w *world) post(path, body string) string {
	w.Helper()
	res, err := client().Post(w.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		w.Fatalf("%s: %d %s %v", path, res.StatusCode, b, err)
	}
	return string(b)
}

// Who works is listed, with what it does, and found from the message that it handles.
func TestWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{beanstalk: func() (int64, int64) { return 1, 2000 }})
	for range 3 {
		w.push("mail", `{}`)
	}
	w.push("sms", `{}`)
	w.post("v1/settle", fmt.Sprintf(`{"settlements":[{"lease":%q,"do":"ack"}]}`, w.takes("mail", "alice-1")))
	w.post("v1/settle", fmt.Sprintf(`{"settlements":[{"lease":%q,"do":"bury"}]}`, w.takes("mail", "alice-1")))
	w.takes("mail", "alice-1")
	w.takes("sms", "")
	w.push("mail", `{}`, tarry.Key("apart"))
	w.lease("mail", "bob-2") // not over HTTP

	const cells = `[...document.querySelectorAll(".workers tbody tr")].map(r => [...r.cells].slice(0, 5).map(c => c.innerText.replace(/\s+/g, " ").trim()).join("|")).join("\n")`
	for _, l := range sizes {
		p := w.open(l, "#/queues/mail?state=leased")
		p.press(".messages .worker", "alice-1")
		p.sees("h1", "Workers")
		p.until(cells + ` === "alice-1 127.0.0.1|mail|1|1|1"`)
		p.to("#/queues/mail?state=leased")
		p.press(".messages", "apart")
		p.press("#attempts-title ~ p", "bob-2")
		p.sees("h1", "Workers")
		p.until(cells + ` === "bob-2 elsewhere|mail|1|–|–"`)
		p.press(".top nav", "Workers")
		p.until(cells + ` === "127.0.0.1|sms|1|0|0\nalice-1 127.0.0.1|mail|1|1|1\nbob-2 elsewhere|mail|1|–|–"`)
		p.until(`document.querySelector("#beanstalk").innerText === "Clients of beanstalkd: 1 connection, 2,000 waiting for a job."`)
		where := fmt.Sprintf("workers, %d wide", l.width)
		p.fits(where)
		p.accessible(where, axe(t), "")
		p.press(".workers", "sms")
		p.sees("h1", "sms")
		p.until(`document.querySelectorAll("#panel[aria-labelledby=tab-leased] .messages tbody tr").length === 1`)
	}
}

// Intakes are listed with what they do, and one that fails says what to do, there and among the problems.
func TestIntakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{intakes: func() []intake.Status {
		return []intake.Status{
			{Name: "orders", Queue: "order", State: intake.Running, Since: time.Now(), Counts: intake.Counts{Taken: 1200, Pushed: 1190, Doubles: 3, Refused: 2}, Unacked: 5, LastRefused: "no key"},
			{Name: "mail", Queue: "mail", State: intake.Failing, Since: time.Now(), Code: "no_queue", Error: "no queue <delayed>", Hint: "make the queue"},
		}
	}})
	const cells = `[...document.querySelectorAll(".intakes tbody tr")].map(r => [...r.cells].slice(0, 8).map(c => c.innerText.replace(/\s+/g, " ").trim()).join("|")).join("\n")`
	for _, l := range sizes {
		p := w.open(l, "#/workers")
		p.until(cells + ` === "orders|order|running last refused: no key|1,200|1,190|3|2|5\nmail|mail|failing no queue <delayed> make the queue|0|0|0|0|0"`)
		where := fmt.Sprintf("intakes, %d wide", l.width)
		p.fits(where)
		p.accessible(where, axe(t), "")
		p.to("#/")
		p.until(`document.body.innerText.includes("the intake mail fails: no queue <delayed>")`)
		p.to("#/workers")
		p.press(".intakes", "order")
		p.sees("h1", "order")
	}
}
