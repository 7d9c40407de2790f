package tarry_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

type claimed = *tarry.Message[string]

func TestClaimRenewsItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		p := push(t, c, "q", "x", tarry.Key("k"), tarry.TTR(10*time.Second))
		var others atomic.Int32
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, claimed) error { others.Add(1); return nil })
		var stop func()
		err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(ctx context.Context, m claimed) error {
			stop = run(t, w)
			if m.Body != "x" || m.Attempt != 1 || m.ID != p.ID {
				t.Errorf("got %+v", m)
			}
			time.Sleep(95 * time.Second)
			return ctx.Err()
		})
		if err != nil || others.Load() != 0 {
			t.Errorf("claim: %v; handled %d times by others meanwhile", err, others.Load())
		}
		gone(t, c, p)
		stop()
	})
}

func TestClaimObeysItsHandler(t *testing.T) {
	boom := errors.New("boom")
	never := bytesTopic.OnlyIf(func(context.Context, claimed) (bool, error) { return false, nil })
	hang := func(ctx context.Context, _ claimed) error { <-ctx.Done(); return context.Cause(ctx) }
	gives := func(err error) func(context.Context, claimed) error {
		return func(context.Context, claimed) error { return err }
	}
	for name, tc := range map[string]struct {
		handler func(context.Context, claimed) error
		opts    []tarry.HandleOption
		err     error // wrapped by what Claim returns
		text    string
		state   tarry.State
		attempt uint32
		in      time.Duration
		topic   *tarry.Topic[string] // nil: bytesTopic
	}{
		"ack":      {handler: gives(nil)},
		"error":    {gives(boom), nil, boom, "boom", tarry.Scheduled, 1, time.Minute, nil},
		"retry in": {gives(tarry.RetryIn(time.Hour, boom)), nil, boom, "boom", tarry.Scheduled, 1, time.Hour, nil},
		"snooze":   {gives(tarry.Snooze(time.Hour)), nil, nil, "snooze", tarry.Scheduled, 0, time.Hour, nil},
		"bury":     {gives(tarry.Bury(boom)), nil, boom, "boom", tarry.Dead, 1, 0, nil},
		"panic":    {func(context.Context, claimed) error { panic("ouch") }, nil, nil, "panicked: ouch", tarry.Scheduled, 1, time.Minute, nil},
		"timeout":  {hang, []tarry.HandleOption{tarry.HandlerTimeout(time.Second)}, tarry.ErrHandlerTimeout, "time is over", tarry.Scheduled, 1, time.Minute + time.Second, nil},
		"guard":    {handler: func(context.Context, claimed) error { return boom }, topic: never},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *tarry.Client) {
				start := time.Now()
				p := push(t, c, "q", "x", tarry.Key("k"), tarry.Backoff(time.Minute))
				err := cmp.Or(tc.topic, bytesTopic).Claim(t.Context(), c, tarry.ByKey("k"), tc.handler, tc.opts...)
				if tc.state == tarry.Gone {
					if err != nil {
						t.Errorf("claim: %v", err)
					}
					gone(t, c, p)
					return
				}
				if err == nil || !strings.Contains(err.Error(), tc.text) || tc.err != nil && !errors.Is(err, tc.err) {
					t.Errorf("claim: %v", err)
				}
				info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q"))
				if err != nil || info.State != tc.state || info.Attempt != tc.attempt || tc.in > 0 && info.Due.Sub(start) != tc.in {
					t.Errorf("became %s at attempt %d, due in %s, %v", info.State, info.Attempt, info.Due.Sub(start), err)
				}
			})
		})
	}
}

// A message that no claim can handle dies of its attempts.
func TestClaimLetsAPoisonousMessageDie(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		p := push(t, c, "q", "x", tarry.Key("k"), tarry.MaxAttempts(3), tarry.Backoff(time.Second))
		n := 0
		for {
			err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(context.Context, claimed) error { n++; panic("poison") })
			if errors.Is(err, tarry.ErrNotFound) {
				break
			}
			pass(time.Second)
		}
		if info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q")); err != nil || info.State != tarry.Dead || n != 3 {
			t.Errorf("after %d attempts: %s, %v", n, info.State, err)
		}
	})
}

// Who claims and leaves gives back; who runs out of time has used an attempt.
func TestClaimWhoseCallerLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		attempt uint32
	}{
		"cancelled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Minute, cancel)
			return ctx, cancel
		}, 0},
		"out of time": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *tarry.Client) {
				push(t, c, "q", "x", tarry.Key("k"))
				ctx, cancel := tc.ctx(t.Context())
				defer cancel()
				err := bytesTopic.Claim(ctx, c, tarry.ByKey("k"), func(ctx context.Context, _ claimed) error {
					<-ctx.Done()
					return ctx.Err()
				})
				if !errors.Is(err, ctx.Err()) {
					t.Errorf("claim: %v", err)
				}
				if info, err := c.Get(t.Context(), tarry.ByKey("k").Of("q")); err != nil || info.Attempt != tc.attempt || info.State == tarry.Leased {
					t.Errorf("became %s at attempt %d, %v", info.State, info.Attempt, err)
				}
			})
		})
	}
}

// The claim's answer took longer than the lease: it is begun only when the engine
// confirms that it is still ours.
func TestClaimStartsNothingThatIsOver(t *testing.T) {
	for _, taken := range []bool{false, true} {
		inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
			push(t, c, "q", "x", tarry.Key("k"), tarry.TTR(time.Second))
			e.befall(hangs, "Claim")
			time.AfterFunc(time.Second, func() {
				if e.recover(); taken {
					e.befall(hangs, "Extend")
				}
			})
			if taken {
				time.AfterFunc(10*time.Second, func() {
					if err := c.Cancel(context.Background(), tarry.ByKey("k").Of("q")); err != nil {
						t.Error(err)
					}
					e.recover()
				})
			}
			var begun bool
			err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(context.Context, claimed) error { begun = true; return nil })
			if begun == taken || taken != errors.Is(err, tarry.ErrLeaseLost) {
				t.Errorf("taken: %t; begun: %t, %v", taken, begun, err)
			}
		})
	}
}

// A claim ends soon after its context on an engine that hangs.
func TestClaimOnAnEngineThatHangs(t *testing.T) {
	inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
		push(t, c, "q", "x", tarry.Key("k"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		err := bytesTopic.Claim(ctx, c, tarry.ByKey("k"), func(context.Context, claimed) error { e.befall(hangs); return nil })
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > time.Minute+time.Second {
			t.Errorf("left after %s: %v", took, err)
		}
	})
}
