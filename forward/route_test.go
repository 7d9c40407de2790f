package forward

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

func TestOfRoutesTheNameCountsThenTheFirstPattern(t *testing.T) {
	rs := Routes{{Queue: "order.*"}, {Queue: "*"}, {Queue: "order.paid"}, {Queue: "*.late"}}
	for queue, want := range map[string]string{
		"order.paid": "order.paid", "order.late": "order.*", "ride.late": "*", "ride": "*",
	} {
		if i := rs.Index(queue); i < 0 || rs[i].Queue != want {
			t.Errorf("%s goes by route %d, want %q", queue, i, want)
		}
	}
	if i := rs.Index("tarry.schedules"); i >= 0 {
		t.Errorf("a queue of tarry's own goes by route %d", i)
	}
	if rs[2:].Index("ride") >= 0 {
		t.Error("a queue of no route has one")
	}
}

func TestRoutesCheck(t *testing.T) {
	good := Route{Queue: "q", Target: "nowhere://u:geheim@h"}
	with := func(change func(*Route)) Routes {
		r := good
		change(&r)
		return Routes{{Queue: "first", Target: "nowhere:"}, r}
	}
	for says, rs := range map[string]Routes{
		"no target":                           with(func(r *Route) { r.Target = "" }),
		"known here":                          with(func(r *Route) { r.Target = "gopher://u:geheim@h" }),
		"byte 2 of the queue's name":          with(func(r *Route) { r.Queue = "q!" }),
		"must not begin with -":               with(func(r *Route) { r.Queue = "-*" }),
		"route 1 has this queue":              with(func(r *Route) { r.Queue = "first" }),
		"route 1 has this name":               with(func(r *Route) { r.Name = "first" }),
		"the concurrency is -1":               with(func(r *Route) { r.Concurrency = -1 }),
		"the concurrency is 1001":             with(func(r *Route) { r.Concurrency = 1001 }),
		"the rate is -1":                      with(func(r *Route) { r.Rate = -1 }),
		"the rate is NaN":                     with(func(r *Route) { r.Rate = math.NaN() }),
		"the rate is 0.0001":                  with(func(r *Route) { r.Rate = 0.0001 }),
		"the rate is 1.000001e+06":            with(func(r *Route) { r.Rate = 1_000_001 }),
		"the burst is -1":                     with(func(r *Route) { r.Burst, r.Rate = -1, 1 }),
		"a burst of 2 needs a rate":           with(func(r *Route) { r.Burst = 2 }),
		"the timeout -1s is negative":         with(func(r *Route) { r.Options.Timeout = -time.Second }),
		"the header Tarry-Key is tarry's own": with(func(r *Route) { r.Options.Headers = []Header{{Name: "Tarry-Key"}} }),
	} {
		err := rs.Check()
		if !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "tarry: route 2 (") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v: want it to say %q", err, says)
		}
	}
	if err := with(func(*Route) {}).Check(); err != nil {
		t.Error(err)
	}
}

func TestWidthIsWhatARateNeeds(t *testing.T) {
	for _, c := range []struct {
		route Route
		want  int
	}{
		{Route{}, 16},
		{Route{Concurrency: 5}, 5},
		{Route{Rate: 0.1}, 2},          // one at once, and one in 10 s
		{Route{Rate: 1, Burst: 3}, 13}, // 10 in 10 s
		{Route{Rate: 1_000_000}, 16},
		{Route{Rate: 1, Options: Options{Timeout: time.Second}}, 2},
	} {
		c.route.Queue, c.route.Target = "q", "nowhere:"
		r, err := c.route.Complete()
		if got := r.width(); err != nil || got != c.want {
			t.Errorf("%+v: %d, want %d", c.route, got, c.want)
		}
	}
}
