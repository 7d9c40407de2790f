package ui_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// hostile is text that tries to become something else: a script, an element, a line
// that runs the other way, a control character.
const hostile = `<img src=x onerror="document.body.id='pwned'"></script><script>document.body.id='pwned'</script>` + "\u202egnp.exe \u0007 \u2066 ${7*7} 'quoted\" \u05e9\u05dc\u05d5\u05dd"

// seed fills a world with what a shop might have: what is to come over days, what is
// late, what is at work, what died, and more queues than fit a screen.
func (w *world) seed(t *testing.T, more int) {
	t.Helper()
	w.replay(t)
	r := rand.New(rand.NewPCG(1, 2))
	w.pushAll(t, drafts(t, "mail.digest", 900, func(int) time.Duration { return time.Duration(r.Int64N(int64(7 * 24 * time.Hour))) }))
	w.pushAll(t, drafts(t, "mail.retry", 36, func(int) time.Duration { return -time.Duration(r.Int64N(int64(3 * time.Minute))) }))
	w.pushAll(t, drafts(t, "subscription.renew", 1200, func(int) time.Duration { return time.Duration(r.Int64N(int64(300 * 24 * time.Hour))) }))
	w.pushAll(t, drafts(t, "merchant.notify", 60, func(i int) time.Duration { return time.Duration(r.Int64N(int64(10*time.Minute))) - 5*time.Second }))
	w.pushAll(t, drafts(t, "import.nightly", 12, func(int) time.Duration { return -time.Minute }))
	if err := w.c.Pause(w.Context(), "import.nightly", 45*time.Minute); err != nil {
		t.Fatal(err)
	}
	reasons := []string{"dial tcp 192.0.2.7:443: connect: connection refused", "503 Service Unavailable: upstream did not answer within 10s", "410 Gone: the endpoint was removed", "invalid signature"}
	w.pushAll(t, drafts(t, "webhook.out", 260, func(int) time.Duration { return -time.Hour }))
	for range 3 {
		got, err := w.c.Lease(w.Context(), tarry.LeaseRequest{Queues: []string{"webhook.out"}, Max: 90})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range got.Messages {
			reason := reasons[min(r.IntN(7), 3)]
			if strings.HasPrefix(reason, "503") {
				reason = strings.Replace(reason, "10s", fmt.Sprintf("%d.%ds", 10, i%10), 1)
			}
			w.settle(tarry.Settlement{Token: m.Token, Do: engine.Bury, Reason: reason})
		}
	}
	if _, err := w.c.Lease(w.Context(), tarry.LeaseRequest{Queues: []string{"merchant.notify"}, Max: 2, LeaseOptions: tarry.LeaseOptions{TTR: 10 * time.Minute}}); err != nil {
		t.Fatal(err)
	}
	if more > 0 {
		w.tenants(t, more)
	}
}

// past tells of what might have happened in the last 15 minutes.
func (w *world) past() {
	r := rand.New(rand.NewPCG(3, 4))
	for ago := 15 * time.Minute; ago > 0; ago -= 10 * time.Second {
		w.behind.Store(int64(-ago))
		then := time.Now().Add(-ago)
		for queue, rate := range map[string]float64{"order.unpaid": 400, "order.review": 140, "mail.digest": 60, "merchant.notify": 90, "webhook.out": 30} {
			n := int(rate * (0.5 + r.Float64()))
			if queue == "order.unpaid" && ago > 4*time.Minute && ago < 6*time.Minute {
				n *= 3
			}
			w.meter.Pushed(queue, engine.Created, nil, int(rate*(0.7+0.6*r.Float64())))
			var leases []tarry.Lease
			for range n {
				late := time.Duration(float64(time.Millisecond) * math.Exp(r.NormFloat64()*0.7))
				if n > 700 {
					late *= time.Duration(1 + r.IntN(60))
				}
				leases = append(leases, tarry.Lease{Info: tarry.Info{Queue: queue, Due: then.Add(-late)}})
			}
			w.meter.Granted(leases, then)
			w.meter.Leased(queue, n)
			w.meter.Settled(queue, engine.Ack, engine.Gone, nil, n)
		}
	}
	w.behind.Store(0)
}

// tenants pushes to n queues, a message each.
func (w *world) tenants(t *testing.T, n int) {
	t.Helper()
	var all []tarry.Draft
	for i := range n {
		all = append(all, drafts(t, fmt.Sprintf("tenant.%05d.timeout", i), 1, func(int) time.Duration { return time.Duration(i+60) * time.Minute })...)
	}
	w.pushAll(t, all)
}

// drafts are n orders for a queue, due as in says.
func drafts(t *testing.T, queue string, n int, in func(i int) time.Duration) (all []tarry.Draft) {
	t.Helper()
	for i := range n {
		all = append(all, draftOf(t, queue, fmt.Sprint(41000+i), tarry.At(time.Now().Add(in(i)))))
	}
	return all
}

// draftOf is a message about an order, with its id as the key.
func draftOf(t *testing.T, queue, id string, due tarry.PushOption) tarry.Draft {
	t.Helper()
	n := crc32.ChecksumIEEE([]byte(id))
	d, err := tarry.NewTopic[json.RawMessage](queue).Draft(json.RawMessage(fmt.Sprintf(`{"order":%q,"total":"%d.%02d","currency":"EUR","items":[{"sku":"A-%03d","n":%d}]}`, id, 5+n%90, n%100, n%400, 1+n%4)), due, tarry.Key(id))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (w *world) pushAll(t *testing.T, all []tarry.Draft) {
	t.Helper()
	push(t, w.c, all)
}

func push(t *testing.T, c *tarry.Client, all []tarry.Draft) {
	t.Helper()
	for len(all) > 0 {
		n := min(len(all), 1000)
		results, err := c.PushMany(t.Context(), all[:n])
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range results {
			if res.Err != nil {
				t.Fatal(res.Err)
			}
		}
		all = all[n:]
	}
}
