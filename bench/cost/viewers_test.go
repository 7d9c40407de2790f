package cost

import (
	"errors"
	"flag"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

var (
	viewers = flag.Int("viewers", 200, "how many watch a server")
	pushes  = flag.Int("pushes", 5000, "messages a second that are pushed beside them")
	turns   = flag.Int("turns", 8, "how often is measured with viewers and without")
	turn    = flag.Duration("turn", 2*time.Second, "how long one of these takes")
	lead    = flag.Duration("lead", 2500*time.Millisecond, "how long viewers have watched before: all at once have just opened their pages at first")
)

// kinds are what viewers may look at.
var kinds = []string{
	"overview", // all queues, by events
	"queue",    // the queue that is pushed to, by events
	"page",     // its page: events, and what the page reads when they come
}

// BenchmarkViewers measures what those who watch a server cost those who push to it: at a
// rate, and as fast as it goes.
func BenchmarkViewers(b *testing.B) {
	for _, store := range []string{"mem", "disk"} {
		for _, kind := range kinds {
			b.Run("store="+store+"/kind="+kind, func(b *testing.B) {
				url := "mem:"
				if store == "disk" {
					url = "disk:" + b.TempDir()
				}
				p := start(b, url, "trends", "", false)
				v := look(b, p.addr)
				for _, rate := range []int{*pushes, 0} {
					name := "most"
					if rate > 0 {
						name = "rate"
					}
					b.Run(name, func(b *testing.B) { compareViewers(b, p, v, kind, rate) })
				}
			})
		}
	}
}

// pushed is what a turn came to.
type pushed struct {
	rate   float64 // messages a second
	server float64 // seconds of the processors, of the server,
	view   float64 // and of the viewers
	told   float64 // events a second that these were told
	read   float64 // answers a second that their pages have read
}

func compareViewers(b *testing.B, p *process, v *process, kind string, rate int) {
	var with, without []pushed
	for b.Loop() {
		measureViewers(b, p, v, "", rate) // warms up
		for i := range *turns {
			for _, on := range []bool{i%2 == 0, i%2 == 1} {
				if on {
					with = append(with, measureViewers(b, p, v, kind, rate))
				} else {
					without = append(without, measureViewers(b, p, v, "", rate))
				}
			}
		}
	}
	of := func(all []pushed, f func(pushed) float64) (v []float64) {
		for _, p := range all {
			v = append(v, f(p))
		}
		return v
	}
	ratios := make([]float64, len(with))
	for i := range with {
		ratios[i] = with[i].rate / without[i].rate
	}
	slices.Sort(ratios)
	n := len(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(*viewers), "viewers")
	b.ReportMetric(float64(n), "rounds")
	b.ReportMetric(median(of(without, func(p pushed) float64 { return p.rate })), "msgs/s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(ratios[3*n/4]-ratios[n/4], "ratio-apart")
	b.ReportMetric(median(of(without, func(p pushed) float64 { return 1e6 * p.server / p.rate })), "cpu-us/msg")
	b.ReportMetric(median(of(with, func(p pushed) float64 { return 1e6 * p.server / p.rate })), "watched-cpu-us/msg")
	b.ReportMetric(100*median(of(with, func(p pushed) float64 { return p.view })), "%viewers-cpu")
	b.ReportMetric(median(of(with, func(p pushed) float64 { return p.told })), "events/s")
	b.ReportMetric(median(of(with, func(p pushed) float64 { return p.read })), "reads/s")
}

// measureViewers pushes for a turn, at a rate, 0: as fast as it goes, while viewers watch;
// of no kind: none.
func measureViewers(b testing.TB, p *process, v *process, kind string, rate int) pushed {
	b.Helper()
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	if kind != "" {
		_, err := v.number("watch " + kind + " " + strconv.Itoa(*viewers))
		check(err)
		_, err = p.pushFor(*lead, rate)
		check(err)
	}
	events, err := v.number("events")
	check(err)
	reads, err := v.number("reads")
	check(err)
	seen, err := v.number("used")
	check(err)
	used, err := p.number("begin")
	check(err)
	begun := time.Now()
	n, err := p.pushFor(*turn, rate)
	check(err)
	took := time.Since(begun).Seconds()
	usedThen, err := p.number("end")
	check(err)
	seenThen, err := v.number("used")
	check(err)
	eventsThen, err := v.number("events")
	check(err)
	readsThen, err := v.number("reads")
	check(err)
	_, err = v.number("leave")
	check(err)
	return pushed{
		rate: float64(n) / took, server: float64(usedThen-used) / 1e9 / took,
		view: float64(seenThen-seen) / 1e9 / took, told: float64(eventsThen-events) / took, read: float64(readsThen-reads) / took,
	}
}

// days are 48 h in seconds, over which messages fall due.
const days = 48 * 3600

// pushFor pushes messages, each in a request of its own, for so long, at a rate or, where
// that is 0, as fast as the clients get them answered, and returns how many.
func (t *target) pushFor(long time.Duration, rate int) (int, error) {
	begun := time.Now()
	n := 1 << 30
	if rate > 0 {
		n = int(long.Seconds() * float64(rate))
	}
	first := t.keys
	var done atomic.Int64
	err := each(n, 1, func(i, _ int) error {
		if rate > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		} else if time.Since(begun) >= long {
			return errOver
		}
		done.Add(1)
		return t.call("/v1/queues/orders/messages", "{"+message(first+i, strconv.Itoa((first+i)*7919%days)+"s"), nil)
	})
	t.keys += int(done.Load()) + clients
	if errors.Is(err, errOver) {
		err = nil
	}
	return int(done.Load()), err
}

var errOver = errors.New("the turn is over")

// look starts a process that watches a server when it is told to, so that its processors'
// time is seen apart.
func look(b testing.TB, addr string) *process {
	b.Helper()
	return spawn(b, "viewers", envView+"="+addr)
}
