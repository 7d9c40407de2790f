package tarry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// What a message says of its own goes before what its worker says, and that before
// the default; what its handler says goes before both.
func TestRetryPolicyOfAWorker(t *testing.T) {
	boom := errors.New("boom")
	s := time.Second
	policy := tarry.RetryPolicy{MaxAttempts: 3, Backoff: []time.Duration{10 * s, 20 * s}}
	for name, tc := range map[string]struct {
		retry tarry.RetryPolicy
		push  []tarry.PushOption
		err   error
		at    []time.Duration // of the attempts, from the first
	}{
		"the worker's":             {policy, nil, boom, []time.Duration{0, 10 * s, 30 * s}},
		"the message's backoff":    {policy, []tarry.PushOption{tarry.Backoff(s)}, boom, []time.Duration{0, s, 2 * s}},
		"fewer by the message":     {policy, []tarry.PushOption{tarry.MaxAttempts(2)}, boom, []time.Duration{0, 10 * s}},
		"more by the message":      {policy, []tarry.PushOption{tarry.MaxAttempts(5)}, boom, []time.Duration{0, 10 * s, 30 * s, 50 * s, 70 * s}},
		"the handler's":            {policy, nil, tarry.RetryIn(s, boom), []time.Duration{0, s, 2 * s}},
		"buried":                   {policy, nil, tarry.Bury(boom), []time.Duration{0}},
		"attempts alone":           {tarry.RetryPolicy{MaxAttempts: 1}, nil, boom, []time.Duration{0}},
		"none, with a message's":   {tarry.RetryPolicy{}, []tarry.PushOption{tarry.MaxAttempts(2), tarry.Backoff(s)}, boom, []time.Duration{0, s}},
		"backoff of no time":       {tarry.RetryPolicy{MaxAttempts: 2, Backoff: []time.Duration{0}}, nil, boom, []time.Duration{0, 0}},
		"panics count like others": {policy, nil, nil, []time.Duration{0, 10 * s, 30 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *tarry.Client) {
				var rec record
				var at list[time.Duration]
				var last list[bool]
				start := time.Now()
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Retry: tc.retry, Observer: rec.observe})
				tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
					at.add(time.Since(start))
					last.add(m.LastAttempt())
					if tc.err == nil {
						panic("ouch")
					}
					return tc.err
				})
				stop := run(t, w)
				p := push(t, c, "q", "x", tc.push...)
				pass(time.Hour)
				if !slices.Equal(at.all(), tc.at) {
					t.Errorf("attempts at %v, want %v", at.all(), tc.at)
				}
				kind := tarry.Died
				if name == "buried" {
					kind = tarry.Buried
				} else if i := slices.Index(last.all(), true); i != len(tc.at)-1 {
					t.Errorf("the last attempt was told at %d of %d", i+1, len(tc.at))
				}
				rec.one(t, kind)
				if info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q")); err != nil || info.State != tarry.Dead || info.LastError == "" {
					t.Errorf("became %s, last error %q, %v", info.State, info.LastError, err)
				}
				stop()
			})
		})
	}
}

// What is no failure of the handler is none of the policy's business.
func TestRetryPolicyLeavesOthersAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		n := 0
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Retry: tarry.RetryPolicy{MaxAttempts: 1}})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			if n++; n < 5 {
				return tarry.Snooze(time.Minute)
			}
			return nil
		})
		stop := run(t, w)
		p := push(t, c, "q", "x")
		pass(time.Hour)
		if n != 5 {
			t.Errorf("handled %d times", n)
		}
		gone(t, c, p)
		stop()
	})
}

func TestRetryPolicyIsChecked(t *testing.T) {
	for name, p := range map[string]tarry.RetryPolicy{
		"more than the store grants": {MaxAttempts: tarry.DefaultMaxAttempts + 1},
		"too many delays":            {Backoff: make([]time.Duration, tarry.MaxBackoffs+1)},
		"negative":                   {Backoff: []time.Duration{-1}},
	} {
		bubble(t, func(t *testing.T, c *tarry.Client) {
			w := tarry.NewWorker(c, &tarry.WorkerConfig{Retry: p})
			tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
			if err := w.Run(t.Context()); !errors.Is(err, tarry.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", name, err)
			}
		})
	}
}
