package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

func (p *Program) scheduleApplyCommand() *cobra.Command {
	var prune bool
	cmd := p.client(makeIt, &cobra.Command{
		Use:   "apply FILE",
		Short: "Make the schedules those of a file, and show what changes",
		Long: `Apply reads a JSON file of schedules by name, in the form of the HTTP API:

  {"nightly": {"spec": "30 2 * * *", "zone": "Europe/Berlin", "message": {"queue": "report"}}}

It prints what differs, + added, ~ changed, - removed, and makes it so. A second time it changes
nothing. With --prune it removes what the file does not have, and asks first, or needs --yes.`,
		Example: "  tarry schedule apply schedules.json --dry-run",
		Args:    exactly("FILE"),
	}, func(_ context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		want, err := readSchedules(args[0])
		if err != nil {
			return err
		}
		a := applying{p: p, c: c, want: want}
		ctx := cmd.Context() // no timeout: there may be many, and a person may think for long
		if prune {
			err = a.prune(ctx)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if err == nil {
				err = a.set(ctx, want[name])
			}
		}
		if err != nil || p.json {
			return err
		}
		done := "made"
		if p.dryRun {
			done = "to make"
		}
		if a.changes == 0 {
			return p.show(nil, "nothing to change")
		}
		return p.show(nil, "%s %s", counted(a.changes, "change"), done)
	})
	cmd.Flags().BoolVar(&prune, "prune", false, "remove the schedules that the file does not have")
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "only print what would change")
	p.yesFlag(cmd)
	return cmd
}

// readSchedules reads and checks a file of schedules.
func readSchedules(path string) (map[string]tarry.Schedule, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("name a JSON file of schedules", "%v", err)
	}
	var given map[string]jsontext.Value
	if err := json.Unmarshal(data, &given); err != nil {
		return nil, usagef(`as in {"nightly": {"spec": "30 2 * * *", "message": {"queue": "report"}}}`, "%s: %s", path, malformed(data, err))
	}
	all := make(map[string]tarry.Schedule, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		var (
			r wire.Reader
			s wire.Schedule
		)
		r.Reset(given[name])
		wire.SettingSchedule.Read(&r, &s)
		s.Name = name
		if err = r.Err(); err == nil && s.Revision != "" {
			err = errors.New("revision: leave it out; apply changes what it has compared with")
		}
		if err = cmp.Or(err, s.Validate()); err != nil {
			return nil, usagef("", "%s: %s: %s", path, name, strings.TrimPrefix(err.Error(), "tarry: "))
		}
		all[name] = s.Schedule
	}
	return all, nil
}

// applying is one run of apply.
type applying struct {
	p       *Program
	c       *tarry.Client
	want    map[string]tarry.Schedule
	changes int
}

// prune removes the schedules that are not wanted. It asks first.
func (a *applying) prune(ctx context.Context) error {
	revisions := make(map[string]string)
	for s, err := range a.c.AllSchedules(ctx) { // one that fires meanwhile may come twice
		if err != nil {
			return err
		}
		if _, wanted := a.want[s.Name]; !wanted {
			revisions[s.Name] = s.Revision
		}
	}
	names := slices.Sorted(maps.Keys(revisions))
	for _, name := range names {
		if err := a.show(name, "removed", nil); err != nil {
			return err
		}
	}
	if a.p.dryRun || len(names) == 0 {
		return nil
	}
	if err := a.p.confirm(ctx, "remove "+counted(len(names), "schedule")); err != nil {
		return err
	}
	for _, name := range names {
		if err := a.c.RemoveSchedule(ctx, name, revisions[name]); err != nil {
			return err
		}
	}
	return nil
}

// set stores a schedule, upon that with which it was compared.
func (a *applying) set(ctx context.Context, s tarry.Schedule) error {
	change, revision, fields := "added", "0", map[string][2]string(nil)
	have, err := a.c.Schedule(ctx, s.Name)
	switch {
	case err == nil:
		change, revision, fields = "changed", have.Revision, differing(have.Schedule, s)
		if len(fields) == 0 {
			change = "unchanged"
		}
	case !errors.Is(err, tarry.ErrNotFound):
		return err
	}
	if err := a.show(s.Name, change, fields); err != nil || change == "unchanged" || a.p.dryRun {
		return err
	}
	_, err = a.c.SetSchedule(ctx, s, revision)
	return err
}

// show prints a change, with the fields that change, from what and to what.
func (a *applying) show(name, change string, fields map[string][2]string) error {
	o := a.p.printer()
	if a.p.json {
		o.object(struct {
			Name   string               `json:"name"`
			Change string               `json:"change"`
			Fields map[string][2]string `json:"fields,omitempty"`
		}{name, change, fields})
	}
	if sign := map[string]string{"added": "+", "changed": "~", "removed": "-"}[change]; sign != "" {
		a.changes++
		o.say("%s %s", sign, name)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		o.say("    %s: %s → %s", field, cell(fields[field][0]), cell(fields[field][1]))
	}
	return o.flush()
}

// differing returns the fields in which two definitions differ, with both values.
func differing(from, to tarry.Schedule) map[string][2]string {
	a, b, all := definedFields(from), definedFields(to), make(map[string][2]string)
	for _, some := range []map[string]jsontext.Value{a, b} {
		for name := range some {
			if x, y := string(a[name]), string(b[name]); x != y {
				all[name] = [2]string{x, y}
			}
		}
	}
	return all
}

// definedFields are the fields of a definition, as the HTTP API writes them, but for the body.
func definedFields(s tarry.Schedule) (all map[string]jsontext.Value) {
	s.Zone = cmp.Or(s.Zone, "UTC")
	_ = json.Unmarshal(scheduleJSON(&wire.Schedule{Info: tarry.ScheduleInfo{Schedule: s}}, wire.NoBodies)(nil), &all)
	_ = json.Unmarshal(all["message"], &all)
	delete(all, "message")
	all["body"] = s.Draft.Body
	return all
}
