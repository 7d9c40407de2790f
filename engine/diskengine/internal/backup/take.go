package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Source is a store at an instant. Its files must stay where they are until Take returns.
type Source struct {
	State  manifest.State
	Tables string    // the directory of sstables
	Taken  time.Time // the instant

	// Log copies the log, from where it is replayed, to an empty directory.
	Log func(dir string) (wal.Copied, error)
}

// Take brings the backup in a directory up to date. It makes the directory if it is missing.
// It reads new files again before they count: a damaged store is a *vfs.DamageError with
// ErrSource, or with ErrCopy if only a copy is damaged. After an error the backup is as it was
// before; if the disk failed it may also be the new one. If the backup has what the store does
// not, Take returns ErrLater.
//
// pace is called between slices of the work with the bytes read or written since the last
// call. It may wait; its error ends the work.
func Take(f vfs.FS, dir string, src Source, pace func(bytes int) error) (_ Result, err error) {
	p, err := open(f, dir, true)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, p.lock.Close()) }()
	if p.headErr != nil {
		return Result{}, p.headErr
	}
	h := head{store: src.State.Store, number: 1, taken: src.Taken.UnixMilli()}
	if p.head != nil {
		h.number = p.head.number + 1
		if p.head.store != h.store {
			return Result{}, fmt.Errorf("%w: %s", ErrOther, p.dir)
		}
	}
	t := taking{place: p, src: src, pace: pace, h: h}
	if t.previous, err = p.sweep(); err != nil {
		return Result{}, fmt.Errorf("remove what an unfinished backup left: %w", err)
	}
	p.numbers = append(p.numbers, h.number)
	unsure := false
	if err = t.fill(); err == nil {
		unsure, err = p.install(t.h)
	}
	if !unsure {
		_, _ = p.sweep() // if it fails the next backup sweeps, or fails too
	}
	if err != nil {
		return Result{}, err
	}
	return t.h.result(t.copied), nil
}

// taking is a backup in the making.
type taking struct {
	*place
	src      Source
	pace     func(int) error
	previous *manifest.State // the manifest of the backup before; nil: there is none, or it cannot be read
	h        head
	copied   int64
}

// fill makes all but the head. Then all is durable except the names in the backup's directory.
func (t *taking) fill() error {
	dir := t.numbered(t.h.number)
	for _, d := range []string{dir, filepath.Join(dir, manifest.LogName), t.sstables()} {
		if err := t.fs.Mkdir(d); err != nil && (d == dir || !errors.Is(err, fs.ErrExist)) {
			return err
		}
	}
	log, err := t.src.Log(filepath.Join(dir, manifest.LogName))
	var damage *vfs.DamageError
	if errors.As(err, &damage) { // the copy also verifies the log
		return &vfs.DamageError{What: ErrSource, File: damage.File, Offset: damage.Offset, Reason: damage.Reason}
	}
	if err != nil {
		return err
	}
	if t.h.end = uint64(log.End); t.head != nil && t.h.end < t.head.end { // a log never gets shorter
		return fmt.Errorf("%w: %s", ErrLater, t.dir)
	}
	t.h.files, t.h.bytes, t.copied = uint64(log.Files), uint64(log.Bytes), log.Bytes
	for _, r := range t.src.State.Tables {
		if err := t.put(r.Number); err != nil {
			return err
		}
	}
	if err := t.fs.SyncDir(t.sstables()); err != nil {
		return err
	}
	if _, err = manifest.Create(t.fs, dir, t.src.State); err != nil {
		return err
	}
	if _, err = manifest.Read(t.fs, dir); errors.As(err, &damage) {
		return &vfs.DamageError{What: ErrCopy, File: damage.File, Offset: damage.Offset, Reason: damage.Reason}
	}
	return err
}

// put puts an sstable into the backup, unless it is there, and verifies a new one.
func (t *taking) put(number uint64) error {
	from, to := sstable.Name(t.src.Tables, number), sstable.Name(t.sstables(), number)
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
		if errors.Is(err, fs.ErrExist) { // another file with that number: one store was restored from the other
			return fmt.Errorf("%w: %s", ErrLater, t.dir)
		}
		if err != nil {
			return err
		}
	}
	t.h.files, t.h.bytes, t.copied = t.h.files+1, t.h.bytes+uint64(size), t.copied+copied
	if same && t.previous != nil {
		return t.pace(0)
	}
	return t.verify(number, copied > 0)
}
