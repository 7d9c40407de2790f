//go:build linux

package disk

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/bench/scenario"
)

// meter counts what a store has the device under it write.
type meter struct {
	device string // its statistics; "": there are none of the file system's device
	before int64
}

// meterOf counts from now on, and not what was written before and has yet to come to the
// device.
func meterOf(b testing.TB, dir string) *meter {
	var at syscall.Stat_t
	must(b, syscall.Stat(dir, &at))
	m := &meter{device: statistics(at.Dev)}
	if _, err := os.Stat(m.device); err != nil {
		m.device = ""
	}
	m.written(b)
	return m
}

// statistics is where the system tells those of a device. Its number is of two, each in two
// parts.
func statistics(device uint64) string {
	major := device>>8&0xfff | device>>32&0xfffff000
	minor := device&0xff | device>>12&0xffffff00
	return fmt.Sprintf("/sys/dev/block/%d:%d/stat", major, minor)
}

// written returns how many bytes were written since it was called last, once all are.
func (m *meter) written(b testing.TB) (n int64, known bool) {
	if m.device == "" {
		return 0, false
	}
	syscall.Sync()
	text, err := os.ReadFile(m.device)
	must(b, err)
	now, err := sectorsWritten(text)
	must(b, err)
	n, m.before = (now-m.before)*512, now
	return n, true
}

// sectorsWritten reads the seventh column: sectors of 512 bytes, whatever the device's are.
func sectorsWritten(stat []byte) (int64, error) {
	columns := bytes.Fields(stat)
	if len(columns) < 7 {
		return 0, fmt.Errorf("no statistics of a device: %q", stat)
	}
	return strconv.ParseInt(string(columns[6]), 10, 64)
}

// report reports what was written of each of n messages, where that is known and there
// are several.
func (m *meter) report(b *testing.B, n int) {
	if bytes, known := m.written(b); known && n > 1 {
		scenario.Report(b, float64(bytes)/float64(n), "written-B/msg")
	}
}

// memory is how many bytes of it this process has, and had at most.
func memory(b testing.TB) (now, most int64) {
	text, err := os.ReadFile("/proc/self/status")
	must(b, err)
	return kilobytes(text, "VmRSS:"), kilobytes(text, "VmHWM:")
}

func kilobytes(status []byte, field string) int64 {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}

func reportMemory(b *testing.B) {
	now, most := memory(b)
	scenario.Report(b, float64(now)/1e6, "rss-MB")
	scenario.Report(b, float64(most)/1e6, "most-rss-MB")
}

// sizeOf is what the files of a directory take of the disk, which may be more or less than
// their lengths.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // files come and go
		}
		if info, err := d.Info(); err == nil {
			n += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return n
}

// demand ends a benchmark for which a directory has too little space.
func demand(b *testing.B, dir string, bytes int64) {
	b.Helper()
	var s syscall.Statfs_t
	must(b, syscall.Statfs(dir, &s))
	if free := int64(s.Bavail) * s.Bsize; free < bytes {
		b.Fatalf("%s has %d MB free, and this takes about %d: name another in TMPDIR, or measure fewer messages", dir, free>>20, bytes>>20)
	}
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
