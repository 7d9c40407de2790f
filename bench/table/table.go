// Package table makes Markdown tables of the output of go test -bench.
package table

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const end = "<!-- end of measured -->\n"

// Results are the figures of a run.
type Results struct {
	// Figures are medians by benchmark, without the processor count, and by unit.
	Figures map[string]map[string]float64
	Turns   map[string]map[string][]float64 // the same in order, before medians are taken
	Names   []string                        // of the benchmarks, in order of their first run
	Config  map[string]string               // settings that the run reports, such as "cpu"
}

// Main is the main function of a command with a file name as its argument and the output of
// benchmarks on standard input. After the output there must be the line "whole: yes", which
// says that all benchmarks ended. Main replaces the text in the file between the mark that
// names the make target and the end mark with what write writes.
func Main(target string, write func(w io.Writer, r *Results)) {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -bench … | table FILE")
		os.Exit(2)
	}
	if err := update(os.Args[1], target, os.Stdin, write); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func update(file, target string, in io.Reader, write func(io.Writer, *Results)) error {
	r, err := Read(in)
	if err != nil {
		return err
	}
	if len(r.Figures) == 0 || r.Config["whole"] != "yes" {
		return fmt.Errorf("the benchmarks did not run to their end")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin := "<!-- measured: made by make " + target + " -->\n"
	from := bytes.Index(text, []byte(begin))
	to := bytes.Index(text[max(from, 0):], []byte(end)) + max(from, 0)
	if from < 0 || to < from {
		return fmt.Errorf("%s lacks the marks %q and %q", file, begin, end)
	}
	var out bytes.Buffer
	out.Write(text[:from])
	out.WriteString(begin)
	write(&out, r)
	out.Write(text[to:])
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// Print writes a table of the benchmarks on standard input to standard output.
func Print(write func(w io.Writer, r *Results)) {
	r, err := Read(os.Stdin)
	if err == nil && len(r.Figures) == 0 {
		err = fmt.Errorf("there are no figures")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
	write(os.Stdout, r)
}

// beside matches the additions to a benchmark's name: the processor count, and a number if the
// same name ran before.
var beside = regexp.MustCompile(`-\d+$|#\d+`)

// Read parses the output of benchmarks.
func Read(in io.Reader) (*Results, error) {
	all := map[string]map[string][]float64{}
	r := &Results{Figures: map[string]map[string]float64{}, Turns: all, Config: map[string]string{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) > 0 && fields[0] == "FAIL":
			return nil, fmt.Errorf("the benchmarks failed")
		case len(fields) > 1 && strings.HasSuffix(fields[0], ":"):
			r.Config[strings.TrimSuffix(fields[0], ":")] = strings.Join(fields[1:], " ")
		case len(fields) >= 4 && strings.HasPrefix(fields[0], "Benchmark"):
			name := beside.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
			if all[name] == nil {
				r.Names = append(r.Names, name)
				all[name] = map[string][]float64{}
			}
			for i := 2; i+1 < len(fields); i += 2 {
				v, err := strconv.ParseFloat(fields[i], 64)
				if err != nil {
					return nil, fmt.Errorf("%q: %w", lines.Text(), err)
				}
				all[name][fields[i+1]] = append(all[name][fields[i+1]], v)
			}
		}
	}
	for name, units := range all {
		r.Figures[name] = map[string]float64{}
		for unit, v := range units {
			r.Figures[name][unit] = Median(v)
		}
	}
	return r, lines.Err()
}

// Median returns the middle value, or the mean of the two middle ones.
func Median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Sum returns a figure; for a unit such as "early+lost", the sum of the figures there are.
func (r *Results) Sum(name, units string) (sum float64, ok bool) {
	for unit := range strings.SplitSeq(units, "+") {
		v, is := r.Figures[name][unit]
		sum, ok = sum+v, ok || is
	}
	return sum, ok
}

// Get returns a figure times scale, or a dash if there is none.
func (r *Results) Get(name, unit string, scale float64, format string) string {
	if v, ok := r.Figures[name][unit]; ok {
		return fmt.Sprintf(format, v*scale)
	}
	return "–"
}
