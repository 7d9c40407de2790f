package diskengine

import "sync"

// logFile is a file of Pebble's log. Pebble calls it from one goroutine at a time.
//
// A sync that nobody waits for is carried out in the background: what has been
// written is there though the process is killed. All that comes after it on this file
// waits for it, and so does the next file, because this one is closed before that is
// made. So to Pebble, which notes in the log how far that is synced, the disk looks
// as if each sync had ended when it returned.
//
// Zeros are written ahead of the log, since a sync that finds its blocks written
// before has no metadata of the file system to write. Pebble takes them for the end
// of the log, as it does what a log before has left in a file that is used again.
type logFile struct {
	diskFile
	behind sync.WaitGroup // the sync in the background
	end    int64          // of what Pebble wrote
	filled int64          // up to where the file has been written
}

// fillAhead is how many zeros are written ahead at a time.
const fillAhead = 128 << 10

var zeros = make([]byte, fillAhead)

func newLogFile(f diskFile) *logFile {
	l := &logFile{diskFile: f}
	if info, err := f.File.Stat(); err == nil {
		l.filled = info.Size() // one that is used again
	}
	return l
}

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	f.behind.Wait()
	f.fill(f.end + int64(len(p)))
	n, err := f.diskFile.Write(p)
	f.end += int64(n)
	return n, err
}

// fill writes zeros ahead when the file is about to grow. Where that fails the log
// does without.
func (f *logFile) fill(end int64) {
	for f.filled < end {
		err := f.disk.change("write", f.name, false, func() error {
			n, _ := f.File.WriteAt(zeros, f.filled)
			f.disk.measured.wrote(f.name, n)
			return nil
		})
		if err != nil { // frozen
			return
		}
		f.filled += fillAhead
	}
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
