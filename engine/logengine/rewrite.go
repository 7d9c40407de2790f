package logengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/record"
)

// rewrite writes again, behind the position from which the log will be replayed, what is neither
// among the recent messages nor in runs: names, settings, pauses, leases and purges under way.
func (k *keeper) rewrite() error {
	e := k.e
	e.mu.Lock()
	nums := make([]uint32, 0, len(e.numbered))
	for num := range e.numbered {
		nums = append(nums, num)
	}
	e.mu.Unlock()
	for len(nums) > 0 {
		some := nums[:min(len(nums), stepItems)]
		nums = nums[len(some):]
		for _, num := range some {
			if err := k.rewriteQueue(num); err != nil {
				return err
			}
		}
		if err := k.between("rewrite"); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) rewriteQueue(num uint32) error {
	e := k.e
	var ids []engine.ID
	err := e.write(func(b []byte) []byte {
		q := e.numbered[num]
		if q == nil {
			return b
		}
		b = (&record.Name{Queue: num, Name: []byte(q.name)}).Append(b)
		if q.settings != nil {
			b = (&record.Configure{Queue: num, Revision: q.settings.revision, Settings: q.settings.Settings}).Append(b)
		}
		if q.pause != 0 {
			b = (&record.Pause{Queue: num, Until: q.pause}).Append(b)
		}
		if q.purge != nil {
			b = q.purge.Append(b)
		}
		for id := range q.leases {
			ids = append(ids, id)
		}
		return b
	})
	for len(ids) > 0 && err == nil {
		some := ids[:min(len(ids), stepItems)]
		ids = ids[len(some):]
		err = e.write(func(b []byte) []byte {
			q := e.numbered[num]
			if q == nil {
				return b
			}
			for _, id := range some {
				l := q.leases[id]
				if l == nil {
					continue
				}
				r := record.Lease{ID: id, From: l.at.now().record(), Deadline: l.deadline, Attempt: l.attempt, Remote: l.remote, Nonce: l.nonce}
				if l.over { // it has ended, whatever the clock will say
					r.Deadline = min(r.Deadline, e.cfg.Now().UnixMilli())
				}
				b = r.Append(b)
			}
			return b
		})
	}
	return err
}

// write appends records to the log that change nothing in memory.
func (e *Engine) write(records func(b []byte) []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := records(nil)
	if len(b) == 0 {
		return nil
	}
	_, err := e.log.Append(record.Group, b)
	return err
}
