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

// yaml writes statistics.
type yaml struct{ b []byte }

func (y *yaml) add(key string, value any) { y.b = fmt.Appendf(y.b, "%s: %v\n", key, value) }

func (y *yaml) addText(key, value string) { y.b = fmt.Appendf(y.b, "%s: \"%s\"\n", key, value) }

// addJobs adds how many jobs are in each state.
func (y *yaml) addJobs(urgent int64, q *tarry.QueueInfo) {
	y.add("current-jobs-urgent", urgent)
	y.add("current-jobs-ready", q.Ready)
	y.add("current-jobs-reserved", q.Leased)
	y.add("current-jobs-delayed", q.Scheduled)
	y.add("current-jobs-buried", q.Dead)
}

func newYAML() *yaml { return &yaml{append(make([]byte, 0, 1<<10), "---\n"...)} }

// list answers with a list. It is written piece by piece: there may be a million tubes.
func (c *conn) list(names []string) {
	n := len("---\n")
	for _, name := range names {
		n += len("- \n") + len(name)
	}
	held := 16 * len(names)
	if !c.s.memory.hold(held) {
		c.say("OUT_OF_MEMORY")
		return
	}
	defer c.s.memory.release(held)
	c.sayNumber("OK ", uint64(n))
	c.out = append(c.out, "---\n"...)
	for _, name := range names {
		c.out = append(append(append(c.out, "- "...), name...), '\n')
		if len(c.out) > flushAt && c.flush() != nil {
			return
		}
	}
	c.out = append(c.out, "\r\n"...)
}

// queues returns the queues that hold jobs and that the connection may see.
func (c *conn) queues() (all []tarry.QueueInfo, err error) {
	for q, err := range c.s.c.AllQueues(c.ctx) {
		if err != nil {
			return nil, err
		}
		if holds(&q) {
			all = append(all, q)
		}
	}
	return all, nil
}

// listTubes carries out list-tubes.
func (c *conn) listTubes(args) {
	queues, err := c.queues()
	if err != nil {
		c.fail(err)
		return
	}
	all := c.s.tubes.sync(queues)
	c.list(slices.DeleteFunc(all, func(name string) bool { return !c.may(access.Read, name) }))
}

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

// seconds returns whole seconds.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// stats carries out stats. Its sums are of the queues that the connection may see.
func (c *conn) stats(args) {
	if c.s.cfg.Guard != nil && !c.token.Has(access.Read) {
		c.fail(errForbidden)
		return
	}
	queues, err := c.queues()
	var sum tarry.QueueInfo
	urgent, looked := int64(0), int64(0)
	for i := 0; i < len(queues) && err == nil; i++ {
		q := &queues[i]
		if !c.may(access.Read, q.Queue) {
			continue
		}
		sum.Ready += q.Ready
		sum.Leased += q.Leased
		sum.Scheduled += q.Scheduled
		sum.Dead += q.Dead
		if looked < engine.MaxPage {
			n, e := c.urgent(q)
			urgent, err = urgent+n, e
			looked += q.Ready
		}
	}
	if err != nil {
		c.fail(err)
		return
	}
	y := newYAML()
	y.addJobs(urgent, &sum)
	c.s.addCounts(y, len(c.s.tubes.sync(queues)))
	c.s.addSystem(y)
	c.sayYAML(y.b)
}

// addCounts adds the counters of a server that has so many tubes.
func (s *Server) addCounts(y *yaml, tubes int) {
	n := &s.counts
	for i := range shown {
		y.add("cmd-"+verbs[i].name(), n.verbs[i].Load())
	}
	y.add("job-timeouts", n.timeouts.Load())
	y.add("total-jobs", n.jobs.Load())
	y.add("max-job-size", s.cfg.MaxJob)
	y.add("current-tubes", tubes)
	y.add("current-connections", n.conns.Load())
	y.add("current-producers", n.producers.Load())
	y.add("current-workers", n.workers.Load())
	y.add("current-waiting", n.waiting.Load())
	y.add("total-connections", n.allConns.Load())
}

// addSystem adds what stats says of the process and its machine.
func (s *Server) addSystem(y *yaml) {
	user, system := cpuTimes()
	host, _ := os.Hostname()
	y.add("pid", os.Getpid())
	y.addText("version", Version)
	y.add("rusage-utime", fmt.Sprintf("%.6f", user.Seconds()))
	y.add("rusage-stime", fmt.Sprintf("%.6f", system.Seconds()))
	y.add("uptime", seconds(time.Since(s.began)))
	for _, key := range []string{"oldest-index", "current-index", "records-migrated", "records-written"} {
		y.add("binlog-"+key, 0)
	}
	y.add("binlog-max-size", 10<<20)
	y.add("draining", s.draining.Load())
	y.add("id", s.id)
	y.addText("hostname", host)
	y.addText("os", runtime.GOOS)
	y.addText("platform", runtime.GOARCH)
}

// statsTube carries out stats-tube.
func (c *conn) statsTube(a args) {
	name := string(a.tube)
	if !c.may(access.Read, name) {
		c.fail(errForbidden)
		return
	}
	t, err := c.s.tubes.existing(c.ctx, name)
	if err != nil {
		c.fail(err)
		return
	}
	q, err := c.s.c.Queue(c.ctx, name)
	urgent := int64(0)
	if err == nil {
		urgent, err = c.urgent(&q)
	}
	if err != nil {
		c.fail(err)
		return
	}
	users, watchers := c.s.tubes.count(t)
	if name == defaultTube {
		users-- // the server itself
	}
	pause, left := c.s.tubes.pauseOf(t, &q, time.Now())
	y := newYAML()
	y.addText("name", name)
	y.addJobs(urgent, &q)
	y.add("total-jobs", t.jobs.Load())
	y.add("current-using", users)
	y.add("current-watching", watchers)
	y.add("current-waiting", t.waiting.Load())
	y.add("cmd-delete", t.deletes.Load())
	y.add("cmd-pause-tube", t.pauses.Load())
	y.add("pause", pause)
	y.add("pause-time-left", left)
	c.sayYAML(y.b)
}

var stateNames = map[engine.State]string{
	engine.Scheduled: "delayed", engine.Ready: "ready", engine.Leased: "reserved", engine.Dead: "buried",
}

// statsJob carries out stats-job.
func (c *conn) statsJob(a args) {
	m, err := c.job(a.id, access.Read)
	if err != nil {
		c.fail(err)
		return
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
	n.keepDelay(m.Due.Sub(m.Created))
	y := newYAML()
	y.add("id", a.id)
	y.addText("tube", m.Queue)
	y.add("state", stateNames[m.State])
	y.add("pri", m.Priority)
	y.add("age", max(seconds(now.Sub(m.Created)), 0))
	y.add("delay", max(seconds(n.delay), 0))
	y.add("ttr", seconds(ttrOf(&m)))
	y.add("time-left", max(seconds(left-time.Millisecond), 0)) // times of the store are rounded up
	y.add("file", 0)
	y.add("reserves", n.reserves+m.Attempt)
	y.add("timeouts", n.timeouts)
	y.add("releases", n.releases)
	y.add("buries", n.buries)
	y.add("kicks", n.kicks)
	c.sayYAML(y.b)
}
