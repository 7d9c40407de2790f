package forward

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/names"
)

// The defaults and bounds of a Route.
const (
	DefaultConcurrency = 16
	MaxConcurrency     = 1000
	MinRate            = 0.001
	MaxRate            = 1_000_000
	MaxBurst           = 1_000_000
)

// Route sends the messages of a queue, or of all queues that match a pattern, to a target.
type Route struct {
	// Name is the route's name in logs and tools. Default: Queue.
	Name string

	// Queue is the name of a queue or a pattern. Each * matches any characters, including
	// none, dots and slashes. Queues with names that begin with "tarry." are reserved: only
	// a pattern that begins so matches them.
	Queue string

	// Target is the URL of the target, as Open takes it.
	Target string

	// Concurrency is how many messages of all the route's queues are forwarded at a time.
	// Default 16, at most 1000.
	Concurrency int

	// Rate bounds how many messages of all the route's queues are forwarded per second:
	// 0.001 to 1,000,000. Default: no bound.
	Rate float64

	// Burst is how many messages may be sent at once after a pause, at most 1,000,000.
	// Default: the messages that Rate allows in 0.1 s, at least 1.
	Burst int

	// Options are those of the target. The router replaces their Logger.
	Options Options
}

func (r *Route) pattern() bool { return names.IsPattern(r.Queue) }

// takes reports whether the queue is the route's, or matches its pattern.
func (r *Route) takes(queue string) bool {
	return names.Match(r.Queue, queue)
}

// width is how many messages are leased at a time. With a rate, it is what the rate allows
// during one Send plus a burst. More would only wait, out of reach of other processes. So no
// message waits longer than the rate takes for a burst, plus one timeout.
func (r *Route) width() int {
	if r.Rate == 0 {
		return r.Concurrency
	}
	needed := math.Ceil(r.Rate * r.Options.Timeout.Seconds())
	return int(min(float64(r.Concurrency), float64(r.Burst)+needed))
}

// Complete returns a checked copy with defaults filled in. It shares only the TLS with r. It
// does not check the target.
func (r Route) Complete() (Route, error) {
	if err := r.check(); err != nil {
		return r, err
	}
	o, err := r.Options.Complete()
	if err != nil {
		return r, err
	}
	o.TLS = r.Options.TLS
	r.Options = *o
	r.Name = cmp.Or(r.Name, r.Queue)
	r.Concurrency = cmp.Or(r.Concurrency, DefaultConcurrency)
	if r.Rate > 0 && r.Burst == 0 {
		r.Burst = max(1, int(r.Rate/10))
	}
	return r, nil
}

// same reports whether two complete routes are equal. Their TLS is compared by pointer.
func (r Route) same(o Route) bool {
	if r.Options.TLS != o.Options.TLS {
		return false
	}
	r.Options.TLS, o.Options.TLS = nil, nil
	r.Options.Logger, o.Options.Logger = nil, nil
	return reflect.DeepEqual(r, o)
}

// longest bounds how long a message may be held: two turns of the rate, since there may be two
// workers, then the Send of the previous message in its slot and its own Send.
func (r *Route) longest() time.Duration {
	turn := 0.0
	if r.Rate > 0 {
		turn = float64(r.width()) / r.Rate
	}
	return 2*(r.Options.Timeout+time.Duration(turn*float64(time.Second))) + late
}

func (r *Route) check() error {
	if r.Target == "" {
		return invalid("it has no target")
	}
	name := strings.ReplaceAll(r.Queue, "*", "x")
	if err := engine.CheckQueue("route", name); err != nil {
		return err
	}
	switch {
	case r.Concurrency < 0 || r.Concurrency > MaxConcurrency:
		return invalid("the concurrency is %d; allowed are 1 to %d", r.Concurrency, MaxConcurrency)
	case math.IsNaN(r.Rate) || r.Rate != 0 && (r.Rate < MinRate || r.Rate > MaxRate):
		return invalid("the rate is %v a second; allowed are %v to %d, and 0 for no bound", r.Rate, MinRate, MaxRate)
	case r.Burst < 0 || r.Burst > MaxBurst:
		return invalid("the burst is %d; allowed are 1 to %d", r.Burst, MaxBurst)
	case r.Burst > 0 && r.Rate == 0:
		return invalid("a burst of %d needs a rate", r.Burst)
	}
	return nil
}

// Routes are the routes of one Router. For a queue, the route that names it wins, else the
// first with a pattern that matches.
type Routes []Route

// Index returns the index of the route that takes a queue, or -1.
func (rs Routes) Index(queue string) int {
	found := -1
	for i := range rs {
		switch {
		case rs[i].Queue == queue:
			return i
		case found < 0 && rs[i].takes(queue):
			found = i
		}
	}
	return found
}

// Check returns the first error of the routes: that of Complete, or of opening a target, which
// does not connect.
func (rs Routes) Check() error {
	if _, err := rs.Complete(); err != nil {
		return err
	}
	for i := range rs {
		t, err := rs[i].open()
		if err == nil {
			err = t.Close()
		}
		if err != nil {
			return rs.wrong(i, err)
		}
	}
	return nil
}

// Complete returns the routes with their defaults filled in. Errors wrap tarry.ErrInvalid
// and name the route.
func (rs Routes) Complete() (Routes, error) {
	queues, names := make(map[string]int), make(map[string]int)
	full := make(Routes, len(rs))
	for i := range rs {
		var err error
		if full[i], err = rs[i].Complete(); err != nil {
			return nil, rs.wrong(i, err)
		}
		if first, twice := queues[full[i].Queue]; twice {
			return nil, rs.wrong(i, invalid("route %d has this queue already; leave one of them out", first+1))
		}
		if first, twice := names[full[i].Name]; twice {
			return nil, rs.wrong(i, invalid("route %d has this name already; give it another", first+1))
		}
		queues[full[i].Queue], names[full[i].Name] = i, i
	}
	return full, nil
}

// wrong adds the route to an error.
func (rs Routes) wrong(i int, err error) error {
	op := fmt.Sprintf("route %d (%s)", i+1, cmp.Or(rs[i].Name, rs[i].Queue))
	if e, ok := errors.AsType[*tarry.Error](err); ok {
		return &tarry.Error{Op: op, Err: e.Err, Hint: e.Hint}
	}
	return fmt.Errorf("%s: %w", op, err)
}

func (r *Route) open() (Target, error) { return Open(r.Target, &r.Options) }

var errClosed = &tarry.Error{Op: "route", Err: tarry.ErrClosed, Hint: "the router has ended; make a new one"}
