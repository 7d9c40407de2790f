package diskengine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
	"weak"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Tune makes small what is large, so that little happens often. What is zero is as it comes.
type Tune struct {
	SegmentBytes  int64 // of the log
	MemtableBytes int64 // of memory, at which the recent messages are sealed
	SpanBytes     int64 // of the log, likewise
	AheadSpans    int   // that the log may be ahead of sstables before pushes wait; negative: any
	NearBytes     int64 // of memory of what is about to be leased
	Ready         int   // of how many messages of a queue the order is exact
	EntryBytes    int   // that an entry of the log may have
	BlockBytes    int   // of sstables
	GroupWords    int   // of sstables; as sstable.Config has it
	HeadBytes     int   // that are read of a long value first
	MergeTables   int   // of about one size are merged
	Merged        int   // entries that they have together at most
	MergeBytes    int64 // bytes that they have together at most
	Openers       int   // sstables that are opened at the same time; 0: 1, so that one call of the disk follows another
	OnHeap        bool  // the race detector sees the recent messages

	// Still says that nothing is done by itself: Turn does it, and whoever waits for the log. One
	// goroutine may use the engine at a time.
	Still bool

	// Random fills b with what is drawn by chance otherwise.
	Random func(b []byte)

	// Between is called between the slices of what goes on in the background.
	Between func(where string)

	// Held is called when somebody has the lock of the engine, and before he gives it away.
	Held func(begins bool)

	// Found is told, at the end of each step, how many bytes the call keeps that it has read of sstables.
	Found func(bytes int)

	// Sound looks, at the end of each step, whether all that is in memory agrees.
	Sound func(error)

	// Stepped is called at the end of each step that has changed something, under the lock,
	// before that is in the log.
	Stepped func()
}

// OpenOn is Open on a file system.
func OpenOn(fs vfs.FS, dir string, cfg *Config, t Tune) (*Engine, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.BallastBytes == 0 {
		c.BallastBytes = -1
	}
	c.tune = tuning{readyMemory: t.NearBytes, ready: t.Ready, Config: store.Config{
		FS: fs, Segment: t.SegmentBytes, Memtable: t.MemtableBytes, Span: t.SpanBytes, Ahead: t.AheadSpans, Entry: t.EntryBytes, Block: t.BlockBytes, Group: t.GroupWords, Head: t.HeadBytes,
		FanIn: t.MergeTables, Merged: t.Merged, Merge: t.MergeBytes, Openers: max(1, t.Openers), OnHeap: t.OnHeap, Still: t.Still, Random: t.Random, Between: t.Between, Held: t.Held}}
	if t.Sound != nil {
		c.tune.stepped = func(c *call) {
			if c.e.live > 300 { // it looks at all
				return
			}
			if err := c.e.sound(); err != nil {
				t.Sound(err)
			}
		}
	}
	if t.Found != nil {
		c.tune.stepped = func(c *call) { t.Found(c.reader.Bytes()) }
	}
	if t.Stepped != nil {
		c.tune.stepped = func(c *call) {
			if len(c.group) > 0 {
				t.Stepped()
			}
		}
	}
	return Open(dir, &c)
}

// Flush writes all recent messages to sstables.
func (e *Engine) Flush(ctx context.Context) error {
	return e.Still(func() error { return e.FlushStill(ctx) })
}

// Still carries do out while nothing is flushed or merged, unless do does so itself by FlushStill
// and MergeStill.
func (e *Engine) Still(do func() error) error {
	e.store.Compactor.FlushMu.Lock()
	defer e.store.Compactor.FlushMu.Unlock()
	e.store.Compactor.MergeMu.Lock()
	defer e.store.Compactor.MergeMu.Unlock()
	return do()
}

// AwaitLeft waits for the calls under way that their callers have left.
func (e *Engine) AwaitLeft() { e.made.Wait(time.Minute) }

// Ends is closed when the engine begins to close.
func (e *Engine) Ends() <-chan struct{} { return e.store.Life.Done() }

// FlushStill is Flush within Still.
func (e *Engine) FlushStill(context.Context) error {
	for {
		e.store.Mu.Lock()
		sealed := len(e.store.Compactor.Sealed)
		e.store.Mu.Unlock()
		if err := e.store.Compactor.FlushTable(e.store.Compactor.Next(true)); err != nil || sealed == 0 {
			return err
		}
	}
}

// Sstables are those that count, which it does not keep in memory.
func (e *Engine) Tables() (tables []weak.Pointer[sstable.Table]) {
	for _, src := range e.store.Outer.Load().All() {
		tables = append(tables, weak.Make(src.Table))
	}
	return tables
}

// LastQueue leaves a number for one more queue.
func (e *Engine) LastQueue() {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	e.nextQueue = memtable.MaxQueue
}

// Garble makes something of the value of a recent message, or of a key that is remembered, that is none.
func (e *Engine) Garble(id engine.ID) {
	e.revalue(id, func([]byte) []byte { return []byte{0xff} })
}

// GarbleContent leaves the head of a recent message as it is, and spoils what follows it.
func (e *Engine) GarbleContent(id engine.ID) {
	e.revalue(id, func(v []byte) []byte {
		s, content, err := record.ParseValue(v)
		if err != nil {
			panic(err)
		}
		head, err := record.HeadOf(content)
		if err != nil {
			panic(err)
		}
		return record.AppendValue(nil, &s, append(slices.Clone(head), 0xff))
	})
}

func (e *Engine) revalue(id engine.ID, value func([]byte) []byte) {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	x, _ := e.store.Memtables.ByID(uint64(id))
	x.Key, x.Value = slices.Clone(x.Key), value(slices.Concat(x.Value, x.Tail))
	x.Tail = nil
	e.store.Memtables.Put(x)
}

// Seal seals the recent messages, unless others are sealed, and leaves it to the background to write
// them.
func (e *Engine) Seal(context.Context) error {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	if len(e.store.Compactor.Sealed) == 0 {
		e.store.Compactor.Seal()
	}
	return nil
}

// Behind reports whether something is still to be flushed.
func (e *Engine) Behind() bool {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	return len(e.store.Compactor.Sealed) > 0
}

// Turn does what is done in the background otherwise.
func (e *Engine) Turn() {
	k := e.store.Compactor
	for _, c := range []struct {
		store.Task
		work func() error
	}{{k.Looks, k.Look}, {k.Flushes, k.FlushAll}, {k.Merges, k.Merge}} {
		select {
		case <-c.Told:
		case <-c.Eased:
		default:
			continue
		}
		if e.store.Life.Err() != nil || e.store.Failed() != nil {
			return
		}
		e.forgotIdle = time.Now() // Tidy does that
		if err := c.work(); k.Ends(err) {
			return
		} else if err != nil {
			store.Signal(c.Told)
		}
	}
}

// Merge merges all sstables of each area into one.
func (e *Engine) Merge(ctx context.Context) error {
	return e.Still(func() error { return e.MergeStill(ctx) })
}

// MergeStill is Merge within Still.
func (e *Engine) MergeStill(context.Context) error {
	for a := range e.store.Tables.Of {
		e.store.Mu.Lock()
		list := e.store.Tables.Of[a]
		e.store.Mu.Unlock()
		if len(list) == 0 {
			continue
		}
		if err := e.store.Compactor.MergeTables(list); err != nil {
			return err
		}
	}
	return nil
}

// Names is how many queues are known by name, and by number.
func (e *Engine) Names() (names, numbers int) {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	return len(e.queues), len(e.numbered)
}

// Near is how many bytes what is about to be leased takes, over all queues.
func (e *Engine) Near() (n int64) {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	for _, q := range e.queues {
		n += int64(cap(q.heap)) * store.ItemBytes
		for a := range q.cursors {
			n += q.cursors[a].Bytes()
		}
	}
	return n
}

// sound says what of all that is in memory does not agree: that each message stands once, that a
// key is of one who lives or is remembered, that the counters are right, and that each lease has a message.
func (e *Engine) sound() error {
	type place struct {
		area     memtable.Area
		due      int64
		at       store.Spot
		priority uint32
	}
	position := func(id engine.ID, p place) memtable.Position {
		return memtable.Position{At: p.due, ID: uint64(id)}
	}
	total := int64(0)
	where := make(map[*queue]map[engine.ID]place)
	type name struct {
		queue uint32
		key   string
	}
	keys := make(map[name]uint64) // of those that live or are remembered
	taken := func(a memtable.Area, num uint32, id uint64, key []byte) error {
		n := name{num, string(key)}
		if a.Shares() || len(key) == 0 {
			return nil
		}
		if other, ok := keys[n]; ok {
			return fmt.Errorf("key %q of queue %d is that of id %d and of id %d", key, num, other, id)
		}
		keys[n] = id
		return nil
	}
	add := func(num uint32, id engine.ID, p place) error {
		q := e.numbered[num]
		if q == nil {
			return fmt.Errorf("id %d is of queue %d, which is not there", id, num)
		}
		if where[q] == nil {
			where[q] = make(map[engine.ID]place)
		}
		if o, ok := where[q][id]; ok {
			return fmt.Errorf("id %d of %s stands at %v %v and at %v %v", id, q.name, o.at.Record(), o.due, p.at.Record(), p.due)
		}
		where[q][id] = p
		return nil
	}
	var err error
	e.store.Memtables.Places(func(num uint32, a memtable.Area, _ int64) {
		e.store.Memtables.Ascend(num, a, memtable.First, func(x memtable.Entry) bool {
			err = cmp.Or(err, add(num, engine.ID(x.ID), place{a, x.At, store.Spot{}, priorityOf(x.Value)}), taken(a, num, x.ID, x.Key))
			return true
		})
	})
	for _, src := range e.store.Tables.All() {
		s := src.Scan(0, src.Len())
		for s.Next() {
			x := s.Entry()
			key, _, kerr := record.ParseKeyed(x.Value)
			err = cmp.Or(err, kerr, add(x.Queue, engine.ID(x.ID), place{src.Area, x.At, store.Spot{Src: src, Pos: x.Pos}, priorityIn(src, x)}), taken(src.Area, x.Queue, x.ID, key))
		}
		if s.Err() != nil {
			return s.Err()
		}
		_ = s.Close()
	}
	if err != nil {
		return err
	}
	for _, q := range e.queues {
		var count [memtable.Areas]int64
		var leased, ready, sure int64
		for id, p := range where[q] {
			count[p.area]++
			if p.area != memtable.Live {
				continue
			}
			if q.held(id) {
				leased++
			} else if position(id, p).Before(q.front) {
				ready++
			}
			if !q.held(id) && position(id, p).Before(q.known) {
				if sure++; p.priority < q.least {
					return fmt.Errorf("%s: id %d, due %d, of priority %d waits before %v, where none has one before %d", q.name, id, p.due, p.priority, q.known, q.least)
				}
			}
		}
		total += count[0]
		if err := e.soundLeases(q, func(id engine.ID) bool {
			p, ok := where[q][id]
			return ok && p.area == memtable.Live
		}); err != nil {
			return err
		}
		if count != [memtable.Areas]int64{q.live, q.dead, q.finished, q.listed} || leased != q.leased || ready != q.ready {
			return fmt.Errorf("%s: %v, %d leased, %d ready are counted as %d %d %d %d, %d leased, %d ready", q.name, count, leased, ready, q.live, q.dead, q.finished, q.listed, q.leased, q.ready)
		}
		turned, best := make(map[engine.ID]bool), 0
		for _, t := range q.heap {
			if turned[t.ID] = true; t.Priority <= q.least {
				best++
			}
		}
		if sure != q.knownCount || q.bestCount > best {
			return fmt.Errorf("%s: %d wait before %v, and are counted as %d; of %d turns that go out first %d are counted", q.name, sure, q.known, q.knownCount, best, q.bestCount)
		}
		for id, p := range where[q] {
			if p.area == memtable.Live && !q.held(id) && !turned[id] && position(id, p).Before(q.front) {
				return fmt.Errorf("%s: id %d, due %d, waits before %v and has no turn", q.name, id, p.due, q.front)
			}
		}
	}
	if total != e.live {
		return fmt.Errorf("%d live are counted as %d", total, e.live)
	}
	return nil
}

// soundLeases says what is wrong of those of a queue.
func (e *Engine) soundLeases(q *queue, exists func(id engine.ID) bool) (err error) {
	held, last := int64(0), memtable.First
	look := func(l *lease) bool {
		id, at := engine.ID(l.ID), memtable.Position{At: l.Deadline, ID: l.ID}
		switch {
		case !exists(id):
			err = fmt.Errorf("%s: id %d has a lease %+v, and stands nowhere", q.name, id, *l)
		case q.leaseOf(id) != l:
			err = fmt.Errorf("%s: the lease %+v is not found by its id", q.name, *l)
		case at.Before(last):
			err = fmt.Errorf("%s: the lease %+v stands behind %v", q.name, *l, last)
		case !l.HasLapsed() && l.Deadline < q.ends:
			err = fmt.Errorf("%s: the lease %+v ends before %d", q.name, *l, q.ends)
		}
		if last = at; !l.HasLapsed() {
			held++
		}
		return err == nil
	}
	e.leases.Ascend(q.num, memtable.First, look)
	last = memtable.First
	e.leases.AscendLapsed(q.num, memtable.First, look)
	if err == nil && held != q.leased {
		err = fmt.Errorf("%s: %d are leased, counted as %d", q.name, held, q.leased)
	}
	return err
}

// priorityIn is the priority in an entry of an sstable; 0: it has none.
func priorityIn(src *store.Source, e sstable.Entry) uint32 {
	if src.Area != memtable.Live {
		return 0
	}
	_, _, content, err := record.ParseStored(e.Value)
	if err == nil {
		if h, err := record.ParseHead(content); err == nil {
			return h.Priority
		}
	}
	return engine.DefaultPriority
}

// Sound says what of all that is in memory does not agree.
func (e *Engine) Sound() error {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	return e.sound()
}

// Unlisted reports whether the last message that finished was not listed, for want of space.
func (e *Engine) Unlisted() bool {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	return e.unlisted
}

// Secret is that under which keys are hashed.
func (e *Engine) Secret() [16]byte { return e.store.Secret }

// Tidy forgets queues that are empty, as is done every now and then.
func (e *Engine) ForgetIdle() error {
	e.store.Compactor.FlushMu.Lock()
	defer e.store.Compactor.FlushMu.Unlock()
	return e.ForgetIdleStill(context.Background())
}

// TidyStill is Tidy within Still.
func (e *Engine) ForgetIdleStill(context.Context) error {
	e.forgotIdle = time.Time{}
	return e.forgetIdle()
}

// NextID is the id of the next new message.
func (e *Engine) NextID() engine.ID {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	return e.nextID
}

// CatchUp does what the background has to do, to its end.
func (e *Engine) CatchUp() error {
	if err := e.store.Compactor.Flush(); err != nil {
		return err
	}
	return e.store.Compactor.Merge()
}

// TableBytes is what all sstables take of the disk.
func (e *Engine) TableBytes() (n int64) {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	for _, src := range e.store.Tables.All() {
		n += src.Bytes()
	}
	return n
}

// Pin keeps the log and the sstables as a backup does, until it is left.
func (e *Engine) Pin() (leave func()) { return e.store.Compactor.Pin().Leave }
