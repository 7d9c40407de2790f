package scenario

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// CPU returns the processor time used so far by this process and those it has started,
// directly or not, such as servers. For other processes than this one it is exact to 10 ms. It
// is 0 except on Linux.
func CPU() time.Duration {
	const tick = time.Second / 100
	used := own()
	for _, p := range started() {
		used += p.ticks * tick
	}
	return used
}

// Started returns the ids of the processes that this one has started, directly or not.
func Started() (ids []int) {
	for _, p := range started() {
		ids = append(ids, p.id)
	}
	return ids
}

func started() (all []process) {
	children := make(map[int][]process)
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		p := parse(text)
		children[p.parent] = append(children[p.parent], p)
	}
	all = children[os.Getpid()]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i].id]...)
	}
	return all
}

// process is a process as /proc/*/stat describes it.
type process struct {
	id, parent int
	ticks      time.Duration // used by it and by its children that have ended
}

func parse(stat []byte) (p process) {
	id, _, _ := bytes.Cut(stat, []byte(" "))
	p.id, _ = strconv.Atoi(string(id))
	// The name, in brackets, may hold anything. The state and the parent follow, then others,
	// and four times.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	p.parent, _ = strconv.Atoi(string(fields[1]))
	for _, f := range fields[11:15] {
		n, _ := strconv.Atoi(string(f))
		p.ticks += time.Duration(n)
	}
	return p
}
