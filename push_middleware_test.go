package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

// clientWith returns a client of an empty engine with push middleware.
func clientWith(t *testing.T, m ...tarry.PushMiddleware) *tarry.Client {
	t.Helper()
	c := tarry.New(memengine.New(nil), &tarry.Config{PushMiddleware: m})
	t.Cleanup(func() {
		_ = c.Close()
		_ = c.Engine().Close()
	})
	return c
}

// stamp adds a header to all that is pushed.
func stamp(name, value string) tarry.PushMiddleware {
	return func(next tarry.PushFunc) tarry.PushFunc {
		return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
			for i := range call.Drafts {
				m := &call.Drafts[i]
				m.Headers = append(m.Headers, tarry.MessageHeader{Name: name, Value: value})
			}
			return next(ctx, call)
		}
	}
}

func headersOf(t *testing.T, c *tarry.Client, queue string, p tarry.Pushed) string {
	t.Helper()
	info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of(queue))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, h := range info.Headers {
		all = append(all, h.Name+"="+h.Value)
	}
	return strings.Join(all, " ")
}

func TestPushMiddlewareSeesEveryWayToPush(t *testing.T) {
	var calls []tarry.PushCall
	watch := func(next tarry.PushFunc) tarry.PushFunc {
		return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
			calls = append(calls, call)
			return next(ctx, call)
		}
	}
	c := clientWith(t, watch, stamp("by", "middleware"))
	other := memengine.New(nil)
	defer other.Close()
	on := c.On(other)
	topic := tarry.NewTopic[int]("q")
	one := func(c *tarry.Client, p tarry.Pushed, err error) ([]tarry.Pushed, *tarry.Client, error) {
		return []tarry.Pushed{p}, c, err
	}
	draft := tarry.NewDraft("q", nil)
	for name, push := range map[string]func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error){
		"Push": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			p, err := c.Push(ctx, "q", nil)
			return one(c, p, err)
		},
		"PushDraft": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			p, err := c.PushDraft(ctx, draft)
			return one(c, p, err)
		},
		"Rearm": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			p, err := c.Rearm(ctx, "q", "a", tarry.In(0), nil)
			return one(c, p, err)
		},
		"Topic.Push": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			p, err := topic.Push(ctx, c, 1)
			return one(c, p, err)
		},
		"Topic.Rearm": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			p, err := topic.Rearm(ctx, c, "b", tarry.In(0), 1)
			return one(c, p, err)
		},
		"PushMany": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			ps, err := c.PushMany(ctx, []tarry.Draft{draft, draft})
			return ps, c, err
		},
		"PushAtomic": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			ps, err := c.PushAtomic(ctx, []tarry.Draft{draft, draft, draft})
			return ps, c, err
		},
		"Topic.PushMany": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			ps, err := topic.PushMany(ctx, c, []int{1, 2})
			return ps, c, err
		},
		"Client.On": func(ctx context.Context) ([]tarry.Pushed, *tarry.Client, error) {
			p, err := on.Push(ctx, "q", nil)
			return one(on, p, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			ps, on, err := push(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(calls) != 1 || len(calls[0].Drafts) != len(ps) || calls[0].Atomic != (name == "PushAtomic") {
				t.Fatalf("the middleware saw %+v, of %d messages", calls, len(ps))
			}
			for _, p := range ps {
				if got := headersOf(t, on, "q", p); p.Err != nil || got != "by=middleware" {
					t.Errorf("pushed %+v with headers %q", p, got)
				}
			}
		})
	}
	if len(draft.Headers) > 0 {
		t.Errorf("the caller's draft has headers %v", draft.Headers)
	}
}

func TestPushMiddlewareIsNotCalledForNothing(t *testing.T) {
	c := clientWith(t, func(tarry.PushFunc) tarry.PushFunc {
		return func(context.Context, tarry.PushCall) ([]tarry.Pushed, error) {
			t.Error("called")
			return nil, nil
		}
	})
	if ps, err := c.PushMany(t.Context(), nil); err != nil || len(ps) != 0 {
		t.Errorf("no messages: %v, %v", ps, err)
	}
	if _, err := c.PushAtomic(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := c.PushMany(t.Context(), make([]tarry.Draft, tarry.MaxBatch+1)); !errors.Is(err, tarry.ErrTooLarge) {
		t.Errorf("too many: %v", err)
	}
	ps, err := tarry.NewTopic[func()]("q").PushMany(t.Context(), c, []func(){func() {}})
	if err != nil || len(ps) != 1 || !errors.Is(ps[0].Err, tarry.ErrInvalid) {
		t.Errorf("a body that cannot be encoded: %v, %v", ps, err)
	}
	_ = c.Close()
	if _, err := c.Push(t.Context(), "q", nil); !errors.Is(err, tarry.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestPushMiddlewareOrder(t *testing.T) {
	c := clientWith(t, stamp("n", "1"), stamp("n", "2"))
	mine := tarry.NewDraft("q", nil, tarry.Header("n", "0"))
	mine.Headers = append(make([]tarry.MessageHeader, 0, 8), mine.Headers...) // with room behind
	p, err := c.PushDraft(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	if got := headersOf(t, c, "q", p); got != "n=0 n=1 n=2" {
		t.Errorf("headers %q", got)
	}
	if room := mine.Headers[:2]; room[1].Name != "" {
		t.Errorf("the caller's memory holds %v", room)
	}
}

// What middleware makes of messages is checked as if the caller had.
func TestPushMiddlewareIsCheckedInside(t *testing.T) {
	c := clientWith(t, stamp(strings.Repeat("x", tarry.MaxHeaderBytes+1), ""))
	if _, err := c.Push(t.Context(), "q", nil); !errors.Is(err, tarry.ErrInvalid) {
		t.Errorf("a header that is too large: %v", err)
	}
	ps, err := c.PushMany(t.Context(), []tarry.Draft{tarry.NewDraft("q", nil)})
	if err != nil || !errors.Is(ps[0].Err, tarry.ErrInvalid) {
		t.Errorf("a header that is too large, among many: %v, %v", ps, err)
	}
}

func TestPushMiddlewareAnswers(t *testing.T) {
	down := errors.New("down")
	for name, tc := range map[string]struct {
		answer []tarry.Pushed
		err    error
		want   error
	}{
		"fails":         {nil, down, down},
		"fails one":     {[]tarry.Pushed{{Err: down}}, nil, down},
		"says nothing":  {nil, nil, tarry.ErrInvalid},
		"says too much": {make([]tarry.Pushed, 2), nil, tarry.ErrInvalid},
		"pretends":      {[]tarry.Pushed{{Outcome: tarry.Kept}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := clientWith(t, func(tarry.PushFunc) tarry.PushFunc {
				return func(context.Context, tarry.PushCall) ([]tarry.Pushed, error) { return tc.answer, tc.err }
			})
			p, err := c.Push(t.Context(), "q", nil, tarry.Key("k"))
			if !errors.Is(err, tc.want) || p.Err != nil {
				t.Errorf("got %+v, %v", p, err)
			}
			if e, ok := errors.AsType[*tarry.Error](err); tc.want == down && (!ok || e.Op != "push" || e.Queue != "q" || e.Key != "k") {
				t.Errorf("the error does not say of which message: %v", err)
			}
			if info, err := c.Queue(t.Context(), "q"); err == nil && info.Ready != 0 {
				t.Errorf("pushed: %+v", info)
			}
		})
	}
}

// A single push tells of the message that is in its way, and so does one of many.
func TestPushMiddlewareHandsConflictsOn(t *testing.T) {
	c := clientWith(t, stamp("n", "1"))
	first, err := c.Push(t.Context(), "q", nil, tarry.Key("k"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Push(t.Context(), "q", nil, tarry.Key("k"))
	if !errors.Is(err, tarry.ErrExists) || p.ID != first.ID || p.Err != nil {
		t.Errorf("got %+v, %v", p, err)
	}
	ps, err := c.PushMany(t.Context(), []tarry.Draft{tarry.NewDraft("q", nil, tarry.Key("k")), tarry.NewDraft("q", nil)})
	if err != nil || !errors.Is(ps[0].Err, tarry.ErrExists) || ps[0].ID != first.ID || ps[1].Err != nil {
		t.Errorf("got %+v, %v", ps, err)
	}
	if _, err := c.PushAtomic(t.Context(), []tarry.Draft{tarry.NewDraft("q", nil, tarry.Key("k"))}); !errors.Is(err, tarry.ErrExists) {
		t.Errorf("atomic: %v", err)
	}
}

// Values that cannot be encoded fail beside the others, which keep their places.
func TestPushMiddlewareBesideBadValues(t *testing.T) {
	c := clientWith(t, stamp("n", "1"))
	ps, err := tarry.NewTopic[any]("q").PushMany(t.Context(), c, []any{func() {}, 1, func() {}, 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range ps {
		if bad := i%2 == 0; bad != errors.Is(p.Err, tarry.ErrInvalid) || bad == (p.ID != 0) {
			t.Errorf("[%d]: %+v", i, p)
		}
	}
}

// Middleware may split, repeat and leave out, as long as each draft gets its answer.
func TestPushMiddlewareMaySplit(t *testing.T) {
	c := clientWith(t, func(next tarry.PushFunc) tarry.PushFunc {
		return func(ctx context.Context, call tarry.PushCall) (out []tarry.Pushed, err error) {
			for chunk := range slices.Chunk(call.Drafts, 2) {
				ps, err := next(ctx, tarry.PushCall{Drafts: chunk})
				if err != nil {
					return nil, err
				}
				out = append(out, ps...)
			}
			return out, nil
		}
	})
	var drafts []tarry.Draft
	for i := range 5 {
		drafts = append(drafts, tarry.NewDraft("q", nil, tarry.Key(fmt.Sprint(i))))
	}
	ps, err := c.PushMany(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range ps {
		if p.Key != fmt.Sprint(i) || p.Outcome != tarry.Created {
			t.Errorf("[%d]: %+v", i, p)
		}
	}
}

func TestPushMiddlewarePanicsReachTheCaller(t *testing.T) {
	bad := true
	c := clientWith(t, func(next tarry.PushFunc) tarry.PushFunc {
		return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
			if bad {
				panic("middleware")
			}
			return next(ctx, call)
		}
	})
	func() {
		defer func() {
			if p := recover(); p != "middleware" {
				t.Errorf("recovered %v", p)
			}
		}()
		_, _ = c.Push(t.Context(), "q", nil)
	}()
	bad = false
	if _, err := c.Push(t.Context(), "q", nil); err != nil {
		t.Error(err)
	}
}

// The handler's own middleware runs inside the worker's, and so does that of a claim.
func TestMiddlewareOfOneHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var trail list[string]
		note := func(name string) tarry.Middleware {
			return func(next tarry.HandlerFunc) tarry.HandlerFunc {
				return func(ctx context.Context, m *tarry.Message[[]byte]) error {
					trail.add(name)
					return next(ctx, m)
				}
			}
		}
		handler := func(context.Context, *tarry.Message[string]) error { trail.add("handler"); return nil }
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Middleware: []tarry.Middleware{note("worker")}})
		tarry.Handle(w, bytesTopic, handler, tarry.WithMiddleware(note("a"), note("b")), tarry.WithMiddleware(note("c")))
		stop := run(t, w)
		push(t, c, "q", "x")
		pass(0)
		stop()
		push(t, c, "q", "y", tarry.Key("k"))
		if err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), handler, tarry.WithMiddleware(note("claim"))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(trail.all(), " "); got != "worker a b c handler claim handler" {
			t.Errorf("ran: %s", got)
		}
	})
}

func TestVerdict(t *testing.T) {
	wrong := errors.New("wrong")
	for _, tc := range []struct {
		err  error
		want tarry.Action
	}{
		{nil, tarry.DoAck}, {wrong, tarry.DoRetry}, {tarry.RetryIn(1, nil), tarry.DoRetry}, {tarry.Snooze(1), tarry.DoSnooze},
		{fmt.Errorf("no: %w", tarry.Bury(wrong)), tarry.DoBury}, {tarry.Settled(), 0},
	} {
		if got := tarry.Verdict(tc.err); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
}
