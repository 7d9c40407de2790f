package verify

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Salvaged describes a store that was salvaged from another one.
type Salvaged struct {
	Before *Report // of the store that was read
	Losses []Loss
	Notes  []string // what else a person should know
	After  *Report  // of the new store; nil: none was made
}

// Salvage makes a sound store of what can be read of another store, which no process may have
// open. It changes nothing in the old directory, from. The new one, to, must be missing or
// empty. First it calls tell with what was found and what is lost; an error of tell ends it
// before anything is written. The new store cannot be opened until it is whole; after an error
// remove it.
//
// Each message that can be read is kept. A message comes back if its ack, cancel or purge is
// lost.
func Salvage(f vfs.FS, from, to string, cfg *Config, tell func(*Salvaged) error) (out Salvaged, err error) {
	err = locked(f, from, func() error {
		if err := manifest.Vacant(f, to); err != nil {
			return err
		}
		s := &salvage{reader: newReader(&surface{FS: f, zeros: true}, from, cfg), out: f, to: to}
		if cfg != nil {
			s.segment = cfg.segment
		}
		var err error
		if out.Before, err = check(f, from, cfg); err == nil {
			err = s.plan(out.Before)
		}
		if err == nil {
			out.Losses, out.Notes = s.losses, s.notes
			err = tell(&out)
		}
		if err == nil {
			s.notes = out.Notes // tell may have more to say
			err = s.mend()
			out.Losses, out.Notes = s.losses, s.notes
		}
		return errors.Join(err, s.close())
	})
	if err == nil {
		var pace *Config
		if cfg != nil {
			pace = &Config{Pace: cfg.Pace}
		}
		out.After, err = Check(f, to, pace)
	}
	if err != nil {
		return out, fmt.Errorf("salvage a store: %w", err)
	}
	return out, nil
}

// salvage is a salvage under way.
type salvage struct {
	*reader // of the old store; unreadable sectors read as zeros
	out     vfs.FS
	to      string
	segment int64

	segments []string // files of the log
	rebuilt  bool     // the manifest is lost
	broken   bool     // part of the log is missing
	names    map[uint32]string
	losses   []Loss
	notes    []string

	next manifest.State // the manifest of the new store
	file uint64         // the number of its next file
}

func (s *salvage) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func (s *salvage) outTables() string { return filepath.Join(s.to, manifest.TablesName) }

// number returns the number of a new file.
func (s *salvage) number() uint64 {
	s.file++
	return s.file - 1
}

// plan finds out what can be read, and what cannot.
func (s *salvage) plan(found *Report) (err error) {
	if s.segments, err = s.list(s.logDir(), ".log"); err != nil {
		return err
	}
	if err := s.manifest(); err != nil {
		return err
	}
	if err := s.planLog(found); err != nil {
		return err
	}
	if t := found.Torn; t != nil && !s.broken {
		s.note("the log was not closed, as after a crash: it ends at %s, offset %d; whether something is missing there cannot be told", t.File, t.Offset)
	}
	for _, p := range s.parts {
		if err := s.part(p); err != nil {
			return err
		}
	}
	return nil
}

// planLog finds out what is missing of the log, and reads the names of queues.
func (s *salvage) planLog(found *Report) error {
	c := newContents(&reader{fs: s.fs, dir: s.dir, pace: s.pace, rep: new(Report), state: s.state})
	err := s.log(c, func(g wal.Gap) error {
		s.broken = true
		l := Loss{File: g.File, Offset: g.Offset, Messages: -1, Again: true, What: fmt.Sprintf("%d bytes of the log are missing from here on", g.To-g.From)}
		if g.To == wal.Unknown {
			l.What = "the log from here on is missing"
		}
		if g.File == "" {
			l.File, l.Offset = s.logDir(), -1
			l.What = "all of the log is missing"
			if g.To != wal.Unknown {
				l.What = fmt.Sprintf("%d bytes of the log are missing, from position %d on", g.To-g.From, g.From)
			}
		}
		s.losses = append(s.losses, l)
		return nil
	})
	s.names = c.ever
	for _, f := range found.Findings {
		if at := s.logDir(); s.broken || f.File != at && !strings.HasPrefix(f.File, at+string(filepath.Separator)) {
			continue
		}
		s.broken = true
		s.losses = append(s.losses, Loss{File: f.File, Offset: f.Offset, What: f.What, Messages: -1, Again: true})
	}
	return err
}

// log applies to c what can be read of the log.
func (s *salvage) log(c *contents, gap func(wal.Gap) error) error {
	return wal.Salvage(s.fs, s.segments, s.logConfig(), wal.Pos(s.state.Replay), c.entry, gap)
}

// mend makes the new store.
func (s *salvage) mend() error {
	if err := manifest.Prepare(s.out, s.to); err != nil {
		return err
	}
	for _, p := range s.parts {
		if p.salvaged == nil {
			continue
		}
		if err := s.rewrite(p); err != nil {
			return err
		}
	}
	c := newContents(s.reader)
	c.salvage, c.rep = s, new(Report) // make it fit; the findings are not reported again
	if s.rebuilt {
		c.nextID, c.nextQueue = 1, 1
	}
	if err := s.log(c, func(wal.Gap) error { return nil }); err != nil {
		return err
	}
	if err := c.together(); err != nil {
		return err
	}
	if err := c.write(); err != nil {
		return err
	}
	return manifest.Complete(s.out, s.to, s.next)
}
