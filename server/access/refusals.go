package access

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// refusals bounds the lines about forbidden changes, since any token could fill the disk with
// them. Lines left out are summed up later, by token and host.
type refusals struct {
	by    map[refuser]*refused
	swept time.Time
	all   *rate.Limiter
	timer *time.Timer // runs until the sums are written; nil: nothing was left out
}

// refuser is a token at a host.
type refuser struct{ token, host string }

type refused struct {
	refuser
	who   string // the token's name
	limit *rate.Limiter
	left  int // lines left out since the last sum
	since time.Time
	last  time.Time // when something was last refused
}

const (
	freeRefusals = 10          // lines for a token at a host; then one a second
	allRefusals  = 100         // lines for all together; then one a second
	mostRefusers = 1000        // counted apart; all others count as one
	sumsAfter    = time.Minute // how long after the first line left out the sums are written
	mostSums     = 20          // sums at a time: those of the refusers with the most, and one for all others
)

func newRefusals() refusals {
	return refusals{by: make(map[refuser]*refused), all: rate.NewLimiter(1, allRefusals)}
}

// of returns the counts of a token at a host, or those shared by all for which there is no
// room.
func (r *refusals) of(t *Token, host string, now time.Time) *refused {
	key, who := refuser{"", host}, ""
	if t != nil {
		key.token, who = t.ID, t.Name
	}
	if c := r.by[key]; c != nil {
		return c
	}
	if len(r.by) >= mostRefusers && now.Sub(r.swept) >= sumsAfter {
		r.swept = now
		for k, c := range r.by {
			if c.left == 0 && now.Sub(c.last) >= sumsAfter {
				delete(r.by, k)
			}
		}
	}
	if len(r.by) >= mostRefusers {
		if key, who = (refuser{}), ""; r.by[key] != nil {
			return r.by[key]
		}
	}
	c := &refused{refuser: key, who: who, limit: rate.NewLimiter(1, freeRefusals)}
	r.by[key] = c
	return c
}

// Refused writes a line about a change that was forbidden to a client at host; t may be nil.
// When there are many, some lines are left out. A token at a host gets ten and then one a
// second, and all together get a hundred and then one a second. Lines left out are summed up
// within a minute, and by Close.
func (a *Audit) Refused(t *Token, host string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	c := a.refusals.of(t, host, now)
	c.last = now
	if !a.closed && (!c.limit.AllowN(now, 1) || !a.refusals.all.AllowN(now, 1)) {
		if c.left++; c.left == 1 {
			c.since = now
		}
		if a.refusals.timer == nil {
			a.refusals.timer = time.AfterFunc(sumsAfter, func() {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.sum()
			})
		}
		return
	}
	a.note(now, args)
}

// sum writes how many lines were left out. Called with a.mu held.
func (a *Audit) sum() {
	r := &a.refusals
	if r.timer == nil {
		return
	}
	r.timer.Stop()
	r.timer = nil
	var all []*refused
	for _, c := range r.by {
		if c.left > 0 {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *refused) int { return b.left - a.left })
	now := time.Now()
	if len(all) > mostSums {
		others := &refused{since: now}
		for _, c := range all[mostSums-1:] {
			others.left += c.left
			if c.since.Before(others.since) {
				others.since = c.since
			}
			c.left = 0
		}
		all = append(all[:mostSums-1], others)
	}
	for _, c := range all {
		line := []any{"what", "refusals left out", "count", c.left, "since", c.since.UTC()}
		if c.token != "" {
			line = append(line, "who", c.who, "token_id", c.token)
		}
		if c.host != "" {
			line = append(line, "from", c.host)
		}
		c.left = 0
		a.note(now, append(line, "result", "forbidden"))
	}
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
