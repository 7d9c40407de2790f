package enginetest

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

var getTests = []test{
	{"all of a message is shown", func(b *bed) {
		b.need("Get", b.caps.Get)
		m := b.msg("k", dueLater)
		m.Body, m.Headers = []byte("\x00body"), []engine.Header{{Name: "a", Value: "b"}}
		m.Backoff, m.ExpireAfter = []time.Duration{time.Second, time.Minute}, time.Hour
		m.Terms = b.able(m.Terms)
		before := b.now().Truncate(time.Millisecond)
		r := b.push(m)
		i := b.state(b.id(r.ID), engine.Scheduled, 0)
		if problem := sameContent(i.Content, m.Content); problem != "" {
			b.Error(problem)
		}
		if problem := samePolicy(i.Policy, m.Resolve(nil)); problem != "" {
			b.Error(problem)
		}
		if i.ID != r.ID || i.Queue != b.queue || i.Key != m.Key || !i.Due.Equal(r.Due) || !i.Expires.Equal(expires(r.Due, i.Policy)) ||
			i.LastError != "" || !i.Deadline.IsZero() || !i.Died.IsZero() {
			b.Errorf("%+v", i)
		}
		if i.Created.Before(before) || i.Created.After(b.now()) {
			b.Errorf("created %v, pushed at %v", i.Created, before)
		}
		for name, at := range map[string]time.Time{"due": i.Due, "created": i.Created, "expires": i.Expires} {
			if at.IsZero() && !b.caps.Expiry {
				continue
			}
			if !at.Equal(at.Truncate(time.Millisecond)) || at.Location() != time.UTC {
				b.Errorf("%s %v is not in whole milliseconds of UTC", name, at)
			}
		}
	}},
	{"unknown ones are not found", func(b *bed) {
		b.need("Get", b.caps.Get)
		r := b.push(b.msg("k", dueNow))
		b.absent(b.id(1 << 62))
		b.absent(engine.Ref{Queue: queueName(), ID: r.ID})
		if b.caps.Keys {
			b.absent(b.key("other"))
			b.absent(engine.Ref{Queue: queueName(), Key: "k"})
		}
	}},
	{"what is returned is the caller's", func(b *bed) {
		b.need("Get", b.caps.Get)
		m := b.msg("k", dueLater)
		m.Body, m.Headers = []byte("original"), []engine.Header{{Name: "n", Value: "v"}}
		r := b.push(m)
		i := b.get(b.id(r.ID))
		copy(i.Body, "scribble")
		i.Headers[0].Value = "x"
		i.Backoff[0] = 1
		if i = b.get(b.id(r.ID)); string(i.Body) != "original" || i.Headers[0].Value != "v" || i.Backoff[0] != long {
			b.Fatalf("%+v", i)
		}
	}},
}

var claimTests = []test{
	{"a due message is leased to who asks", func(b *bed) {
		c := optional[engine.Claimer](b, "Claim", b.caps.Claim)
		r := b.push(b.msg("k", dueNow))
		l, err := c.Claim(b.Context(), b.id(r.ID), engine.Want{TTR: time.Hour})
		b.is(err, nil)
		if problem := b.checkGrant(b.now(), engine.Want{Max: 1, TTR: time.Hour}, engine.Granted{Messages: []engine.Lease{l}}); problem != "" {
			b.Fatal(problem)
		}
		if l.ID != r.ID || l.Attempt != 1 || string(l.Body) != "body of "+l.Key || l.Deadline.After(b.now().Add(time.Hour+time.Second)) {
			b.Fatalf("%+v", l)
		}
		b.none("claimed")
		_, err = c.Claim(b.Context(), b.id(r.ID), engine.Want{})
		b.is(err, engine.ErrLeased)
		b.ack(l.Token)
		_, err = c.Claim(b.Context(), b.id(r.ID), engine.Want{})
		b.is(err, engine.ErrNotFound)
	}},
}
