package demo_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/demo"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// told is what a shop says, and what its client's meter counts.
type told struct {
	shop   *demo.Shop
	c      *tarry.Client
	mu     sync.Mutex
	orders map[int][]line
	due    map[string][]due // of the messages of merchant.notify, by key: each time they are leased
	counts map[string]int   // by what happened, a space and the queue
}

type line struct {
	at   time.Time
	what string
}

// due is when a message was due, by the shop's calendar, and for the how many-th time.
type due struct {
	at      time.Time
	attempt uint32
}

// leasing is an engine that notes what it leases.
type leasing struct {
	*memengine.Engine
	to *told
	t  *testing.T
}

func (e leasing) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	g, err := e.Engine.Lease(ctx, wants)
	e.to.mu.Lock()
	defer e.to.mu.Unlock()
	for _, q := range g.Queues {
		for _, l := range q.Messages {
			if g.Now.Before(l.Due) {
				e.t.Errorf("%s %s is leased at %s, and due at %s", l.Queue, l.Key, g.Now, l.Due)
			}
			if l.Queue == "merchant.notify" {
				e.to.due[l.Key] = append(e.to.due[l.Key], due{e.to.shop.Calendar(l.Due), l.Attempt})
			}
		}
	}
	return g, err
}

func open(t *testing.T, speed int) *told {
	t.Helper()
	s := &told{shop: demo.New(speed), orders: make(map[int][]line), due: make(map[string][]due), counts: make(map[string]int)}
	s.shop.Say = func(at time.Time, order int, what string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.orders[order] = append(s.orders[order], line{at, what})
	}
	count := func(what, queue string, n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts[what+" "+queue] += n
	}
	s.c = tarry.New(leasing{memengine.New(&memengine.Config{Now: s.shop.Now}), s, t}, &tarry.Config{Meter: &tarry.Meter{
		Pushed: func(queue string, outcome tarry.Outcome, err error, n int) {
			if err != nil {
				t.Errorf("a push to %s: %v", queue, err)
			}
			if outcome == tarry.Created {
				count("pushed", queue, n)
			}
		},
		Cancelled: func(queue string, err error, n int) {
			if err == nil {
				count("cancelled", queue, n)
			}
		},
		Settled: func(queue string, as tarry.EventKind, n int) {
			if as == tarry.EngineFailed || as == tarry.LeaseLost {
				t.Errorf("a settlement in %s: %s", queue, as)
			}
			count(as.String(), queue, n)
		},
	}})
	t.Cleanup(func() { _ = s.c.Close() })
	return s
}

// check compares what the shop says with what it must do.
func (s *told) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	count := make(map[string]int)
	end := s.shop.Calendar(s.shop.Now())
	for _, number := range slices.Sorted(maps.Keys(s.orders)) {
		if number > 0 {
			for what, n := range order(t, number, s.orders[number], end) {
				count[what] += n
			}
		}
	}
	for _, what := range []string{"paid", "cancelled", "late", "five stars", "rated", "retried", "died"} {
		if count[what] < 3 {
			t.Errorf("%d orders are %s", count[what], what)
		}
	}
	for what, want := range map[string]int{
		"cancelled order.unpaid": count["paid"], "acked order.unpaid": count["cancelled"],
		"cancelled ride.rate": count["rated"], "acked ride.rate": count["five stars"],
		"retried merchant.notify": count["retried"], "died merchant.notify": count["died"],
	} {
		if s.counts[what] != want {
			t.Errorf("%s: the client counts %d, the shop says %d", what, s.counts[what], want)
		}
	}
}

// order checks what happened to an order, and counts it.
func order(t *testing.T, number int, all []line, end time.Time) map[string]int {
	t.Helper()
	count := make(map[string]int)
	at := make(map[string]time.Time)
	for _, l := range all {
		for what, says := range map[string]string{
			"made": "made, ", "paid": "paid in time", "cancelled": "not paid in 30 minutes", "late": "paid too late", "delivered": "delivered",
			"five stars": "five stars", "rated": "of five stars", "retried": "notified again in", "died": "a dead letter after 6 attempts",
		} {
			if strings.Contains(l.what, says) && (what != "five stars" || strings.Contains(l.what, "not rated")) {
				count[what]++
				at[what] = l.at
			}
		}
	}
	within := func(what, since string, least, most time.Duration) {
		if d := at[what].Sub(at[since]); count[what] > 0 && (d < least || d > most) {
			t.Errorf("order %d is %s %s after it was %s", number, what, d, since)
		}
	}
	within("paid", "made", 0, 30*time.Minute+10*time.Second) // some milliseconds, at 360 times life's speed
	within("cancelled", "made", 30*time.Minute, 31*time.Minute)
	within("five stars", "delivered", 48*time.Hour, 48*time.Hour+time.Minute)
	within("rated", "delivered", 0, 48*time.Hour+10*time.Second)
	if ended := count["paid"] + count["cancelled"]; count["made"] != 1 || ended > 1 || ended == 0 && end.Sub(at["made"]) > 31*time.Minute {
		t.Errorf("order %d: %v", number, all)
	}
	if count["five stars"]+count["rated"] > count["delivered"] || count["delivered"] > count["paid"] || count["late"] > 1-count["paid"] {
		t.Errorf("order %d: %v", number, all)
	}
	return count
}

// backoffs checks that merchants are notified again after the times that the shop promises.
func (s *told) backoffs(t *testing.T) {
	t.Helper()
	want := []time.Duration{15 * time.Second, 30 * time.Second, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute}
	var seen [6]int
	for key, all := range s.due {
		for i, d := range all {
			if d.attempt != uint32(i+1) {
				t.Fatalf("order %s: attempts %v", key, all)
			}
			seen[i]++
			if i == 0 {
				continue
			}
			// The backoff begins when the merchant has answered, 5 s later, and machines are late.
			if got := d.at.Sub(all[i-1].at); got < want[i-1]+5*time.Second || got > want[i-1]+6*time.Second {
				t.Errorf("order %s: attempt %d is %s after the one before", key, d.attempt, got)
			}
		}
	}
	if seen[5] < 3 {
		t.Errorf("so many messages have come to an attempt: %v", seen)
	}
}

// At life's speed, to the second: four days that are past, and one that is not.
func TestDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1)
		if err := s.shop.Play(t.Context(), s.c); err != nil {
			t.Fatal(err)
		}
		s.check(t)
		before := len(s.orders)
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
		defer stop()
		if err := s.shop.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		s.check(t)
		s.backoffs(t)
		if n := len(s.orders) - before; n < 500 {
			t.Errorf("%d orders are made within a day", n)
		}
		if got := s.counts["acked merchant.notify"]; got < 1000 {
			t.Errorf("merchants are told of %d orders within five days", got)
		}
	})
}

// What the dashboard shows first is the same each time.
func TestPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown [2][]tarry.QueueInfo
		for i := range shown {
			s := open(t, demo.Speed)
			if err := s.shop.Play(t.Context(), s.c); err != nil {
				t.Fatal(err)
			}
			s.check(t)
			var err error
			if shown[i], _, err = s.c.Queues(t.Context(), "", 100); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(shown[0], shown[1]) {
			t.Errorf("first there is %+v, then %+v", shown[0], shown[1])
		}
		least := map[string]tarry.QueueInfo{
			"mail.digest": {Scheduled: 1000}, "merchant.notify": {Dead: 50}, "order.unpaid": {Scheduled: 5},
			"price.import": {Ready: 12, Paused: true}, "report.export": {Ready: 20}, "ride.rate": {Scheduled: 300}, "subscription.renew": {Scheduled: 1000},
		}
		for _, q := range shown[0] {
			want, ok := least[q.Queue]
			if !ok || q.Scheduled < want.Scheduled || q.Ready < want.Ready || q.Leased < want.Leased || q.Dead < want.Dead || q.Paused != want.Paused {
				t.Errorf("%+v, want at least %+v", q, want)
			}
		}
		if len(shown[0]) != len(least) {
			t.Errorf("there are %d queues, want %d", len(shown[0]), len(least))
		}
	})
}
