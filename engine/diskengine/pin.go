package diskengine

import (
	"errors"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// pin keeps the files that a manifest names, and the log from its position on, while flushes
// and merges go on. There is one pin at a time.
type pin struct {
	k      *compactor
	state  *manifest.State
	log    *wal.Hold
	tables []func() error // let go of the sstables that are kept
}

// pin pins the present manifest.
func (k *compactor) pin() *pin {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.man.State()
	s = s.Clone()
	p := &pin{k: k, state: &s, log: k.st.log.Hold(wal.Pos(s.Replay))}
	k.st.mu.Lock()
	tables := k.st.tables
	k.st.mu.Unlock()
	k.pinned = p.state
	for _, r := range s.Tables {
		if leave, ok := tables.byNumber(r.Number).Keep(); ok {
			p.tables = append(p.tables, leave)
		}
	}
	return p
}

// leave unpins the files, and removes those that are no longer needed.
func (p *pin) leave() {
	p.log.Release()
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	p.k.pinned = nil
	var errs []error
	for _, leave := range p.tables {
		errs = append(errs, leave())
	}
	if err := errors.Join(append(errs, p.k.sweepDeletions())...); err != nil {
		p.k.st.slog.Warn("tarry disk: files that a backup kept and that are no longer needed could not be removed", "dir", p.k.st.dir, "error", err)
	}
}
