package check

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// inventory is what files there are in a store, by what is in them; by their names where that cannot be
// told.
type inventory struct {
	files     []string          // all of them
	manifests []string          // that may be one
	runs      map[uint64]string // by number
	marks     map[uint64]string
	segments  []string // of the log that counts, in the order of their names
	stores    []uint64 // that the runs and marks name
	highest   uint64   // number of a file
}

const identifies = 64 // bytes tell what a file is

// look makes the inventory.
func (r *rescue) look() error {
	v := inventory{runs: map[uint64]string{}, marks: map[uint64]string{}}
	dirs := []string{r.path(runsName)}
	names, err := r.fs.List(r.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if number, ok := manifest.ParseLogName(name); ok {
			dirs = append(dirs, r.path(name))
			v.highest = max(v.highest, number)
		}
		if name == manifest.Name {
			v.files = append(v.files, r.path(name))
		}
	}
	for _, dir := range dirs {
		names, err := r.fs.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".log") || numbered.MatchString(name) {
				v.files = append(v.files, filepath.Join(dir, name))
			}
		}
	}
	var unknown []string
	for _, name := range v.files {
		head, err := r.head(name)
		if err != nil {
			return err
		}
		if !v.byContents(name, head) {
			unknown = append(unknown, name)
		}
	}
	for _, name := range unknown {
		v.byName(name)
	}
	r.has = v
	return nil
}

// head reads the first bytes of a file.
func (r *rescue) head(name string) (b []byte, err error) {
	file, err := r.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b = make([]byte, identifies)
	n, err := file.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// byContents notes a file that says what it is.
func (v *inventory) byContents(name string, head []byte) bool {
	if store, number, ok := run.Identify(head); ok {
		v.stores = append(v.stores, store)
		v.runs[number] = name
		v.highest = max(v.highest, number)
		return true
	}
	if store, number, ok := marks.Identify(head); ok {
		v.stores = append(v.stores, store)
		v.marks[number] = name
		v.highest = max(v.highest, number)
		return true
	}
	switch {
	case strings.HasPrefix(string(head), "tarrymfs"):
		v.manifests = append(v.manifests, name)
	case strings.HasPrefix(string(head), "tarrylog"):
		v.segments = append(v.segments, name)
	default:
		return false
	}
	return true
}

// byName notes a file that does not say what it is, and takes the place of none that does.
func (v *inventory) byName(name string) {
	base := filepath.Base(name)
	number, err := strconv.ParseUint(base[:min(16, len(base))], 16, 64)
	of := v.runs
	switch {
	case base == manifest.Name:
		return
	case strings.HasSuffix(base, ".log"):
		v.segments = append(v.segments, name)
		slices.Sort(v.segments)
		return
	case strings.HasSuffix(base, ".marks"):
		of = v.marks
	}
	v.highest = max(v.highest, number)
	if _, is := of[number]; !is && err == nil {
		of[number] = name
	}
}

// without leaves out the files of a repair that was cut off: those with a number and above.
func (v *inventory) without(from uint64) {
	ofRepair := func(name string) bool {
		number, isLog := manifest.ParseLogName(filepath.Base(filepath.Dir(name)))
		if base := filepath.Base(name); !isLog && numbered.MatchString(base) {
			number, _ = strconv.ParseUint(base[:16], 16, 64)
		}
		return number >= from
	}
	v.files = slices.DeleteFunc(v.files, ofRepair)
	v.segments = slices.DeleteFunc(v.segments, ofRepair)
	for _, of := range []map[uint64]string{v.runs, v.marks} {
		maps.DeleteFunc(of, func(_ uint64, name string) bool { return ofRepair(name) })
	}
}

// logSegments are those of the log that counts, and those in directories where no log is.
func (r *rescue) logSegments() []string {
	return slices.DeleteFunc(slices.Clone(r.has.segments), func(name string) bool {
		number, isLog := manifest.ParseLogName(filepath.Base(filepath.Dir(name)))
		return isLog && number != r.state.Log
	})
}
