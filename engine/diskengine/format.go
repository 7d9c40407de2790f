package diskengine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tarryhq/tarry/engine/internal/codec"
)

// formatVersion is the version of the formats in docs/formats/disk.md.
const formatVersion = 2

// pebbleFormat is the format of Pebble's own files. A newer one cannot be opened by
// older releases: it comes with a new formatVersion, never with Pebble alone.
const pebbleFormat = pebble.FormatValueSeparation

// checkPebbleFormat refuses a store that a newer Pebble has taken to a format of its
// own. Pebble keeps the number in the name of a file.
func (d *directory) checkPebbleFormat() error {
	names, err := d.fs.List(d.storePath())
	if err != nil {
		return d.unwritable(err)
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, "marker.format-version.")
		if !ok {
			continue
		}
		_, number, _ := strings.Cut(rest, ".")
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && n > uint64(pebbleFormat) {
			return invalid(fmt.Sprintf("the store in %s has Pebble's format %d and this release knows up to %d: use a newer release", d.path, n, pebbleFormat))
		}
	}
	return nil
}

// migration brings a locked directory from one version to the next. It must be
// safe to run again after a crash: the marker is written when it has returned.
type migration func(d *directory) error

// migrations holds, by the version they begin with, the steps to formatVersion.
var migrations = map[int]migration{}

// parseMarker reads the text of the marker. Version 0 is a store in the making.
func parseMarker(text string) (int, error) {
	number, ok := strings.CutPrefix(text, "tarry disk ")
	if !ok || !strings.HasSuffix(number, "\n") {
		return 0, codec.ErrMalformed
	}
	number = strings.TrimSuffix(number, "\n")
	version, err := strconv.Atoi(number)
	if err != nil || version < 0 || strconv.Itoa(version) != number {
		return 0, codec.ErrMalformed
	}
	return version, nil
}

func (d *directory) readMarker() (int, error) {
	text, err := d.readFile(markerName)
	if err != nil {
		return 0, invalid(d.join(markerName) + " cannot be read: " + oneLine(err))
	}
	version, err := parseMarker(text)
	if err != nil {
		return 0, invalid(d.join(markerName) + " is not a marker of tarry's disk format: restore it from a copy, or name another directory")
	}
	if version > formatVersion {
		return 0, invalid(fmt.Sprintf("%s has format %d and this release knows up to %d: use a newer release", d.path, version, formatVersion))
	}
	return version, nil
}

// migrate takes the steps from an older version to the target, each recorded in
// the marker when it is done.
func (d *directory) migrate(version int, steps map[int]migration, target int) error {
	for ; version < target; version++ {
		step := steps[version]
		if step == nil {
			return invalid(fmt.Sprintf("%s has format %d, which this release cannot migrate: open it with an older release first", d.path, version))
		}
		if err := step(d); err != nil {
			return fmt.Errorf("tarry: migrate %s from format %d: %w", d.path, version, err)
		}
		if err := d.write(markerName, markerText(version+1)); err != nil {
			return d.unwritable(err)
		}
	}
	return nil
}

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
