//go:build linux

package workertest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

const (
	processes = 8
	messages  = 2400
	bursts    = 16 // instants at which messages fall due
	kills     = 6

	every    = 20        // one in so many messages pushes another when it is handled
	followed = "follow-" // begins the key of that message

	spoken = "tarry:" // begins the lines of processes
)

// RunProcesses runs eight worker processes on one queue of a store, one with its clock an
// hour ahead and one an hour behind. It repeatedly kills a process at work and starts
// another. No message may be handled by two at once: each handler holds a lock that ends with
// its process. No message may be early by the store's clock, or be handled again unless its
// first process was killed. Messages pushed with a wrong clock must be due at the right time.
// In the end all must be handled.
//
// The processes are the test binary, which runs the same test again. They do not call open,
// which makes a store and returns its URL. So call RunProcesses first, before anything else
// is started.
func RunProcesses(t *testing.T, open func() (url string)) {
	if os.Getenv(processURL) != "" {
		atWork(t)
		return
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	url := open()
	client, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := &crew{
		t: t, url: url, dir: t.TempDir(), queue: fmt.Sprint("processes-", seed), client: client,
		rng: rand.New(rand.NewPCG(seed, 0)), lines: make(chan line, 1000), seen: make(map[string]*handled), offs: make(map[time.Duration]int),
	}
	c.compare()
	offs := make([]time.Duration, processes)
	if canShift {
		offs[0], offs[1] = time.Hour, -time.Hour
	} else {
		t.Log("SKIPPED: clocks that are off, which need another processor")
	}
	c.team = make([]*member, processes)
	for i, off := range offs {
		c.team[i] = c.start(off)
	}
	for range processes {
		c.await("up")
	}
	c.push()
	for _, m := range c.team {
		m.tell()
	}
	c.watch()
	for _, m := range c.team {
		c.ending.Go(m.stop)
	}
	c.ending.Wait()
	c.check()
}

// crew holds what is known about all processes.
type crew struct {
	t               *testing.T
	url, dir, queue string
	client          *tarry.Client
	rng             *rand.Rand
	lines           chan line
	team            []*member
	ending          sync.WaitGroup
	ahead           int64 // upper bound, in microseconds, of the lead of the store's clock over ours

	seen   map[string]*handled
	left   int // messages not handled yet
	killed int
	latest time.Duration
	offs   map[time.Duration]int // messages handled, by the clock offset of the process
}

// handled is the history of a message.
type handled struct {
	by          *member // the process that began to handle it last
	done        bool
	came        int  // how often it was handled
	unexplained bool // it came again although no process that had it was killed
	unconfirmed bool // it is unknown whether its ack took effect
}

// line is an output line of a process.
type line struct {
	by   *member
	what []string
}

// member is one process.
type member struct {
	t      *testing.T
	cmd    *exec.Cmd
	off    time.Duration
	stdin  io.WriteCloser
	read   sync.WaitGroup
	killed bool
}

// compare finds an upper bound of the lead of the store's clock over ours.
func (c *crew) compare() {
	c.ahead = int64(time.Hour / time.Microsecond)
	for range 20 {
		before := time.Now()
		g, err := c.client.LeaseNow(c.t.Context(), []engine.Want{{Queue: c.queue + "-none", Max: 1}})
		if err != nil {
			c.t.Fatal(err)
		}
		c.ahead = min(c.ahead, g.Now.Sub(before.Round(0)).Microseconds()+1)
	}
}

// push pushes the messages, due in bursts.
func (c *crew) push() {
	msgs := make([]tarry.Draft, messages)
	for i := range msgs {
		key, body := strconv.Itoa(i), i%every == 0
		c.expect(key)
		if body {
			c.expect(followed + key)
		}
		m, err := tarry.NewTopic[bool](c.queue).Draft(body, tarry.Key(key), tarry.In(time.Duration(i%bursts)*300*time.Millisecond))
		if err != nil {
			c.t.Fatal(err)
		}
		msgs[i] = m
	}
	for some := range slices.Chunk(msgs, 1000) {
		pushed, err := c.client.PushMany(c.t.Context(), some)
		if err != nil || slices.ContainsFunc(pushed, func(p tarry.Pushed) bool { return p.Err != nil }) {
			c.t.Fatal(pushed, err)
		}
	}
}

func (c *crew) expect(key string) {
	c.seen[key] = new(handled)
	c.left++
}

// start starts a process.
func (c *crew) start(off time.Duration) *member {
	c.t.Helper()
	m := &member{t: c.t, off: off, cmd: exec.CommandContext(c.t.Context(), os.Args[0], "-test.run", "^"+c.t.Name()+"$")}
	m.cmd.Env = append(os.Environ(), processURL+"="+c.url, processQueue+"="+c.queue, processDir+"="+c.dir, processOff+"="+off.String())
	m.cmd.Stderr = os.Stderr
	stdin, err := m.cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	m.stdin = stdin
	m.read.Go(func() {
		for in := bufio.NewScanner(stdout); in.Scan(); {
			if what := strings.Fields(in.Text()); len(what) > 1 && what[0] == spoken {
				c.lines <- line{m, what[1:]}
			} else if len(what) > 0 && what[0] != "PASS" {
				c.t.Logf("process %d: %s", m.cmd.Process.Pid, in.Text())
			}
		}
	})
	return m
}

// tell makes a process begin.
func (m *member) tell() {
	_, _ = io.WriteString(m.stdin, "go\n") // it may have been killed
}

func (m *member) stop() {
	_ = m.stdin.Close()
	m.read.Wait()
	if err := m.cmd.Wait(); err != nil {
		m.t.Errorf("a process ended with %v", err)
	}
}

// patience is how long nothing may happen. Leases of killed processes end within it.
const patience = processTTR + time.Minute

// next returns the next line of any process.
func (c *crew) next() line {
	c.t.Helper()
	select {
	case l := <-c.lines:
		return l
	case <-time.After(patience):
		c.t.Fatalf("%d messages have not been handled, and nothing happens any more", c.left)
		return line{}
	}
}

func (c *crew) await(what string) {
	c.t.Helper()
	if l := c.next(); l.what[0] != what {
		c.t.Fatalf("a process says %q", l.what)
	}
}

// watch reads until all messages have been handled and acked, and kills processes meanwhile.
func (c *crew) watch() {
	next := messages / 20 // how many must be handled before the next kill
	all := c.left
	for c.left > 0 {
		l := c.next()
		c.hear(l)
		// First the processes with a shifted clock, of which there is always one.
		if l.what[0] == "began" && all-c.left >= next && c.killed < kills && (c.killed > 1 || l.by.off == c.team[c.killed].off) && !l.by.killed {
			c.kill(l.by)
			next += messages/20 + c.rng.IntN(messages/20)
		}
	}
	// A killed process may have handled some whose acks it had not sent: they come again.
	for end := time.Now().Add(patience); c.pending() && time.Now().Before(end); {
		select {
		case l := <-c.lines:
			c.hear(l)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// pending reports whether messages are still to be handled or acked.
func (c *crew) pending() bool {
	q, err := c.client.Queue(c.t.Context(), c.queue)
	if err != nil {
		c.t.Fatal(err)
	}
	return q.Scheduled+q.Ready+q.Leased > 0
}

// hear takes a line of a process.
func (c *crew) hear(l line) {
	switch l.what[0] {
	case "up":
		l.by.tell()
	case "met":
		c.t.Errorf("%s is handled by two at once", l.what[1])
	case "began":
		c.began(l)
	case "pushed":
		due, before, after := number(l.what[3]), number(l.what[2]), number(l.what[4])
		if d := followAfter.Microseconds(); due+1000 < before+d || due-1000 > after+d+c.ahead {
			c.t.Errorf("%s is due %d µs after its push, by a process whose clock is off by %v", l.what[1], due-before, l.by.off)
		}
	case "ended":
		if h := c.seen[l.what[1]]; h.by == l.by && !h.done {
			h.done = true
			c.offs[l.by.off]++
			c.left--
		}
	case "unconfirmed":
		c.seen[l.what[1]].unconfirmed = true
	default:
		c.t.Errorf("a process says %q", l.what)
	}
}

// began records that a message is being handled.
func (c *crew) began(l line) {
	key, due, at := l.what[1], number(l.what[2]), number(l.what[3])
	h := c.seen[key]
	if h == nil {
		c.t.Fatalf("a message has the key %q", key)
	}
	if at+c.ahead < due {
		c.t.Errorf("%s is handled %d µs before it is due, by a process whose clock is off by %v", key, due-at, l.by.off)
	}
	if h.by != nil && !h.by.killed {
		h.unexplained = true // unless its ack turns out to be unconfirmed
	}
	if h.by = l.by; h.came == 0 {
		c.latest = max(c.latest, time.Duration(at-due)*time.Microsecond)
	}
	h.came++
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// kill kills a process, and starts another.
func (c *crew) kill(m *member) {
	if err := m.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	m.killed = true
	c.killed++
	c.team[slices.Index(c.team, m)] = c.start(m.off)
	c.ending.Go(func() {
		m.read.Wait() // its last lines are read
		_ = m.cmd.Wait()
	})
}

// check checks the results.
func (c *crew) check() {
	for len(c.lines) > 0 {
		c.hear(<-c.lines)
	}
	again := 0
	for key, h := range c.seen {
		if h.came > 1 {
			again++
		}
		if h.unexplained && !h.unconfirmed {
			c.t.Errorf("%s was handled again, though who did it first lived, and its ack was answered", key)
		}
	}
	c.t.Logf("%d processes were killed, %d messages came again; clocks off by so much have handled %v; the latest began after %v", c.killed, again, c.offs, c.latest)
	if c.killed < kills || again == 0 {
		c.t.Errorf("%d processes were killed, %d messages came again", c.killed, again)
	}
	for _, m := range c.team[:2] {
		if c.offs[m.off] == 0 {
			c.t.Errorf("a process whose clock is off by %v has handled nothing", m.off)
		}
	}
	q, err := c.client.Queue(c.t.Context(), c.queue)
	if err != nil || q.Scheduled+q.Ready+q.Leased+q.Dead > 0 {
		c.t.Errorf("left is %+v, %v", q, err)
	}
}
