package rabbitengine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// faultPatience is for how long anything is waited for while a broker fails and comes back,
// which takes it many seconds of a busy machine.
const faultPatience = 2 * time.Minute

// unit is that of the clients of these tests.
const unit = 50 * time.Millisecond

// client opens tarry on a vhost until the test's end.
func client(t testing.TB, url string) *tarry.Client {
	t.Helper()
	c := tarry.New(opened(t, url, Config{Unit: unit}), nil)
	t.Cleanup(func() { ok(t, c.Close()) })
	return c
}

// soon has the broker repeat soon, not after three minutes, what it has dead-lettered to a
// queue that was not there yet after a restart.
func soon() rabbittest.Option {
	return rabbittest.Arguments("-rabbit", "dead_letter_worker_publisher_confirm_timeout", "1000")
}

// book returns a ledger of queue q, which fails the test on any error but that the broker
// is not there, or takes nothing.
func book(t testing.TB) *outage.Ledger {
	l := outage.NewLedger(t, "q")
	l.Keyless, l.Insistence = true, faultPatience
	l.Failing = func(err error) {
		if !errors.Is(err, tarry.ErrUnavailable) && !errors.Is(err, tarry.ErrLimit) || strings.ContainsAny(err.Error(), "\n\t") {
			t.Errorf("it says %v", err)
		}
	}
	return l
}

// failed waits for a call to fail after a moment.
func failed(l *outage.Ledger, after time.Time) {
	l.Await("a call to fail", faultPatience, func() bool { return l.When.After(after) })
}

// load has two clients push and work.
func load(l *outage.Ledger, c, other *tarry.Client) (stop func()) {
	for _, c := range []*tarry.Client{c, other} {
		l.Work(c, tarry.WorkerConfig{LeaseTTR: time.Minute})
	}
	return l.Produce(c, 0, 2*unit, 7*unit, time.Second)
}
