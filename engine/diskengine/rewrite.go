package diskengine

import (
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// rewrite writes to the log again what is neither in memtables nor in sstables: names,
// settings, pauses and leases. The log before them is then not needed for a replay.
func (e *Engine) rewrite() error {
	var nums []uint32
	e.nums.Range(func(_, num any) bool { nums = append(nums, num.(uint32)); return true })
	slices.Sort(nums)
	for len(nums) > 0 {
		some := nums[:min(len(nums), store.StepItems)]
		nums = nums[len(some):]
		for _, num := range some {
			if err := e.rewriteQueue(num); err != nil {
				return err
			}
		}
		if err := e.store.Compactor.Between("rewrite"); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) rewriteQueue(num uint32) error {
	err := e.write(func(q *queue, b []byte) []byte {
		b = (&record.Name{Queue: num, Name: []byte(q.name)}).Append(b)
		if q.settings != nil {
			b = (&record.Configure{Queue: num, Revision: q.settings.Revision, Settings: q.settings.Settings}).Append(b)
		}
		if q.pause != 0 {
			b = (&record.Pause{Queue: num, Until: q.pause}).Append(b)
		}
		return b
	}, num)
	if err == nil {
		err = e.rewriteLeases(num)
	}
	return err
}

// rewriteLeases writes the running leases by their deadlines, then the lapsed ones. A lease
// that changes meanwhile is written by that change.
func (e *Engine) rewriteLeases(num uint32) error {
	for over := range 2 {
		for from, n := memtable.First, store.StepItems; n == store.StepItems; {
			n = 0
			err := e.write(func(q *queue, b []byte) []byte {
				walk := q.leases.Ascend
				if over > 0 {
					walk = q.leases.AscendLapsed
				}
				walk(num, from, func(l *lease) bool {
					from = (memtable.Position{At: l.Deadline, ID: l.ID}).Next()
					r := e.recordOf(l)
					r.From = e.spotOfLease(l).Record()
					b = r.Append(b)
					n++
					return n < store.StepItems
				})
				return b
			}, num)
			if err == nil {
				err = e.store.Compactor.Between("rewrite leases")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// write appends records of a queue to the log that change nothing in memory. If the queue is
// gone it writes nothing.
func (e *Engine) write(records func(q *queue, b []byte) []byte, num uint32) error {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	q := e.numbered[num]
	if q == nil {
		return nil
	}
	b := records(q, nil)
	if len(b) == 0 {
		return nil
	}
	begun := e.store.Log.End()
	end, err := e.store.Log.Append(record.Group, b)
	e.store.Rewriting += int64(end - begun)
	return err
}
