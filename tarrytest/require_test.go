package tarrytest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/tarrytest"
)

func TestRequirePushed(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		tarrytest.RequireNothingPushed(t, q)
		push(t, q, rides, Ride{ID: "other"}, tarry.Key("6"))
		p := push(t, q, rides, Ride{ID: "7"}, tarry.In(48*time.Hour), tarry.Key("7"),
			tarry.Header("a", "1"), tarry.Header("b", "2"), tarry.Priority(5), tarry.TTR(time.Hour))
		tarrytest.RequireNothingPushed(t, q, thanks)

		// Each of its options is found, those of its topic too, alone and together.
		all := []tarry.PushOption{
			tarry.In(48 * time.Hour), tarry.At(q.Now().Add(48 * time.Hour)), tarry.Key("7"), tarry.Header("b", "2"), tarry.Priority(5),
			tarry.TTR(time.Hour), tarry.MaxAttempts(9), tarry.ExpireAfter(0), tarry.Remember(0), tarry.Isolate(true), tarry.ContentType("application/json"),
		}
		for i := range all {
			tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, all[i])
		}
		got := tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, all...)
		if got.ID != p.ID || got.State != tarry.Scheduled || got.Body.ID != "7" {
			t.Errorf("found %+v", got)
		}
		raw := tarry.NewTopic[json.RawMessage](rides.Queue())
		tarrytest.RequirePushed(t, q, raw, json.RawMessage(`{ "id" : "7" }`))
		push(t, q, raw, json.RawMessage(`9007199254740993`))
		failure(t, func(f testing.TB) { tarrytest.RequirePushed(f, q, raw, json.RawMessage(`9007199254740992`)) })

		// What each option would have to be is told.
		for want, option := range map[string]tarry.PushOption{
			"- due in 47h, at ":           tarry.In(47 * time.Hour),
			"- key \"8\"\n  + key \"7\"":  tarry.Key("8"),
			"- header a: 2\n":             tarry.Header("a", "2"),
			"- header c: 3\n":             tarry.Header("c", "3"),
			"- terms {Priority:4 Max":     tarry.Priority(4),
			" MaxAttempts:8 Backoff:[] ":  tarry.MaxAttempts(8),
			" Backoff:[1s] TTR":           tarry.Backoff(time.Second),
			" TTR:2m0s ":                  tarry.TTR(2 * time.Minute),
			" ExpireAfter:1s ":            tarry.ExpireAfter(time.Second),
			" Remember:1s ":               tarry.Remember(time.Second),
			" Isolate:false}":             tarry.Isolate(false),
			"- content type text/plain\n": tarry.ContentType("text/plain"),
		} {
			said := failure(t, func(f testing.TB) { tarrytest.RequirePushed(f, q, rides, Ride{ID: "7"}, option) })
			if !strings.Contains(said, want) {
				t.Errorf("it did not say %q:\n%s", want, said)
			}
		}
	})
}

// TestCalledOff has messages that were pushed, but are no more, or are others.
func TestCalledOff(t *testing.T) {
	everywhere(t, func(t *testing.T, q *tarrytest.Client) {
		ctx := t.Context()
		for _, ref := range []tarry.Ref{tarry.ByKey("7"), tarry.ByID(push(t, q, rides, Ride{ID: "6"}).ID)} {
			if ref.ID == 0 {
				push(t, q, rides, Ride{ID: "7"}, tarry.Key("7"))
			}
			if err := rides.Cancel(ctx, q.Client, ref); err != nil {
				t.Fatal(err)
			}
		}
		tarrytest.RequireNothingPushed(t, q)

		var h handled
		push(t, q, rides, Ride{ID: "7"}, tarry.Key("7"))
		q.Work(ctx, worker(q, h.handle))
		got := tarrytest.RequirePushed(t, q, rides, Ride{ID: "7"}, tarry.At(q.Now()))
		if got.State != tarry.Gone {
			t.Errorf("it was handled, but is %s", got.State)
		}

		// A refused push, and one that keeps the live message, push nothing.
		q.Forget()
		tarrytest.RequireNothingPushed(t, q)
		push(t, q, rides, Ride{ID: "old"}, tarry.Key("8"), tarry.In(time.Hour))
		if _, err := rides.Push(ctx, q.Client, Ride{ID: "new"}, tarry.Key("8")); err == nil {
			t.Error("it was pushed")
		}
		q.Advance(time.Minute)
		push(t, q, rides, Ride{ID: "new"}, tarry.Key("8"), tarry.OnConflict(tarry.Keep))
		tarrytest.RequirePushed(t, q, rides, Ride{ID: "old"}, tarry.In(time.Hour))
		if all := tarrytest.Pushed(t, q, rides); len(all) != 1 || all[0].Body.ID != "old" {
			t.Errorf("%+v", all)
		}

		// What is changed is one message, as it was pushed last.
		push(t, q, rides, Ride{ID: "new"}, tarry.Key("8"), tarry.OnConflict(tarry.Replace), tarry.In(time.Hour))
		q.Advance(30 * time.Minute)
		if _, err := rides.Rearm(ctx, q.Client, "8", tarry.In(2*time.Hour), Ride{}); err != nil {
			t.Fatal(err)
		}
		tarrytest.RequirePushed(t, q, rides, Ride{ID: "new"}, tarry.In(2*time.Hour))
		if _, err := rides.Reschedule(ctx, q.Client, tarry.ByKey("8"), tarry.In(3*time.Hour)); err != nil {
			t.Fatal(err)
		}
		tarrytest.RequirePushed(t, q, rides, Ride{ID: "new"}, tarry.In(3*time.Hour))
		if all := tarrytest.Pushed(t, q, rides); len(all) != 1 {
			t.Errorf("%+v", all)
		}
	})
}

func TestAtomicPushes(t *testing.T) {
	q := tarrytest.New(t)
	for _, draft := range [][]tarry.Draft{
		{tarry.NewDraft("a", nil, tarry.Key("1")), tarry.NewDraft("b", nil)},
		{tarry.NewDraft("c", nil), tarry.NewDraft("a", nil, tarry.Key("1"))}, // none of these
	} {
		_, _ = q.PushAtomic(t.Context(), draft)
	}
	for queue, want := range map[string]int{"a": 1, "b": 1, "c": 0} {
		if got := tarrytest.Pushed(t, q, tarry.NewTopic[[]byte](queue)); len(got) != want {
			t.Errorf("%s has %d", queue, len(got))
		}
	}
}

// TestMessagesOfFailures has the whole text of each failure.
func TestMessagesOfFailures(t *testing.T) {
	q := tarrytest.New(t)
	q.AdvanceTo(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
	type trip struct{ A, B, C string }
	trips := tarry.NewTopic[trip]("trips")
	const terms = "{Priority:1024 MaxAttempts:20 Backoff:[] TTR:1m0s ExpireAfter:0s Remember:0s Isolate:true}"
	for _, x := range []struct {
		do   func(testing.TB)
		want string
	}{
		{func(f testing.TB) { tarrytest.RequirePushed(f, q, thanks, "a\nb", tarry.In(time.Minute)) }, `
tarrytest: no such message was pushed to thanks (- wanted, + pushed, the nearest):
  - key ""
  - due in 1m, at 2200-01-01 00:01:00
  - content type application/octet-stream
  - terms ` + terms + `
  -   a
  -   b
all that was pushed:
`},
		{func(f testing.TB) {
			push(t, q, trips, trip{A: "one"}, tarry.Key("far"))
			push(t, q, trips, trip{A: "one", C: "three"}, tarry.In(48*time.Hour), tarry.Key("near"))
			push(t, q, tarry.NewTopic[[]byte]("raw"), []byte{0xff})
			tarrytest.RequirePushed(f, q, trips, trip{A: "two", C: "three"}, tarry.In(47*time.Hour))
		}, `
tarrytest: no such message was pushed to trips (- wanted, + pushed, the nearest):
    key "near"
  - due in 47h, at 2200-01-02 23:00:00
  + due in 48h, at 2200-01-03 00:00:00
    content type application/json
    terms ` + terms + `
      {
  -     "A": "two",
  +     "A": "one",
        "B": "",
        "C": "three"
      }
all that was pushed:
  trips 1: key "far", due in 0s, at 2200-01-01 00:00:00, ready
  trips 2: key "near", due in 48h, at 2200-01-03 00:00:00, scheduled
  raw 3: key "", due in 0s, at 2200-01-01 00:00:00, ready
`},
		{func(f testing.TB) {
			tarrytest.RequirePushed(f, q, tarry.NewTopic[[]byte]("raw"), []byte{0xfe})
		}, `
tarrytest: no such message was pushed to raw (- wanted, + pushed, the nearest):
    key ""
    due in 0s, at 2200-01-01 00:00:00
    content type application/octet-stream
    terms ` + terms + `
  -   "\xfe"
  +   "\xff"
all that was pushed:
  trips 1: key "far", due in 0s, at 2200-01-01 00:00:00, ready
  trips 2: key "near", due in 48h, at 2200-01-03 00:00:00, scheduled
  raw 3: key "", due in 0s, at 2200-01-01 00:00:00, ready
`},
		{func(f testing.TB) { tarrytest.RequireNothingPushed(f, q, trips, thanks) }, `
tarrytest: nothing should have been pushed, but there is:
  trips 1: key "far", due in 0s, at 2200-01-01 00:00:00, ready
  trips 2: key "near", due in 48h, at 2200-01-03 00:00:00, scheduled
`},
		{func(f testing.TB) { tarrytest.RequireNothingPushed(f, q) }, `
tarrytest: nothing should have been pushed, but there is:
  trips 1: key "far", due in 0s, at 2200-01-01 00:00:00, ready
  trips 2: key "near", due in 48h, at 2200-01-03 00:00:00, scheduled
  raw 3: key "", due in 0s, at 2200-01-01 00:00:00, ready
`},
		{func(f testing.TB) { tarrytest.Pushed(f, q, tarry.NewTopic[int]("trips")) }, `
tarrytest: tarry: decode trips id 1: invalid (the body does not fit the topic's type: json: cannot unmarshal object into Go value of type int)
`},
	} {
		if got := "\n" + failure(t, x.do); got != x.want {
			t.Errorf("it said\n%s\nwant\n%s", got, x.want)
		}
	}
}
