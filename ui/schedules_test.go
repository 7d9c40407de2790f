package ui_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// schedule stores a schedule.
func (w *world) schedule(name, spec string) tarry.ScheduleInfo {
	w.Helper()
	s, err := tarry.NewSchedule(name, spec, tarry.NewTopic[map[string]int]("reports"), map[string]int{"a": 1}, tarry.Header("by", "test"))
	if err == nil {
		s.Zone = "America/New_York"
	}
	info, err := w.c.SetSchedule(w.Context(), s, "")
	if err != nil {
		w.Fatal(err)
	}
	return info
}

// fires runs the schedules of the store.
func (w *world) fires() {
	worker := tarry.NewWorker(w.c, &tarry.WorkerConfig{Schedules: true})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	w.Cleanup(func() {
		stop()
		<-done
	})
}

// A person makes a schedule, sees what it will do, edits, triggers, pauses and removes it.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	w.fires()
	p := w.open(desk, "#/schedules")
	p.sees(".empty", "There are no schedules.")
	p.press(".title", "New…")
	p.fill("name", "report/nightly")
	p.fill("queue", "reports")
	p.fill("spec", "0 0 30 2 *")
	p.sees(".preview", "never fires")
	p.fill("spec", "30 2 * * *")
	p.fill("zone", "Mars/Olympus")
	p.sees(".preview", "is unknown")
	p.fill("zone", "America/New_York")
	p.until(`document.querySelectorAll(".preview tbody tr").length === 10 && [...document.querySelectorAll(".preview tbody tr")].every(r => r.cells[1].innerText.endsWith("02:30:00") || r.cells[1].innerText.endsWith("03:00:00"))`)
	p.fill("body", `{"kind": "nightly"}`)
	p.fill("headers", "by: hand")
	p.press("dialog", "Save")
	p.sees("h1", "report/nightly")
	p.sees(".toast", "saved")
	if s, err := w.c.Schedule(t.Context(), "report/nightly"); err != nil || s.Zone != "America/New_York" || string(s.Draft.Body) != `{"kind": "nightly"}` || s.Draft.ContentType != "application/json" || s.Draft.Headers[0].Value != "hand" {
		t.Errorf("%+v, %v", s, err)
	}
	p.sees("main", "It has not fired yet.")

	p.press(".title", "Trigger…")
	p.press("dialog", "Trigger")
	p.sees(".runs", "ready")
	p.press(".title", "Pause")
	p.sees(".title .badge", "paused")
	p.press(".title", "Resume")
	p.misses(".title .badge", "paused")
	p.press(".title", "Edit…")
	p.until(`document.querySelector("[name=body]").value === '{"kind": "nightly"}' && document.querySelector("[name=headers]").value === "by: hand"`)
	p.fill("spec", "@every 90m")
	p.fill("catch_up", "skip")
	p.press("dialog", "Save")
	p.sees(".figures", "@every 90m")
	p.sees(".figures", "none fires")
	if s, err := w.c.Schedule(t.Context(), "report/nightly"); err != nil || s.CatchUp != tarry.CatchUpSkip || string(s.Draft.Body) != `{"kind": "nightly"}` || len(s.Draft.Headers) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	p.press(".runs", "")
	p.sees("h1", "report/nightly@")
	p.to("#/schedules/report%2Fnightly")
	p.press(".title", "Remove…")
	p.press("dialog", "Remove")
	p.sees(".empty", "There are no schedules.")
}

// Who saves over the change of another is told, and shown what it is now.
func TestScheduleTwoEditors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	first := w.schedule("s", "@hourly")
	p := w.open(desk, "#/schedules/s")
	p.press(".title", "Edit…")
	p.fill("spec", "@daily")
	other := first.Schedule
	other.Spec = "@weekly"
	if _, err := w.c.SetSchedule(t.Context(), other, first.Revision); err != nil {
		t.Fatal(err)
	}
	p.press("dialog", "Save")
	p.sees("dialog h2", "as someone else has changed it")
	p.until(`document.querySelector("[name=spec]").value === "@weekly"`)
	p.sees(".toast", "was not saved")
	p.fill("spec", "@daily")
	p.press("dialog", "Save")
	p.sees(".figures", "@daily")
	p.forgive() // the refused call
}

// Schedules are listed with those first that need someone.
func TestSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kind{})
	w.fires()
	hourly := fmt.Sprintf("%d * * * *", time.Now().Add(30*time.Minute).Minute()) // none fires meanwhile
	for i := range 5 {
		w.schedule(fmt.Sprint("hourly-", i), hourly)
	}
	w.schedule("stopped", hourly)
	if _, err := w.c.PauseSchedule(t.Context(), "stopped"); err != nil {
		t.Fatal(err)
	}
	for _, l := range sizes {
		p := w.open(l, "#/schedules")
		p.until(`document.querySelectorAll(".schedules tbody tr").length === 6 && document.querySelector(".schedules tbody tr").innerText.includes("stopped")`)
		p.until(`document.querySelectorAll(".line rect").length === 1`)
		where := fmt.Sprintf("schedules, %d wide", l.width)
		p.fits(where)
		p.accessible(where, axe(t), "")
		p.press(".schedules", "hourly-3")
		p.sees("h1", "hourly-3")
		p.until(`document.querySelectorAll(".instants tbody tr").length === 10`)
		p.fits(where)
		p.accessible(where, axe(t), "")
		if text := p.text("main"); !strings.Contains(text, "America/New_York") || !strings.Contains(text, "It has not fired yet.") {
			t.Error(text)
		}
	}
}
