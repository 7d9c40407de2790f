package store

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/internal/figure"
)

// Measured is a file system that counts the bytes written and knows the operations under way.
type Measured struct {
	vfs.FS
	Syncs  figure.Times // of the log
	Log    atomic.Int64 // bytes written to it, zeros written ahead included
	Tables atomic.Int64 // bytes written to sstables
	Other  atomic.Int64

	Kept     func() error // fails once the directory is not where it was; nil: that is not known
	retryFor time.Duration
	slog     *slog.Logger

	mu  sync.Mutex
	Ops list.List // the operations under way, the oldest first
}

// Operation is a call that the disk has not answered.
type Operation struct {
	What, Name string
	Since      time.Time
}

// begin notes an operation as under way until end is called.
func (m *Measured) begin(what, name string) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.Ops.PushBack(Operation{what, name, time.Now()})
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.Ops.Remove(at)
	}
}

// Slowest returns the operation that has been under way longest.
func (m *Measured) Slowest() (op Operation, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.Ops.Front(); at != nil {
		return at.Value.(Operation), true
	}
	return op, false
}

// stuckAfter is how long the disk may take over an operation before the engine is not ready. A
// sync under load may take a second.
const stuckAfter = 5 * time.Second

// Stuck returns an error if an operation has been under way for too long.
func (m *Measured) Stuck() error {
	hangs := m.Hangs(stuckAfter)
	if hangs == "" {
		return nil
	}
	return &engine.Error{Op: "ready", Err: engine.ErrUnavailable, Hint: hangs + "; see to the disk"}
}

// Hangs names the oldest operation if the disk has not answered it for least; empty: there is
// none.
func (m *Measured) Hangs(least time.Duration) string {
	op, ok := m.Slowest()
	took := time.Since(op.Since)
	if !ok || took < least {
		return ""
	}
	return fmt.Sprintf("the disk does not answer: %s %s is under way for %s", op.What, op.Name, took.Round(time.Second))
}

// bytes is the counter of the bytes written to a file.
func (m *Measured) bytes(name string) *atomic.Int64 {
	switch {
	case filepath.Base(filepath.Dir(name)) == manifest.LogName:
		return &m.Log
	case strings.HasSuffix(name, ".run"):
		return &m.Tables
	}
	return &m.Other
}

func (m *Measured) file(f vfs.File, err error, name string) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &measuredFile{f, m, name, m.bytes(name)}, nil
}

// Create implements vfs.FS.
func (m *Measured) Create(name string) (vfs.File, error) {
	defer m.begin("create", name)()
	f, err := m.FS.Create(name)
	return m.file(f, m.orGone(err), name)
}

// Open implements vfs.FS.
func (m *Measured) Open(name string) (vfs.File, error) {
	defer m.begin("open", name)()
	f, err := m.FS.Open(name)
	return m.file(f, err, name)
}

// Rename implements vfs.FS.
func (m *Measured) Rename(from, to string) error {
	defer m.begin("rename", to)()
	return m.orGone(m.FS.Rename(from, to))
}

// Remove implements vfs.FS.
func (m *Measured) Remove(name string) error {
	defer m.begin("remove", name)()
	return m.FS.Remove(name)
}

// List implements vfs.FS.
func (m *Measured) List(dir string) ([]string, error) {
	defer m.begin("list", dir)()
	return m.FS.List(dir)
}

// SyncDir implements vfs.FS. If no file descriptor is left for it, as while many connections are
// open, it tries again: the store would stop at a sync that fails.
func (m *Measured) SyncDir(dir string) error {
	for begun, told := time.Now(), false; ; told = true {
		err := m.syncDir(dir)
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) || time.Since(begun) >= m.retryFor {
			return err
		}
		if !told {
			m.slog.Warn("tarry disk: no file descriptor is left: calls that need one are tried again", "error", err)
		}
		time.Sleep(syncDirAgain)
	}
}

const syncDirAgain = 20 * time.Millisecond // after it has found no file descriptor

func (m *Measured) syncDir(dir string) error {
	defer m.begin("sync", dir)()
	return m.orGone(m.FS.SyncDir(dir))
}

// Gone returns vfs.ErrGone once the store's directory is not where it was.
func (m *Measured) Gone() error {
	if m.Kept == nil {
		return nil
	}
	return m.Kept()
}

// orGone returns vfs.ErrGone instead of err if err is because the directory is gone.
func (m *Measured) orGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if gone := m.Gone(); gone != nil {
			return gone
		}
	}
	return err
}

// Free implements vfs.FS.
func (m *Measured) Free(dir string) (int64, error) {
	defer m.begin("free space of", dir)()
	return m.FS.Free(dir)
}

// measuredFile is an open file of a measured file system.
type measuredFile struct {
	vfs.File
	m     *Measured
	name  string
	bytes *atomic.Int64
}

// ReadAt implements io.ReaderAt.
func (f *measuredFile) ReadAt(p []byte, off int64) (int, error) {
	defer f.m.begin("read", f.name)()
	return f.File.ReadAt(p, off)
}

// WriteAt implements io.WriterAt.
func (f *measuredFile) WriteAt(p []byte, off int64) (int, error) {
	defer f.m.begin("write", f.name)()
	n, err := f.File.WriteAt(p, off)
	f.bytes.Add(int64(n))
	return n, err
}

// Sync implements vfs.File.
func (f *measuredFile) Sync() error {
	defer f.m.begin("sync", f.name)()
	if err := f.File.Sync(); err != nil {
		return err
	}
	return f.m.Gone() // a file that no name leads to is not durable
}

// Preallocate implements vfs.File.
func (f *measuredFile) Preallocate(off, n int64) error {
	defer f.m.begin("reserve space for", f.name)()
	return f.File.Preallocate(off, n)
}

// Close implements vfs.File.
func (f *measuredFile) Close() error {
	defer f.m.begin("close", f.name)()
	return f.File.Close()
}
