package check

import (
	"errors"
	"fmt"
	"math"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// run checks a run by itself, and keeps it open if it is sound.
func (c *checker) run(m manifest.Run) error {
	dir := c.path(runsName)
	name := run.Name(dir, m.Number)
	r, err := run.Open(c.fs, dir, m.Number, &run.Config{ID: c.state.Store})
	if err != nil {
		c.sick = append(c.sick, m.Number)
		return c.wrong(err, name, mendRun)
	}
	c.rep.Runs++
	c.rep.Entries += int64(r.Len())
	if uint64(r.Bytes()) != m.Bytes || r.Len() != m.Entries {
		c.rep.add(c.path(manifest.Name), -1, mendCount, "run %d has %d bytes and %d entries; the manifest says %d and %d", m.Number, r.Bytes(), r.Len(), m.Bytes, m.Entries)
	}
	if m.Area > uint8(recent.Finished) {
		c.rep.add(c.path(manifest.Name), -1, "", "run %d holds what is of area %d, which there is not", m.Number, m.Area)
		return r.Close()
	}
	err = r.VerifyValues(c.pace, func(e run.Entry) (run.Key, error) { return c.keyOf(recent.Area(m.Area), e) })
	if err != nil {
		c.sick = append(c.sick, m.Number)
		return errors.Join(c.wrong(err, name, mendRun), r.Close())
	}
	c.runs, c.areas = append(c.runs, r), append(c.areas, m.Area)
	return nil
}

// keyOf takes an entry of a run apart.
func (c *checker) keyOf(area recent.Area, e run.Entry) (k run.Key, err error) {
	switch {
	case e.ID == 0 || e.ID == math.MaxUint64 || e.ID >= c.state.NextID:
		return k, fmt.Errorf("id %d was not given by then; the next one is %d", e.ID, c.state.NextID)
	case e.Queue == 0 || e.Queue >= c.state.NextQueue:
		return k, fmt.Errorf("there was no queue %d by then; the next one is %d", e.Queue, c.state.NextQueue)
	}
	key, value, err := record.ParseKeyed(e.Value)
	if err != nil {
		return k, err
	}
	if area == recent.Finished {
		if _, err := record.ParseTrace(value); err != nil {
			return k, err
		}
		if len(key) == 0 {
			return k, errors.New("no key is remembered")
		}
		return c.secret.Key(e.Queue, string(key)), nil
	}
	s, content, err := record.ParseValue(value)
	if err != nil {
		return k, err
	}
	if err := whole(content); err != nil {
		return k, err
	}
	at := s.Due
	if s.Dead {
		at = s.Died
	}
	switch {
	case s.Dead != (area == recent.Dead):
		return k, fmt.Errorf("a message of another area: whether it is dead is %v", s.Dead)
	case at != e.At:
		return k, fmt.Errorf("a message of time %d stands at time %d", at, e.At)
	case len(key) == 0:
		return k, nil
	}
	return c.secret.Key(e.Queue, string(key)), nil
}

// whole takes a content apart.
func whole(content []byte) error {
	c, err := record.ParseContent(content)
	if err == nil && c.Apart.File != 0 {
		err = fmt.Errorf("its body stands apart, in file %d, which this release does not keep", c.Apart.File)
	}
	return err
}

// marks marks who has died in the runs, and checks the files that say so.
func (c *checker) marks() error {
	dir := c.path(runsName)
	of := map[uint64][]*run.Run{}
	for _, r := range c.runs {
		m, _ := c.state.Run(r.Number())
		of[m.Marks] = append(of[m.Marks], r)
	}
	done := map[uint64]bool{0: true}
	for _, m := range c.state.Runs {
		if done[m.Marks] {
			continue
		}
		done[m.Marks] = true
		_, err := marks.Verify(c.fs, dir, m.Marks, c.state.Store, c.pace)
		if err == nil {
			err = marks.Restore(c.fs, dir, m.Marks, c.state.Store, of[m.Marks])
		}
		if err != nil {
			if err := c.wrong(err, marks.Name(dir, m.Marks), mendMarks); err != nil {
				return err
			}
			continue
		}
		for _, r := range of[m.Marks] {
			is, _ := c.state.Run(r.Number())
			if n := r.Count(0, r.Len()); n != int(is.Alive) {
				c.rep.add(c.path(manifest.Name), -1, mendCount, "%d are alive in run %d; the manifest says %d", n, r.Number(), is.Alive)
			}
		}
	}
	return nil
}
