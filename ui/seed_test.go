package ui_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tarryhq/tarry"
)

// hostile is text that tries to become something else: a script, an element, a line that runs
// the other way, a control character.
const hostile = `<img src=x onerror="document.body.id='pwned'"></script><script>document.body.id='pwned'</script>` + "\u202egnp.exe \u0007 \u2066 ${7*7} 'quoted\" \u05e9\u05dc\u05d5\u05dd"

// accounts pushes a message to each of n queues.
func (w *world) accounts(n int) {
	w.Helper()
	var all []tarry.Draft
	for i := range n {
		all = append(all, w.draft(fmt.Sprintf("account.%05d.trial", i), tarry.In(time.Duration(i+60)*time.Minute)))
	}
	w.pushAll(all)
}

// last returns the place of a queue's message that is due last.
func (w *world) last(queue string) string {
	w.Helper()
	page, err := w.c.ListPage(w.Context(), tarry.ListQuery{Queue: queue, State: tarry.Scheduled, Limit: 1, Newest: true})
	if err != nil || len(page.Messages) == 0 {
		w.Fatal(page, err)
	}
	return fmt.Sprintf("#/queues/%s/messages/%s", queue, page.Messages[0].ID)
}

func (w *world) draft(queue string, opts ...tarry.PushOption) tarry.Draft {
	w.Helper()
	d, err := tarry.NewTopic[json.RawMessage](queue).Draft(json.RawMessage(`{}`), opts...)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

func (w *world) pushAll(all []tarry.Draft) {
	w.Helper()
	for len(all) > 0 {
		n := min(len(all), 1000)
		results, err := w.c.PushMany(w.Context(), all[:n])
		if err != nil {
			w.Fatal(err)
		}
		for _, res := range results {
			if res.Err != nil {
				w.Fatal(res.Err)
			}
		}
		all = all[n:]
	}
}
