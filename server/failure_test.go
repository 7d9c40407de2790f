package server

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestRetryAfter(t *testing.T) {
	ref := engine.Ref{Queue: "q", Key: "k"}
	in := func(d time.Duration) error { return engine.RefuseClaim(ref, time.Now().Add(d)) }
	for _, c := range []struct {
		err         error
		least, most int
	}{
		{engine.ErrLimit, 1, 1},
		{engine.RefuseClaim(ref, time.Time{}), 1, 1},
		{in(-time.Hour), 1, 1},
		{in(time.Millisecond), 1, 1},
		{in(time.Hour), 3500, 3600},
		{in(1000 * time.Hour), 86400, 86400},
	} {
		if got := retryAfter(c.err); got < c.least || got > c.most {
			t.Errorf("%v: %d s, want %d to %d", c.err, got, c.least, c.most)
		}
	}
}
