package disktest

import (
	"cmp"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Config has the properties of a simulated disk. Nil means all defaults.
type Config struct {
	// Sector is how many bytes arrive on the disk or not as one, a power of two. 0: 512.
	Sector int

	// Space is how many bytes there are for files, in whole sectors. 0: no limit.
	Space int64

	// Stale lets a new sector hold the content of a removed file if its own did not arrive, and
	// if the Chooser takes the last of two.
	Stale bool

	// Dropped chooses what a failed sync has written. nil: Nothing.
	Dropped Chooser

	// Forgets makes what a failed sync dropped disappear at once, as if the pages had been
	// read again.
	Forgets bool
}

// Disk is a simulated disk, which implements vfs.FS. Many goroutines may call its methods; the
// results depend only on the order of the calls.
type Disk struct {
	cfg Config

	mu      sync.Mutex
	hook    func(Call) error
	calls   int64
	off     bool
	used    int64
	handles int
	names   names
	locked  map[string]bool
	old     [][]byte // the last sectors of removed files
	oldAt   int
}

// keepOld is how many sectors of removed files may turn up again.
const keepOld = 4096

// New returns an empty disk with the directories "/" and ".".
func New(cfg *Config) *Disk {
	d := &Disk{locked: make(map[string]bool)}
	if cfg != nil {
		d.cfg = *cfg
	}
	if d.cfg.Sector == 0 {
		d.cfg.Sector = 512
	}
	if d.cfg.Dropped == nil {
		d.cfg.Dropped = Nothing()
	}
	d.names.sure = make(map[string]*inode)
	for _, top := range []string{"/", "."} {
		n := &inode{dir: true}
		n.links = 1
		d.names.sure[filepath.FromSlash(top)] = n
	}
	d.names.seen = maps.Clone(d.names.sure)
	return d
}

// Crash returns the disk as it is found if the power is lost at this instant. The disk itself
// goes on.
func (d *Disk) Crash(c Chooser) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	var stale func() []byte
	if len(d.old) > 0 {
		at := 0
		stale = func() []byte { at++; return d.old[at%len(d.old)] }
	}
	return d.remade(d.names.settle(c), func(n *inode) *inode {
		m := n.clone()
		m.settle(c, stale)
		m.revert(d.cfg.Sector)
		m.sure, m.sureSize = slices.Clone(m.data), m.size
		return m
	}, func(after *Disk, _ map[*inode]*inode) {
		after.names.sure = maps.Clone(after.names.seen)
	})
}

// Kill returns the disk as another process finds it at this instant: what is not durable may
// still be lost. No file is open or locked there. The disk itself goes on.
func (d *Disk) Kill() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.remade(d.names.seen, (*inode).clone, func(after *Disk, made map[*inode]*inode) {
		again := func(n *inode) *inode {
			if n != nil && made[n] == nil {
				made[n] = n.clone() // removed, not durably
			}
			return made[n]
		}
		after.names.sure = make(map[string]*inode)
		for name, n := range d.names.sure {
			after.names.sure[name] = again(n)
		}
		for _, r := range d.names.late {
			r.inodes = slices.Clone(r.inodes)
			for i, n := range r.inodes {
				r.inodes[i] = again(n)
			}
			after.names.late = append(after.names.late, r)
		}
	})
}

// remade makes a disk of names, with what each makes of their inodes.
func (d *Disk) remade(m map[string]*inode, each func(*inode) *inode, finish func(*Disk, map[*inode]*inode)) *Disk {
	after := &Disk{cfg: d.cfg, locked: make(map[string]bool), old: slices.Clone(d.old), oldAt: d.oldAt}
	after.names.seen = make(map[string]*inode, len(m))
	made := make(map[*inode]*inode)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		n := m[name]
		if made[n] == nil {
			made[n] = each(n)
			made[n].links, made[n].handles = 0, 0
			after.used += int64(made[n].taken()) * int64(d.cfg.Sector)
		}
		made[n].links++
		after.names.seen[name] = made[n]
	}
	finish(after, made)
	return after
}

// Handles is how many files are open.
func (d *Disk) Handles() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handles
}

// Used is how many bytes the files take, in whole sectors.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// SetSpace changes Config.Space.
func (d *Disk) SetSpace(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cfg.Space = n
}

// left is how many sectors may still be taken.
func (d *Disk) left() int64 {
	if d.cfg.Space == 0 {
		return math.MaxInt64 / int64(d.cfg.Sector)
	}
	return max(0, d.cfg.Space-d.used) / int64(d.cfg.Sector)
}

func (d *Disk) take(sectors int) { d.used += int64(sectors) * int64(d.cfg.Sector) }

// leave frees the space of an inode if nothing leads to it any more.
func (d *Disk) leave(n *inode) {
	if n.links > 0 || n.handles > 0 {
		return
	}
	d.take(-n.taken())
	for _, b := range n.data {
		d.outlive(b)
	}
}

// outlive keeps the content of a freed sector, for Config.Stale.
func (d *Disk) outlive(b []byte) {
	switch {
	case b == nil || !d.cfg.Stale:
	case len(d.old) < keepOld:
		d.old = append(d.old, b)
	default:
		d.old[d.oldAt%keepOld] = b
		d.oldAt++
	}
}

// Create implements vfs.FS.
func (d *Disk) Create(name string) (vfs.File, error) {
	name = filepath.Clean(name)
	return d.open(Create, name, func() (*inode, error) {
		if err := d.vacant(name); err != nil {
			return nil, err
		}
		n := new(inode)
		n.links = 1
		d.names.set(rename{names: []string{name}, inodes: []*inode{n}})
		return n, nil
	})
}

// Open implements vfs.FS.
func (d *Disk) Open(name string) (vfs.File, error) {
	name = filepath.Clean(name)
	return d.open(Open, name, func() (*inode, error) {
		n, err := d.file(name)
		if err == nil && n.dir {
			err = syscall.EISDIR
		}
		return n, err
	})
}

func (d *Disk) open(op, name string, find func() (*inode, error)) (vfs.File, error) {
	failed := d.begin(op, name, 0, 0)
	if failed != nil && !late(failed) {
		return nil, failed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := find()
	if err != nil {
		return nil, fail(op, name, err)
	}
	if failed != nil {
		return nil, failed
	}
	n.handles++
	d.handles++
	return &file{disk: d, inode: n, name: name}, nil
}

func (d *Disk) file(name string) (*inode, error) {
	if n := d.names.seen[name]; n != nil {
		return n, nil
	}
	return nil, fs.ErrNotExist
}

// vacant returns why a name cannot be made.
func (d *Disk) vacant(name string) error {
	if d.names.seen[name] != nil {
		return fs.ErrExist
	}
	up, err := d.file(filepath.Dir(name))
	if err == nil && !up.dir {
		err = syscall.ENOTDIR
	}
	return err
}

// change carries out a call about names.
func (d *Disk) change(op, name string, fn func() error) error {
	failed := d.begin(op, name, 0, 0)
	if failed != nil && !(late(failed) && op != Lock) {
		return failed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return cmp.Or(fail(op, name, fn()), failed)
}

// Rename implements vfs.FS.
func (d *Disk) Rename(from, to string) error {
	from, to = filepath.Clean(from), filepath.Clean(to)
	return d.change(Rename, to, func() error {
		n, err := d.file(from)
		if err != nil {
			return err
		}
		there := d.names.seen[to]
		if there == nil {
			err = d.vacant(to)
		}
		if err == nil && (n.dir || there != nil && there.dir) {
			err = syscall.EISDIR // directories are not renamed here
		}
		if err != nil || there == n {
			return err
		}
		if there != nil {
			there.links--
			d.leave(there)
		}
		if filepath.Dir(from) == filepath.Dir(to) {
			d.names.set(rename{names: []string{from, to}, inodes: []*inode{nil, n}})
			return nil
		}
		d.names.set(rename{names: []string{to}, inodes: []*inode{n}})
		d.names.set(rename{names: []string{from}, inodes: []*inode{nil}})
		return nil
	})
}

// Link implements vfs.FS.
func (d *Disk) Link(from, to string) error {
	from, to = filepath.Clean(from), filepath.Clean(to)
	return d.change(Link, to, func() error {
		n, err := d.file(from)
		if err == nil {
			err = d.vacant(to)
		}
		if err == nil && n.dir {
			err = syscall.EPERM
		}
		if err != nil {
			return err
		}
		n.links++
		d.names.set(rename{names: []string{to}, inodes: []*inode{n}})
		return nil
	})
}

// Remove implements vfs.FS.
func (d *Disk) Remove(name string) error {
	name = filepath.Clean(name)
	return d.change(Remove, name, func() error {
		n, err := d.file(name)
		if err != nil {
			return err
		}
		if n.dir && len(d.list(name)) > 0 {
			return syscall.ENOTEMPTY
		}
		n.links--
		d.leave(n)
		d.names.set(rename{names: []string{name}, inodes: []*inode{nil}})
		return nil
	})
}

// List implements vfs.FS.
func (d *Disk) List(dir string) (list []string, err error) {
	dir = filepath.Clean(dir)
	err = d.change(List, dir, func() error {
		n, err := d.file(dir)
		if err == nil && !n.dir {
			err = syscall.ENOTDIR
		}
		list = d.list(dir)
		return err
	})
	return list, err
}

func (d *Disk) list(dir string) (list []string) {
	for name := range d.names.seen {
		if name != dir && filepath.Dir(name) == dir {
			list = append(list, filepath.Base(name))
		}
	}
	slices.Sort(list)
	return list
}

// Mkdir implements vfs.FS.
func (d *Disk) Mkdir(dir string) error {
	dir = filepath.Clean(dir)
	return d.change(Mkdir, dir, func() error {
		if err := d.vacant(dir); err != nil {
			return err
		}
		n := &inode{dir: true}
		n.links = 1
		d.names.set(rename{names: []string{dir}, inodes: []*inode{n}})
		return nil
	})
}

// SyncDir implements vfs.FS.
func (d *Disk) SyncDir(dir string) error {
	dir = filepath.Clean(dir)
	return d.change(SyncDir, dir, func() error {
		if _, err := d.file(dir); err != nil {
			return err
		}
		d.names.sync(dir)
		return nil
	})
}

// Free implements vfs.FS.
func (d *Disk) Free(dir string) (n int64, err error) {
	err = d.change(Free, filepath.Clean(dir), func() error {
		n = d.left() * int64(d.cfg.Sector)
		return nil
	})
	return n, err
}

// Lock implements vfs.FS.
func (d *Disk) Lock(name string) (io.Closer, error) {
	name = filepath.Clean(name)
	err := d.change(Lock, name, func() error {
		if d.locked[name] {
			return vfs.ErrLocked
		}
		if d.names.seen[name] == nil {
			if err := d.vacant(name); err != nil {
				return err
			}
			n := new(inode)
			n.links = 1
			d.names.set(rename{names: []string{name}, inodes: []*inode{n}})
		}
		d.locked[name] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &lock{disk: d, name: name}, nil
}

type lock struct {
	disk *Disk
	name string
	once sync.Once
}

func (l *lock) Close() error {
	l.once.Do(func() {
		l.disk.mu.Lock()
		defer l.disk.mu.Unlock()
		delete(l.disk.locked, l.name)
	})
	return nil
}
