package store

import (
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// Pace returns a function that is called between the slices of long work with the bytes
// written. It waits, so that calm bytes a second are written, and less the more haste there is.
// Its error ends the work when the engine closes.
func (k *Compactor) Pace(where string, calm float64, haste func() float64) func(int) error {
	return func(n int) error {
		k.st.cfg.Between(where)
		if rest := time.Duration(float64(n) / calm * (1 - haste()) * float64(time.Second)); rest > 0 {
			timer := time.NewTimer(rest)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-k.st.Life.Done():
			}
		}
		return k.st.Life.Err()
	}
}

// Between is like pace, for slices that write nothing.
func (k *Compactor) Between(where string) error {
	k.st.cfg.Between(where)
	return k.st.Life.Err()
}

// How many bytes a second are written in the background while there is no haste. The syncs of
// the log wait for all other writes, and merges can wait until pushes come more slowly.
const (
	calmFlush = 16 << 20
	calmMerge = 4 << 20
)

// flushing is how much haste there is to write a memtable, from 0 to 1: the next one grows
// meanwhile, and so does the log.
func (k *Compactor) flushing() float64 {
	if k.st.Tight() || k.Waiting.Load() > 0 {
		return 1
	}
	k.st.Mu.Lock()
	defer k.st.Mu.Unlock()
	return within01(max((k.unwritten()-sealFrom)/(slowFrom-sealFrom), 2*k.ahead(0)-1))
}

// merging is how much haste there is to merge, from 0 to 1: the more, the more sstables an area
// has, and 1 if nothing came to the log since it was asked last, or if space is short.
func (k *Compactor) merging() float64 {
	tables, tight := 0, k.st.Tight()
	k.st.Mu.Lock()
	for _, area := range k.st.Tables.Of {
		tables = max(tables, len(area))
	}
	end := k.st.Log.End()
	k.st.Mu.Unlock()
	if end == k.seen || tight {
		return 1
	}
	k.seen = end
	fan := float64(k.st.cfg.FanIn)
	return within01((float64(tables) - 3*fan) / (3 * fan))
}

// packs is the haste up to which a flush packs its sstable.
const packs = 0.5

func within01(x float64) float64 { return max(0, min(1, x)) }

// config is the config for writing an sstable.
func (k *Compactor) config(where string, calm float64, haste func() float64) *sstable.Config {
	c := k.st.tableConfig()
	c.Pace = k.Pace(where, calm, haste)
	return c
}
