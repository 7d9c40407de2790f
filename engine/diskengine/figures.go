package diskengine

import (
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

var _ engine.Measurer = (*Engine)(nil)

// Figures implements engine.Measurer.
func (e *Engine) Figures() []engine.Figure {
	l, d, k := figure.Of("disk"), e.store.Disk, e.store.Compactor
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	var tables [memtable.Areas]int
	var bytes, memory, alive, gone int64
	for a, list := range e.store.Tables.Of {
		tables[a] = len(list)
		for _, src := range list {
			n := int64(src.Living())
			bytes, memory, alive, gone = bytes+src.Bytes(), memory+src.Memory(), alive+n, gone+int64(src.Len())-n
		}
	}
	taken, spare := e.store.Memtables.Memory()
	leases, _ := e.leases.Memory()
	l.Times("sync_seconds", "How long syncs of the log took.", &d.Syncs)
	pending := time.Duration(0)
	if op, ok := d.Slowest(); ok {
		pending = max(0, time.Since(op.Since))
	}
	l.Gauge("operation_seconds", "For how long the oldest operation that the disk has not answered is under way; 0: there is none.", pending.Seconds())
	l.TotalBy("written_bytes", "Bytes written: to the log, to sstables and to other files.", "file",
		figure.By{Label: "log", Value: float64(d.Log.Load())},
		figure.By{Label: "sstable", Value: float64(d.Tables.Load())},
		figure.By{Label: "other", Value: float64(d.Other.Load())})
	if e.store.Space.Tells {
		l.Gauge("free_bytes", "Free space of the file system.", float64(e.store.Space.Free.Load()))
	}
	l.Gauge("used_bytes", "Space that the log, what is taken ahead for it, and sstables take.", float64(e.store.Log.Taken()+bytes))
	l.Gauge("log_bytes", "What the log holds that is in no sstable yet.", float64(uint64(e.store.Log.End())-e.store.Replayed))
	l.GaugeBy("sstables", "Sstables: of live messages, of dead ones, of keys that are remembered, of finished messages.", "of", byArea(tables)...)
	l.GaugeBy("sstable_entries", "Entries of sstables: those that count, and those that have gone and still take space.", "state",
		figure.By{Label: "alive", Value: float64(alive)},
		figure.By{Label: "gone", Value: float64(gone)})
	l.Gauge("memtable_messages", "Messages, finished ones too, and keys that are remembered, that are in no sstable yet.", float64(e.store.Memtables.Len()))
	l.Gauge("sealed_memtables", "Memtables that are sealed: they are written to sstables, or will be unless they empty.", float64(len(k.Sealed)))
	l.GaugeBy("memory_bytes", "Memory that memtables, room kept for more, indexes of sstables, ready heaps and leases take.", "use",
		figure.By{Label: "memtable", Value: float64(taken)},
		figure.By{Label: "spare", Value: float64(spare)},
		figure.By{Label: "sstables", Value: float64(memory)},
		figure.By{Label: "ready", Value: float64(e.readyMemory)},
		figure.By{Label: "leases", Value: float64(leases)})
	l.Gauge("waiting_pushes", "Pushes that wait, since flushes or merges are behind.", float64(k.Waiting.Load()))
	l.Total("flushes", "Memtables written to sstables.", float64(k.Counts.Flushes.Load()))
	l.Total("merges", "Merges of sstables.", float64(k.Counts.Merges.Load()))
	l.Total("background_failures", "Flushes and merges that failed.", float64(k.Counts.Failures.Load()))
	l.Gauge("damaged_blocks", "Blocks of sstables that are damaged, or that the disk could not read, of those that were met since the store was opened.", float64(e.damagedBlocks()))
	l.Flag("full", "Whether pushes are refused because too little space is free.", e.store.Tight())
	l.Flag("stopped", "Whether a failure of the disk has stopped the store until it is opened again.", e.store.Failed() != nil)
	return l.All()
}

func byArea(n [memtable.Areas]int) []figure.By {
	return []figure.By{
		{Label: "live", Value: float64(n[memtable.Live])},
		{Label: "dead", Value: float64(n[memtable.Dead])},
		{Label: "finished", Value: float64(n[memtable.Finished])},
		{Label: "history", Value: float64(n[memtable.Listed])},
	}
}

// damagedBlocks is how many blocks of sstables were found damaged. store.Store.Mu is held.
func (e *Engine) damagedBlocks() (n int) {
	for _, src := range e.store.Tables.All() {
		n += src.Damaged()
	}
	return n
}
