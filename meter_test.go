package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// metered notes all that a meter is told, but for how long it took.
type metered struct {
	mu   sync.Mutex
	told []string
}

func (m *metered) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, fmt.Sprintf(format, args...))
}

// heard returns what was told since it was last called.
func (m *metered) heard() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := m.told
	m.told = nil
	return told
}

func (m *metered) meter() *tarry.Meter {
	return &tarry.Meter{
		Called:    func(op string, _ time.Duration, err error) { m.note("call %s %v", op, short(err)) },
		Pushed:    func(q string, o tarry.Outcome, err error, n int) { m.note("push %s %v %v %d", q, o, short(err), n) },
		Cancelled: func(q string, err error, n int) { m.note("cancel %s %v %d", q, short(err), n) },
		Leased:    func(q string, n int) { m.note("lease %s %d", q, n) },
		Claimed:   func(q string, err error) { m.note("claim %s %v", q, short(err)) },
		Ended:     func(q string, expired, died int) { m.note("end %s %d %d", q, expired, died) },
		Settled:   func(q string, as tarry.EventKind, n int) { m.note("settle %s %v %d", q, as, n) },
		Started:   func(q string, late time.Duration) { m.note("%s started %s", q, late) },
		Handled: func(events []tarry.Event) {
			for _, e := range events {
				m.note("%s %s %s %s %d", e.Queue, e.Kind, e.Lateness, e.Duration, e.Count)
			}
		},
	}
}

// short is the sentinel of an error.
func short(err error) error {
	for _, s := range []error{tarry.ErrExists, tarry.ErrNotFound, tarry.ErrNotDue, tarry.ErrLeased, tarry.ErrLeaseLost} {
		if errors.Is(err, s) {
			return s
		}
	}
	return err
}

// inMeter runs f in a bubble with a metered client of memengine, whose calls can be left or not.
func inMeter(t *testing.T, f func(t *testing.T, c *tarry.Client, m *metered)) {
	t.Helper()
	for _, prompt := range []bool{true, false} {
		t.Run(fmt.Sprintf("prompt %t", prompt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var eng engine.Engine = memengine.New(nil)
				if !prompt {
					e := newTroubled()
					e.caps = func(c *engine.Capabilities) { c.Prompt = false }
					eng = e
				}
				m := new(metered)
				c := tarry.New(eng, &tarry.Config{Meter: m.meter()})
				defer eng.Close()
				defer c.Close()
				f(t, c, m)
			})
		})
	}
}

func heard(t *testing.T, m *metered, want ...string) {
	t.Helper()
	if got := m.heard(); !slices.Equal(got, want) {
		t.Errorf("the meter was told\n%q, want\n%q", got, want)
	}
}

func TestMeterIsToldOfCalls(t *testing.T) {
	inMeter(t, func(t *testing.T, c *tarry.Client, m *metered) {
		ctx := t.Context()
		if _, err := c.PushMany(ctx, []tarry.Draft{
			tarry.NewDraft("a", nil), tarry.NewDraft("a", nil, tarry.Key("k"), tarry.In(time.Hour)), tarry.NewDraft("a", nil, tarry.Key("k")),
			tarry.NewDraft("b", nil, tarry.Key("k"), tarry.MaxAttempts(1), tarry.TTR(time.Second)), tarry.NewDraft("b", nil, tarry.ExpireAfter(time.Minute)),
		}); err != nil {
			t.Fatal(err)
		}
		heard(t, m, "push a created <nil> 2", "push a  key is taken 1", "push b created <nil> 2", "call push <nil>")

		if _, err := c.CancelMany(ctx, []tarry.Ref{{Queue: "a", Key: "k"}, {Queue: "a", Key: "k"}, {Queue: "a", Key: "l"}}); err != nil {
			t.Fatal(err)
		}
		heard(t, m, "cancel a <nil> 1", "cancel a not found 1", "cancel a not found 1", "call cancel <nil>")

		time.Sleep(3 * time.Millisecond)
		got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"a"}, Max: 2})
		if err != nil {
			t.Fatal(err)
		}
		heard(t, m, "lease a 1", "call lease <nil>", "a started 3ms")
		ack := tarry.Settlement{Token: got.Messages[0].Token, Do: tarry.DoAck}
		if _, err = c.Settle(ctx, []tarry.Settlement{ack, {}, ack}); err != nil {
			t.Fatal(err)
		}
		heard(t, m, "call settle <nil>", "settle a acked 1", "settle a lease_lost 1")

		_, _ = c.Claim(ctx, tarry.ByKey("k").Of("b"), tarry.LeaseOptions{})
		_, _ = c.Claim(ctx, tarry.ByKey("k").Of("b"), tarry.LeaseOptions{})
		heard(t, m, "claim b <nil>", "lease b 1", "call claim <nil>", "claim b message is leased", "call claim message is leased")
	})
}

func TestMeterIsToldOfWhatEndsUnseen(t *testing.T) {
	inMeter(t, func(t *testing.T, c *tarry.Client, m *metered) {
		push(t, c, "q", "x", tarry.MaxAttempts(1), tarry.TTR(time.Second))
		if _, err := c.LeaseNow(t.Context(), []engine.Want{{Queue: "q", Max: 1}}); err != nil {
			t.Fatal(err)
		}
		push(t, c, "q", "x", tarry.ExpireAfter(time.Minute))
		m.heard()
		time.Sleep(time.Hour)
		if _, err := c.LeaseNow(t.Context(), []engine.Want{{Queue: "q", Max: 1}}); err != nil {
			t.Fatal(err)
		}
		heard(t, m, "end q 1 1", "lease  0", "call lease <nil>")
	})
}

func TestMeterIsToldWhatWorkersDo(t *testing.T) {
	inMeter(t, func(t *testing.T, c *tarry.Client, m *metered) {
		push(t, c, bytesTopic.Queue(), "x")
		time.Sleep(2 * time.Second)
		m.heard()
		w := tarry.NewWorker(c, nil)
		handle := func(context.Context, *tarry.Message[string]) error {
			time.Sleep(time.Second)
			return nil
		}
		tarry.Handle(w, bytesTopic, handle)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(2 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		worked := slices.DeleteFunc(m.heard(), func(s string) bool { return s == "lease  0" || s == "call lease <nil>" })
		if want := []string{"lease q 1", "q started 2s", "call settle <nil>", "q acked 2s 1s 1"}; !slices.Equal(worked, want) {
			t.Errorf("the meter was told\n%q, want\n%q", worked, want)
		}

		push(t, c, bytesTopic.Queue(), "x", tarry.Key("k"))
		time.Sleep(time.Hour)
		m.heard()
		if err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), handle); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // who claims may be answered before the meter is told
		heard(t, m, "claim q <nil>", "lease q 1", "call claim <nil>", "call settle <nil>", "q acked 1h0m0s 1s 1")
	})
}
