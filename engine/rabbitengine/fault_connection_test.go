package rabbitengine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// Connections are cut again and again, some after their answers were lost, in the midst of
// pushes and of leases.
func TestFaultCut(t *testing.T) {
	t.Parallel()
	url := rabbittest.Shared(t)
	p := rabbittest.StartProxy(t, url)
	l := book(t)
	l.During = func() { time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) } // to be cut in
	stop := load(l, client(t, p.URL()), client(t, p.URL()))
	for n := range 15 {
		l.More(10, faultPatience)
		p.DropReplies(n%3 == 0) // until the cut
		time.Sleep(time.Duration(5+rand.IntN(40)) * time.Millisecond)
		p.Cut()
	}
	l.More(100, faultPatience)
	stop()
	t.Logf("the rest was handled after %v", l.Rest(faultPatience))
}

// What the broker closes is opened again: connections, and channels whose processes in the
// broker die.
func TestFaultClosedByTheBroker(t *testing.T) {
	t.Parallel()
	s := rabbittest.Start(t)
	l := book(t)
	stop := load(l, client(t, s.URL()), client(t, s.URL()))
	for n := range 2 {
		for _, code := range []string{
			`[(catch rabbit_networking:close_connection(P, "told to")) || P <- rabbit_networking:connections()].`, // it may end by itself
			`[exit(P, kill) || P <- rabbit_channel:list()].`,
		} {
			l.More(50, faultPatience)
			s.Eval(code)
		}
		t.Logf("round %d: all went on after %v", n, l.More(1, faultPatience))
	}
	l.More(50, faultPatience)
	stop()
	l.Rest(faultPatience)
}

// Queues are deleted under the engine while they are empty: what comes after is handled.
func TestFaultQueueDeleted(t *testing.T) {
	t.Parallel()
	url := rabbittest.Shared(t)
	ch := bare(t, url)
	e := opened(t, url, Config{Unit: unit})
	c, l := client(t, url), book(t)
	l.Work(c, tarry.WorkerConfig{})
	push := func(what string) {
		for i := range 20 {
			l.Push(c, fmt.Sprint(what, i), time.Duration(i)*unit)
		}
	}
	push("before")
	layout := e.session.layout
	for _, name := range []string{layout.name(brokerQueue{delay: digitDelay{0, 7}}), layout.name(brokerQueue{delay: digitDelay{1, 1}}), layout.parking()} {
		l.Rest(faultPatience)
		_, err := ch.QueueDelete(name, false, false, false)
		ok(t, err)
		push(name)
		t.Logf("%s was deleted, and all was handled after %v", name, l.Rest(faultPatience))
	}
}

// The work queue is deleted while it is empty: what is pushed then is handled.
func TestFaultWorkQueueDeleted(t *testing.T) {
	t.Parallel()
	url := rabbittest.Shared(t)
	ch := bare(t, url)
	s := now(t, opened(t, url, Config{Unit: unit}))
	c, l := client(t, url), book(t)
	l.Work(c, tarry.WorkerConfig{})
	for n := range 3 {
		for i := range 20 {
			l.Push(c, fmt.Sprint(n, ".", i), time.Duration(i)*unit)
		}
		l.Rest(faultPatience)
		_, err := ch.QueueDelete(s.layout.workQueue("q"), false, false, false)
		ok(t, err)
		s.forget(brokerQueue{queue: "q"}) // this process misses it before the consumers of the other one are cancelled
		ok(t, s.ensure(t.Context(), brokerQueue{queue: "q"}))
	}
}
