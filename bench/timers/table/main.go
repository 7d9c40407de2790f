// Command table turns the output of the timer benchmarks, on standard input,
// into the table of docs/timers.md, between the two marks in that file.
//
//	go test -bench … | go run ./timers/table ../docs/timers.md
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

const (
	begin = "<!-- measured: made by make bench-timers -->\n"
	end   = "<!-- end of measured -->\n"
)

// results are the figures by benchmark, without the processor count, and unit.
type results struct {
	figures map[string]map[string]float64
	machine string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -bench … | table FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(file string, in io.Reader) error {
	r, err := read(in)
	if err != nil {
		return err
	}
	if len(r.figures) == 0 {
		return fmt.Errorf("no benchmark results on standard input")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	from := bytes.Index(text, []byte(begin))
	to := bytes.Index(text, []byte(end))
	if from < 0 || to < from {
		return fmt.Errorf("%s lacks the marks %q and %q", file, begin, end)
	}
	var out bytes.Buffer
	out.Write(text[:from])
	out.WriteString(begin)
	r.write(&out)
	out.Write(text[to:])
	return os.WriteFile(file, out.Bytes(), 0o644)
}

var processors = regexp.MustCompile(`-\d+$`)

func read(in io.Reader) (*results, error) {
	r := &results{figures: map[string]map[string]float64{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) > 1 && fields[0] == "cpu:":
			r.machine = strings.Join(fields[1:], " ")
		case len(fields) >= 4 && strings.HasPrefix(fields[0], "Benchmark"):
			name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
			units := map[string]float64{}
			for i := 2; i+1 < len(fields); i += 2 {
				v, err := strconv.ParseFloat(fields[i], 64)
				if err != nil {
					return nil, fmt.Errorf("%q: %w", lines.Text(), err)
				}
				units[fields[i+1]] = v
			}
			r.figures[name] = units
		}
	}
	return r, lines.Err()
}

func (r *results) get(name, unit string, scale float64, format string) string {
	if v, ok := r.figures[name][unit]; ok {
		return fmt.Sprintf(format, v*scale)
	}
	return "–"
}

var (
	impls    = []string{"Wheel", "Runner", "Ring", "Heap", "Runtime", "go-zero"}
	pendings = []int{0, 10_000, 1_000_000, 10_000_000}
)

func (r *results) write(w io.Writer) {
	fmt.Fprintf(w, "Measured on: %s. Times in nanoseconds but where another unit stands.\n\n", r.machine)
	fmt.Fprintln(w, "| pending | implementation | schedule + cancel | the same, many goroutines | allocations | reset, in turn | reset, jumping about | bytes a timer | a collection, ms | longest pause, µs |")
	fmt.Fprintln(w, "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, n := range pendings {
		for _, impl := range impls {
			at := fmt.Sprintf("Timers/impl=%s/pending=%d/op=", impl, n)
			if r.figures[at+"schedule-cancel"] == nil {
				continue
			}
			fmt.Fprintln(w, "|", strings.Join([]string{
				strconv.Itoa(n), impl,
				r.get(at+"schedule-cancel", "ns/op", 1, "%.0f"),
				r.get(at+"schedule-cancel-parallel", "ns/op", 1, "%.0f"),
				r.get(at+"schedule-cancel", "allocs/op", 1, "%.0f"),
				r.get(at+"reset", "ns/op", 1, "%.1f"),
				r.get(at+"reset-jumping", "ns/op", 1, "%.0f"),
				r.get(at+"gc", "B/timer", 1, "%.1f"),
				r.get(at+"gc", "ns/op", 1e-6, "%.1f"),
				r.get(at+"gc", "pause-us", 1, "%.0f"),
			}, " | "), "|")
		}
	}
	fmt.Fprintln(w, "\n| a million due in one tick | handed over in, ms |\n|---|---:|")
	for _, impl := range impls {
		if name := "Fire/impl=" + impl; r.figures[name] != nil {
			fmt.Fprintf(w, "| %s | %s |\n", impl, r.get(name, "ns/op", 1e-6, "%.0f"))
		}
	}
	fmt.Fprintln(w, "\n| of 5,000 timers at a tick of 10 ms | fired early |\n|---|---:|")
	for _, impl := range impls {
		if name := "Early/impl=" + impl; r.figures[name] != nil {
			fmt.Fprintf(w, "| %s | %s |\n", impl, r.get(name, "early/op", 1, "%.0f"))
		}
	}
}
