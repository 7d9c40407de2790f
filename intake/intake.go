package intake

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/forward"
)

// DefaultRemember is the default of Intake.Remember.
const DefaultRemember = 24 * time.Hour

// Intake takes the messages of a source into a queue.
type Intake struct {
	// Name is the intake's name in states, logs and tools, and in the keys made of senders'
	// ids: with another name, repeated messages are not recognized. Default: Queue.
	Name string

	// Queue is the queue that messages are pushed to.
	Queue string

	// Source is the URL of the source, as Open takes it.
	Source string

	// Target is the URL of a target as forward.Open takes it, for an implied route: see
	// Intakes.Routes. Default: none; a route of its own delivers.
	Target string

	// OnConflict is for messages with a key of their own: reject, keep, replace, keep_due or
	// rearm. With reject, the second is refused. Default: keep.
	OnConflict string

	// Remember is how long a key is known after its message has gone, so that a repeated
	// message is not pushed again. Default 24 h; negative: not at all.
	Remember time.Duration

	// Options are those of the source. The runner replaces their Logger.
	Options Options
}

// Complete returns a checked copy with defaults filled in. It does not check source and
// target.
func (i Intake) Complete() (Intake, error) {
	i.Name, i.OnConflict = cmp.Or(i.Name, i.Queue), cmp.Or(i.OnConflict, tarry.Keep.String())
	if i.Remember = cmp.Or(i.Remember, DefaultRemember); i.Remember < 0 {
		i.Remember = engine.Never
	}
	i.Options.complete()
	_, err := engine.ParseConflict(i.OnConflict)
	// A name is bounded as those of workers are.
	err = cmp.Or(engine.CheckQueue("intake", i.Queue), engine.CheckWorker("intake", i.Queue, i.Name), err)
	switch {
	case err != nil:
	case i.Source == "":
		err = invalid("it has no source")
	case i.Remember > engine.MaxRemember:
		err = invalid("remember is %s; at most %s is allowed", i.Remember, engine.MaxRemember)
	}
	return i, err
}

// same reports whether two complete intakes are equal. Their TLS is compared by pointer.
func (i Intake) same(o Intake) bool {
	i.Options.Logger, o.Options.Logger = nil, nil
	return i == o
}

// Intakes are the intakes of one Runner.
type Intakes []Intake

// Complete returns the intakes with their defaults filled in. Errors wrap tarry.ErrInvalid
// and name the intake.
func (is Intakes) Complete() (Intakes, error) {
	full := make(Intakes, len(is))
	for n := range is {
		var err error
		if full[n], err = is[n].Complete(); err != nil {
			return nil, is.wrong(n, err)
		}
		if slices.ContainsFunc(full[:n], func(o Intake) bool { return o.Name == full[n].Name }) {
			return nil, is.wrong(n, invalid("another intake has this name already; give it another"))
		}
	}
	return full, nil
}

// Check returns the first error of the intakes: that of Complete, of opening a source or a
// target, which does not connect, or of a target that leads back to the source.
func (is Intakes) Check() error {
	full, err := is.Complete()
	if err != nil {
		return err
	}
	for n, i := range full {
		if i.loops() {
			return is.wrong(n, invalid("its target publishes to the exchange that its queue is bound to, so each message would come again; give the target another exchange"))
		}
		if _, err := Open(i.Source, i.Options); err != nil {
			return is.wrong(n, err)
		}
	}
	return full.Routes().Check()
}

// loops reports whether what the target gets reaches the source again by its exchange.
func (i *Intake) loops() bool {
	from, err := url.Parse(i.Source)
	to, wrong := url.Parse(i.Target)
	if err != nil || wrong != nil || from.Scheme != to.Scheme || from.Host != to.Host || from.Path != to.Path {
		return false
	}
	f, t := from.Query(), to.Query()
	as := t.Has("key") || t.Has("exchanges") || t.Has("original") // otherwise than it came
	return f.Get("exchange") != "" && f.Get("exchange") == t.Get("exchange") && !as
}

// impliedConcurrency is how many messages an implied route sends at a time: brokers confirm
// many at once.
const impliedConcurrency = 512

// Routes returns the routes of the intakes that name a target. A target of AMQP gets what an
// intake of AMQP took as it was, unless its URL says otherwise.
func (is Intakes) Routes() (routes forward.Routes) {
	for _, i := range is {
		if i.Target == "" {
			continue
		}
		if u, err := url.Parse(i.Target); err == nil && strings.HasPrefix(u.Scheme, "amqp") && !u.Query().Has("original") {
			q := u.Query()
			q.Set("original", "true")
			u.RawQuery = q.Encode()
			i.Target = u.String()
		}
		routes = append(routes, forward.Route{Name: cmp.Or(i.Name, i.Queue), Queue: i.Queue, Target: i.Target, Concurrency: impliedConcurrency})
	}
	return routes
}

// wrong adds the intake to an error.
func (is Intakes) wrong(n int, err error) error {
	op := fmt.Sprintf("intake %d (%s)", n+1, cmp.Or(is[n].Name, is[n].Queue))
	if e, ok := errors.AsType[*tarry.Error](err); ok {
		return &tarry.Error{Op: op, Err: e.Err, Hint: e.Hint}
	}
	return fmt.Errorf("%s: %w", op, err)
}
