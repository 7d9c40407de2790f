// Command page measures tarry and the systems that it is compared with in turns, and writes
// docs/performance.md and its plots: see the Makefile's bench-page.
//
// Each measurement is a process of its own, of package measure. Its result is a line of JSON in
// the file -results. Results of what is to be measured are dropped first, unless the run is to
// resume one that was interrupted. The page and the plots are made of all that is in the file.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/bench/page/measured"
)

var (
	quick       = flag.Bool("quick", false, "measure briefly, in one turn")
	turns       = flag.Int("turns", 0, "how often the systems take turns; 0: 3, or 1 if quick")
	only        = flag.String("systems", "", "systems to measure, separated by commas; empty: all")
	parts       = flag.String("parts", "", "parts to measure, separated by commas, or none; empty: all")
	growTo      = flag.Int("grow-to", 0, "messages that pend at the end of the part growth; 0: 10 million, or 100 thousand if quick")
	resultsFile = flag.String("results", "page.jsonl", "file with the results")
	resume      = flag.Bool("resume", false, "measure only what is not among the results")
	page        = flag.String("page", "../docs/performance.md", "the page; its plots are in the directory of the same name")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run() error {
	done, err := read(*resultsFile)
	if err != nil {
		return err
	}
	if !*resume {
		if done, err = forget(done); err != nil {
			return err
		}
	}
	todo, failed := plan(done), 0
	if len(todo) > 0 {
		if failed, err = measureAll(todo); err != nil {
			return err
		}
		if done, err = read(*resultsFile); err != nil {
			return err
		}
	}
	if err := write(*page, done); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d measurements have failed: run it again, and they are tried again", failed)
	}
	return nil
}

// read reads the results there are.
func read(file string) (all []measured.Result, err error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, nil // a last line without an end is that of a process that was killed
		}
		var r measured.Result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, r)
	}
}

// forget drops the results of what is chosen.
func forget(all []measured.Result) (left []measured.Result, err error) {
	var text []byte
	for _, r := range all {
		if chosen(*parts, r.Part) && chosen(*only, r.System) {
			continue
		}
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		left, text = append(left, r), append(append(text, line...), '\n')
	}
	return left, os.WriteFile(*resultsFile, text, 0o644)
}

func chosen(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// job is a measurement.
type job struct {
	system, part string
	turn         int
}

// plan lists what is to be measured and is not among the results: part by part, and in each
// the systems in turns, each turn with another system first.
func plan(done []measured.Result) (jobs []job) {
	for _, p := range allParts {
		if !chosen(*parts, p.name) {
			continue
		}
		n := min(p.turns, *turns)
		if *turns == 0 {
			n = p.turns
			if *quick {
				n = 1
			}
		}
		for turn := range n {
			for i := range allSystems {
				s := allSystems[(i+turn*5)%len(allSystems)]
				has := slices.ContainsFunc(done, func(r measured.Result) bool {
					return r.System == s.name && r.Part == p.name && r.Turn == turn && r.Error == ""
				})
				if chosen(*only, s.name) && s.takes(p) && !has {
					jobs = append(jobs, job{s.name, p.name, turn})
				}
			}
		}
	}
	return jobs
}
