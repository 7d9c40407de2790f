package from

import (
	"context"
	"regexp"
	"slices"
	"testing"

	"github.com/tarryhq/tarry"
)

// Report is the body in docs/schedules.md.
type Report struct {
	Of string `json:"of"`
}

// Reports are the messages that its schedule pushes.
var Reports = tarry.NewTopic[Report]("report")

// scheduled is its Go.
func scheduled(ctx context.Context, c *tarry.Client) (*tarry.Worker, error) {
	s, err := tarry.NewSchedule("nightly", "30 2 * * *", Reports, Report{Of: "yesterday"}, tarry.MaxAttempts(3))
	s.Zone = "Europe/Berlin"
	if err != nil {
		return nil, err
	}
	_, err = c.SetSchedule(ctx, s, "") // the same again changes nothing

	w := tarry.NewWorker(c, &tarry.WorkerConfig{Schedules: true})
	return w, err
}

func TestSchedules(t *testing.T) {
	p := follow(t, "../schedules.md")
	p.compiled("schedules_test.go")
	p.run()
	out := p.run()
	for _, want := range []string{"set nightly, next: ", "IN Europe/Berlin", ` 02:30:00 \+0`, `20\d\d-03-\d\d 02:30 does not exist`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	c := p.client()
	if _, err := scheduled(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PauseSchedule(t.Context(), "nightly"); err != nil { // what apply leaves as it is
		t.Fatal(err)
	}
	const plan = "~ nightly\n    spec: \"30 2 * * *\" → \"0 3 * * *\"\n+ ping\n2 changes "
	if out = p.run(); out != plan+"to make\n"+plan+"made\n" {
		t.Errorf("%s", out)
	}
	page, _, err := c.Schedules(t.Context(), "", 0)
	names := func(s tarry.ScheduleInfo) string { return s.Name + " " + s.Spec + " " + s.State.String() }
	if err != nil || len(page) != 2 || !slices.Contains([]string{names(page[0]), names(page[1])}, "nightly 0 3 * * * paused") {
		t.Errorf("%+v, %v", page, err)
	}
	p.done()
}
