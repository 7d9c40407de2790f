package redistest

import (
	"errors"
	"strconv"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// MoveSlot moves a slot and its keys to another master, as documented for CLUSTER SETSLOT,
// and waits until all running nodes know.
func (c *Cluster) MoveSlot(slot int, to *Server) {
	c.t.Helper()
	from := c.Owner(slot)
	if from == to {
		return
	}
	s := strconv.Itoa(slot)
	to.Do("CLUSTER", "SETSLOT", s, "IMPORTING", c.ids[from])
	from.Do("CLUSTER", "SETSLOT", s, "MIGRATING", c.ids[to])
	servertest.Await(c.t, "the keys of slot "+s+" to move", func() error {
		if err := c.moveKeys(s, from, to); err != nil {
			return err
		}
		// First the new owner, so that the slot always has one.
		if _, err := to.try("CLUSTER", "SETSLOT", s, "NODE", c.ids[to]); err != nil {
			return err
		}
		_, err := from.try("CLUSTER", "SETSLOT", s, "NODE", c.ids[to])
		return err
	})
	for _, m := range c.Masters() {
		m.Do("CLUSTER", "SETSLOT", s, "NODE", c.ids[to])
	}
	servertest.Await(c.t, "all to know the owner of slot "+s, func() error {
		if c.owner(slot) != to {
			return errors.New("they do not")
		}
		return c.ill()
	})
}

// moveKeys moves the keys of a slot until none is left.
func (c *Cluster) moveKeys(slot string, from, to *Server) error {
	c.t.Helper()
	for {
		m, err := from.try("CLUSTER", "GETKEYSINSLOT", slot, "100")
		if err != nil {
			return err
		}
		keys, err := m.AsStrSlice()
		if err != nil || len(keys) == 0 {
			return err
		}
		args := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.Port(0)), "", "0", "5000", "KEYS"}
		if _, err := from.try(append(args, keys...)...); err != nil {
			return err
		}
	}
}
