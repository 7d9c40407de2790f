package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/bench/page/measured"
	"github.com/tarryhq/tarry/bench/table"
)

// aboutSystem is what results are filed under that tell of the machine.
const aboutSystem = "about"

// machine returns a result that tells of the machine, of libraries and of sizes.
func machine(dir string) (r measured.Result, err error) {
	z := chosenSizes()
	sync, err := syncTime(dir)
	if err != nil {
		return r, err
	}
	libraries, err := libraryVersions()
	if err != nil {
		return r, err
	}
	r.System = aboutSystem
	r.Version = fmt.Sprintf("Measured on %s, %d cores, %s GB of memory, Linux %s, %s; fdatasync of 4 KiB takes %s ms. "+
		"Each kind of calls for %v; lateness for %v; a burst of %s; %s pending, ten times as many on tarry's disk. Libraries: %s.",
		time.Now().UTC().Format("2006-01-02: ")+field("/proc/cpuinfo", "model name"), runtime.NumCPU(), gigabytes(), first("/proc/sys/kernel/osrelease"), runtime.Version(),
		table.Number(sync.Seconds()*1e3), z.calls, z.span, table.Number(float64(z.burst)), table.Number(float64(z.pending)), libraries)
	return r, nil
}

// syncTime is the median time in which a block is on the disk.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block, took := make([]byte, 4096), make([]time.Duration, 200)
	for i := range took {
		began := time.Now()
		if _, err := f.WriteAt(block, int64(i)*4096); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// libraryVersions are those of the peers that are libraries.
func libraryVersions() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Version}}",
		"github.com/hibiken/asynq", "github.com/riverqueue/river").Output()
	if err != nil {
		return "", err
	}
	var texts []string
	for line := range strings.Lines(string(out)) {
		texts = append(texts, filepath.Base(strings.TrimSpace(line)))
	}
	list, err := os.ReadFile("node/package.json")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"bullmq", "graphile-worker"} {
		_, rest, _ := strings.Cut(string(list), strconv.Quote(name)+": \"")
		version, _, _ := strings.Cut(rest, `"`)
		texts = append(texts, name+" v"+version)
	}
	if node, err := exec.Command("node", "--version").Output(); err == nil {
		texts = append(texts, "Node "+strings.TrimSpace(string(node)))
	}
	return strings.Join(texts, ", "), nil
}

// field returns the value of a line "name : value" of a file.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "an unknown processor"
}

func first(file string) string {
	text, _ := os.ReadFile(file)
	return strings.TrimSpace(string(text))
}

func gigabytes() string {
	kb, _ := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64)
	return table.Number(kb / 1e6)
}
