package access

import (
	"maps"
	"time"

	"golang.org/x/time/rate"
)

// refusals bounds the lines about forbidden changes, since any token could fill the disk with
// them. A later line says how many were left out.
type refusals struct {
	by    map[refuser]*refused
	swept time.Time
	all   *rate.Limiter
	left  int // lines left out since the last sum
	since time.Time
	timer *time.Timer // runs until the sum is written; nil: nothing was left out
}

// refuser is a token at a host.
type refuser struct{ token, host string }

type refused struct {
	limit *rate.Limiter
	last  time.Time // when something was last refused
}

const (
	freeRefusals = 10          // lines for a token at a host; then one a second
	allRefusals  = 100         // lines for all together; then one a second
	mostRefusers = 1000        // counted apart; all others count as one
	sumAfter     = time.Minute // how long after the first line left out the sum is written
)

func newRefusals() refusals {
	return refusals{by: make(map[refuser]*refused), all: rate.NewLimiter(1, allRefusals)}
}

// free reports whether there may be another line about a token at a host.
func (r *refusals) free(t *Token, host string, now time.Time) bool {
	key := refuser{host: host}
	if t != nil {
		key.token = t.ID
	}
	if r.by[key] == nil && len(r.by) >= mostRefusers && now.Sub(r.swept) >= sumAfter {
		r.swept = now
		maps.DeleteFunc(r.by, func(_ refuser, c *refused) bool { return now.Sub(c.last) >= sumAfter })
	}
	if r.by[key] == nil && len(r.by) >= mostRefusers {
		key = refuser{} // shared by all for which there is no room
	}
	c := r.by[key]
	if c == nil {
		c = &refused{limit: rate.NewLimiter(1, freeRefusals)}
		r.by[key] = c
	}
	c.last = now
	return c.limit.AllowN(now, 1) && r.all.AllowN(now, 1)
}

// Refused writes a line about a change that was forbidden to a client at host; t may be nil.
// When there are many, some lines are left out. A token at a host gets ten and then one a
// second, and all together get a hundred and then one a second. How many lines were left out
// is written within a minute, and by Close.
func (a *Audit) Refused(t *Token, host string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, r := time.Now(), &a.refusals
	if r.free(t, host, now) || a.closed {
		a.note(now, args)
		return
	}
	if r.left++; r.timer == nil {
		r.since = now
		r.timer = time.AfterFunc(sumAfter, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.sum()
		})
	}
}

// sum writes how many lines were left out. Called with a.mu held.
func (a *Audit) sum() {
	r := &a.refusals
	if r.timer == nil {
		return
	}
	r.timer.Stop()
	n := r.left
	r.timer, r.left = nil, 0
	a.note(time.Now(), []any{"what", "refusals left out", "count", n, "since", r.since.UTC(), "result", "forbidden"})
}

// Close writes how many lines were left out. Later lines are written without a bound. It does
// not close the writer.
func (a *Audit) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.timer.Stop()
	a.sum()
}
