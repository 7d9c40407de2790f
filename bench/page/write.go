package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/bench/page/measured"
)

// write writes the plots, and replaces the blocks of the page.
func write(page string, results []measured.Result) error {
	all := figures(results)
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for _, block := range []struct {
		name  string
		write func(w io.Writer)
	}{
		{"about", func(w io.Writer) { writeAbout(w, all) }},
		{"calls", func(w io.Writer) { writeTable(w, all, callColumns, true, nil) }},
		{"due", func(w io.Writer) { writeTable(w, all, dueColumns, false, dueFaults) }},
		{"pending", func(w io.Writer) { writeTable(w, all, pendingColumns, false, pendingFaults) }},
		{"growth", func(w io.Writer) { writeGrowth(w, all) }},
	} {
		var b bytes.Buffer
		block.write(&b)
		if text, err = replace(text, block.name, b.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
	}
	plots := strings.TrimSuffix(page, filepath.Ext(page))
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	for name, draw := range map[string]func(io.Writer, figures) error{"lateness.svg": writeLateness, "growth.svg": writeGrowthPlot} {
		var b bytes.Buffer
		if err := draw(&b, all); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(plots, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(page, text, 0o644)
}

const endMark = "<!-- end of measured -->\n"

// replace replaces what is between the marks of a block.
func replace(text []byte, name string, with []byte) ([]byte, error) {
	mark := []byte("<!-- measured: " + name + ", made by make bench-page -->\n")
	before, rest, found := bytes.Cut(text, mark)
	_, after, ended := bytes.Cut(rest, []byte(endMark))
	if !found || !ended {
		return nil, fmt.Errorf("the marks %q and %q are missing", mark, endMark)
	}
	return bytes.Join([][]byte{before, mark, with, []byte(endMark), after}, nil), nil
}

// writeAbout says on what machine which versions were measured, and what failed.
func writeAbout(w io.Writer, all figures) {
	var versions, failed []string
	about := ""
	for _, r := range all {
		if r.System == aboutSystem {
			about = r.Version // of the last run
		} else if v := r.Version; v != "" && !strings.Contains(strings.Join(versions, ", "), v) {
			versions = append(versions, v)
		}
		if r.Error != "" && len(all.of(r.System, r.Part)) == 0 {
			failed = append(failed, r.System+" ("+r.Part+")")
		}
	}
	fmt.Fprintf(w, "%s Servers: %s.\n", about, strings.Join(versions, ", "))
	if slices.Sort(failed); len(failed) > 0 {
		fmt.Fprintf(w, "Not measured, for an error: %s.\n", strings.Join(slices.Compact(failed), ", "))
	}
}
