package diskengine

import (
	"strings"
	"sync"
)

// logFile is a file of Pebble's log. Pebble calls it from one goroutine at a time.
//
// A sync that nobody waits for is carried out in the background: what has been
// written is there though the process is killed. All that comes after it on this file
// waits for it, and so does the next file, because this one is closed before that is
// made. So to Pebble, which notes in the log how far that is synced, the disk looks
// as if each sync had ended when it returned.
type logFile struct {
	diskFile
	behind sync.WaitGroup // the sync in the background
}

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	f.behind.Wait()
	return f.diskFile.Write(p)
}

// SyncData implements vfs.File.
func (f *logFile) SyncData() error {
	f.behind.Wait()
	if f.disk.awaited.Load() > 0 || !f.disk.armed.Load() {
		return f.diskFile.SyncData()
	}
	f.behind.Go(func() { _ = f.diskFile.SyncData() }) // a failure stops the store
	return nil
}

// Close implements vfs.File.
func (f *logFile) Close() error {
	f.behind.Wait()
	return f.diskFile.Close()
}
