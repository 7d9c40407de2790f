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
	known  atomic.Pointer[configured] // its settings, as far as is known; nil: none
}

// shard is one of the parts over which a queue is spread, and what this engine knows
// of it: when it must next be asked.
type shard struct {
	queue string
	n     int
	keys  []string // as KEYS of lua/shard.lua
	hint  string   // what a script tells others, but for the due

	// answers begins the keys in which scripts keep what they have answered for a while;
	// what this engine calls each follows.
	answers string

	clock clock       // of its server, whichever that is
	down  atomic.Bool // it did not answer when it was asked last
	dark  atomic.Bool // it is not asked for leases until a probe is answered

	mu    sync.Mutex
	held  bool      // the settings hold messages back until then
	next  int64     // nothing happens before this; never: nothing is known to come
	wakes int64     // how often it had woken others by then
	asked time.Time // when that was learned; zero: not yet
	turns uint64    // how often something came up that an answer under way may not know

	fails int // how often in a row it could not be asked
}

// never is the instant that does not come, where others are Unix milliseconds.
const never = math.MaxInt64

var keyNames = [...]string{
	"due", "rare", "ready", "turn", "leases", "state", "msg", "body", "key", "dead", "grave", "finished", "meta",
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

// ofKey returns the shard in which the messages of a key are.
func (q *queue) ofKey(key string) *shard {
	if len(q.shards) == 1 {
		return q.shards[0]
	}
	return q.shards[crc32.ChecksumIEEE([]byte(key))%uint32(len(q.shards))]
}

// ofID returns the shard that an id names; nil: there is none.
func (q *queue) ofID(id engine.ID) *shard {
	if n := shardOf(id); n < len(q.shards) {
		return q.shards[n]
	}
	return nil
}

// of returns the shard of what a ref means.
func (q *queue) of(ref engine.Ref) *shard {
	if ref.ID != 0 {
		return q.ofID(ref.ID)
	}
	return q.ofKey(ref.Key)
}

// soon notes that something happens at an instant, and reports whether that is sooner than
// was known.
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

// doubt makes what is known of the shard worth nothing.
func (s *shard) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	s.asked = time.Time{}
}

// standing is whether a shard is to be asked.
type standing int

const (
	quiet standing = iota // nothing is due there
	due                   // something is, or nothing is known
	old                   // what is known is too old to rely on
)

// stands reports whether the shard is to be asked, now being its clock, and the turns
// to give to learn.
func (s *shard) stands(now time.Time, local time.Time) (standing, uint64) {
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

// stale is how old knowledge of a shard may get. It is a little less than Recheck,
// at whose pace the root package asks.
const stale = Recheck - Recheck/10

// These stand for a number of wakes that no shard has: it has not told, or it has
// answered with an error.
const (
	unknown    = -1
	unreadable = -2
)

// learn takes in an answer. What came up since stands was called may have been missed
// by it: then the shard is to be asked again.
func (s *shard) learn(next int64, held bool, wakes int64, turns uint64, local time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.held, s.wakes, s.asked, s.fails = next, held, wakes, local, 0
	if s.turns != turns {
		s.next = 0
	}
}

// failed notes that the shard could not be asked at now, its clock: it is left alone for
// a little.
func (s *shard) failed(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := min(shardPauseMin<<min(s.fails, 10), shardPauseMax)
	s.fails++
	s.next, s.held, s.wakes, s.asked = now.Add(pause).UnixMilli(), false, unknown, time.Now()
}

// confirm takes in how often the shard has woken others. If that is as it was, nothing
// has been missed.
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

// holdsBack returns whether the settings hold messages back until then.
func (s *shard) holdsBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// maxQueues is how many queues an engine knows at a time.
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
		// What is known of them can be asked again.
		clear(e.queues)
		clear(e.printed)
	}
	q = newQueue(e, name)
	e.queues[name] = q
	e.printed[q.print] = q
	return q
}
