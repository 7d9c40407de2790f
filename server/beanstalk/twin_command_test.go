package beanstalk_test

import (
	"fmt"
	"slices"
)

var (
	twinTubes = []string{"default", "t1", "t2", "t3"}
	malformed = []string{
		"put", "put 1 2", "put 0 0 1 1x", "delete", "delete x", "delete 1 ", "kick", "kick -", "bury 1", "bury 1 x", "release 1 2", "use -a", "touch",
		"touch 1 2", "peek", "peek-", "peek-readyX", "statsX", "pause-tube default", "pause-tube t9 1", "ignore nope", "ignore ", "stats-tube nope", "reserveX", "nothing",
		"delete 0", "peek 0", "kick-job 0", "reserve-job 18446744073709551615", "touch 18446744073709551616", "kick 0", "kick 1abc", "list-tubesX", "",
	}
)

// command returns the next command of a connection.
func (w *twin) command(p *pair) string {
	switch n := w.rng.IntN(100); {
	case n < 25:
		return w.put()
	case n < 45:
		return w.reserve(p)
	case n < 75 && len(w.jobs) > 0:
		return w.ofJob(p)
	case n < 85:
		return w.ofTube(p)
	case n < 90:
		return w.pick("peek-ready", "peek-delayed", "peek-buried")
	case n < 94 && !w.order:
		if w.someoneWaits() {
			return "kick 1" // of several that become ready it gets the best from us, the first from beanstalkd
		}
		return fmt.Sprint("kick ", w.rng.IntN(4))
	case n < 97:
		return w.pick("stats", "list-tubes", "list-tubes-watched", "list-tube-used", "stats-tube "+w.pick(twinTubes...))
	case n == 97 && (len(p.held) < 2 || !w.someoneWaits()):
		return "quit"
	}
	return w.pick(malformed...)
}

func (w *twin) pick(of ...string) string { return of[w.rng.IntN(len(of))] }

func (w *twin) number(of ...int) int { return of[w.rng.IntN(len(of))] }

// priority returns a new one, or one of a few.
func (w *twin) priority() int {
	if !w.unique {
		return w.number(0, 0, 1, 2000)
	}
	w.pri++
	return w.pri * 1543 % 4096
}

func (w *twin) delay() int {
	switch {
	case w.order:
		return 0
	case w.timed:
		return w.number(0, 0, 0, 1, 2, 3, 100)
	}
	return w.number(0, 0, 0, 100, 200, 300)
}

func (w *twin) put() string {
	ttr := 100
	if w.timed && !w.old {
		ttr = w.number(0, 1, 2, 3, 100, 100, 100)
	}
	w.jobs = append(w.jobs, new(twinJob))
	body := fmt.Sprint("job ", len(w.jobs)-1)
	return fmt.Sprintf("put %d %d %d %d\r\n%s", w.priority(), w.delay(), ttr, len(body), body)
}

func (w *twin) someoneWaits() bool {
	return slices.ContainsFunc(w.conns, func(p *pair) bool { return p.waits })
}

// reserve waits only while no other connection does: whose turn it is differs.
func (w *twin) reserve(p *pair) string {
	if w.someoneWaits() || w.rng.IntN(3) > 0 {
		return "reserve-with-timeout 0"
	}
	switch {
	case w.timed && w.old:
		return "reserve"
	case w.timed:
		return w.pick("reserve", "reserve-with-timeout 1", "reserve-with-timeout 2", "reserve-with-timeout 3")
	}
	return w.pick("reserve", "reserve-with-timeout 100")
}

// ofJob is about a job, often one that the connection holds.
func (w *twin) ofJob(p *pair) string {
	n := w.rng.IntN(len(w.jobs))
	if held := sorted(p.held); len(held) > 0 && w.rng.IntN(4) > 0 {
		n = held[w.rng.IntN(len(held))]
	}
	verbs := []string{"delete", "delete", "release", "release", "touch", "peek", "stats-job", "reserve-job", "bury", "bury", "kick-job"}
	if w.order {
		verbs = verbs[:8]
	}
	verb := w.pick(verbs...)
	switch verb {
	case "release":
		delete(p.held, n)
		return fmt.Sprintf("release $%d %d %d", n, w.priority(), w.delay())
	case "bury":
		delete(p.held, n)
		return fmt.Sprintf("bury $%d %d", n, w.priority())
	case "delete":
		delete(p.held, n)
	}
	return fmt.Sprintf("%s $%d", verb, n)
}

func (w *twin) ofTube(p *pair) string {
	tube := w.pick(twinTubes...)
	verb := w.pick("use", "use", "watch", "watch", "ignore", "pause-tube")
	if verb != "pause-tube" {
		return verb + " " + tube
	}
	if w.timed {
		return fmt.Sprintf("pause-tube %s %d", tube, w.number(0, 1, 2))
	}
	return fmt.Sprintf("pause-tube %s %d", tube, w.number(0, 0, 100))
}
