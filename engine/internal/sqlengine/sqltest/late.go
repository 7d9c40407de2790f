package sqltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// lateOps are calls on one message of the queue "late", and what another process does after
// their caller has given up.
var lateOps = []struct {
	name       string
	there      bool // the message exists, and is leased if the call settles
	call, next func(ctx context.Context, e engine.Whole, token string) error
}{
	{"push", false, pushLate(engine.Keep, "late"), pushLate(engine.Keep, "next")},
	{"replace", true, pushLate(engine.Replace, "late"), pushLate(engine.Replace, "next")},
	{"cancel", true, cancelLate, pushLate(engine.Replace, "next")},
	{"reschedule", true, moveLate(2 * time.Hour), moveLate(3 * time.Hour)},
	{"ack", true, settleLate(engine.Ack), settleLate(engine.Release)},
	{"retry", true, settleLate(engine.Retry), settleLate(engine.Ack)},
}

func pushLate(on engine.Conflict, body string) func(context.Context, engine.Whole, string) error {
	return func(ctx context.Context, e engine.Whole, _ string) error {
		r, err := e.Push(ctx, []engine.Message{{Queue: "late", Key: "k", OnConflict: on, Due: engine.When{In: time.Hour}, Content: engine.Content{Body: []byte(body)}}})
		if err == nil {
			err = r[0].Err
		}
		return err
	}
}

func cancelLate(ctx context.Context, e engine.Whole, _ string) error {
	errs, err := e.Cancel(ctx, []engine.Ref{{Queue: "late", Key: "k"}})
	if err == nil {
		err = errs[0]
	}
	return err
}

func moveLate(in time.Duration) func(context.Context, engine.Whole, string) error {
	return func(ctx context.Context, e engine.Whole, _ string) error {
		_, err := e.Reschedule(ctx, engine.Ref{Queue: "late", Key: "k"}, engine.When{In: in})
		return err
	}
}

func settleLate(do engine.Action) func(context.Context, engine.Whole, string) error {
	return func(ctx context.Context, e engine.Whole, token string) error {
		s, err := e.Settle(ctx, []engine.Settlement{{Token: token, Do: do, When: &engine.When{In: time.Hour}}})
		if err == nil {
			err = s[0].Err
		}
		return err
	}
}

// Late delays the commit of a transaction: the proxy of through withholds the request that
// contains commit, so the caller learns that the outcome is unknown. The proxy delivers it
// after another process has made a call, whose answer must stay true. Or the caller vanishes
// in its transaction: then nothing has happened, and others are not delayed.
func Late(t *testing.T, other, through engine.Whole, p *servertest.Proxy, commit string) {
	for i, vanishes := range slices.Repeat([]bool{false, true}, len(lateOps)) {
		op := lateOps[i/2]
		ctx := patience(t)
		_, err := other.Purge(ctx, "late", engine.PurgeDead|engine.PurgeFinished)
		ok(t, err)
		token := ""
		if op.there {
			ok(t, pushLate(engine.Keep, "first")(ctx, other, ""))
		}
		if op.name == "ack" || op.name == "retry" {
			_, err := other.Reschedule(ctx, engine.Ref{Queue: "late", Key: "k"}, engine.When{})
			ok(t, err)
			l, err := other.Claim(ctx, engine.Ref{Queue: "late", Key: "k"}, engine.Want{TTR: time.Hour, Remote: true})
			ok(t, err)
			token = l.Token
		}
		_, err = through.Queue(ctx, "late") // from now on it knows the queue
		ok(t, err)
		before := stateOf(t, other)
		p.Withhold(commit)
		if err := op.call(ctx, through, token); engine.Code(err) != "unavailable" {
			t.Errorf("%s: its commit is withheld, and the error is %v", op.name, err)
		}
		if vanishes {
			p.HangUp()
			if is := stateOf(t, other); is != before {
				t.Errorf("%s: its caller vanished, and it changes %s to %s", op.name, before, is)
			}
			ok(t, op.next(ctx, other, token))
			continue
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // it may have to wait
		answered := op.next(short, other, token)
		cancel()
		is := stateOf(t, other)
		if !p.Deliver() {
			t.Fatalf("%s: nothing was withheld", op.name)
		}
		now := stateOf(t, other)
		failed, _ := errors.AsType[*engine.Error](answered)
		switch {
		case failed != nil && failed.Hint == engine.HintUnknown: // it was slow, and may be carried out at any time
		case answered == nil && now != is:
			t.Errorf("%s: delivered late, it changes %s to %s", op.name, is, now)
		case answered != nil && is != before:
			t.Errorf("%s: a failed call changes %s to %s", op.name, before, is)
		}
	}
}

// stateOf describes the message, and checks the counts of the queue.
func stateOf(t *testing.T, e engine.Whole) string {
	t.Helper()
	q, err := e.Queue(patience(t), "late")
	ok(t, err)
	i, err := e.Get(patience(t), engine.Ref{Queue: "late", Key: "k"})
	if err != nil && engine.Code(err) != "not_found" {
		t.Fatal(err)
	}
	if again, err := e.Queue(patience(t), "late"); err != nil || again != q { // a late commit came between
		ok(t, err)
		return stateOf(t, e)
	}
	live := int64(0)
	if i.State.Live() {
		live = 1
	}
	if n := q.Scheduled + q.Ready + q.Leased; n != live {
		t.Errorf("%d messages are counted, want %d", n, live)
	}
	return fmt.Sprintf("%d %v %q due %v attempt %d", i.ID, i.State, i.Body, i.Due.UnixMilli(), i.Attempt)
}
