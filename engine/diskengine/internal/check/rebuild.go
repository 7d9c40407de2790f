package check

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// manifest reads what the store consists of, or takes all that is there.
func (r *rescue) manifest() (err error) {
	err = fs.ErrNotExist
	for _, name := range r.has.manifests {
		r.disk.also[r.path(manifest.Name)] = name
		r.state, err = manifest.Read(r.fs, r.dir)
		var damage *disk.DamageError
		if err == nil || !errors.As(err, &damage) {
			break
		}
		err = fs.ErrNotExist
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r.rebuilt = err != nil; r.rebuilt {
		if r.from, err = manifest.RepairFrom(r.fs, r.dir); err != nil {
			return err
		}
		if r.from > 0 {
			r.has.without(r.from)
		}
		if err := r.rebuild(); err != nil {
			return err
		}
	}
	r.secret = r.state.Secret
	r.file = max(r.state.NextFile, r.has.highest+1)
	for number, name := range r.has.runs {
		r.disk.also[run.Name(r.path(runsName), number)] = name
	}
	for number, name := range r.has.marks {
		r.disk.also[marks.Name(r.path(runsName), number)] = name
	}
	for _, is := range r.state.Runs {
		r.parts = append(r.parts, &part{number: is.Number, is: is})
	}
	return nil
}

// most is what stands in a manifest that is not known for numbers that have not been used yet.
const most = 1<<63 - 1

// rebuild makes a state of the files that there are.
func (r *rescue) rebuild() error {
	r.state = manifest.State{Begun: true, Replay: uint64(wal.Unknown), NextID: most, NextQueue: 1<<32 - 1, NextFile: most}
	l := Loss{File: r.path(manifest.Name), Offset: -1, What: "which runs count, who has died in them, and from where on the log counts is taken from the files that there are", Again: true}
	if len(r.has.stores) > 0 {
		slices.Sort(r.has.stores)
		r.state.Store = r.has.stores[len(r.has.stores)/2] // of two stores' files, that of which there are more
	} else {
		var ok bool
		for _, name := range r.has.segments {
			var err error
			if r.state.Store, ok, err = wal.StoreOf(r.raw, name); err != nil {
				return err
			}
			if ok {
				break
			}
		}
		if !ok {
			return &disk.DamageError{What: manifest.ErrDamaged, File: r.path(manifest.Name), Reason: "neither it nor any run or segment of the log can be read: nothing of this store can be told from what is no part of it"}
		}
	}
	if _, err := rand.Read(r.state.Secret[:]); err != nil {
		return err
	}
	logs := map[uint64]bool{}
	for _, name := range r.has.segments {
		if number, isLog := manifest.ParseLogName(filepath.Base(filepath.Dir(name))); isLog {
			logs[number] = true
			r.state.Log = max(r.state.Log, number)
		}
	}
	for number := range r.has.runs {
		r.state.Runs = append(r.state.Runs, manifest.Run{Number: number})
	}
	slices.SortFunc(r.state.Runs, func(a, b manifest.Run) int { return int(int64(a.Number) - int64(b.Number)) })
	r.losses = append(r.losses, l)
	return nil
}
