package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

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

// schedules finds schedules that do not fire, and those whose last run is dead. dead are the
// queues with dead messages, sorted.
func (f *finder) schedules(ctx context.Context, c *tarry.Client, dead []string) error {
	for s, err := range c.AllSchedules(ctx) {
		if errors.Is(err, tarry.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		f.unfired(&s)
		if _, some := slices.BinarySearch(dead, s.Draft.Queue); !some || len(s.Runs) == 0 {
			continue
		}
		run, err := outcome(ctx, c, s.Draft.Queue, &s.Runs[0])
		if err != nil {
			return err
		}
		if run.State == engine.Dead {
			f.add("schedule", s.Draft.Queue, "the last run of the schedule "+s.Name+" is dead: "+cmp.Or(oneLine(run.Error), "no reason was given"),
				"tarry dead ls "+s.Draft.Queue+" shows it; when that is mended tarry dead redrive "+s.Draft.Queue+" brings it back, or tarry schedule trigger "+s.Name+" pushes another", 0)
		}
	}
	return nil
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

// oneLine returns the beginning of an error as one line.
func oneLine(text string) string { return engine.Clip(strings.Join(strings.Fields(text), " ")) }
