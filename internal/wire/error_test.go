package wire

import (
	"errors"
	"io"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// An error comes out at the far end as what it was, under its status.
func TestErrorsKeepWhatTheyAre(t *testing.T) {
	ref := engine.Ref{Queue: "q", Key: "k"}
	for is, want := range map[error]int{
		engine.ErrInvalid: 400, engine.ErrUnauthorized: 401, engine.ErrForbidden: 403, engine.ErrNotFound: 404, engine.ErrExists: 409,
		engine.ErrLeased: 409, engine.ErrStale: 409, engine.ErrNotDue: 409, engine.ErrLeaseLost: 410, engine.ErrTooLarge: 413, engine.ErrLimit: 429,
		engine.ErrNoSpace: 507, engine.ErrUnsupported: 501, engine.ErrUnavailable: 503, engine.ErrDamaged: 500,
	} {
		before := &engine.Error{Op: "push", Queue: "q", Key: "k", Err: is, Hint: "do this"}
		shown := Shown(before)
		if shown.Status != want || shown.Code != engine.Code(is) {
			t.Errorf("%v: %d %s", is, shown.Status, shown.Code)
		}
		after := shown.Err("push", ref)
		if !errors.Is(after, is) || after.Error() != before.Error() && is != engine.ErrInvalid {
			t.Errorf("%v became %v", before, after)
		}
	}
	if shown := Shown(io.ErrUnexpectedEOF); shown.Status != 500 || shown.Code != "internal" {
		t.Errorf("%+v", shown)
	}
}

// What was called is said once, also where the server names less of it.
func TestErrorsNameTheCallOnce(t *testing.T) {
	ref := engine.Ref{Queue: "q", Key: "k"}
	want := (&engine.Error{Op: "push", Queue: "q", Key: "k", Err: engine.ErrLimit}).Error()
	for _, before := range []*engine.Error{{Op: "push"}, {Op: "push", Queue: "q"}, {Op: "push", Queue: "q", Key: "k"}} {
		before.Err = engine.ErrLimit
		if after := Shown(before).Err("push", ref); after.Error() != want || !errors.Is(after, engine.ErrLimit) {
			t.Errorf("%v became %v", before, after)
		}
	}
	other := (&engine.Error{Op: "push", Queue: "other", Err: engine.ErrLimit})
	if after := Shown(other).Err("push", ref); after.Error() != "tarry: push q key \"k\": push other: limit reached" {
		t.Errorf("%v became %v", other, after)
	}
}

// An answer that is cut off is no fault of its reader, so nothing says how to send it.
func TestCutOffAnswersHaveNoHint(t *testing.T) {
	_, err := Failed.Answer([]byte(`{"error":{"code":"inv`))
	if e, ok := err.(*Error); !ok || e.Hint != "" {
		t.Errorf("%+v", err)
	}
}
