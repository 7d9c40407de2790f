package beanstalk

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// Version is the version of beanstalkd's protocol. Clients read it from stats.
const Version = "1.13"

// urgentBelow is the priority below which a ready job is urgent.
const urgentBelow = 1024

// counts are the counters of a server.
type counts struct {
	verbs     [verbCount]atomic.Uint64
	timeouts  atomic.Uint64 // jobs that timed out
	jobs      atomic.Uint64 // jobs put
	conns     atomic.Int64
	allConns  atomic.Uint64
	producers atomic.Int64
	workers   atomic.Int64
	waiting   atomic.Int64
	refused   atomic.Uint64 // connections beyond the bound, and commands without the right
}

// Counts are what a server has done and has open.
type Counts struct {
	Connections int64             // open
	Waiting     int64             // of these, waiting for a job
	Refused     uint64            // connections beyond the bound, and commands without a token or its right
	Commands    map[string]uint64 // by name, such as "put"; refused as BAD_FORMAT do not count
}

// Counts returns the counters.
func (s *Server) Counts() Counts {
	n := &s.counts
	c := Counts{Connections: n.conns.Load(), Waiting: n.waiting.Load(), Refused: n.refused.Load(), Commands: make(map[string]uint64, len(verbs))}
	for i := range verbs {
		c.Commands[verbs[i].name()] = n.verbs[i].Load()
	}
	return c
}

// stat is a line of statistics.
type stat struct {
	key   string
	value any
}

// quoted is a value in quotation marks.
type quoted string

func (q quoted) String() string { return `"` + string(q) + `"` }

// sayStats answers with statistics.
func (c *conn) sayStats(all []stat) (string, error) {
	text := append(make([]byte, 0, 1<<10), "---\n"...)
	for _, s := range all {
		text = fmt.Appendf(text, "%s: %v\n", s.key, s.value)
	}
	c.sayNumber("OK ", uint64(len(text)))
	c.out = append(append(c.out, text...), "\r\n"...)
	return "", nil
}

// list answers with a list. It is written piece by piece: there may be a million tubes.
func (c *conn) list(names []string) (string, error) {
	n := len("---\n")
	for _, name := range names {
		n += len("- \n") + len(name)
	}
	held := 16 * len(names)
	if !c.s.memory.hold(held) {
		return "", errNoMemory
	}
	defer c.s.memory.release(held)
	c.sayNumber("OK ", uint64(n))
	c.out = append(c.out, "---\n"...)
	for _, name := range names {
		c.out = append(append(append(c.out, "- "...), name...), '\n')
		if len(c.out) > flushAt && c.flush() != nil {
			return "", nil
		}
	}
	c.out = append(c.out, "\r\n"...)
	return "", nil
}

// listTubes carries out list-tubes.
func (c *conn) listTubes(args) (string, error) {
	all, _, err := c.s.tubes.list(c.ctx)
	if err != nil {
		return "", err
	}
	return c.list(slices.DeleteFunc(all, func(name string) bool { return c.allows(access.Read, name) != nil }))
}

// listWatched carries out list-tubes-watched.
func (c *conn) listWatched(args) (string, error) { return c.list(names(c.watch)) }

// urgent returns how many jobs of a queue are urgent. It counts those among the first thousand
// that are ready; if there are more, that many.
func (c *conn) urgent(q *tarry.QueueInfo) (n int64, err error) {
	if q.Ready == 0 {
		return 0, nil
	}
	p, err := c.s.c.ListPage(c.ctx, tarry.ListQuery{Queue: q.Queue, State: engine.Ready, Limit: engine.MaxPage})
	for i := range p.Messages {
		if p.Messages[i].Priority < urgentBelow {
			n++
		}
	}
	return n, err
}

// jobStats tells how many jobs are in each state.
func jobStats(urgent int64, q *tarry.QueueInfo) []stat {
	return []stat{
		{"current-jobs-urgent", urgent},
		{"current-jobs-ready", q.Ready},
		{"current-jobs-reserved", q.Leased},
		{"current-jobs-delayed", q.Scheduled},
		{"current-jobs-buried", q.Dead},
	}
}

// seconds returns whole seconds.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// stats carries out stats. Its sums are of the queues that the connection may see.
func (c *conn) stats(args) (string, error) {
	if c.s.cfg.Guard != nil && !c.token.Has(access.Read) {
		return "", errForbidden
	}
	tubes, queues, err := c.s.tubes.list(c.ctx)
	if err != nil {
		return "", err
	}
	var sum tarry.QueueInfo
	urgent, looked := int64(0), int64(0)
	for i := range queues {
		q := &queues[i]
		if c.allows(access.Read, q.Queue) != nil {
			continue
		}
		sum.Ready += q.Ready
		sum.Leased += q.Leased
		sum.Scheduled += q.Scheduled
		sum.Dead += q.Dead
		if looked < engine.MaxPage {
			n, err := c.urgent(q)
			if err != nil {
				return "", err
			}
			urgent += n
			looked += q.Ready
		}
	}
	return c.sayStats(slices.Concat(jobStats(urgent, &sum), c.s.counted(len(tubes)), c.s.system()))
}

// counted tells the counters of a server that has so many tubes.
func (s *Server) counted(tubes int) (all []stat) {
	n := &s.counts
	for i := range shown {
		all = append(all, stat{"cmd-" + verbs[i].name(), n.verbs[i].Load()})
	}
	return append(all, []stat{
		{"job-timeouts", n.timeouts.Load()},
		{"total-jobs", n.jobs.Load()},
		{"max-job-size", s.cfg.MaxJob},
		{"current-tubes", tubes},
		{"current-connections", n.conns.Load()},
		{"current-producers", n.producers.Load()},
		{"current-workers", n.workers.Load()},
		{"current-waiting", n.waiting.Load()},
		{"total-connections", n.allConns.Load()},
	}...)
}

// system tells of the process and its machine.
func (s *Server) system() []stat {
	user, system := cpuTimes()
	host, _ := os.Hostname()
	return []stat{
		{"pid", os.Getpid()},
		{"version", quoted(Version)},
		{"rusage-utime", fmt.Sprintf("%.6f", user.Seconds())},
		{"rusage-stime", fmt.Sprintf("%.6f", system.Seconds())},
		{"uptime", seconds(time.Since(s.began))},
		{"binlog-oldest-index", 0},
		{"binlog-current-index", 0},
		{"binlog-records-migrated", 0},
		{"binlog-records-written", 0},
		{"binlog-max-size", 10 << 20},
		{"draining", s.draining.Load()},
		{"id", s.id},
		{"hostname", quoted(host)},
		{"os", quoted(runtime.GOOS)},
		{"platform", quoted(runtime.GOARCH)},
	}
}

// statsTube carries out stats-tube.
func (c *conn) statsTube(a args) (string, error) {
	name := string(a.tube)
	if err := c.allows(access.Read, name); err != nil {
		return "", err
	}
	t, err := c.s.tubes.existing(c.ctx, name)
	if err != nil {
		return "", err
	}
	q, err := c.s.c.Queue(c.ctx, name)
	if err != nil {
		return "", err
	}
	urgent, err := c.urgent(&q)
	if err != nil {
		return "", err
	}
	users := t.refs[using].Load()
	if name == defaultTube {
		users-- // the server itself
	}
	pause, left := c.s.tubes.pauseOf(t, &q, time.Now())
	return c.sayStats(slices.Concat([]stat{{"name", quoted(name)}}, jobStats(urgent, &q), []stat{
		{"total-jobs", t.jobs.Load()},
		{"current-using", users},
		{"current-watching", t.refs[watching].Load()},
		{"current-waiting", t.waiting.Load()},
		{"cmd-delete", t.deletes.Load()},
		{"cmd-pause-tube", t.pauses.Load()},
		{"pause", pause},
		{"pause-time-left", left},
	}))
}

var stateNames = map[engine.State]string{
	engine.Scheduled: "delayed", engine.Ready: "ready", engine.Leased: "reserved", engine.Dead: "buried",
}

// statsJob carries out stats-job.
func (c *conn) statsJob(a args) (string, error) {
	m, err := c.job(a.id, access.Read)
	if err != nil {
		return "", err
	}
	now, left := time.Now(), time.Duration(0)
	switch j := c.held.find(a.id); {
	case m.State == engine.Leased && j != nil:
		left = j.until.Sub(now)
	case m.State == engine.Leased:
		left = m.Deadline.Sub(now)
	case m.State == engine.Scheduled:
		left = m.Due.Sub(now)
	}
	n := c.s.notes.of(a.id)
	n.keepDelay(&m)
	return c.sayStats([]stat{
		{"id", a.id},
		{"tube", quoted(m.Queue)},
		{"state", stateNames[m.State]},
		{"pri", m.Priority},
		{"age", max(seconds(now.Sub(m.Created)), 0)},
		{"delay", max(seconds(n.delay), 0)},
		{"ttr", seconds(ttrOf(&m))},
		{"time-left", max(seconds(left-time.Millisecond), 0)}, // times of the store are rounded up
		{"file", 0},
		{"reserves", n.reserves + m.Attempt},
		{"timeouts", n.timeouts},
		{"releases", n.releases},
		{"buries", n.buries},
		{"kicks", n.kicks},
	})
}
