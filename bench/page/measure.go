package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/bench/page/measured"
)

// sizes are how much is measured.
type sizes struct {
	calls, span    time.Duration
	burst, pending int
	growTo         int
}

func chosenSizes() sizes {
	s := sizes{calls: 4 * time.Second, span: 15 * time.Second, burst: 50_000, pending: 200_000, growTo: 10_000_000}
	if *quick {
		s = sizes{calls: 700 * time.Millisecond, span: 3 * time.Second, burst: 5_000, pending: 20_000, growTo: 100_000}
	}
	if *growTo > 0 {
		s.growTo = *growTo
	}
	return s
}

// longest returns the bound of a measurement. What takes longer has failed.
func longest(part string) time.Duration {
	if part == "growth" {
		return 2 * time.Hour // to 100 million
	}
	return 10 * time.Minute
}

// measureAll measures, and appends to the results.
func measureAll(jobs []job) (failed int, err error) {
	bin, err := os.MkdirTemp("", "tarry-page-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	if err := build(bin); err != nil {
		return 0, err
	}
	about, err := machine(bin)
	if err != nil {
		return 0, err
	}
	if err := add(about); err != nil {
		return 0, err
	}
	began := time.Now()
	for i, j := range jobs {
		fmt.Fprintf(os.Stderr, "%4.0fs  %d of %d: %s, %s, turn %d\n", time.Since(began).Seconds(), i+1, len(jobs), j.part, j.system, j.turn+1)
		results, err := j.measure(bin)
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, err)
			results = []measured.Result{{System: j.system, Part: j.part, Error: err.Error()}}
		}
		for _, r := range results {
			r.Turn = j.turn
			if err := add(r); err != nil {
				return failed, err
			}
		}
	}
	return failed, nil
}

// build makes the programs that are measured.
func build(bin string) error {
	for _, args := range [][]string{
		{"build", "-C", "..", "-o", filepath.Join(bin, "tarry"), "./cmd/tarry"},
		{"build", "-o", filepath.Join(bin, "nats-server"), "github.com/nats-io/nats-server/v2"},
		{"test", "-c", "-o", filepath.Join(bin, "measure"), "./page/measure"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go %v: %w", args, err)
		}
	}
	return nil
}

func (j job) measure(bin string) ([]measured.Result, error) {
	node, err := filepath.Abs("node")
	if err != nil {
		return nil, err
	}
	file, z := filepath.Join(bin, "result"), chosenSizes()
	defer os.Remove(file)
	cmd := exec.Command(filepath.Join(bin, "measure"), "-test.run", "^$", "-test.bench", "^BenchmarkPart$", "-test.benchtime", "1x",
		"-test.timeout", longest(j.part).String(), "-system", j.system, "-part", j.part, "-binaries", bin, "-node", node, "-results", file,
		"-for", z.calls.String(), "-span", z.span.String(), "-burst", strconv.Itoa(z.burst), "-pending", strconv.Itoa(z.pending), "-grow-to", strconv.Itoa(z.growTo))
	cmd.Env = append(os.Environ(), "TARRY_TEST_SERVERS=require")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s, %s: %w\n%s", j.system, j.part, err, out)
	}
	return read(file)
}

func add(r measured.Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(*resultsFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\n", text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
