package redisengine

import (
	"hash/crc32"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// queue is a queue as this engine knows it.
type queue struct {
	name   string
	print  fingerprint
	shards []*shard
	known  atomic.Pointer[configured] // its known settings; nil: none
}

// shard is one part of a queue, with what this engine knows of it: when to ask it next.
type shard struct {
	queue string
	n     int
	keys  []string // KEYS of lua/shard.lua
	hint  string   // the hint of scripts without its due

	// answers is the prefix of the keys in which scripts store answers for a while. The
	// engine's number of the call follows.
	answers string

	clock clock       // its server's clock
	down  atomic.Bool // see probe.go

	mu    sync.Mutex
	held  bool      // the settings hold messages back until next
	next  int64     // nothing happens before this; never: nothing is known to come
	wakes int64     // number of wakes at the last answer
	asked time.Time // when that was last confirmed; zero: never
	turns uint64    // raised by news that an answer in progress may miss

	fails int // consecutive failures
}

// never is the time of an event that does not happen. Other times are Unix milliseconds.
const never = math.MaxInt64

var keyNames = [...]string{
	"due", "rare", "ready", "turn", "leases", "state", "msg", "body", "key", "dead", "grave", "finished", "ended", "history", "meta",
}

const metaKey = len(keyNames) - 1

func newQueue(e *Engine, name string) *queue {
	q := &queue{name: name, print: fingerprintOf(name), shards: make([]*shard, e.shards)}
	for n := range q.shards {
		s := &shard{queue: name, n: n, hint: e.origin + " " + strconv.Itoa(n) + " " + name + " "}
		base := e.prefix + ":{" + name + "." + strconv.Itoa(n) + "}:"
		s.answers = base + "answer:" + e.origin + "."
		for _, key := range keyNames {
			s.keys = append(s.keys, base+key)
		}
		q.shards[n] = s
	}
	return q
}

// ofKey returns the shard of a key.
func (q *queue) ofKey(key string) *shard {
	if len(q.shards) == 1 {
		return q.shards[0]
	}
	return q.shards[crc32.ChecksumIEEE([]byte(key))%uint32(len(q.shards))]
}

// ofID returns the shard of an id; nil if there is no such shard.
func (q *queue) ofID(id engine.ID) *shard {
	if n := shardOf(id); n < len(q.shards) {
		return q.shards[n]
	}
	return nil
}

// of returns the shard of a ref.
func (q *queue) of(ref engine.Ref) *shard {
	if ref.ID != 0 {
		return q.ofID(ref.ID)
	}
	return q.ofKey(ref.Key)
}

// soon records that something happens at an instant, and reports whether that is earlier
// than known before.
func (s *shard) soon(at int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	if at >= s.next && !s.asked.IsZero() {
		return false
	}
	s.next = min(s.next, at)
	return true
}

// doubt discards what is known of the shard.
func (s *shard) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	s.asked = time.Time{}
}

// standing is whether a shard must be asked.
type standing int

const (
	quiet standing = iota // nothing is due
	due                   // something is due, or nothing is known
	old                   // the cached knowledge is too old
)

// check returns whether the shard must be asked at now, by its clock, and the turns to pass
// to learn.
func (s *shard) check(now time.Time, local time.Time) (standing, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.asked.IsZero() || s.next <= now.UnixMilli():
		return due, s.turns
	case local.Sub(s.asked) >= stale:
		return old, s.turns
	}
	return quiet, s.turns
}

// stale is the largest age of cached knowledge of a shard. It is a little less than Recheck,
// which is the interval at which the root package asks.
const stale = Recheck - Recheck/10

// Special numbers of wakes, which no shard has: none known yet, or the shard answered with
// an error.
const (
	unknown    = -1
	unreadable = -2
)

// learn records an answer. If turns has changed since check, the answer may miss news, and
// the shard must be asked again.
func (s *shard) learn(next int64, held bool, wakes int64, turns uint64, local time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.held, s.wakes, s.asked, s.fails = next, held, wakes, local, 0
	if s.turns != turns {
		s.next = 0
	}
}

// failed records that the shard could not be asked at now, by its clock. It is skipped for a
// moment.
func (s *shard) failed(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := min(shardPauseMin<<min(s.fails, 10), shardPauseMax)
	s.fails++
	s.next, s.held, s.wakes, s.asked = now.Add(pause).UnixMilli(), false, unknown, time.Now()
}

// confirm records how often the shard has woken others. An unchanged number means that no
// hint was lost.
func (s *shard) confirm(wakes int64, local time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wakes >= 0 && s.wakes == wakes {
		s.asked = local
	} else {
		s.asked = time.Time{}
	}
}

// known returns when something happens next.
func (s *shard) known() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// holdsBack reports whether the settings hold messages back.
func (s *shard) holdsBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// maxQueues is the number of queues that an engine remembers.
const maxQueues = 100_000

// queue returns the queue of a name.
func (e *Engine) queue(name string) *queue {
	e.mu.RLock()
	q := e.queues[name]
	e.mu.RUnlock()
	if q != nil {
		return q
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if q = e.queues[name]; q != nil {
		return q
	}
	if len(e.queues) >= maxQueues {
		// All knowledge about them can be asked for again.
		clear(e.queues)
		clear(e.printed)
	}
	q = newQueue(e, name)
	e.queues[name] = q
	e.printed[q.print] = q
	return q
}
