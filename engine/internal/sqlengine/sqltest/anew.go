package sqltest

import (
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// keyCalls are calls by key about a message that is due.
var keyCalls = map[string]func(ctx context.Context, e engine.Whole, ref engine.Ref) error{
	"cancel": func(ctx context.Context, e engine.Whole, ref engine.Ref) error {
		errs, err := e.Cancel(ctx, []engine.Ref{ref})
		if err == nil {
			err = errs[0]
		}
		return err
	},
	"reschedule": func(ctx context.Context, e engine.Whole, ref engine.Ref) error {
		_, err := e.Reschedule(ctx, ref, engine.When{In: time.Hour})
		return err
	},
	"claim": func(ctx context.Context, e engine.Whole, ref engine.Ref) error {
		_, err := e.Claim(ctx, ref, engine.Want{TTR: time.Minute, Remote: true})
		return err
	},
}

// A call by key waits for a transaction that replaces the message, and then finds the new one.
func besideReplacement(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	for how, end := range map[string]func(tx Transaction, ref engine.Ref) error{
		"ack": func(tx Transaction, ref engine.Ref) error {
			held, err := e.Claim(patience(t), ref, engine.Want{TTR: time.Minute, Remote: true})
			ok(t, err)
			settled, err := tx.Settle(patience(t), acksOf([]engine.Lease{held}))
			ok(t, err)
			return settled[0].Err
		},
		"cancel": func(tx Transaction, ref engine.Ref) error {
			errs, err := tx.Cancel(patience(t), []engine.Ref{ref})
			ok(t, err)
			return errs[0]
		},
	} {
		for name, call := range keyCalls {
			ref := engine.Ref{Queue: "q", Key: how + name}
			push(t, e, engine.Message{Queue: "q", Key: ref.Key})
			tx := bed.Begin(t, e)
			ok(t, end(tx, ref))
			push(t, tx, engine.Message{Queue: "q", Key: ref.Key})
			got := make(chan error, 1)
			go func() { got <- call(patience(t), e, ref) }()
			bed.Waits(t)
			ok(t, tx.Commit())
			if err := <-got; err != nil {
				t.Errorf("%s beside %s and push: %v", name, how, err)
			}
		}
	}
}
