package tarry_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

func TestJoinErrors(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		good := tarry.NewDraft("q", nil, tarry.Key("k"))
		out, err := c.PushMany(t.Context(), []tarry.Draft{good, tarry.NewDraft("a b", nil), good})
		if err != nil {
			t.Fatal(err)
		}
		if err := tarry.JoinErrors(out); !errors.Is(err, tarry.ErrInvalid) || !errors.Is(err, tarry.ErrExists) {
			t.Errorf("two of three pushes failed, and the error is %v", err)
		}
		if err := tarry.JoinErrors(out[:1]); err != nil {
			t.Errorf("the first push succeeded, and the error is %v", err)
		}
		gone, err := c.CancelMany(t.Context(), []tarry.Ref{tarry.ByKey("nosuch").Of("q")})
		if err != nil {
			t.Fatal(err)
		}
		if err := tarry.JoinErrors(gone); !errors.Is(err, tarry.ErrNotFound) {
			t.Errorf("cancelling what is not there failed with %v", err)
		}
	})
}

// The last of several options wins.
func TestLastDueWins(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	if d := tarry.NewDraft("q", nil, tarry.In(time.Hour), tarry.At(at)); d.Due.In != 0 || !d.Due.At.Equal(at) {
		t.Errorf("In and then At gives %+v", d.Due)
	}
	if d := tarry.NewDraft("q", nil, tarry.At(at), tarry.In(time.Hour)); d.Due.In != time.Hour || !d.Due.At.IsZero() {
		t.Errorf("At and then In gives %+v", d.Due)
	}
}

func TestAllQueues(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		drafts := make([]tarry.Draft, 0, 2300)
		for i := range cap(drafts) {
			drafts = append(drafts, tarry.NewDraft(fmt.Sprintf("q%d", i), nil))
		}
		if out, err := c.PushMany(t.Context(), drafts); err != nil || tarry.JoinErrors(out) != nil {
			t.Fatal(err, tarry.JoinErrors(out))
		}
		n, last := 0, ""
		for q, err := range c.AllQueues(t.Context()) {
			if err != nil || q.Queue <= last {
				t.Fatalf("%q after %q, %v", q.Queue, last, err)
			}
			last = q.Queue
			n++
		}
		if n != len(drafts) {
			t.Errorf("%d queues of %d", n, len(drafts))
		}
		c.Close()
		for _, err := range c.AllQueues(t.Context()) {
			if !errors.Is(err, tarry.ErrClosed) {
				t.Errorf("the error of a closed client is %v", err)
			}
		}
	})
}
