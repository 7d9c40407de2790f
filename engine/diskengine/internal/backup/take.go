package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Source is a store as of an instant. Its files stay where they are until Take returns.
type Source struct {
	State  manifest.State
	Tables string    // the directory of sstables and deletion bitmaps
	Taken  time.Time // the instant

	// Log copies the log, from where it is replayed on, to a directory that is empty.
	Log func(dir string) (wal.Copied, error)
}

// Take brings the backup in a directory to what a store is now. The directory is made when it is
// missing. What it has not yet is read again before it counts: a store that is damaged is a
// *vfs.DamageError with ErrSource, or ErrCopy where only a copy is. After an error the backup is what it
// was before, or, where the disk does not say, one or the other. A backup that goes on where the store
// does not is refused with ErrLater.
//
// pace is called between slices of the work with the bytes that were read or written since the last
// call. It may wait; an error of it ends the work.
func Take(f vfs.FS, dir string, src Source, pace func(bytes int) error) (_ Result, err error) {
	p, err := open(f, dir, true)
	if err != nil {
		return Result{}, fmt.Errorf("back up: %w", err)
	}
	defer func() { err = errors.Join(err, p.lock.Close()) }()
	if p.spoilt != nil {
		return Result{}, fmt.Errorf("back up: %w", p.spoilt)
	}
	h := head{store: src.State.Store, number: 1, taken: src.Taken.UnixMilli()}
	if p.head != nil {
		h.number = p.head.number + 1
		if p.head.store != h.store {
			return Result{}, fmt.Errorf("back up: %w: %s", ErrOther, p.dir)
		}
	}
	t := taking{place: p, src: src, pace: pace, h: h}
	if t.had, err = p.sweep(); err != nil {
		return Result{}, fmt.Errorf("back up: remove what an unfinished backup left: %w", err)
	}
	p.numbers = append(p.numbers, h.number)
	unsure := false
	if err = t.fill(); err == nil {
		unsure, err = p.install(t.h)
	}
	if !unsure {
		_, _ = p.sweep() // else the next one does, and fails if that cannot be done
	}
	if err != nil {
		return Result{}, fmt.Errorf("back up: %w", err)
	}
	return t.h.result(t.copied), nil
}

// taking is a backup that is being made.
type taking struct {
	*place
	src    Source
	pace   func(int) error
	had    *manifest.State // of the backup before; nil: there is none, or it cannot be read
	h      head
	copied int64
}

// fill makes all but the head, durably but for the names in the directory of the backup.
func (t *taking) fill() error {
	dir := t.numbered(t.h.number)
	for _, d := range []string{dir, filepath.Join(dir, manifest.LogName), t.sstables()} {
		if err := t.fs.Mkdir(d); err != nil && (d == dir || !errors.Is(err, fs.ErrExist)) {
			return err
		}
	}
	log, err := t.src.Log(filepath.Join(dir, manifest.LogName))
	var damage *vfs.DamageError
	if errors.As(err, &damage) { // it is verified as it is copied
		return &vfs.DamageError{What: ErrSource, File: damage.File, Offset: damage.Offset, Reason: damage.Reason}
	}
	if err != nil {
		return err
	}
	if t.h.end = uint64(log.End); t.head != nil && t.h.end < t.head.end { // a log never gets shorter
		return fmt.Errorf("%w: %s", ErrLater, t.dir)
	}
	t.h.files, t.h.bytes, t.copied = uint64(log.Files), uint64(log.Bytes), log.Bytes
	if err := eachFile(&t.src.State, t.put); err != nil {
		return err
	}
	if err := t.fs.SyncDir(t.sstables()); err != nil {
		return err
	}
	_, err = manifest.Create(t.fs, dir, t.src.State)
	return err
}

// eachFile tells of the sstables and deletion bitmaps of a store.
func eachFile(s *manifest.State, each func(k *kind, number uint64) error) error {
	done := map[uint64]bool{0: true}
	for _, r := range s.Tables {
		if err := each(&ofTables, r.Number); err != nil {
			return err
		}
		if done[r.Deletions] {
			continue
		}
		done[r.Deletions] = true
		if err := each(&ofDeletions, r.Deletions); err != nil {
			return err
		}
	}
	return nil
}

// put puts a file that is never changed among the sstables, unless it is there, and verifies one that is
// new.
func (t *taking) put(k *kind, number uint64) error {
	from, to := k.name(t.src.Tables, number), k.name(t.sstables(), number)
	size, same, err := t.same(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		return &vfs.DamageError{What: ErrSource, File: from, Reason: "it is missing"}
	}
	if err != nil {
		return err
	}
	copied := int64(0)
	if !same {
		copied, err = vfs.LinkOrCopy(t.fs, from, to, t.pace)
		if errors.Is(err, fs.ErrExist) { // of another store that this one, or that one, was restored from
			return fmt.Errorf("%w: %s", ErrLater, t.dir)
		}
		if err != nil {
			return err
		}
	}
	t.h.files, t.h.bytes, t.copied = t.h.files+1, t.h.bytes+uint64(size), t.copied+copied
	if same && t.had != nil {
		return t.pace(0)
	}
	return t.verify(k, number, copied > 0)
}
