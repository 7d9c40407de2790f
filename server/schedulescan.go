package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// maxOutcomes is how many runs of schedules a scan looks up.
const maxOutcomes = 500

// lastRuns remembers from scan to scan what became of the last run of each schedule.
type lastRuns struct {
	turn chan struct{}       // holds a token for the scan that uses it
	of   map[string]*lastRun // by the schedule's name
}

func newLastRuns() *lastRuns {
	return &lastRuns{turn: make(chan struct{}, 1), of: make(map[string]*lastRun)}
}

// lastRun is the last run of a schedule.
type lastRun struct {
	tarry.ScheduleRun
	queue   string
	seen    time.Time // when a scan saw the schedule last
	checked time.Time // when this run, or one before it, was looked up last; zero: never
	over    bool      // it cannot die any more
	why     string    // it is dead, and of what; "": it is not
}

// ScheduleProblems returns how many problems schedules have, for
// tarryprom.Metrics.WatchSchedules. It waits for the first scan alone, and no longer than
// probes do.
func (s *Server) ScheduleProblems() (n int) {
	ctx, cancel := context.WithTimeout(context.Background(), probePatience)
	defer cancel()
	found, _ := s.problemScan.get(ctx, 0)
	for i := range found {
		if found[i].Problem == "schedule" {
			n++
		}
	}
	return n
}

// schedules finds schedules that do not fire, and those whose last run is dead.
func (f *finder) schedules(ctx context.Context, c *tarry.Client) error {
	runs := cmp.Or(f.runs, newLastRuns())
	select {
	case runs.turn <- struct{}{}:
		defer func() { <-runs.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for s, err := range c.AllSchedules(ctx) {
		if errors.Is(err, tarry.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		f.unfired(&s)
		runs.see(&s, f.Now)
	}
	err := runs.look(ctx, c, f.Now)
	for name, run := range runs.of {
		if run.why != "" {
			f.add("schedule", run.queue, "the last run of the schedule "+name+" is dead: "+run.why,
				"tarry dead ls "+run.queue+" shows it; when that is mended tarry dead redrive "+run.queue+" brings it back, or tarry schedule trigger "+name+" pushes another", 0)
		}
	}
	return err
}

// unfired finds out whether a schedule cannot fire, or has not although it is due.
func (f *finder) unfired(s *tarry.ScheduleInfo) {
	late := f.Now.Sub(s.Next)
	switch {
	case s.Error != "":
		f.add("schedule", s.Draft.Queue, "the schedule "+s.Name+" cannot fire: "+oneLine(s.Error),
			"it is tried again; mend what the error names, or change it with tarry schedule set", max(0, late.Seconds()))
	case !s.Next.IsZero() && late >= f.Late:
		f.add("schedule", s.Draft.Queue, "the schedule "+s.Name+" should have fired "+rounded(late)+" ago",
			"tarry serve runs schedules, and so do workers with Schedules: see that one runs, and that tarry queue get "+tarry.ScheduleQueue+" shows no pause", late.Seconds())
	}
}

// see notes the last run of a schedule, if it has one.
func (l *lastRuns) see(s *tarry.ScheduleInfo, now time.Time) {
	if len(s.Runs) == 0 {
		return
	}
	run := cmp.Or(l.of[s.Name], new(lastRun))
	if run.ID != s.Runs[0].ID || run.queue != s.Draft.Queue {
		*run = lastRun{ScheduleRun: s.Runs[0], queue: s.Draft.Queue, checked: run.checked}
	}
	run.seen, l.of[s.Name] = now, run
}

// look looks up runs that may have died: at most maxOutcomes, those first that were not
// looked up for longest. It forgets schedules that are gone.
func (l *lastRuns) look(ctx context.Context, c *tarry.Client, now time.Time) error {
	var open []*lastRun
	for name, run := range l.of {
		switch {
		case run.seen != now:
			delete(l.of, name)
		case !run.over:
			open = append(open, run)
		}
	}
	slices.SortFunc(open, func(a, b *lastRun) int { return a.checked.Compare(b.checked) })
	for _, run := range open[:min(len(open), maxOutcomes)] {
		told, err := outcome(ctx, c, run.queue, &run.ScheduleRun)
		if err != nil {
			return err
		}
		run.checked, run.why = now, ""
		run.over = told.State == engine.Gone || told.State == engine.Finished
		if told.State == engine.Dead {
			run.why = cmp.Or(oneLine(told.Error), "no reason was given")
		}
	}
	return nil
}

// oneLine returns the beginning of an error as one line.
func oneLine(text string) string { return engine.Clip(strings.Join(strings.Fields(text), " ")) }
