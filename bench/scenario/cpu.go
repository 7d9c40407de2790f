package scenario

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// CPU is how much time of processors this process and those that it has started, such as
// servers and what these have started, have used so far; 0 but on Linux. Of the others it is
// known to 10 ms.
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

// process is one as /proc/*/stat describes it.
type process struct {
	id, parent int
	ticks      time.Duration // that it used, and those it started that have ended
}

func parse(stat []byte) (p process) {
	id, _, _ := bytes.Cut(stat, []byte(" "))
	p.id, _ = strconv.Atoi(string(id))
	// The name, in brackets, may hold anything. State, parent, …, and four times follow.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	p.parent, _ = strconv.Atoi(string(fields[1]))
	for _, f := range fields[11:15] {
		n, _ := strconv.Atoi(string(f))
		p.ticks += time.Duration(n)
	}
	return p
}
