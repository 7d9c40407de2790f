package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
)

// RepairName is the name of a note in the directory of a store: a repair that has no manifest to go by
// is under way.
const RepairName = "REPAIRING"

// BeginRepair notes, durably, from what number on files are of a repair: where that is cut off, the next
// one does not take them for the store's. Open and Replace end it.
func BeginRepair(f disk.FS, dir string, from uint64) error {
	m := &Manifest{fs: f, dir: dir}
	err := endRepair(f, dir) // whose note was cut off
	if err == nil {
		err = m.write(filepath.Join(dir, RepairName), fmt.Appendf(nil, "%016x\n", from))
	}
	if err == nil {
		err = f.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("begin a repair: %w", err)
	}
	return nil
}

// RepairFrom is what BeginRepair noted; 0: no repair had begun to write.
func RepairFrom(f disk.FS, dir string) (from uint64, err error) {
	b, err := read(f, filepath.Join(dir, RepairName))
	var damage *disk.DamageError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &damage) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the note of a repair: %w", err)
	}
	digits, whole := strings.CutSuffix(string(b), "\n")
	if from, err = strconv.ParseUint(digits, 16, 64); err != nil || !whole || len(digits) != 16 {
		return 0, nil // it was cut off as it was noted
	}
	return from, nil
}

// endRepair removes the note.
func endRepair(f disk.FS, dir string) error {
	if err := f.Remove(filepath.Join(dir, RepairName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end a repair: %w", err)
	}
	return nil
}
