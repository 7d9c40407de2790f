package check

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// What stands in the directory of a store beside the manifest.
const (
	lockName = "LOCK"
	runsName = "runs"
)

// What a repair would do.
const (
	mendManifest = "make the manifest anew from the runs and the log, as far as they tell"
	mendRun      = "write the run anew from the messages in it that can be read"
	mendMarks    = "take as alive who died before the log begins, and show them to be looked through"
	mendLog      = "drop the log from there on"
	mendRecord   = "leave the record out"
	mendTwice    = "keep the one that was written last"
	mendName     = "give the queue a name made of its number"
	mendCount    = "write what is counted into the manifest"
)

// Config is how a store is checked. Nil works.
type Config struct {
	// Pace is called between slices of the work with the bytes that were read since the last
	// call. It may wait; an error of it ends the check. nil: nothing.
	Pace func(read int) error

	// Now is the time by which the directory of a rescue is named. nil: time.Now.
	Now func() time.Time

	segment int64 // bytes of a segment of the log that a rescue makes; 0: as usual
}

// Check checks the store in a directory. It has the store's lock meanwhile: disk.ErrLocked if
// somebody has it open. A directory without a store is fs.ErrNotExist.
func Check(f disk.FS, dir string, cfg *Config) (rep *Report, err error) {
	err = locked(f, dir, func() error {
		c := newChecker(f, dir, cfg)
		rep = c.rep
		return c.all()
	})
	if err != nil {
		return nil, fmt.Errorf("check a store: %w", err)
	}
	return rep, nil
}

// locked calls fn with the lock of a store.
func locked(f disk.FS, dir string, fn func() error) (err error) {
	names, err := f.List(dir)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(names, func(n string) bool {
		_, isLog := manifest.ParseLogName(n)
		return n == manifest.Name || isLog || n == runsName
	}) {
		return fmt.Errorf("%s holds none: %w", dir, fs.ErrNotExist)
	}
	lock, err := f.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return fn()
}

type checker struct {
	fs     disk.FS
	dir    string
	pace   func(read int) error
	rep    *Report
	state  manifest.State
	secret run.Secret

	runs  []*run.Run // that are sound, by number
	areas []uint8    // of each
	sick  []uint64   // numbers of runs that are not
	file  uint64     // the least number of a file that nothing has or names
	items int        // of indexes that were gone through
}

func newChecker(f disk.FS, dir string, cfg *Config) *checker {
	c := &checker{fs: &surface{FS: f}, dir: dir, pace: func(int) error { return nil }, rep: new(Report)}
	if cfg != nil && cfg.Pace != nil {
		c.pace = cfg.Pace
	}
	return c
}

func (c *checker) path(name string) string { return filepath.Join(c.dir, name) }

func (c *checker) logDir() string { return c.path(manifest.LogName(c.state.Log)) }

// all goes through all there is.
func (c *checker) all() (err error) {
	defer func() {
		for _, r := range c.runs {
			err = errors.Join(err, r.Close())
		}
	}()
	if c.state, err = manifest.Read(c.fs, c.dir); err != nil {
		return c.wrong(err, c.path(manifest.Name), mendManifest)
	}
	c.secret, c.rep.log = c.state.Secret, c.logDir()
	c.file = c.state.NextFile
	if err := c.leftovers(); err != nil {
		return err
	}
	for _, r := range c.state.Runs {
		if err := c.run(r); err != nil {
			return err
		}
	}
	if err := c.marks(); err != nil {
		return err
	}
	m := newReplayed(c)
	if err := m.replay(); err != nil {
		return err
	}
	if !c.rep.Sound() {
		return nil // what is missing would be found once more at each who needs it
	}
	if err := m.together(); err != nil {
		return c.wrong(err, c.path(runsName), "")
	}
	if c.rep.Sound() {
		m.count()
	}
	return nil
}

// wrong notes an error that says that a file is damaged or missing, and returns any other.
func (c *checker) wrong(err error, file, mend string) error {
	var damage *disk.DamageError
	switch {
	case errors.As(err, &damage):
		c.rep.add(damage.File, damage.Offset, mend, "%s", damage.Reason)
	case errors.Is(err, fs.ErrNotExist):
		c.rep.add(file, -1, mend, "it is missing")
	default:
		return err
	}
	return nil
}

// named notes that a number is that of a file, or was.
func (c *checker) named(file uint64) { c.file = max(c.file, file+1) }

var numbered = regexp.MustCompile(`^[0-9a-f]{16}\.(run|marks)$`)

// leftovers lists what nothing names.
func (c *checker) leftovers() error {
	named := map[string]bool{}
	for _, r := range c.state.Runs {
		named[run.Name(c.path(runsName), r.Number)] = true
		named[marks.Name(c.path(runsName), r.Marks)] = r.Marks != 0
	}
	names, err := c.fs.List(c.path(runsName))
	if err != nil {
		if len(c.state.Runs) > 0 || !errors.Is(err, fs.ErrNotExist) {
			return c.wrong(err, c.path(runsName), "")
		}
	}
	for _, name := range names {
		if !numbered.MatchString(name) {
			continue
		}
		if number, err := strconv.ParseUint(name[:16], 16, 64); err == nil {
			c.named(number)
		}
		if path := filepath.Join(c.path(runsName), name); !named[path] {
			c.rep.Leftovers = append(c.rep.Leftovers, path)
		}
	}
	names, err = c.fs.List(c.dir)
	for _, name := range names {
		number, isLog := manifest.ParseLogName(name)
		if isLog {
			c.named(number)
		}
		if isLog && number != c.state.Log || name == manifest.NewName {
			c.rep.Leftovers = append(c.rep.Leftovers, c.path(name))
		}
	}
	return err
}
