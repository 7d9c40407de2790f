package diskengine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// boundScale is by how much less memory, log and constant there are in TestDiskIsBounded than by
// default; boundSegment is what one of the log has then.
const (
	boundScale   = 256
	boundSegment = 16 << 20 / boundScale
)

// TestDiskIsBounded plays histories that leave few of many messages, each in another way. Once merges
// have caught up, all files together take at most 1.6 times what is live and what 256 MiB less the
// ballast is at that scale, and the sstables alone no more than 1.6 times what is live and a segment.
// TARRY_TEST_BOUND=10 makes ten times as many messages, with ordered and with random keys in each history.
func TestDiskIsBounded(t *testing.T) {
	n := 4000
	s, long := os.LookupEnv("TARRY_TEST_BOUND")
	if long {
		times, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		n *= times
	}
	small := func(*rand.Rand) int { return 200 }
	for i, h := range []struct {
		name string
		play func(s *holdings)
	}{
		{"nothing goes", func(s *holdings) { s.push(n, small) }},
		{"nothing goes, bodies of 8 bytes", func(s *holdings) { s.push(n, func(*rand.Rand) int { return 8 }) }},
		{"few go of each sstable", func(s *holdings) { s.push(n, small); s.catchUp(); s.cancel(0.39) }},
		{"few go of each sstable, bodies of 8 bytes", func(s *holdings) { s.push(n, func(*rand.Rand) int { return 8 }); s.catchUp(); s.cancel(0.39) }},
		{"the large go", func(s *holdings) {
			s.push(n, func(r *rand.Rand) int {
				if r.IntN(200) == 0 {
					return 40_000
				}
				return 20
			})
			s.catchUp()
			s.cancelIf(func(size int) bool { return size > 40_000 })
		}},
		{"all go but some far ones", func(s *holdings) {
			for range 20 {
				s.due = 0
				s.push(n/20, small)
				s.due = 365 * 24 * time.Hour
				s.push(n/1000, small)
				s.work(1)
			}
		}},
		{"all are replaced", func(s *holdings) { s.push(n/2, small); s.again(engine.Replace, 1, small) }},
		{"many are wound back, again and again", func(s *holdings) {
			s.push(n/4, small)
			for range 8 {
				s.again(engine.Rearm, 0.5, small)
			}
		}},
		{"one queue is purged of two", func(s *holdings) {
			s.push(n/2, small)
			s.queue = "other"
			s.push(n/2, small)
			s.purge()
		}},
		{"most die, and are brought back and handled", func(s *holdings) { s.due = 0; s.push(n/2, small); s.bury(0.9); s.redrive(0.7); s.work(0.5) }},
		{"anything", func(s *holdings) {
			for range 20 {
				s.due = []time.Duration{0, time.Hour, 1000 * time.Hour}[s.rng.IntN(3)]
				s.push(n/20, func(r *rand.Rand) int { return 1 << r.IntN(12) })
				s.cancel(0.1 * s.rng.Float64())
				s.again(engine.Replace, 0.1*s.rng.Float64(), small)
				s.again(engine.KeepDue, 0.1*s.rng.Float64(), small)
				s.reschedule(0.1 * s.rng.Float64())
				s.bury(0.1 * s.rng.Float64())
				s.redrive(0.5)
				s.work(0.1 * s.rng.Float64())
			}
		}},
	} {
		kinds := []string{"ordered", "random"}
		if !long {
			kinds = kinds[i%2:][:1]
		}
		for _, keys := range kinds {
			t.Run(h.name+"/"+keys, func(t *testing.T) {
				t.Parallel()
				s := newHoldings(t, keys)
				h.play(s)
				s.bounded()
			})
		}
	}
}

// holdings is a store, and what it holds as it is counted without asking it.
type holdings struct {
	t     *testing.T
	disk  *disktest.Disk
	e     *diskengine.Engine
	rng   *rand.Rand
	keys  string
	queue string
	due   time.Duration
	n     int
	live  map[string]int // bytes of a message, by queue and key
	dead  map[string]int
	order []string // keys that were pushed, some of them gone
}

func newHoldings(t *testing.T, keys string) *holdings {
	d := disktest.New(&disktest.Config{Sector: 4096})
	clock := enginetest.NewClock()
	s := &holdings{t: t, disk: d, rng: rand.New(rand.NewPCG(1, 2)), keys: keys, queue: "q", due: time.Hour,
		live: make(map[string]int), dead: make(map[string]int)}
	s.e = place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, Now: clock.Now},
		diskengine.Tune{SegmentBytes: boundSegment, SpanBytes: 7 * boundSegment, MemtableBytes: 256 << 20 / 3 / boundScale}}.open(t)
	t.Cleanup(func() {
		if err := s.e.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// messageHead is what a message is at least beside its key and body: when it was made and is due, its
// id, and its terms, of eight bytes each.
const messageHead = 32

func (s *holdings) name(key string) string { return s.queue + " " + key }

func (s *holdings) key() string {
	s.n++
	if s.keys == "ordered" {
		return fmt.Sprintf("order-%010d", s.n)
	}
	return fmt.Sprintf("%016x", s.rng.Uint64())
}

// call carries something out on some keys, a hundred a call.
func (s *holdings) call(keys []string, do func(some []string)) {
	for len(keys) > 0 {
		some := keys[:min(100, len(keys))]
		keys = keys[len(some):]
		do(some)
	}
}

// some are keys of the queue, of so large a share of all that are live.
func (s *holdings) some(share float64) (keys []string) {
	for _, key := range s.order {
		if _, ok := s.live[s.name(key)]; ok && s.rng.Float64() < share {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s *holdings) push(n int, body func(*rand.Rand) int) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = s.key()
	}
	s.order = append(s.order, keys...)
	s.pushKeys(keys, engine.Reject, body)
}

func (s *holdings) pushKeys(keys []string, conflict engine.Conflict, body func(*rand.Rand) int) {
	s.call(keys, func(some []string) {
		msgs := make([]engine.Message, len(some))
		for i, key := range some {
			due := time.Duration(0)
			if s.due > 0 {
				due = time.Minute + time.Duration(s.rng.Int64N(int64(s.due)))
			}
			msgs[i] = message(s.queue, key, due)
			msgs[i].Body, msgs[i].OnConflict = noiseOf(s.rng, body(s.rng)), conflict
			if _, ok := s.live[s.name(key)]; !ok || conflict != engine.Rearm { // which keeps what there is
				s.live[s.name(key)] = messageHead + len(key) + len(msgs[i].Body)
			}
		}
		s.must(pushAll(s.t, s.e, msgs...))
	})
}

// again pushes a share of the live ones anew.
func (s *holdings) again(conflict engine.Conflict, share float64, body func(*rand.Rand) int) {
	s.pushKeys(s.some(share), conflict, body)
}

func (s *holdings) cancel(share float64) { s.cancelKeys(s.some(share)) }

func (s *holdings) cancelIf(is func(size int) bool) {
	var keys []string
	for _, key := range s.order {
		if is(s.live[s.name(key)]) {
			keys = append(keys, key)
		}
	}
	s.cancelKeys(keys)
}

func (s *holdings) cancelKeys(keys []string) {
	s.call(keys, func(some []string) {
		refs := make([]engine.Ref, len(some))
		for i, key := range some {
			refs[i] = engine.Ref{Queue: s.queue, Key: key}
			delete(s.live, s.name(key))
		}
		errs, err := s.e.Cancel(s.t.Context(), refs)
		s.must(errors.Join(append(errs, err)...))
	})
}

func (s *holdings) reschedule(share float64) {
	for _, key := range s.some(share) {
		_, err := s.e.Reschedule(s.t.Context(), engine.Ref{Queue: s.queue, Key: key}, engine.When{In: time.Hour})
		s.must(err)
	}
}

// settle leases a share of what is live, where that is due, and settles it.
func (s *holdings) settle(share float64, do engine.Action, each func(name string)) {
	for left := int(share * float64(len(s.live))); left > 0; {
		leases := lease(s.t, s.e, s.queue, min(left, 100))
		if len(leases) == 0 {
			return
		}
		left -= len(leases)
		for _, l := range leases {
			each(s.name(l.Key))
		}
		settle(s.t, s.e, leases, do)
	}
}

// work leases and acks a share of what is live.
func (s *holdings) work(share float64) {
	s.settle(share, engine.Ack, func(name string) { delete(s.live, name) })
}

func (s *holdings) bury(share float64) {
	s.settle(share, engine.Bury, func(name string) {
		s.dead[name] += s.live[name]
		delete(s.live, name)
	})
}

// redrive brings a share of the dead back.
func (s *holdings) redrive(share float64) {
	n := int(share * float64(len(s.dead)))
	if n == 0 {
		return
	}
	page, err := s.e.List(s.t.Context(), engine.ListQuery{Queue: s.queue, State: engine.Dead, Limit: min(n, 1000)})
	s.must(err)
	ids := make([]engine.ID, len(page.Messages))
	for i, m := range page.Messages {
		ids[i] = m.ID
		s.live[s.name(m.Key)] = s.dead[s.name(m.Key)]
		delete(s.dead, s.name(m.Key))
	}
	got, err := s.e.Redrive(s.t.Context(), s.queue, ids, 0)
	s.must(err)
	if int(got.Redriven) != len(ids) {
		s.t.Fatalf("%+v of %d were brought back", got, len(ids))
	}
}

func (s *holdings) purge() {
	_, err := s.e.Purge(s.t.Context(), s.queue, 0)
	s.must(err)
	for _, key := range s.order {
		delete(s.live, s.name(key))
	}
}

// catchUp has the background do all that there is to do.
func (s *holdings) catchUp() { s.must(s.e.CatchUp()) }

func (s *holdings) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// bounded has merges catch up, and looks at what the files take.
func (s *holdings) bounded() {
	s.t.Helper()
	live := int64(0)
	for _, of := range []map[string]int{s.live, s.dead} {
		for _, n := range of {
			live += int64(n)
		}
	}
	most := live*8/5 + (256-64)<<20/boundScale
	s.catchUp()
	used, tables := s.disk.Used(), s.e.TableBytes()
	for end := time.Now().Add(time.Minute); used > most && time.Now().Before(end); time.Sleep(2 * time.Millisecond) { // the log lets go of segments
		used = s.disk.Used()
	}
	s.t.Logf("live %d in %d, files %d (%.2f), at most %d, sstables %d (%.2f)", live, len(s.live)+len(s.dead), used, float64(used)/float64(live), most, tables, float64(tables)/float64(live))
	if used > most {
		s.t.Errorf("the files take %d bytes, of at most %d", used, most)
	}
	if tables > live*8/5+boundSegment {
		s.t.Errorf("the sstables take %d bytes, for %d that are live", tables, live)
	}
}
