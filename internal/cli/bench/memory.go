package bench

import (
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// rss returns the resident memory of the process with the engine: this one, or a server on
// this machine; 0: unknown.
func (t *trial) rss() int64 {
	u, err := url.Parse(t.Store)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return residentOf("self")
	}
	if pid := listenerOf(u); pid != "" {
		return residentOf(pid)
	}
	return 0
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

// residentOf returns the VmRSS of a process in bytes; 0 if there is no /proc.
func residentOf(pid string) int64 {
	data, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// listenerOf returns the process on this machine that listens on the URL's port; "" if it is
// elsewhere or hidden from us.
func listenerOf(u *url.URL) (pid string) {
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return ""
	}
	inode := listeningInode("/proc/net/tcp", port)
	if inode == "" {
		inode = listeningInode("/proc/net/tcp6", port)
	}
	if inode == "" {
		return ""
	}
	want := "socket:[" + inode + "]"
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && link == want {
			return strings.Split(fd, "/")[2]
		}
	}
	return ""
}

// listeningInode searches the kernel's table of sockets. Local address, state (0A: listening)
// and inode are its columns 2, 4 and 10.
func listeningInode(table string, port int) string {
	data, err := os.ReadFile(table)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != "0A" {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		if p, err := strconv.ParseInt(hex, 16, 32); err == nil && int(p) == port {
			return f[9]
		}
	}
	return ""
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
