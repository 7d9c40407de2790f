package engine

import (
	"cmp"
	"slices"
	"time"
)

// Defaults for terms that neither the push nor the queue's settings set.
const (
	DefaultPriority    = 1024
	DefaultMaxAttempts = 20
	DefaultTTR         = time.Minute
)

// Never, as ExpireAfter or Remember of Terms, turns it off whatever the queue's settings
// say.
const Never time.Duration = -1

// Terms are the handling options of a push. The queue's settings fill in unset ones, and the
// defaults of this package fill in the rest.
type Terms struct {
	Priority    *uint32         // nil: unset
	MaxAttempts uint32          // 0: unset
	Backoff     []time.Duration // empty: unset
	TTR         time.Duration   // 0: unset
	ExpireAfter time.Duration   // 0: unset; Never
	Remember    time.Duration   // 0: unset; Never
	Isolate     *bool           // nil: unset
}

// Policy is how a message is handled: the terms of its push, with everything unset filled
// in at that time. It does not change with the settings.
type Policy struct {
	Priority    uint32          // lower goes first among ready messages
	MaxAttempts uint32          // leases before the message is dead; at least 1
	Backoff     []time.Duration // delay after the n-th failed attempt; the last repeats; empty: see RetryDelay
	TTR         time.Duration   // how long a lease lasts unless the Want says otherwise
	ExpireAfter time.Duration   // dropped instead of leased once this long past its original due time; 0: never
	Remember    time.Duration   // how long the key is remembered after the message is gone; 0: not
	Isolate     bool            // after a second lapse: see Spread and Alone
}

// Resolve returns the policy of a message pushed with these terms to a queue with these
// defaults, which may be nil.
func (t *Terms) Resolve(defaults *Terms) Policy {
	p := Policy{Priority: DefaultPriority, MaxAttempts: DefaultMaxAttempts, TTR: DefaultTTR, Isolate: true}
	if defaults != nil {
		defaults.fill(&p)
	}
	t.fill(&p)
	return p
}

// Clone returns a deep copy of t.
func (t *Terms) Clone() Terms {
	c := *t
	c.Backoff = slices.Clone(t.Backoff)
	if t.Priority != nil {
		c.Priority = new(*t.Priority)
	}
	if t.Isolate != nil {
		c.Isolate = new(*t.Isolate)
	}
	return c
}

// fill copies the terms that are set to a policy.
func (t *Terms) fill(p *Policy) {
	if t.Priority != nil {
		p.Priority = *t.Priority
	}
	if t.MaxAttempts != 0 {
		p.MaxAttempts = t.MaxAttempts
	}
	if len(t.Backoff) > 0 {
		p.Backoff = t.Backoff
	}
	if t.TTR != 0 {
		p.TTR = t.TTR
	}
	if t.ExpireAfter != 0 {
		p.ExpireAfter = max(0, t.ExpireAfter)
	}
	if t.Remember != 0 {
		p.Remember = max(0, t.Remember)
	}
	if t.Isolate != nil {
		p.Isolate = *t.Isolate
	}
}

// Terms returns terms that resolve to this policy whatever a queue's settings say. The
// exception is an empty Backoff, which the settings fill in.
func (p *Policy) Terms() Terms {
	return Terms{
		Priority: &p.Priority, MaxAttempts: p.MaxAttempts, Backoff: p.Backoff, TTR: p.TTR,
		ExpireAfter: cmp.Or(p.ExpireAfter, Never), Remember: cmp.Or(p.Remember, Never), Isolate: &p.Isolate,
	}
}

func (t *Terms) validate(op string, ref Ref) error {
	switch {
	case t.MaxAttempts > MaxMaxAttempts:
		return Invalid(op, ref, "max_attempts is %d; allowed are 1 to %d", t.MaxAttempts, MaxMaxAttempts)
	case t.ExpireAfter < 0 && t.ExpireAfter != Never:
		return Invalid(op, ref, "expire_after %s is negative", t.ExpireAfter)
	case t.Remember < 0 && t.Remember != Never:
		return Invalid(op, ref, "remember %s is negative", t.Remember)
	case t.Remember > MaxRemember:
		return Invalid(op, ref, "remember %s is longer than %s", t.Remember, MaxRemember)
	}
	if err := CheckTTR(op, ref.Queue, t.TTR); err != nil {
		return err
	}
	return CheckBackoff(op, ref, t.Backoff)
}
