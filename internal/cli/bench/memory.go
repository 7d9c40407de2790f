package bench

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
)

// rss returns the resident memory of the process with the engine: this one, or a server on
// this machine; 0: unknown.
func (t *trial) rss() int64 {
	p, err := t.process()
	if err != nil {
		return 0
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0
	}
	return int64(status.VmRSS)
}

// settledRSS returns rss after a collection, once it no longer changes.
func (t *trial) settledRSS() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	last := t.rss()
	for range 20 {
		time.Sleep(250 * time.Millisecond)
		debug.FreeOSMemory()
		now := t.rss()
		if diff := now - last; diff > -last/100 && diff < last/100 {
			return now
		}
		last = now
	}
	return last
}

// process returns the process with the engine.
func (t *trial) process() (p procfs.Proc, err error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return p, err
	}
	u, err := url.Parse(t.Store)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return proc.Self()
	}
	return listenerOf(proc, u)
}

const listening = 0x0a // the state of a socket

// listenerOf returns the process on this machine that listens on the URL's port. It fails if
// the process is elsewhere or hidden from us.
func listenerOf(proc procfs.FS, u *url.URL) (p procfs.Proc, err error) {
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return p, fs.ErrNotExist
	}
	tcp, _ := proc.NetTCP()   //lint:ignore SA1019 netlink is quicker, which does not matter here
	tcp6, _ := proc.NetTCP6() //lint:ignore SA1019 a kernel may have only one of them
	socket := ""
	for _, s := range append(tcp, tcp6...) {
		if s.St == listening && strconv.FormatUint(s.LocalPort, 10) == u.Port() {
			socket = fmt.Sprintf("socket:[%d]", s.Inode)
			break
		}
	}
	all, err := proc.AllProcs()
	if err != nil || socket == "" {
		return p, cmp.Or(err, fs.ErrNotExist)
	}
	for _, p := range all {
		if fds, err := p.FileDescriptorTargets(); err == nil && slices.Contains(fds, socket) {
			return p, nil
		}
	}
	return p, fs.ErrNotExist
}

// disk returns the bytes in the files of a disk store; 0 for other engines.
func (t *trial) disk() (n int64) {
	if t.Dir == "" {
		return 0
	}
	_ = filepath.WalkDir(t.Dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // files come and go while the engine works
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

// pending pushes n messages due over the next 48 hours, and measures the memory and disk they
// take once all is quiet.
func (t *trial) pending(ctx context.Context) error {
	before, diskBefore := t.settledRSS(), t.disk()
	if err := t.measure(ctx, "pushed", fillBatch, t.pushing(key, dueWithin48h)); err != nil {
		return err
	}
	t.result.RSS, t.result.Disk = t.settledRSS(), t.disk()
	t.result.RSSPerMessage = round(float64(max(t.result.RSS-before, 0))/float64(t.N), 1)
	t.result.DiskPerMessage = round(float64(max(t.result.Disk-diskBefore, 0))/float64(t.N), 1)
	return nil
}
