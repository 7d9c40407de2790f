//go:build linux

package measure

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tarryhq/tarry/bench/scenario"
)

// memory returns the bytes of memory that the processes of a system have; what several share
// counts once. This process counts if it is the server.
func (p *place) memory(s scenario.System) (bytes float64) {
	ids := scenario.Started()
	if s, ok := s.(interface{ PID() int }); ok {
		ids = slices.DeleteFunc(ids, func(id int) bool { return id == s.PID() })
	}
	if p.server == nil {
		debug.FreeOSMemory()
		ids = []int{os.Getpid()}
	}
	for _, id := range ids {
		bytes += shareOf(id)
	}
	return bytes
}

// shareOf returns the memory of a process, with its share of what it shares with others.
func shareOf(id int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", id))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return float64(kb) * 1024
		}
	}
	return 0
}

// sizeOf returns what the files of a directory take of the disk.
func sizeOf(dir string) (bytes float64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // files come and go
		}
		if info, err := d.Info(); err == nil {
			bytes += float64(info.Sys().(*syscall.Stat_t).Blocks * 512)
		}
		return nil
	})
	return bytes
}
