package check

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Rescued tells of a store that was made of what could be read of a damaged one.
type Rescued struct {
	Losses []Loss
	Notes  []string // what else became of it
	Aside  string   // the directory where the files are as they were; empty: the store was sound
	After  *Report  // of the store as it is now
}

// Losses says what a Rescue of a store would give up. It changes nothing. A store that is sound loses
// nothing.
func Losses(f disk.FS, dir string, cfg *Config) (all []Loss, err error) {
	err = locked(f, dir, func() error {
		r, err := newRescue(f, dir, cfg)
		if r != nil {
			all, err = r.losses, errors.Join(err, r.close())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look at a damaged store: %w", err)
	}
	return all, nil
}

// Rescue makes a sound store of what can be read of a damaged one, in its place. First it calls tell
// with what is given up; an error of that ends it with nothing changed. Then the files get a second
// name in a directory beside them, Rescued.Aside, where segments of the log are copied; what is damaged
// is written anew from what can be read of it, and one rename of the manifest puts that in force: until
// then the store is what it was, and after an error by then nothing stays aside.
//
// Messages that can be read are kept, one by one. What had been acked, cancelled or purged by something
// that is lost comes back.
func Rescue(f disk.FS, dir string, cfg *Config, tell func([]Loss) error) (out Rescued, err error) {
	err = locked(f, dir, func() error {
		r, err := newRescue(f, dir, cfg)
		if err != nil {
			return err
		}
		if r != nil {
			if err = tell(r.losses); err == nil {
				err = r.mend()
			}
			out.Losses, out.Notes, out.Aside = r.losses, r.notes, r.aside
			if err = errors.Join(err, r.close()); err != nil {
				return err
			}
		}
		again := newChecker(f, dir, cfg)
		out.After = again.rep
		return again.all()
	})
	if err != nil {
		return out, fmt.Errorf("repair a store: %w", err)
	}
	return out, nil
}

// rescue makes a store of another one.
type rescue struct {
	*checker
	cfg     Config
	disk    *surface
	raw     *surface // where files have the names they have
	found   *Report
	has     inventory
	rebuilt bool   // there is no manifest to go by
	from    uint64 // from what number on files are of a repair that had none either and was cut off; 0: there are none
	names   map[uint32]string
	broken  bool // something of the log is missing
	losses  []Loss
	notes   []string

	parts []*part
	next  manifest.State
	aside string
	made  []string // it, and the directories in it
}

// newRescue looks at a store; nil: it is sound.
func newRescue(f disk.FS, dir string, cfg *Config) (*rescue, error) {
	c := newChecker(f, dir, cfg)
	if err := c.all(); err != nil {
		return nil, err
	}
	if c.rep.Sound() {
		return nil, nil
	}
	r := &rescue{disk: &surface{FS: f, zeros: true, also: map[string]string{}}, raw: &surface{FS: f, zeros: true}, found: c.rep, names: map[uint32]string{}}
	if cfg != nil {
		r.cfg = *cfg
	}
	r.checker = newChecker(r.disk, dir, cfg)
	r.checker.fs = r.disk
	if err := r.plan(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *rescue) close() (err error) {
	for _, p := range r.parts {
		if p.run != nil {
			err = errors.Join(err, p.run.Close())
		}
		if p.salvaged != nil {
			err = errors.Join(err, p.salvaged.Close())
		}
	}
	return err
}

func (r *rescue) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// plan finds out what can be read, and what cannot.
func (r *rescue) plan() error {
	if err := r.look(); err != nil {
		return err
	}
	if err := r.manifest(); err != nil {
		return err
	}
	if err := r.planLog(); err != nil {
		return err
	}
	if t := r.found.Torn; t != nil && !r.broken {
		r.note("the log was not closed, as after a crash: it ends at %s, offset %d; whether something is missing there cannot be told", t.File, t.Offset)
	}
	for _, p := range r.parts {
		if err := r.part(p); err != nil {
			return err
		}
	}
	return nil
}

// planLog looks what is missing of the log, and reads the names of queues.
func (r *rescue) planLog() error {
	err := r.log(&nameReader{names: r.names}, func() error { return nil }, func(g wal.Gap) error {
		r.broken = true
		l := Loss{File: g.File, Offset: g.Offset, Messages: -1, Again: true, What: fmt.Sprintf("%d bytes of the log are missing from here on", g.To-g.From)}
		if g.To == wal.Unknown {
			l.What = "the log from here on is missing"
		}
		if g.File == "" {
			l.File, l.Offset = r.logDir(), -1
			l.What = "all of the log is missing"
			if g.To != wal.Unknown {
				l.What = fmt.Sprintf("%d bytes of the log are missing, from position %d on", g.To-g.From, g.From)
			}
		}
		r.losses = append(r.losses, l)
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range r.found.Findings {
		if at := r.found.log; r.broken || at == "" || f.File != at && !strings.HasPrefix(f.File, at+string(filepath.Separator)) {
			continue
		}
		r.broken = true
		r.losses = append(r.losses, Loss{File: f.File, Offset: f.Offset, What: f.What, Messages: -1, Again: true})
	}
	return nil
}

// log gives what can be read of the log to an applier, unless that has failed. A record that is none is
// passed over.
func (r *rescue) log(to record.Applier, failed func() error, gap func(wal.Gap) error) error {
	return wal.Salvage(r.raw, r.logSegments(), &wal.Config{ID: r.state.Store, Begun: r.state.Begun, MaxEntry: mostEntry}, wal.Pos(r.state.Replay), func(e wal.Entry) error {
		if err := record.Each(e.Kind, e.Bytes, to); errors.Is(err, record.ErrNewer) {
			return err
		}
		if err := failed(); err != nil {
			return err
		}
		return r.pace(len(e.Bytes))
	}, gap)
}

// mend makes the other store, and puts it in force.
func (r *rescue) mend() (err error) {
	inForce := false
	defer func() {
		if err != nil && !inForce {
			r.drop()
		}
	}()
	if err := r.keepAside(); err != nil {
		return err
	}
	if r.rebuilt && r.from == 0 {
		if err := manifest.BeginRepair(r.disk.FS, r.dir, r.file); err != nil {
			return err
		}
	}
	if err := disk.MkdirAll(r.disk.FS, r.path(runsName)); err != nil {
		return err
	}
	r.next = manifest.State{Store: r.state.Store, Secret: r.state.Secret, Begun: true, NextID: 1, NextQueue: 1}
	if !r.rebuilt {
		r.next.NextID, r.next.NextQueue = r.state.NextID, r.state.NextQueue
	}
	for _, p := range r.parts {
		if err := r.anew(p); err != nil {
			return err
		}
	}
	m := newRestored(r)
	if err := r.log(m, func() error { return m.err }, m.gap); err != nil {
		return err
	}
	if err := m.together(); err != nil {
		return err
	}
	if err := m.write(); err != nil {
		return err
	}
	r.next.NextFile = r.file
	err = manifest.Replace(r.disk.FS, r.dir, r.next)
	if inForce = err == nil || errors.Is(err, manifest.ErrFailed); err != nil { // which of the two is, nobody knows
		return err
	}
	return r.clear()
}

// number is that of the next file.
func (r *rescue) number() uint64 {
	r.file++
	return r.file - 1
}

// given notes an id that was given.
func (r *rescue) given(id engine.ID) { r.next.NextID = max(r.next.NextID, uint64(id)+1) }

// clear removes what the new manifest does not name.
func (r *rescue) clear() error {
	c := newChecker(r.disk.FS, r.dir, nil)
	c.state = r.next
	if err := c.leftovers(); err != nil {
		return err
	}
	for _, name := range c.rep.Leftovers {
		if err := remove(r.disk.FS, name); err != nil {
			return err
		}
	}
	return errors.Join(r.fs.SyncDir(r.path(runsName)), r.fs.SyncDir(r.dir))
}
