// Package table turns what go test -bench prints into tables of a Markdown file.
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
	// Figures are by benchmark, without the processor count, and unit. They are the
	// medians of what ran several times.
	Figures map[string]map[string]float64
	Turns   map[string]map[string][]float64 // the same before medians are taken, in order
	Names   []string                        // of the benchmarks, in the order in which they first ran
	Config  map[string]string               // what the run says of itself, such as "cpu"
}

// Main is the main function of a command that has a file name as its argument and
// the output of benchmarks on standard input, with the line "whole: yes" after it when
// all ran to their end. It puts what write writes into that
// file, between the mark that names the make target and the end mark.
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

// beside is what a name has beside what is measured: the processor count, and how often
// it ran before.
var beside = regexp.MustCompile(`-\d+$|#\d+`)

// Read reads what benchmarks print.
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

// Median is the one in the middle, or between the two that are.
func Median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Sum returns a figure, or, of a unit such as "early+lost", the sum of those that there are.
func (r *Results) Sum(name, units string) (sum float64, ok bool) {
	for unit := range strings.SplitSeq(units, "+") {
		v, is := r.Figures[name][unit]
		sum, ok = sum+v, ok || is
	}
	return sum, ok
}

// Get returns a figure times scale, or a dash where there is none.
func (r *Results) Get(name, unit string, scale float64, format string) string {
	if v, ok := r.Figures[name][unit]; ok {
		return fmt.Sprintf(format, v*scale)
	}
	return "–"
}
