package diskengine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
)

// The files of a data directory.
const (
	markerName = "TARRY"  // format and version
	lockName   = "LOCK"   // locked while a process has the directory open
	holderName = "HOLDER" // who that is, for people
	storeName  = "store"  // Pebble's

	ballastName = "BALLAST" // takes up space, given up when the disk is full
)

// directory is an open data directory.
type directory struct {
	fs    vfs.FS
	path  string
	lock  io.Closer
	lock2 *pebble.Lock // Pebble's own, kept by us so that a failed Pebble cannot lose it
	fresh bool         // the marker does not say yet that the store is whole
}

func (d *directory) join(name string) string { return d.fs.PathJoin(d.path, name) }

func (d *directory) storePath() string { return d.join(storeName) }

// openDirectory makes sure that a directory is ours, locks it and brings it to the
// present format.
func openDirectory(fs vfs.FS, path string, now func() time.Time) (*directory, error) {
	d := &directory{fs: fs, path: path}
	if err := makeDirectory(fs, path); err != nil {
		return nil, d.unwritable(err)
	}
	version, err := d.inspect()
	if err != nil {
		return nil, err
	}
	if d.lock, err = fs.Lock(d.join(lockName)); err != nil {
		return nil, d.held(err)
	}
	if err := d.prepare(version, now()); err != nil {
		return nil, errors.Join(err, d.unlock())
	}
	return d, nil
}

// makeDirectory makes a directory and what is missing above it, such that a power
// loss does not take them away again.
func makeDirectory(fs vfs.FS, path string) error {
	if _, err := fs.Stat(path); err == nil {
		return nil
	}
	parent := fs.PathDir(path)
	if parent != path {
		if err := makeDirectory(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return syncDirectory(fs, parent)
}

func syncDirectory(fs vfs.FS, path string) error {
	dir, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// absent is the version of a directory that holds nothing.
const absent = -1

// inspect returns the format version of the directory, without writing anything to
// it.
func (d *directory) inspect() (int, error) {
	names, err := d.fs.List(d.path)
	if err != nil {
		return 0, invalid(d.path + " cannot be read as a directory: " + oneLine(err))
	}
	foreign := ""
	for _, name := range names {
		switch name {
		case markerName:
			return d.readMarker()
		case lockName, holderName, markerName + ".new", holderName + ".new":
			// An opening that was cut short leaves these.
		default:
			foreign = name
		}
	}
	if slices.Contains(names, "MANIFEST") && slices.Contains(names, "runs") {
		return 0, invalid(fmt.Sprintf("%s is a store made with store=log: open it as disk:%[1]s?store=log, or name another directory", d.path))
	}
	if foreign != "" {
		return 0, invalid(fmt.Sprintf("%s is not a directory of tarry (it holds %s): name an empty or a new one", d.path, foreign))
	}
	return absent, nil
}

// prepare writes what an opened directory has, and migrates an older one.
func (d *directory) prepare(version int, now time.Time) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	holder := fmt.Sprintf("pid %d on %s since %s\n", os.Getpid(), host, now.UTC().Format(time.RFC3339))
	err = d.write(holderName, holder)
	if vfs.IsNoSpaceError(err) && giveUp(d.fs, d.join(ballastName)) == nil {
		err = d.write(holderName, holder)
	}
	if err != nil {
		return d.unwritable(err)
	}
	if version > 0 {
		return d.migrate(version, migrations, formatVersion)
	}
	// The marker says 0 until the store in it has been made whole: what a crash
	// left of one holds no message and is made anew.
	if version == absent {
		if err := d.write(markerName, markerText(0)); err != nil {
			return d.unwritable(err)
		}
	}
	d.fresh = true
	if err := d.fs.RemoveAll(d.storePath()); err != nil {
		return d.unwritable(err)
	}
	if err := makeDirectory(d.fs, d.storePath()); err != nil {
		return d.unwritable(err)
	}
	return nil
}

// made records that the store of a fresh directory is whole.
func (d *directory) made() error {
	if !d.fresh {
		return nil
	}
	if err := syncDirectory(d.fs, d.storePath()); err != nil {
		return err
	}
	return d.write(markerName, markerText(formatVersion))
}

// write replaces a file of the directory such that a crash leaves the old or the
// new one.
func (d *directory) write(name, text string) error {
	next := d.join(name + ".new")
	f, err := d.fs.Create(next, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write([]byte(text)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := d.fs.Rename(next, d.join(name)); err != nil {
		return err
	}
	return syncDirectory(d.fs, d.path)
}

func (d *directory) readFile(name string) (string, error) {
	f, err := d.fs.Open(d.join(name))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	return string(text), errors.Join(err, f.Close())
}

// unlock lets other processes have the directory.
func (d *directory) unlock() error {
	var err error
	if d.lock2 != nil {
		err = d.lock2.Close()
	}
	_ = d.fs.Remove(d.join(holderName)) // what stays behind misleads nobody: the lock counts
	return errors.Join(err, d.lock.Close())
}

// held is the error of a directory that another has open, or whose lock cannot be
// taken at all.
func (d *directory) held(cause error) error {
	if errors.Is(cause, os.ErrPermission) || isReadOnly(cause) {
		return d.unwritable(cause)
	}
	holder, err := d.readFile(holderName)
	if holder = strings.TrimSpace(holder); err != nil || holder == "" {
		holder = "another process"
	}
	return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %s is in use by %s", engine.ErrUnavailable, d.path, holder),
		Hint: "one process at a time has a data directory: end that one, or talk to its server"}
}

func (d *directory) unwritable(cause error) error {
	return invalid(d.path + " cannot be written to: " + oneLine(cause) + ": make it writable or name another")
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func markerText(version int) string { return "tarry disk " + strconv.Itoa(version) + "\n" }
