package tarry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

func TestOpenAndClose(t *testing.T) {
	c, err := tarry.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	push(t, c, "q", "x")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Push(t.Context(), "q", nil); !errors.Is(err, tarry.ErrClosed) {
		t.Errorf("push after Close: %v", err)
	}
	if _, err := tarry.Open(t.Context(), "nosuch:", nil); !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "mem") {
		t.Errorf("unknown scheme: %v", err)
	}
}

func TestTopicLife(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		ctx := t.Context()
		topic := tarry.NewTopic[Order]("order.unpaid", tarry.In(time.Hour), tarry.MaxAttempts(3))
		start := time.Now()
		p, err := topic.Push(ctx, c, Order{"1"}, tarry.Key("1"), tarry.At(start.Add(time.Minute)))
		if err != nil || p.Outcome != tarry.Created || p.State != tarry.Scheduled || p.Due.Sub(start) != time.Minute {
			t.Fatalf("pushed %+v, %v", p, err)
		}
		if again, err := topic.Push(ctx, c, Order{"1"}, tarry.Key("1")); !errors.Is(err, tarry.ErrExists) || again.ID != p.ID {
			t.Errorf("second push %+v, %v", again, err)
		}
		if r, err := topic.Rearm(ctx, c, "1", tarry.In(2*time.Minute), Order{"other"}); err != nil || r.ID != p.ID || r.Due.Sub(start) != 2*time.Minute {
			t.Errorf("rearmed %+v, %v", r, err)
		}
		found, err := topic.Get(ctx, c, tarry.ByKey("1"))
		if err != nil || found.MaxAttempts != 3 || found.ContentType != "application/json" || found.Body.ID != "1" {
			t.Errorf("got %+v, %v", found, err)
		}
		nop := func(context.Context, *tarry.Message[Order]) error { return nil }
		if err := topic.Claim(ctx, c, tarry.ByKey("1"), nop); !errors.Is(err, tarry.ErrNotDue) {
			t.Errorf("claim before due: %v", err)
		}
		if info, err := topic.Reschedule(ctx, c, tarry.ByKey("1"), tarry.In(0)); err != nil || info.Due.After(time.Now()) {
			t.Errorf("rescheduled %+v, %v", info, err)
		}
		boom := errors.New("boom")
		if err := topic.Claim(ctx, c, tarry.ByKey("1"), func(context.Context, *tarry.Message[Order]) error {
			return tarry.RetryIn(0, boom)
		}); !errors.Is(err, boom) {
			t.Errorf("claim: %v", err)
		}
		if err := topic.Claim(ctx, c, tarry.ByID(p.ID), func(context.Context, *tarry.Message[Order]) error {
			if err := topic.Cancel(ctx, c, tarry.ByKey("1")); !errors.Is(err, tarry.ErrLeased) {
				t.Errorf("cancel while claimed: %v", err)
			}
			return nil
		}); err != nil {
			t.Errorf("claim: %v", err)
		}
		gone(t, c, p)

		out, err := topic.PushMany(ctx, c, []Order{{"2"}, {"3"}})
		if err != nil || len(out) != 2 || out[0].Due.Sub(start) != time.Hour || out[0].Err != nil || out[1].Err != nil {
			t.Errorf("pushed many %+v, %v", out, err)
		}
		n := 0
		for found, err := range topic.List(ctx, c, tarry.Scheduled) {
			if err != nil || found.Body.ID != []string{"2", "3"}[n] {
				t.Errorf("listed %+v, %v", found, err)
			}
			n++
		}
		if err := topic.Cancel(ctx, c, tarry.ByID(out[0].ID)); err != nil || n != 2 {
			t.Errorf("%d listed; cancel: %v", n, err)
		}
		if _, err := tarry.NewTopic[func()]("q").Push(ctx, c, nil); !errors.Is(err, tarry.ErrInvalid) {
			t.Errorf("a body that JSON has no form for: %v", err)
		}
	})
}

func TestTopicFinds(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		ctx := t.Context()
		topic := tarry.NewTopic[Order]("order.unpaid")
		keyed := func(o Order) []tarry.PushOption {
			return []tarry.PushOption{tarry.Key(o.ID), tarry.Remember(time.Hour)}
		}
		if out, err := topic.PushEach(ctx, c, []Order{{"1"}, {"2"}}, keyed); err != nil || tarry.JoinErrors(out) != nil || out[1].Key != "2" {
			t.Fatalf("pushed %+v, %v", out, err)
		}
		bad, err := c.Push(ctx, topic.Queue(), []byte("{"))
		if err != nil {
			t.Fatal(err)
		}
		last, err := topic.Push(ctx, c, Order{"3"})
		if err != nil {
			t.Fatal(err)
		}

		if info, err := c.Get(ctx, tarry.ByID(last.ID).Of(topic.Queue())); err != nil {
			t.Error(err)
		} else if body, err := topic.Decode(info); err != nil || body.ID != "3" {
			t.Errorf("decoded %+v, %v", body, err)
		}
		if found, err := topic.Get(ctx, c, tarry.ByID(bad.ID)); !errors.Is(err, tarry.ErrInvalid) || found.ID != bad.ID {
			t.Errorf("a body that does not fit: %+v, %v", found, err)
		}
		var ids []tarry.ID
		for found, err := range topic.List(ctx, c, tarry.Ready) {
			if (err != nil) != (found.ID == bad.ID) {
				t.Errorf("listed %+v, %v", found, err)
			}
			ids = append(ids, found.ID)
		}
		if len(ids) != 4 || ids[2] != bad.ID || ids[3] != last.ID {
			t.Errorf("listed %v", ids)
		}
		for found, err := range topic.ListWhere(ctx, c, tarry.Filter{KeyPrefix: "2"}) {
			if err != nil || found.Body.ID != "2" {
				t.Errorf("chosen %+v, %v", found, err)
			}
		}
		for _, err := range topic.ListWhere(ctx, c, tarry.Filter{Queue: "other"}) {
			if !errors.Is(err, tarry.ErrInvalid) {
				t.Errorf("a filter of another queue: %v", err)
			}
		}

		if _, err := topic.CancelMany(ctx, c, []tarry.Ref{tarry.ByKey("1"), tarry.ByKey("2").Of("other")}); !errors.Is(err, tarry.ErrInvalid) {
			t.Errorf("a reference to another queue: %v", err)
		}
		if out, err := topic.CancelMany(ctx, c, []tarry.Ref{tarry.ByKey("1"), tarry.ByKey("none")}); err != nil || out[0].Err != nil || !errors.Is(out[1].Err, tarry.ErrNotFound) {
			t.Errorf("cancelled %+v, %v", out, err)
		}
		if found, err := topic.Get(ctx, c, tarry.ByKey("1")); err != nil || found.State != tarry.Finished {
			t.Errorf("a finished message: %+v, %v", found, err)
		}
	})
}

func TestPushManyFailsSingly(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		out, err := c.PushMany(t.Context(), []tarry.Draft{
			tarry.NewDraft("q", nil, tarry.Key("a")),
			tarry.NewDraft("bad name", nil),
			tarry.NewDraft("q", nil, tarry.Key("a")),
			tarry.NewDraft("q", nil, tarry.In(-1)),
			tarry.NewDraft("q", nil, tarry.Key("b")),
		})
		if err != nil || len(out) != 5 {
			t.Fatalf("%+v, %v", out, err)
		}
		for i, want := range []error{nil, tarry.ErrInvalid, tarry.ErrExists, tarry.ErrInvalid, nil} {
			if !errors.Is(out[i].Err, want) || (want == nil) != (out[i].Outcome == tarry.Created) {
				t.Errorf("%d: %+v", i, out[i])
			}
		}
		if live := out[2]; live.ID != out[0].ID || live.State != tarry.Ready {
			t.Errorf("beside ErrExists %+v, want the live message", live)
		}
		if _, err := c.PushMany(t.Context(), make([]tarry.Draft, tarry.MaxBatch+1)); !errors.Is(err, tarry.ErrTooLarge) {
			t.Errorf("too many: %v", err)
		}
	})
}

func TestCancelManyFailsSingly(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		push(t, c, "a", "x", tarry.Key("k"))
		p := push(t, c, "b", "x")
		refs := []tarry.Ref{
			tarry.ByKey("k").Of("a"), tarry.ByKey("k").Of("b"), tarry.ByID(p.ID).Of("b"), tarry.ByKey("k"), tarry.ByKey("").Of("a"),
		}
		out, err := c.CancelMany(t.Context(), refs)
		if err != nil || len(out) != len(refs) {
			t.Fatalf("%+v, %v", out, err)
		}
		for i, want := range []error{nil, tarry.ErrNotFound, nil, tarry.ErrInvalid, tarry.ErrInvalid} {
			if !errors.Is(out[i].Err, want) || out[i].Ref != refs[i] {
				t.Errorf("%d: %+v, want %v", i, out[i], want)
			}
		}
	})
}

// A reference is whole, or a topic makes it so; a contradiction is told.
func TestRefNamesOneQueue(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		ctx := t.Context()
		handler := func(context.Context, *tarry.Message[string]) error { return nil }
		calls := map[string]struct {
			topic, client func(tarry.Ref) error
		}{
			"cancel": {func(r tarry.Ref) error { return bytesTopic.Cancel(ctx, c, r) }, func(r tarry.Ref) error { return c.Cancel(ctx, r) }},
			"get": {func(r tarry.Ref) error { _, err := bytesTopic.Get(ctx, c, r); return err },
				func(r tarry.Ref) error { _, err := c.Get(ctx, r); return err }},
			"reschedule": {func(r tarry.Ref) error { _, err := bytesTopic.Reschedule(ctx, c, r, tarry.In(0)); return err },
				func(r tarry.Ref) error { _, err := c.Reschedule(ctx, r, tarry.In(0)); return err }},
			"claim": {func(r tarry.Ref) error { return bytesTopic.Claim(ctx, c, r, handler) },
				func(r tarry.Ref) error { _, err := c.Claim(ctx, r, tarry.LeaseOptions{}); return err }},
		}
		for name, call := range calls {
			for _, key := range []string{"topic", "topic, whole", "client"} {
				push(t, c, "q", "x", tarry.Key(key))
			}
			if err := call.topic(tarry.ByKey("topic")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := call.topic(tarry.ByKey("topic, whole").Of("q")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := call.topic(tarry.ByKey("client").Of("other")); !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), `"other"`) {
				t.Errorf("%s of another queue: %v", name, err)
			}
			if err := call.client(tarry.ByKey("client")); !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "ByKey(key).Of(queue)") {
				t.Errorf("%s without a queue: %v", name, err)
			}
			if err := call.client(tarry.ByKey("client").Of("q")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			pass(2 * time.Minute) // what is claimed lapses
			if _, err := c.Purge(ctx, "q", 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestOperations(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		ctx := t.Context()
		var rec record
		w := withHandler(tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe}))
		stop := run(t, w)
		if err := c.Pause(ctx, "q", time.Minute); err != nil {
			t.Fatal(err)
		}
		push(t, c, "q", "x")
		pass(59 * time.Second)
		if info, err := c.Queue(ctx, "q"); err != nil || info.Ready != 1 || !info.Paused {
			t.Errorf("paused queue %+v, %v", info, err)
		}
		pass(time.Second)
		if e := rec.one(t, tarry.Acked); e.Lateness != time.Minute {
			t.Errorf("handled %s late, want the minute of the pause", e.Lateness)
		}
		if err := c.Pause(ctx, "q", 0); err != nil {
			t.Fatal(err)
		}
		push(t, c, "q", "y")
		pass(time.Hour)
		if err := c.Resume(ctx, "q"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(rec.of(tarry.Acked)); n != 2 {
			t.Errorf("%d handled after resuming", n)
		}
		push(t, c, "q", "z", tarry.In(time.Hour))
		if f, err := c.Forecast(ctx, "q", time.Minute, 2*time.Hour); err != nil || len(f.Buckets) != 120 {
			t.Errorf("forecast of %d steps, %v", len(f.Buckets), err)
		}
		if n, err := c.Purge(ctx, "q", 0); err != nil || n != 1 {
			t.Errorf("purged %d, %v", n, err)
		}
		stop()
	})
}

// Operating a queue that cannot be, or after Close, does not reach the engine.
func TestOperationsRefuse(t *testing.T) {
	mem := memengine.New(nil)
	defer mem.Close()
	c := tarry.New(mem, nil)
	ctx := t.Context()
	all := map[string]func(queue string) error{
		"queue": func(q string) error { _, err := c.Queue(ctx, q); return err },
		"list": func(q string) error {
			_, err := c.ListPage(ctx, tarry.ListQuery{Queue: q, State: tarry.Ready})
			return err
		},
		"forecast":  func(q string) error { _, err := c.Forecast(ctx, q, time.Minute, time.Hour); return err },
		"pause":     func(q string) error { return c.Pause(ctx, q, 0) },
		"resume":    func(q string) error { return c.Resume(ctx, q) },
		"purge":     func(q string) error { _, err := c.Purge(ctx, q, 0); return err },
		"redrive":   func(q string) error { _, err := c.Redrive(ctx, q, nil, 0); return err },
		"settings":  func(q string) error { _, _, err := c.Settings(ctx, q); return err },
		"configure": func(q string) error { _, err := c.Configure(ctx, q, tarry.Settings{Rate: 1}, ""); return err },
	}
	refuse := func(queue string, want error) {
		t.Helper()
		for name, call := range all {
			if err := call(queue); !errors.Is(err, want) {
				t.Errorf("%s of %q: %v, not %v", name, queue, err, want)
			}
		}
	}
	refuse("a b", tarry.ErrInvalid)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	refuse("q", tarry.ErrClosed)
}

// A client made by On runs no handlers, and leases nothing for one.
func TestOnRunsNoHandlers(t *testing.T) {
	mem := memengine.New(nil)
	defer mem.Close()
	c := tarry.New(mem, nil)
	defer c.Close()
	on, topic := c.On(mem), tarry.NewTopic[string]("q")
	if _, err := topic.Push(t.Context(), on, "body", tarry.Key("k")); err != nil {
		t.Fatal(err)
	}
	handler := func(context.Context, *tarry.Message[string]) error { return nil }
	if err := topic.Claim(t.Context(), on, tarry.ByKey("k"), handler); !errors.Is(err, tarry.ErrUnsupported) {
		t.Errorf("Claim: %v", err)
	}
	w := tarry.NewWorker(on, nil)
	tarry.Handle(w, topic, handler)
	if err := w.Run(t.Context()); !errors.Is(err, tarry.ErrUnsupported) {
		t.Errorf("Run: %v", err)
	}
	if m, err := topic.Get(t.Context(), c, tarry.ByKey("k")); err != nil || m.State != tarry.Ready || m.Attempt != 0 {
		t.Errorf("afterwards: %+v, %v", m, err)
	}
}

// unlimited is an engine that sets no limit to bodies.
type unlimited struct{ engine.Engine }

func (u unlimited) Capabilities() engine.Capabilities {
	caps := u.Engine.Capabilities()
	caps.MaxBody = 0
	return caps
}

func TestOnKeepsTheLimitOfBodies(t *testing.T) {
	mem := memengine.New(nil)
	defer mem.Close()
	c := tarry.New(mem, nil)
	defer c.Close()
	on := c.On(unlimited{mem})
	if on.MaxBody() != c.MaxBody() {
		t.Errorf("a body has at most %d bytes where the engine has no limit, want %d", on.MaxBody(), c.MaxBody())
	}
	if _, err := on.Push(t.Context(), "q", []byte("body")); err != nil {
		t.Error(err)
	}
	if _, err := on.Push(t.Context(), "q", make([]byte, c.MaxBody()+1)); !errors.Is(err, tarry.ErrTooLarge) {
		t.Errorf("a larger one: %v", err)
	}
}
