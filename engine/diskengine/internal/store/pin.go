package store

import (
	"errors"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Pin keeps the sstables that a manifest names, and the log from its position on, while flushes
// and merges go on.
type Pin struct {
	k        *Compactor
	State    *manifest.State
	Log      *wal.Hold
	releases []func() error // of the sstables that are kept
}

// Pin pins the present manifest.
func (k *Compactor) Pin() *Pin {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.man.State()
	s = s.Clone()
	p := &Pin{k: k, State: &s, Log: k.st.Log.Hold(wal.Pos(s.Replay))}
	k.st.Mu.Lock()
	tables := k.st.Tables
	k.st.Mu.Unlock()
	for _, r := range s.Tables {
		if release, ok := tables.ByNumber(r.Number).Keep(); ok {
			p.releases = append(p.releases, release)
		}
	}
	return p
}

// Leave unpins the sstables, and removes those that are no longer needed.
func (p *Pin) Leave() {
	p.Log.Release()
	var errs []error
	for _, release := range p.releases {
		errs = append(errs, release())
	}
	if err := errors.Join(errs...); err != nil {
		p.k.st.Slog.Warn("tarry disk: files that a backup kept and that are no longer needed could not be removed", "dir", p.k.st.Dir, "error", err)
	}
}
