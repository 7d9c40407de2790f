package check

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
)

// asideName is what the names of the directories begin with in which a rescue keeps all files.
const asideName = "damaged-"

// IsAside reports whether a name in the directory of a store is that of such a directory.
func IsAside(name string) bool {
	at, is := strings.CutPrefix(name, asideName)
	_, err := time.Parse(asideTime, at)
	return is && err == nil
}

const asideTime = "20060102T150405.000Z"

// keepAside gives all files a second name in a directory of their own. Where the file system cannot, they
// are copied as far as they can be read.
func (r *rescue) keepAside() error {
	now := time.Now
	if r.cfg.Now != nil {
		now = r.cfg.Now
	}
	dir := r.path(asideName + now().UTC().Format(asideTime))
	if err := r.fs.Mkdir(dir); err != nil {
		return err
	}
	made := map[string]bool{dir: true}
	for _, name := range r.has.files {
		rel, err := filepath.Rel(r.dir, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if up := filepath.Dir(to); !made[up] {
			if err := r.fs.Mkdir(up); err != nil {
				return err
			}
			made[up] = true
		}
		err = r.fs.Link(name, to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) && !disk.IsFull(err) {
			err = r.copy(name, to)
		}
		if err != nil {
			return err
		}
	}
	if err := r.list(filepath.Join(dir, "LOST")); err != nil {
		return err
	}
	for up := range made {
		if err := r.fs.SyncDir(up); err != nil {
			return err
		}
	}
	r.aside = dir
	return r.fs.SyncDir(r.dir)
}

// list writes down what is lost, with all ids that are known.
func (r *rescue) list(name string) (err error) {
	var b strings.Builder
	for _, l := range r.losses {
		b.WriteString(l.String() + "\n")
		if len(l.IDs) > 0 {
			b.WriteString("  ids: " + ids(l.IDs) + "\n")
		}
	}
	f, err := r.fs.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt([]byte(b.String()), 0); err != nil {
		return err
	}
	return f.Sync()
}

// copy copies a file.
func (r *rescue) copy(from, to string) (err error) {
	in, err := r.raw.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := r.fs.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	size, err := in.Size()
	if err != nil {
		return err
	}
	b := make([]byte, 256<<10)
	for off := int64(0); off < size; {
		n, err := in.ReadAt(b[:min(int64(len(b)), size-off)], off)
		if n == 0 && err != nil {
			return err
		}
		if _, err := out.WriteAt(b[:n], off); err != nil {
			return err
		}
		if off += int64(n); r.pace(n) != nil {
			return r.pace(0)
		}
	}
	return out.Sync()
}
