package sqlengine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Lease leases due messages. Unless it expects some, it first looks at the queues in one
// statement without locks, and begins a transaction only for those with something to do.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	if err := e.calls.Enter(ctx, "lease"); err != nil {
		return engine.Grant{}, err
	}
	defer e.calls.Leave()
	nums, distinct, err := e.queuesOf(ctx, len(wants), func(i int) string { return wants[i].Queue }, false)
	if err != nil {
		return engine.Grant{}, err
	}
	visits := make([]*visit, len(wants))
	for i, want := range wants {
		visits[i] = &visit{want: want, num: nums[i]}
		visits[i].granted.Err = want.Check()
	}
	e.cache.each(distinct, func(_ int64, k *cached) { k.asking++ })
	defer e.cache.each(distinct, func(_ int64, k *cached) { k.asking-- })
	asked := time.Now()
	now, idle := time.Time{}, make(map[int64]*Heads)
	busy := distinct
	if !e.cache.expects(distinct) {
		if now, busy, err = e.busy(ctx, distinct, idle); err != nil {
			return engine.Grant{}, err
		}
	}
	if len(busy) > 0 {
		if now, err = e.handOut(ctx, busy, visits); err != nil {
			return engine.Grant{}, err
		}
	}
	e.lookWhole(distinct)
	e.trim(distinct, now.UnixMilli())
	return e.granted(now, asked, visits, idle), nil
}

// handOut answers the visits of busy queues in one transaction. It reads due messages as it
// opens, unless settings say how many a queue may lease.
func (e *Engine) handOut(ctx context.Context, queues []int64, visits []*visit) (now time.Time, err error) {
	wanted := make(map[int64]int)
	if e.cache.withSettings(queues, boundsLeases) == nil {
		for _, v := range visits {
			if v.granted.Err == nil {
				wanted[v.num] += v.want.Max
			}
		}
	}
	var ahead []Range
	for _, low := range e.cache.lowBounds(queues) {
		e.cache.one(low.Queue, func(k *cached) {
			if !k.ranks {
				low.From[Ranked].At = never
			}
		})
		if n := min(wanted[low.Queue], engine.MaxBatch); n > 0 {
			ahead = append(ahead, e.ready(low.Queue, &low.From, e.dueBy(), n)...)
		}
	}
	var finish func()
	err = e.do(ctx, "lease", queues, First{Ranges: ahead}, boundsLeases, func(w *work) (err error) {
		w.quiet = true
		now = w.now
		for _, v := range visits {
			if v.granted.Err == nil && w.queues[v.num] != nil {
				v.granted = engine.Granted{}
			}
		}
		finish, err = w.lease(visits)
		return err
	})
	if err != nil {
		return now, err
	}
	finish()
	e.takeBack(ctx, visits)
	return now, nil
}

// takeBack releases leases of queues that were paused meanwhile. If that fails, they lapse.
func (e *Engine) takeBack(ctx context.Context, visits []*visit) {
	var back []engine.Settlement
	for _, v := range visits {
		if v.paused {
			back = append(back, engine.Releases(v.granted.Messages)...)
			v.granted.Messages, v.granted.More = nil, false
		}
	}
	if back != nil {
		_, _ = e.settle(ctx, back, NoTimeout)
	}
}

// lookAt returns the heads of queues. It is a whole look where that is quick.
func (e *Engine) lookAt(ctx context.Context, op string, queues []int64) (now time.Time, heads []Heads, err error) {
	l := e.cache.beginLook(queues, lookSlow)
	sent := time.Now()
	now, heads, err = e.heads(ctx, op, l.from)
	if err != nil { // then some heads may be there, but not all
		e.cache.endLook(l, nil, 0, 0)
		return now, nil, err
	}
	now = e.clock(now)
	e.cache.saw(heads)
	e.cache.endLook(l, heads, now.UnixMilli(), time.Since(sent))
	return now, heads, nil
}

// busy looks at queues and returns those with something to do. It adds the heads of all to
// idle.
func (e *Engine) busy(ctx context.Context, queues []int64, idle map[int64]*Heads) (now time.Time, busy []int64, err error) {
	now, heads, err := e.lookAt(ctx, "lease", queues)
	for i := range heads {
		h := &heads[i]
		if h.due(now.UnixMilli()) {
			busy = append(busy, h.Num)
		}
		idle[h.Num] = h
	}
	return now, busy, err
}

// untilNow is the end of ranges of what is due by the database's clock.
const untilNow = never - 1

// dueBy returns the end of ranges of what is due when a transaction opens.
func (e *Engine) dueBy() int64 {
	if e.cfg.Now != nil {
		return e.cfg.Now().UnixMilli()
	}
	return untilNow
}

// ready returns the ranges of a queue's rows that are due at an instant, beginning at from.
func (e *Engine) ready(queue int64, from *Places, ms int64, most int) (ranges []Range) {
	one := Range{Queue: queue, Due: ms == untilNow, Most: most, Lock: Skip, Body: true}
	if one.Kind = Waiting; from[Waiting].At <= ms {
		one.Span = from.until(Waiting, ms)
		ranges = append(ranges, one)
	}
	if one.Kind = Ranked; from[Ranked].At <= ms {
		one.Span, one.Window = from.until(Ranked, ms), window
		e.cache.one(queue, func(k *cached) { one.Spare = k.spareRows })
		ranges = append(ranges, one)
	}
	return ranges
}

// until returns the span of rows from p that end at or before an instant.
func (p *Places) until(kind Kind, ms int64) codec.Span {
	return codec.Span{Low: p[kind], High: codec.Place{At: ms + 1}}
}

// due reports whether a queue has something to do at an instant, if only to drop rows.
func (h *Heads) due(ms int64) bool {
	paused := h.Paused > ms
	return h.Leased <= ms || h.Waiting <= ms && !paused || h.Forgotten <= ms || h.Dead < h.keeps(ms)
}

// boundsLeases reports whether a lease must lock the queue.
func boundsLeases(s *engine.Settings) bool { return boundsFlight(s) || s.Rate > 0 }

// boundsFlight reports whether the settings bound leases, so that others may wait for one to
// end.
func boundsFlight(s *engine.Settings) bool { return s.InFlight > 0 }

// visit is one want and its answer.
type visit struct {
	want     engine.Want
	num      int64 // 0: there is no such queue
	granted  engine.Granted
	next     int64 // when there may be more
	answered bool  // next is set
	paused   bool  // the queue was paused after the transaction began
}

// granted returns the answer to the visits. For idle queues it uses the result of the first
// look. asked is when the call began.
func (e *Engine) granted(now, asked time.Time, visits []*visit, idle map[int64]*Heads) engine.Grant {
	ms := now.UnixMilli()
	grant := engine.Grant{Now: now, Queues: make([]engine.Granted, len(visits))}
	var late []string
	for i, v := range visits {
		g := &v.granted
		if v.num != 0 && g.Err == nil {
			if !v.answered {
				v.next = idle[v.num].next(ms)
			}
			if !g.More {
				g.NextDue = rules.Instant(max(v.next, ms+1))
			}
			e.cache.one(v.num, func(k *cached) {
				g.Expired, g.Died = k.unreported.expired, k.unreported.died
				k.unreported = endings{}
				if k.tell(v.next, asked.Add(rules.Instant(v.next).Sub(now))) && !g.More {
					late = append(late, v.want.Queue)
				}
			})
			for k := range g.Messages {
				if !v.want.Remote {
					e.held.Add(&g.Messages[k], struct{}{}, now)
				}
			}
		}
		grant.Queues[i] = *g
	}
	e.watchers.Hint(late...)
	return grant
}

// next returns when a queue may have something.
func (h *Heads) next(ms int64) int64 {
	if h.Paused > ms {
		return h.Paused
	}
	return min(h.Waiting, h.Leased)
}

// lease answers the visits of the queues that the work has opened. finish completes the
// answers after the commit.
func (w *work) lease(visits []*visit) (finish func(), err error) {
	byQueue := make(map[int64][]*visit)
	var order []int64
	for _, v := range visits {
		if w.queues[v.num] == nil || v.granted.Err != nil {
			continue
		}
		if byQueue[v.num] == nil {
			order = append(order, v.num)
		}
		byQueue[v.num] = append(byQueue[v.num], v)
	}
	if err := w.dropOld(order); err != nil {
		return nil, err
	}
	if err := w.lapse(order); err != nil {
		return nil, err
	}
	room := make(map[int64]int, len(order))
	for _, q := range order {
		n := 0
		for _, v := range byQueue[q] {
			n += v.want.Max
		}
		may, err := w.grantable(q, min(n, engine.MaxBatch))
		if err != nil {
			return nil, err
		}
		if w.queues[q].Paused == 0 {
			room[q] = may
		}
	}
	full, err := w.fetchAll(order, room)
	if err != nil {
		return nil, err
	}
	var large []*Row
	rows := make(map[int64][]*row, len(order))
	for _, x := range w.order {
		if x.state(w.ms) == engine.Ready {
			rows[x.Queue] = append(rows[x.Queue], x)
		}
	}
	for _, q := range order {
		ready, left := rows[q], room[q]
		slices.SortFunc(ready, byTurn)
		for _, v := range byQueue[q] {
			bytes, n := 0, 0
			for _, x := range ready {
				alone := x.alone()
				if n == v.want.Max || n == left || bytes >= engine.AnswerBytes || alone && n > 0 {
					break
				}
				w.hold(x, v.want.TTR, v.want.TakerOf(n).Worker)
				n++
				bytes += x.Size
				if x.Size > InlineBody {
					large = append(large, &x.Row)
				}
				if alone {
					break
				}
			}
			v.granted.Messages = make([]engine.Lease, n)
			for k, x := range ready[:n] {
				v.granted.Messages[k].Token = codec.Token{Queue: uint64(q), ID: x.ID, Nonce: *x.Nonce}.String()
				v.granted.Messages[k].ID = x.ID
			}
			ready, left = ready[n:], left-n
			v.granted.More = len(ready) > 0 && left > 0
		}
		full[q] = full[q] || len(ready) > 0
		w.pass(q, room[q]-left)
	}
	if len(large) > 0 {
		if err := w.tx.Bodies(w.ctx, large); err != nil {
			return nil, err
		}
	}
	for _, v := range visits {
		for k := range v.granted.Messages {
			l := &v.granted.Messages[k]
			l.Info = w.leased(w.rows[l.ID])
		}
	}
	return w.after(order, byQueue, full)
}

// lapse applies overdue leases of queues, at most a chunk of each queue.
func (w *work) lapse(queues []int64) error {
	var ranges []Range
	for _, q := range queues {
		if w.queues[q].Leased <= w.ms {
			ranges = append(ranges, Range{Queue: q, Kind: Leased, Span: w.queues[q].First.until(Leased, w.ms), Most: chunk, Lock: Skip, Body: true})
		}
	}
	return w.read(ranges)
}

// read adopts the rows of ranges.
func (w *work) read(ranges []Range) error {
	if len(ranges) == 0 {
		return nil
	}
	found, err := w.tx.Ranges(w.ctx, ranges)
	for _, rows := range found {
		w.adopt(rows)
	}
	return err
}

// fetches bounds how often a lease looks again because the rows it found had expired.
const fetches = 10

// fetchAll reads ready messages that have not expired, as many as each queue has room for. It
// begins with those that were read ahead. full holds the queues that may have more.
func (w *work) fetchAll(queues []int64, room map[int64]int) (full map[int64]bool, err error) {
	ranges, found := w.ahead, w.readAhead
	if len(ranges) == 0 || slices.ContainsFunc(queues, w.skipped) {
		if ranges, found, err = w.fetch(queues, room); err != nil {
			return nil, err
		}
	}
	full = make(map[int64]bool)
	again := w.take(ranges, found, room, full)
	for n := 0; n < fetches && again != nil; n++ {
		if err := w.write(); err != nil { // so that expired rows are not found again
			return nil, err
		}
		w.clean()
		many := make(map[int64]int, len(again))
		for _, q := range again {
			many[q] = max(room[q], chunk)
			delete(full, q)
		}
		if ranges, found, err = w.fetch(again, many); err != nil {
			return nil, err
		}
		again = w.take(ranges, found, many, full)
	}
	return full, nil
}

// skipped reports whether the opening has not read the ranked rows of a queue although some are
// due: until they came it had none.
func (w *work) skipped(q int64) bool {
	return w.queues[q].First[Ranked].At <= w.ms &&
		!slices.ContainsFunc(w.ahead, func(r Range) bool { return r.Queue == q && r.Kind == Ranked })
}

// fetch reads ready messages, as many as each queue has room for.
func (w *work) fetch(queues []int64, room map[int64]int) (ranges []Range, found [][]*Row, err error) {
	for _, q := range queues {
		if room[q] > 0 && w.queues[q].Waiting <= w.ms {
			ranges = append(ranges, w.e.ready(q, &w.queues[q].First, w.ms, room[q])...)
		}
	}
	if len(ranges) > 0 {
		found, err = w.tx.Ranges(w.ctx, ranges)
	}
	return ranges, found, err
}

// take adopts the rows of ranges. It adds queues that had as many as wanted to full, and
// returns those among them in which some had expired.
func (w *work) take(ranges []Range, found [][]*Row, room map[int64]int, full map[int64]bool) (again []int64) {
	for i, rows := range found {
		q := ranges[i].Queue
		if room[q] == 0 {
			continue
		}
		expired := false
		for _, x := range w.adopt(rows) {
			expired = expired || x.gone
		}
		if len(rows) < ranges[i].Most {
			continue
		}
		if full[q] = true; expired && (len(again) == 0 || again[len(again)-1] != q) {
			again = append(again, q)
		}
	}
	return again
}

// byTurn is the order in which ready rows are leased.
func byTurn(a, b *row) int {
	return cmp.Or(cmp.Compare(a.Policy.Priority, b.Policy.Priority), cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
}

// hold leases a ready row to a worker.
func (w *work) hold(x *row, ttr time.Duration, worker string) {
	nonce := codec.NewNonceAt(w.ms)
	x.Attempt++
	x.Nonce = &nonce
	x.Kind, x.Ends, x.Worker = Leased, w.deadline(x, ttr), worker
}

// deadline returns the deadline of a lease that begins now. It is in the future.
func (w *work) deadline(x *row, ttr time.Duration) int64 {
	return rules.Deadline(&x.Policy, x.ID, x.Attempt, ttr, w.now)
}

// alone reports whether a ready row must be leased alone.
func (x *row) alone() bool { return x.Nonce != nil && x.Policy.Alone(x.Attempt) }

// after writes the leases and finds out when there may be more. It reads that with the
// commit, unless a queue's settings bound its leases.
func (w *work) after(queues []int64, byQueue map[int64][]*visit, full map[int64]bool) (finish func(), err error) {
	if err := w.write(); err != nil {
		return nil, err
	}
	w.clean()
	// What others have pushed before the first rows since the opening, they tell themselves.
	from := make([]LowBound, len(queues))
	for i, num := range queues {
		q := w.queues[num]
		from[i] = LowBound{num, q.First, q.Forgotten}
		from[i].lower(&q.low)
		from[i].leaveOld()
	}
	var heads func() []Heads
	spent := make(map[int64]int64)
	if slices.ContainsFunc(queues, func(q int64) bool { return boundsLeases(&w.queues[q].Settings) }) {
		read, err := w.tx.Heads(w.ctx, from)
		if err == nil {
			err = w.holdBack(read, spent)
		}
		if err != nil {
			return nil, err
		}
		heads = func() []Heads { return read }
	} else {
		heads = w.tx.Leave(w.ctx, from)
	}
	return func() {
		for _, h := range heads() {
			w.next(&h, byQueue[h.Num], full[h.Num], spent)
		}
	}, nil
}

// holdBack finds the queues that may give no more leases now by their settings, and when they
// may again.
func (w *work) holdBack(heads []Heads, spent map[int64]int64) error {
	for i := range heads {
		h := &heads[i]
		if h.Waiting > w.ms || w.queues[h.Num].Paused != 0 {
			continue
		}
		may, err := w.grantable(h.Num, 1)
		if err != nil {
			return err
		}
		if may == 0 {
			due, err := w.nextDue([]int64{h.Num})
			if err != nil {
				return err
			}
			spent[h.Num] = min(due[0], h.Leased, w.nextAllowed(h.Num))
		}
	}
	return nil
}

// next sets when the visits of a queue may get more, by its first rows. full: more may be due
// already.
func (w *work) next(h *Heads, visits []*visit, full bool, spent map[int64]int64) {
	was := w.queues[h.Num].Paused
	paused := was == 0 && h.Paused > w.ms
	if !paused {
		h.Paused = was
	}
	next := h.next(w.ms)
	until, held := spent[h.Num]
	got := 0
	for _, v := range visits {
		got += len(v.granted.Messages)
	}
	more := false
	w.e.cache.one(h.Num, func(k *cached) {
		k.ranks = h.First[Ranked].At != never
		switch {
		case h.Paused != 0:
		case h.Waiting > w.ms:
			k.spareRows = 0
		case held:
			next = until
		case full:
			next, more = w.ms, true
		default: // others have locked some
			next, k.spareRows = w.ms, min(max(spareLeast, 4*k.spareRows), window)
		}
		blocked := !more && next <= w.ms
		if pause := k.lookAgainIn(blocked && got == 0); blocked {
			next = w.ms + pause
		}
	})
	for _, v := range visits {
		v.granted.More = more || v.granted.More
		v.granted.Held = held && !v.granted.More
		v.next, v.answered, v.paused = next, true, paused
	}
}
