package engine

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTermsAreResolved(t *testing.T) {
	usual := Policy{Priority: DefaultPriority, MaxAttempts: DefaultMaxAttempts, TTR: DefaultTTR, Isolate: true}
	queue := Terms{Priority: new(uint32(5)), MaxAttempts: 3, Backoff: []time.Duration{time.Second}, TTR: time.Hour, ExpireAfter: time.Minute, Remember: time.Hour, Isolate: new(false)}
	own := Terms{Priority: new(uint32(0)), MaxAttempts: 7, Backoff: []time.Duration{0}, TTR: time.Second, ExpireAfter: Never, Remember: Never, Isolate: new(true)}
	ownPolicy := Policy{MaxAttempts: 7, Backoff: []time.Duration{0}, TTR: time.Second, Isolate: true}
	queuePolicy := Policy{Priority: 5, MaxAttempts: 3, Backoff: []time.Duration{time.Second}, TTR: time.Hour, ExpireAfter: time.Minute, Remember: time.Hour}
	for name, c := range map[string]struct {
		terms    Terms
		defaults *Terms
		want     Policy
	}{
		"nothing said":          {Terms{}, nil, usual},
		"the queue says":        {Terms{}, &queue, queuePolicy},
		"both say":              {own, &queue, ownPolicy},
		"the push says":         {own, nil, ownPolicy},
		"as it was":             {queuePolicy.Terms(), &own, queuePolicy},
		"as it was, of nothing": {ownPolicy.Terms(), &queue, ownPolicy},
	} {
		if got := c.terms.Resolve(c.defaults); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	clone := queue.Clone()
	*clone.Priority, clone.Backoff[0], *clone.Isolate = 6, 0, true
	if *queue.Priority != 5 || queue.Backoff[0] != time.Second || *queue.Isolate {
		t.Error("a clone shares what it was made of")
	}
}

func TestSettingsAreValidated(t *testing.T) {
	for name, s := range map[string]Settings{
		"negative dead_max":    {DeadMax: -1},
		"many dead":            {DeadMax: MaxCount + 1},
		"negative max_pending": {MaxPending: -1},
		"negative in_flight":   {InFlight: -1},
		"negative dead_keep":   {DeadKeep: -1},
		"negative rate":        {Rate: -1},
		"slow rate":            {Rate: MinRate / 2},
		"fast rate":            {Rate: MaxRate * 2},
		"no rate":              {Rate: math.NaN()},
		"endless rate":         {Rate: math.Inf(1)},
		"burst alone":          {Burst: 1},
		"negative burst":       {Rate: 1, Burst: -1},
		"large burst":          {Rate: 1, Burst: MaxBurst + 1},
		"endless rest":         {Rate: MinRate, Burst: 3651},
		"attempts":             {Defaults: Terms{MaxAttempts: MaxMaxAttempts + 1}},
		"memory":               {Defaults: Terms{Remember: -2}},
	} {
		err := s.Validate("q")
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		explained(t, err)
		if s.Unset() {
			t.Errorf("%s: unset", name)
		}
	}
	for range 20 { // what is wrong first is told, each time
		err := (&Settings{DeadMax: -1, MaxPending: -2, InFlight: -3}).Validate("q")
		if err == nil || !strings.Contains(err.Error(), "dead_max") {
			t.Fatal(err)
		}
	}
	most := Settings{Terms{Priority: new(uint32(0)), Remember: MaxRemember}, math.MaxInt64, MaxCount, math.MaxInt64, MaxCount, MaxCount, MaxCount, MaxRate, MaxBurst}
	for _, s := range []Settings{{}, most, {Rate: MinRate, Burst: 3650}} {
		if err := s.Validate("q"); err != nil {
			t.Error(err)
		}
	}
	if s := (Settings{}); !s.Unset() {
		t.Error("no settings are set")
	}
	for rate, want := range map[float64]int64{0.5: 1, 10: 1, 1000: 100} {
		if s := (Settings{Rate: rate}); s.Bursts() != want {
			t.Errorf("at %v a second %d at once", rate, s.Bursts())
		}
	}
}
