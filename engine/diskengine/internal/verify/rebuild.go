package verify

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// list lists the files in a directory with a suffix, by name. A missing directory has none.
func (s *salvage) list(dir, suffix string) (all []string, err error) {
	names, err := s.fs.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			all = append(all, filepath.Join(dir, name))
		}
	}
	return all, nil
}

// manifest reads what can be read of the manifest, or makes one of all files that are there.
func (s *salvage) manifest() (err error) {
	s.state, err = manifest.Read(s.fs, s.dir)
	switch damaged := errors.As(err, new(*vfs.DamageError)); {
	case damaged && s.state.NextID > 0:
		err = nil
	case damaged || errors.Is(err, fs.ErrNotExist):
		s.rebuilt = true
		err = s.rebuild()
	}
	if err != nil {
		return err
	}
	s.secret, s.file = s.state.Secret, s.state.NextFile
	s.next = manifest.State{Store: s.state.Store, Secret: s.state.Secret, Begun: true}
	for _, is := range s.state.Tables {
		s.parts = append(s.parts, &part{number: is.Number, is: is})
	}
	return nil
}

// most is the next id if the manifest is lost: the largest there can be.
const most = 1<<63 - 1

// rebuild makes a state of the files that are there.
func (s *salvage) rebuild() error {
	s.state = manifest.State{Begun: true, Replay: uint64(wal.Unknown), NextID: most, NextQueue: 1<<32 - 1, NextFile: 1}
	names, err := s.list(s.tablesDir, "")
	if err != nil {
		return err
	}
	known := false
	for _, name := range names {
		number, ok := sstable.ParseName(name)
		if !ok {
			continue
		}
		s.state.Tables = append(s.state.Tables, manifest.Table{Number: number})
		if known {
			continue
		}
		head, _, err := vfs.ReadStart(s.fs, name, sstable.HeaderSize)
		if err != nil {
			return err
		}
		s.state.Store, _, known = sstable.Identify(head)
	}
	for _, name := range s.segments {
		if known {
			break
		}
		if s.state.Store, known, err = wal.StoreOf(s.fs, name); err != nil {
			return err
		}
	}
	if !known {
		return &vfs.DamageError{What: manifest.ErrDamaged, File: s.path(manifest.Name), Reason: "neither it nor any sstable or segment of the log can be read: there is no telling which files belong to this store"}
	}
	if _, err := rand.Read(s.state.Secret[:]); err != nil {
		return err
	}
	s.losses = append(s.losses, Loss{File: s.path(manifest.Name), Offset: -1, Again: true,
		What: "which entries of sstables were deleted is not known; which sstables count, and where the log begins, was worked out from the files that are there"})
	return nil
}
