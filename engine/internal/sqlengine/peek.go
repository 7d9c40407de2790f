package sqlengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// Peek returns for each queue the ready message that is leased first, without its body.
func (e *Engine) Peek(ctx context.Context, queues []string) ([]engine.Info, error) {
	if err := e.calls.Enter(ctx, "peek"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	nums, distinct, err := e.queuesOf(ctx, len(queues), func(i int) string { return queues[i] }, false)
	if err != nil {
		return nil, err
	}
	first := make(map[int64]engine.Info, len(distinct))
	for some := range slices.Chunk(distinct, chunk) {
		if err := e.peek(ctx, some, first); err != nil {
			return nil, err
		}
	}
	e.lookWhole(distinct)
	infos := make([]engine.Info, len(queues))
	for i, num := range nums {
		infos[i] = first[num]
	}
	return infos, nil
}

// peek adds the first ready messages of queues to first. It looks again at queues that were not
// up to date, unless others are bringing them up to date.
func (e *Engine) peek(ctx context.Context, queues []int64, first map[int64]engine.Info) error {
	for len(queues) > 0 {
		over, err := e.firstReady(ctx, queues, first)
		if err != nil || len(over) == 0 {
			return err
		}
		nums := make([]int64, len(over))
		for i, r := range over {
			nums[i] = r.Queue
		}
		queues = sorted(nums)
		changed := false
		err = e.do(ctx, "peek", queues, First{Ranges: over}, nil, func(w *work) error {
			rows := w.adopt(slices.Concat(w.readAhead...))
			changed = slices.ContainsFunc(rows, func(x *row) bool { return x.gone || x.moved() })
			return nil
		})
		if err != nil || !changed {
			return err
		}
	}
	return nil
}

// firstReady adds the first ready messages of queues to first. It reads them without locks, so
// that leases find them. over are the ranges with leases that have lapsed and messages that
// have expired.
func (e *Engine) firstReady(ctx context.Context, queues []int64, first map[int64]engine.Info) (over []Range, err error) {
	now, heads, err := e.lookAt(ctx, "peek", queues)
	if err != nil {
		return nil, err
	}
	ms := now.UnixMilli()
	var waiting []int64
	var ranges []Range
	for i := range heads {
		h := &heads[i]
		delete(first, h.Num)
		if h.Leased <= ms {
			over = append(over, Range{Queue: h.Num, Kind: Leased, Span: h.First.until(Leased, ms), Most: chunk, Lock: Skip})
		}
		if h.Waiting <= ms {
			waiting = append(waiting, h.Num)
			ranges = append(ranges, e.ready(h.Num, &h.First, ms, 1)...)
		}
	}
	if waiting == nil {
		return over, nil
	}
	for i := range ranges {
		r := &ranges[i]
		r.Lock, r.Body, r.Spare = None, false, 0
	}
	var expired []Range
	err = e.look(ctx, "peek", waiting, First{Ranges: ranges}, func(w *work) error {
		expired = nil
		best := make(map[int64]*row, len(waiting))
		for i, rows := range w.readAhead {
			for _, x := range w.adopt(rows) {
				if x.gone {
					r := ranges[i]
					r.Most, r.Lock = chunk, Skip
					expired = append(expired, r)
				} else if b := best[x.Queue]; b == nil || byTurn(x, b) < 0 {
					best[x.Queue] = x
				}
			}
		}
		for q, x := range best {
			first[q] = w.leased(x)
		}
		return nil
	})
	return append(over, expired...), err
}
