package cli

import (
	"errors"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/intake"
)

// intakeSettings is an intake as written in a --config file.
type intakeSettings struct {
	title
	Source     string        `json:"source,omitempty"`
	SourceFile string        `json:"source_file,omitempty"`
	Target     string        `json:"target,omitempty"`
	TargetFile string        `json:"target_file,omitempty"`
	OnConflict string        `json:"on_conflict,omitempty"`
	Remember   *jsonDuration `json:"remember,omitempty"`
	Timeout    *jsonDuration `json:"timeout,omitempty"`
}

// readIntakes reads and checks the intakes of a file, and fills in defaults.
func (c *configFile) readIntakes() (intake.Intakes, []intakeSettings, error) {
	given, err := entries[intakeSettings](c, &intakesSection)
	if err != nil {
		return nil, nil, err
	}
	intakes := make(intake.Intakes, len(given))
	for i := range given {
		if intakes[i], err = given[i].intake(); err != nil {
			return nil, nil, c.wrong(&intakesSection, i, given[i].of(), err)
		}
	}
	if intakes, err = intakes.Complete(); err == nil {
		err = intakes.Check()
	}
	if err != nil {
		return nil, nil, c.refused(err)
	}
	return intakes, given, nil
}

// intake returns the intake that the settings describe.
func (s *intakeSettings) intake() (i intake.Intake, err error) {
	i = intake.Intake{Name: s.Name, Queue: s.Queue, OnConflict: s.OnConflict}
	if s.Queue == "" {
		return i, errors.New(`it has no queue (as in "queue": "orders")`)
	}
	if i.Source, err = fileURL("source", s.Source, s.SourceFile); err != nil {
		return i, err
	}
	if s.Target != "" || s.TargetFile != "" {
		if i.Target, err = fileURL("target", s.Target, s.TargetFile); err != nil {
			return i, err
		}
	}
	if i.Remember = s.Remember.value(); s.Remember != nil && i.Remember == 0 {
		i.Remember = -1 // not at all
	}
	i.Options.Timeout, err = timeoutOf(s.Timeout)
	return i, err
}

// flows are the routes and intakes of a --config file.
type flows struct {
	routes  forward.Routes // also those that intakes imply
	intakes intake.Intakes
}

// readFlows reads and checks the routes and intakes of a file.
func (c *configFile) readFlows() (f flows, err error) {
	if f.routes, err = c.readRoutes(); err != nil {
		return f, err
	}
	if f.intakes, _, err = c.readIntakes(); err != nil {
		return f, err
	}
	f.routes = append(f.routes, f.intakes.Routes()...)
	if _, err = f.routes.Complete(); err != nil {
		return f, usagef("an intake with a target makes a route", "%s: routes and intakes: %v", c.path, err)
	}
	return f, nil
}

// String says how many there are.
func (f *flows) String() string {
	text := counted(len(f.routes), "route")
	if len(f.intakes) > 0 {
		text += ", " + counted(len(f.intakes), "intake")
	}
	return text
}
