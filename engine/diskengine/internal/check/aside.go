package check

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
// are copied as far as they can be read. Segments of the log are copied anyway, if they can be read whole:
// a store that is still opened, where the rescue is cut off, writes on in them.
func (r *rescue) keepAside() error {
	now := time.Now
	if r.cfg.Now != nil {
		now = r.cfg.Now
	}
	dir := r.path(asideName + now().UTC().Format(asideTime))
	mkdir := func(name string) error {
		err := r.fs.Mkdir(name)
		if err == nil {
			r.made = append(r.made, name)
		}
		return err
	}
	if err := mkdir(dir); err != nil {
		return err
	}
	for _, name := range r.has.files {
		rel, err := filepath.Rel(r.dir, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if up := filepath.Dir(to); !slices.Contains(r.made, up) {
			if err := mkdir(up); err != nil {
				return err
			}
		}
		if err := r.keep(name, to); err != nil {
			return err
		}
	}
	if err := r.list(filepath.Join(dir, "LOST")); err != nil {
		return err
	}
	for _, up := range r.made {
		if err := r.fs.SyncDir(up); err != nil {
			return err
		}
	}
	r.aside = dir
	return r.fs.SyncDir(r.dir)
}

// keep gives a file a second name, or copies it.
func (r *rescue) keep(name, to string) error {
	if strings.HasSuffix(name, ".log") {
		err := r.copy(r.raw.FS, name, to)
		if !errors.Is(err, syscall.EIO) {
			return err
		}
		if err := r.fs.Remove(to); err != nil {
			return err
		}
	}
	err := r.fs.Link(name, to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) && !disk.IsFull(err) {
		err = r.copy(r.raw, name, to)
	}
	return err
}

// drop removes what was kept aside, where the store stays what it was. What cannot be removed is left.
func (r *rescue) drop() {
	for _, dir := range slices.Backward(r.made) {
		_ = disk.Sweep(r.disk.FS, dir, func(string) bool { return true })
		_ = r.disk.FS.Remove(dir)
	}
	r.aside = ""
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

// copy copies a file as a file system reads it, but for what is zeros.
func (r *rescue) copy(f disk.FS, from, to string) (err error) {
	in, err := f.Open(from)
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
		if slices.ContainsFunc(b[:n], func(c byte) bool { return c != 0 }) {
			if _, err := out.WriteAt(b[:n], off); err != nil {
				return err
			}
		}
		if off += int64(n); r.pace(n) != nil {
			return r.pace(0)
		}
	}
	if err := out.Truncate(size); err != nil {
		return err
	}
	return out.Sync()
}
