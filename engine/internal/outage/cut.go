package outage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Cut repeatedly cuts all connections while clients push and cancel and a worker runs. Before
// that it cuts one within a transaction.
func Cut(t *testing.T, url string) {
	beside := Open(t, url)
	p := servertest.StartProxy(t, url)
	l := NewLedger(t, queue)
	c := Open(t, p.URL())
	within(t, p, beside, c)
	for n := range 5 {
		_, err := c.Queue(t.Context(), queue)
		check(t, err)
		l.Push(c, fmt.Sprint("rest", n), 0)
		p.Cut() // while the connections are idle: the next call must not fail
	}
	l.Failing = unavailable(t)
	l.Work(c, tarry.WorkerConfig{LeaseTTR: leaseTTR})
	stop := l.ProduceAndCancel(c, 0, 20*time.Millisecond, 300*time.Millisecond, time.Hour)
	for n := range 40 {
		p.DropReplies(n%3 == 0) // until the cut
		time.Sleep(time.Duration(5+rand.IntN(40)) * time.Millisecond)
		p.Cut()
	}
	l.More(100, patience)
	stop()
	t.Logf("the rest was handled after %v", l.Rest(patience))
	l.Settled(beside, patience)
}

// within loses each answer of a call in turn, with its connection, until a transaction ends
// before its commit. The call must succeed all the same, and a figure must count the lost
// connection. Nothing else may call meanwhile.
func within(t *testing.T, p *servertest.Proxy, beside, c *tarry.Client) {
	t.Helper()
	_, err := beside.Push(t.Context(), queue, nil, tarry.Key("within"), tarry.In(time.Hour))
	check(t, err)
	call := func() error { // a transaction that reads before it writes
		_, err := c.Reschedule(t.Context(), tarry.ByKey("within").Of(queue), tarry.In(time.Hour))
		return err
	}
	was := undone(t, c, "connection")
	for range 10 { // answers to other calls may come between
		lost := true
		for n := 1; lost; n++ {
			p.LoseAnswer(n)
			err := call()
			lost = p.LoseAnswer(0)
			switch told := undone(t, c, "connection") > was; {
			case err != nil && (told || !lost):
				t.Fatalf("the call was not repeated, and returned %v", err)
			case told:
				check(t, beside.Cancel(t.Context(), tarry.ByKey("within").Of(queue)))
				return
			}
		}
	}
	t.Fatal("each answer of a call was lost in turn, and no figure tells of the connections")
}

// lossy is a store that loses answers, one at a time.
type lossy struct {
	*testing.T
	proxy           *servertest.Proxy
	through, beside *tarry.Client
}

// AnswersLost loses each answer of several calls in turn, among them the answer to the
// commit, which leaves the outcome unknown. It checks that repeating the call is safe.
func AnswersLost(t *testing.T, url string) {
	b := &lossy{T: t, beside: Open(t, url)}
	b.proxy = servertest.StartProxy(t, url)
	b.through = Open(t, b.proxy.URL())
	ref := func(key string) tarry.Ref { return tarry.ByKey(key).Of(queue) }
	push := func(c *tarry.Client, key string) error {
		_, err := c.Push(t.Context(), queue, nil, tarry.Key(key), tarry.In(time.Hour), tarry.OnConflict(tarry.Keep))
		return err
	}
	state := func(key string) tarry.State {
		i, err := b.beside.Get(t.Context(), ref(key))
		if errors.Is(err, tarry.ErrNotFound) {
			return 0
		}
		check(t, err)
		return i.State
	}
	check(t, push(b.through, "first")) // so that ids are reserved and the queue's number is known
	b.each("push", func(key string) (call func() error, happened func() bool) {
		return func() error { return push(b.through, key) }, func() bool { return state(key) != 0 }
	})
	b.each("cancel", func(key string) (call func() error, happened func() bool) {
		check(t, push(b.beside, key))
		return func() error { return b.through.Cancel(t.Context(), ref(key)) }, func() bool { return state(key) == 0 }
	}, tarry.ErrNotFound)
	b.each("reschedule", func(key string) (call func() error, happened func() bool) {
		check(t, push(b.beside, key))
		due := time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
		return func() error {
				_, err := b.through.Reschedule(t.Context(), ref(key), tarry.At(due))
				return err
			}, func() bool {
				i, err := b.beside.Get(t.Context(), ref(key))
				check(t, err)
				return i.Due.Equal(due)
			}
	})
	b.each("ack", func(key string) (call func() error, happened func() bool) {
		check(t, push(b.beside, key))
		_, err := b.beside.Reschedule(t.Context(), ref(key), tarry.In(0))
		check(t, err)
		lease, err := b.beside.Claim(t.Context(), ref(key), tarry.LeaseOptions{TTR: time.Hour})
		check(t, err)
		return func() error {
			settled, err := b.through.Settle(t.Context(), []tarry.Settlement{{Token: lease.Token, Do: tarry.DoAck}})
			if err == nil {
				err = settled[0].Err
			}
			return err
		}, func() bool { return state(key) == 0 }
	}, tarry.ErrLeaseLost)
}

// each runs rounds until one loses the answer to a commit. The errors in again are valid
// answers to the repetition of a call that took effect.
func (b *lossy) each(name string, prepare func(key string) (call func() error, happened func() bool), again ...error) {
	b.Helper()
	for round := range 10 { // answers to other calls may come between
		if b.round(fmt.Sprint(name, " ", round, "."), prepare, again) {
			return
		}
	}
	b.Errorf("%s: no answer to a commit was lost", name)
}

// round makes calls that lose their first answer, their second, and so on, until a call loses
// none. It reports whether the answer to a commit was lost.
func (b *lossy) round(name string, prepare func(key string) (call func() error, happened func() bool), again []error) (unknowns bool) {
	b.Helper()
	for n := 1; ; n++ {
		call, happened := prepare(fmt.Sprint(name, n))
		b.proxy.LoseAnswer(n)
		err := call()
		lost := b.proxy.LoseAnswer(0)
		switch {
		case err != nil && !lost:
			b.Fatalf("%s: no answer was lost, but the call failed: %v", name, err)
		case err == nil && !happened():
			b.Errorf("%s: answer %d was lost; the call succeeded and had no effect", name, n)
		case err != nil:
			Says(b, err, tarry.ErrUnavailable, "")
			switch did := happened(); {
			case did && unknown(err):
				unknowns = true
			case did:
				b.Errorf("%s: answer %d was lost; the call had its effect and returned %v", name, n, err)
			}
		}
		if !lost {
			break
		}
		err = call()
		for _, a := range again {
			if errors.Is(err, a) {
				err = nil
			}
		}
		if err != nil || !happened() {
			b.Errorf("%s: answer %d was lost; the repetition returned %v", name, n, err)
		}
		if n == 50 {
			b.Fatalf("%s: every call lost an answer", name)
		}
	}
	return unknowns
}
