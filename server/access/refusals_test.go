package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// lines are those of a log since it was looked at last.
func lines(t *testing.T, a *Audit, log *bytes.Buffer) (all []map[string]any) {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for line := range strings.Lines(log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, m)
	}
	log.Reset()
	return all
}

func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(bytes.Buffer)
		a := NewAudit(log)
		defer a.Close()
		shop, ann := &Token{Name: "shop", ID: "s"}, &Token{Name: "ann", ID: "a"}
		began := time.Now()
		for range 1000 {
			a.Refused(shop, "192.0.2.8", "what", "purge", "who", "shop")
		}
		a.Refused(ann, "192.0.2.8", "what", "purge", "who", "ann") // others are still told
		a.Refused(shop, "192.0.2.9", "what", "purge", "who", "shop")
		a.Note("what", "pause", "who", "ann") // and what was done is told in any case
		if got := lines(t, a, log); len(got) != freeRefusals+3 {
			t.Errorf("%d lines of a thousand", len(got))
		}
		for range 30 {
			time.Sleep(time.Second)
			for range 100 {
				a.Refused(shop, "192.0.2.8", "what", "purge", "who", "shop")
			}
		}
		if got := lines(t, a, log); len(got) != 30 {
			t.Errorf("%d lines in 30 seconds", len(got))
		}
		time.Sleep(sumAfter) // nobody comes any more
		got := lines(t, a, log)
		if len(got) != 1 {
			t.Fatalf("what was left out is told by %v", got)
		}
		since, err := time.Parse(time.RFC3339, fmt.Sprint(got[0]["since"]))
		if got := got[0]; err != nil || !since.Equal(began) || got["what"] != "refusals left out" || got["count"] != 1000-freeRefusals+30.0*99 || got["result"] != "forbidden" {
			t.Errorf("what was left out is told by %v, %v", got, err)
		}
		time.Sleep(time.Hour)
		if got := lines(t, a, log); len(got) != 0 {
			t.Errorf("it is told again: %v", got)
		}
	})
}

// Whoever comes from many addresses gets no more lines for it, and what is left out is told
// also when the log is closed.
func TestRefusalsOfManyAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(bytes.Buffer)
		a := NewAudit(log)
		shop := &Token{Name: "shop", ID: "s"}
		const hosts = 5 * mostRefusers
		for i := range hosts {
			a.Refused(shop, fmt.Sprintf("2001:db8::%x", i), "what", "purge")
		}
		if got := lines(t, a, log); len(got) != allRefusals {
			t.Errorf("%d lines", len(got))
		}
		if n := len(a.refusals.by); n > mostRefusers+1 {
			t.Errorf("%d are told apart", n)
		}
		a.Close()
		if got := lines(t, a, log); len(got) != 1 || got[0]["count"] != float64(hosts-allRefusals) {
			t.Errorf("what was left out is told by %v; want %d in one line", got, hosts-allRefusals)
		}
		a.Close()
		a.Refused(shop, "192.0.2.8", "what", "purge") // of a server that did not end in time
		if got := lines(t, a, log); len(got) != 1 {
			t.Errorf("after its end: %v", got)
		}
	})
}

// Those who have not come for long give way to others.
func TestRefusersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(bytes.Buffer)
		a := NewAudit(log)
		defer a.Close()
		for i := range mostRefusers {
			a.Refused(nil, fmt.Sprint("old", i), "what", "purge")
		}
		time.Sleep(2 * sumAfter)
		lines(t, a, log)
		for range freeRefusals + 5 {
			a.Refused(nil, "new", "what", "purge")
			a.Refused(nil, "newer", "what", "purge") // else both would be counted as one
		}
		time.Sleep(sumAfter)
		if got := lines(t, a, log); len(got) != 2*freeRefusals+1 || got[2*freeRefusals]["count"] != 10.0 {
			t.Errorf("%v", got)
		}
	})
}
