package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestRefusalsSayWhatToDo(t *testing.T) {
	ref := engine.Ref{Queue: "q", Key: "k"}
	for _, c := range []struct {
		err  error
		is   error
		says string
	}{
		{engine.Refuse("push", ref, engine.ErrExists), engine.ErrExists,
			`tarry: push q key "k": key is taken (choose another key, or on_conflict keep, replace, keep_due or rearm)`},
		{engine.Refuse("cancel", engine.Ref{Queue: "q", ID: 7}, engine.ErrLeased), engine.ErrLeased,
			`tarry: cancel q id 7: message is leased (a worker has it: it is too late to change, cancel or claim it)`},
		{engine.Refuse("get", ref, engine.ErrNotFound), engine.ErrNotFound, `tarry: get q key "k": not found`},
		{engine.RefuseDead("claim", ref), engine.ErrNotFound, `tarry: claim q key "k": not found (it is dead: redrive it)`},
		{engine.RefuseNotDue(ref, time.Time{}), engine.ErrNotDue, `tarry: claim q key "k": message is not due (the queue is paused)`},
		{engine.RefuseNotDue(ref, time.UnixMilli(1).In(time.FixedZone("", 3600))), engine.ErrNotDue,
			`tarry: claim q key "k": message is not due (it is due at 1970-01-01T00:00:00.001Z)`},
		{engine.RefuseClaim(ref, time.UnixMilli(1)), engine.ErrLimit,
			`tarry: claim q key "k": limit reached (the queue's rate allows the next at 1970-01-01T00:00:00.001Z)`},
	} {
		if !errors.Is(c.err, c.is) || c.err.Error() != c.says {
			t.Errorf("%v\nwant %s", c.err, c.says)
		}
	}
	next := time.UnixMilli(1)
	if e := (*engine.Error)(nil); !errors.As(engine.RefuseClaim(ref, next), &e) || !e.Until.Equal(next) {
		t.Errorf("a claim held back until a known time: %+v", e)
	}
	if err := engine.Refuse("get", ref, nil); err != nil {
		t.Error(err)
	}
	for state, want := range map[engine.State]error{
		engine.Gone: engine.ErrNotFound, engine.Dead: engine.ErrNotFound, engine.Leased: engine.ErrLeased, engine.Ready: nil, engine.Scheduled: nil,
	} {
		if err := engine.RefuseUnlessWaiting("claim", ref, state); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", state, err, want)
		}
	}
}

func TestReleasesGiveEachLeaseBack(t *testing.T) {
	got := engine.Releases([]engine.Lease{{Token: "a"}, {Token: "b"}})
	want := []engine.Settlement{{Token: "a", Do: engine.Release}, {Token: "b", Do: engine.Release}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
}
