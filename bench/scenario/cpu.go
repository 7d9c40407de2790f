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
	of := []int{os.Getpid()}
	for len(of) > 0 {
		for _, p := range children[of[0]] {
			used += p.ticks * tick
			of = append(of, p.id)
		}
		of = of[1:]
	}
	return used
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
