package beanstalk_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestTwin plays random scripts on beanstalkd and on a server of ours at once: the answers are the same. It
// goes on for TARRY_TWIN. TARRY_TEST_SEED plays one script again. Only with beanstalkd 1.13, which
// TARRY_TEST_BEANSTALKD may lead to, do scripts rest on the ends of waits and of times to run.
func TestTwin(t *testing.T) {
	t.Parallel()
	program(t)
	if s := os.Getenv("TARRY_TEST_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		playTwin(t, seed)
		return
	}
	span := 4 * time.Second
	if s := os.Getenv("TARRY_TWIN"); s != "" {
		var err error
		if span, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(span)
	var played, late atomic.Int64
	t.Cleanup(func() { t.Logf("%d scripts, of which %d came to no end in time", played.Load(), late.Load()) })
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for time.Now().Before(end) && !t.Failed() {
				seed := rand.Uint64()
				t.Run(fmt.Sprint("TARRY_TEST_SEED=", seed), func(t *testing.T) {
					played.Add(1)
					if !playTwin(t, seed) {
						late.Add(1)
					}
				})
			}
		})
	}
}

// rules say what a script may have, so that no answer rests on what is known to differ.
type rules struct {
	name   string
	unique bool // each job has a priority of its own: among equals, ours are in order of their due times
	timed  bool // there are short delays, times to run and pauses, and time passes
	order  bool // nothing changes when a job is due
}

var twinRules = []rules{{name: "equal priorities", order: true}, {name: "all", unique: true}, {name: "time", unique: true, timed: true}}

// step is how long time passes. After any number of steps, no time in whole seconds up to three is less than
// 0.1 s ahead: so a script may be late by mostLate.
const (
	step     = 1100 * time.Millisecond
	mostLate = 600 * time.Millisecond

	apart = 50 * time.Millisecond // the end of a wait, and what may become due
)

// twin is a script that is being played.
type twin struct {
	rules
	t     testing.TB
	old   bool // beanstalkd is 1.12, which now and then forgets that a ttr or a wait ends
	rng   *rand.Rand
	sites [2]*site // beanstalkd, ours
	conns []*pair
	barr  *pair // asks so that what came before is over
	jobs  []*twinJob
	ids   [2]map[string]int // the jobs by their ids
	pri   int
	log   []string
	began time.Time
	idle  time.Duration // of steps

	passed bool   // time has passed since the last command
	tied   bool   // two jobs became due at about the same time, for one who waits
	fault  string // what differed
}

// pair is a connection to each.
type pair struct {
	name  string
	sides [2]*conn
	waits bool
	held  map[int]bool // jobs, also some that it has lost
}

type twinJob struct{ ids [2]string }

// playTwin plays a script, and reports whether it came to its end in time. Where time passes, only what
// differs each time is a fault.
func playTwin(t testing.TB, seed uint64) bool {
	t.Helper()
	var w *twin
	for range 3 {
		w = &twin{t: t, rng: rand.New(rand.NewPCG(seed, 0)), ids: [2]map[string]int{{}, {}}}
		w.rules, w.old = twinRules[w.rng.IntN(len(twinRules))], old(t)
		w.play()
		if w.fault == "" || !w.timed {
			break
		}
	}
	if w.fault != "" {
		t.Fatal(w.fault)
	}
	return !w.tied && !w.late()
}

func (w *twin) play() {
	w.sites = [2]*site{start(w.t, "real", settings{}), start(w.t, kind(), settings{})}
	w.barr = w.dial("barrier")
	for _, name := range []string{"a", "b", "c"} {
		w.conns = append(w.conns, w.dial(name))
	}
	w.began = time.Now()
	for range 20 + w.rng.IntN(80) {
		w.step()
		if w.fault != "" || w.tied || w.late() || w.idle > 4*step {
			return
		}
	}
}

func (w *twin) late() bool { return w.timed && time.Since(w.began)-w.idle > mostLate }

func (w *twin) dial(name string) *pair {
	p := &pair{name: name, held: make(map[int]bool)}
	for i, at := range w.sites {
		p.sides[i] = at.dial(w.t)
		p.sides[i].cmd("list-tube-used") // from now on it counts
	}
	return p
}

func (w *twin) step() {
	if w.timed && w.rng.IntN(12) == 0 {
		w.log = append(w.log, "1.1 s pass")
		time.Sleep(step)
		w.idle += step
		w.passed = true
		w.awaken()
		w.passed = false
		return
	}
	p := w.conns[w.rng.IntN(len(w.conns))]
	if p.waits {
		return
	}
	command := w.command(p)
	if w.timed && strings.HasPrefix(command, "reserve-with-timeout ") && command != "reserve-with-timeout 0" {
		time.Sleep(apart)
		defer time.Sleep(apart)
	}
	w.do(p, command)
	w.awaken()
}

// do sends a command over a connection, and compares the answers.
func (w *twin) do(p *pair, command string) {
	verb, arg, _ := strings.Cut(command, " ")
	if verb == "release" || verb == "bury" {
		time.Sleep(2 * time.Millisecond) // ours come in order of milliseconds
		defer time.Sleep(2 * time.Millisecond)
	}
	w.log = append(w.log, p.name+"> "+strings.ReplaceAll(command, "\r\n", "\\r\\n"))
	for i, c := range p.sides {
		c.send(w.text(i, command) + "\r\n")
	}
	switch verb {
	case "reserve", "reserve-with-timeout":
		if p.waits = arg != "0"; p.waits {
			return // awaken looks for the answers
		}
	case "quit":
		w.answers(p)
		*p = *w.dial(p.name)
		return
	}
	w.answers(p)
}

var jobName = regexp.MustCompile(`\$(\d+)`)

// text has the ids of a side in place of the numbers of jobs.
func (w *twin) text(side int, command string) string {
	return jobName.ReplaceAllStringFunc(command, func(name string) string {
		n, _ := strconv.Atoi(name[1:])
		return w.jobs[n].ids[side]
	})
}

// answers reads an answer of each side. They have to be the same.
func (w *twin) answers(p *pair) {
	w.t.Helper()
	w.compare(p, p.sides[0].read(patience))
}

func (w *twin) compare(p *pair, real string) {
	w.t.Helper()
	raw := [2]string{real, p.sides[1].read(5 * time.Second)}
	if id, ok := strings.CutPrefix(raw[0], "INSERTED "); ok {
		if ours, ok := strings.CutPrefix(raw[1], "INSERTED "); ok {
			n := len(w.jobs) - 1
			w.jobs[n].ids = [2]string{id, ours}
			w.ids[0][id], w.ids[1][ours] = n, n
		}
	}
	plain := [2]string{w.plain(0, raw[0]), w.plain(1, raw[1])}
	w.log = append(w.log, p.name+"< "+strings.ReplaceAll(plain[0], "\n", ", "))
	if plain[0] != plain[1] {
		w.tied = w.passed && plain[0] != "TIMED_OUT" && plain[1] != "TIMED_OUT"
		if w.tied {
			return
		}
		w.fault = fmt.Sprintf("%s\n%s\nbeanstalkd: %q\n      ours: %q", w.name, strings.Join(w.log[max(0, len(w.log)-120):], "\n"), plain[0], plain[1])
		return
	}
	w.took(p, plain[0])
}

// unlike are lines of stats that differ.
var unlike = regexp.MustCompile(`(?m)^(pid|version|rusage-.time|uptime|hostname|os|platform|age|time-left|pause-time-left|current-connections|total-connections)\b.*\n`)

var serverID = regexp.MustCompile(`(?m)^id: .*\n`)

// plain has numbers of jobs in place of ids, and nothing that differs.
func (w *twin) plain(side int, answer string) string {
	if strings.Contains(answer, "\nbinlog-") {
		answer = serverID.ReplaceAllString(answer, "")
	}
	answer = ids.ReplaceAllStringFunc(answer, func(s string) string {
		m := ids.FindStringSubmatch(s)
		if n, ok := w.ids[side][m[2]]; ok {
			return m[1] + "$" + strconv.Itoa(n)
		}
		return s
	})
	if sized.MatchString(answer) {
		answer = strings.ReplaceAll(unlike.ReplaceAllString(sized.ReplaceAllString(answer, ""), ""), `"`, "")
	}
	return answer
}

// took follows what a connection holds.
func (w *twin) took(p *pair, answer string) {
	if m := takenJob.FindStringSubmatch(answer); m != nil {
		n, _ := strconv.Atoi(m[1])
		p.held[n] = true
	}
}

var takenJob = regexp.MustCompile(`^RESERVED \$(\d+)`)

func sorted(jobs map[int]bool) []int { return slices.Sorted(maps.Keys(jobs)) }

// awaken reads what those who wait have got meanwhile.
func (w *twin) awaken() {
	for _, p := range w.conns {
		if !p.waits {
			continue
		}
		for _, c := range w.barr.sides {
			c.cmd("list-tube-used")
		}
		if got := p.sides[0].read(3 * time.Millisecond); got != "NO ANSWER" {
			p.waits = false
			w.compare(p, got)
		}
	}
}
