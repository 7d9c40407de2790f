package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// view is one node's view of the cluster, by node id.
type view map[string]member

// member is a node as CLUSTER NODES describes it.
type member struct {
	flags string
	role  string // the id of its master, or - for a master
	epoch int
	slots string // such as 0-5460 7000
}

func viewOf(n *Server) (view, error) {
	m, err := n.try("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	s, err := m.ToString()
	if err != nil {
		return nil, err
	}
	v := make(view)
	for line := range strings.Lines(s) {
		// id address flags master ping pong epoch link slot…
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, fmt.Errorf("a strange line of CLUSTER NODES: %q", line)
		}
		epoch, err := strconv.Atoi(f[6])
		if err != nil {
			return nil, err
		}
		slots, _, _ := strings.Cut(strings.Join(f[8:], " "), "[") // slots in migration follow
		v[f[0]] = member{flags: f[2], role: f[3], epoch: epoch, slots: strings.TrimSpace(slots)}
	}
	return v, nil
}

// well reports whether the node is known and not suspected to have failed.
func (m member) well() bool {
	return m.flags != "" && !m.flag("fail") && !m.flag("fail?") && !m.flag("handshake")
}

// failed reports whether the nodes agree that the node has failed.
func (m member) failed() bool { return m.flag("fail") }

func (m member) master() bool { return m.flag("master") }

func (m member) flag(name string) bool { return slices.Contains(strings.Split(m.flags, ","), name) }

func (m member) owns(slot int) bool {
	for r := range strings.FieldsSeq(m.slots) {
		first, last, found := strings.Cut(r, "-")
		if !found {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 == nil && err2 == nil && from <= slot && slot <= to {
			return true
		}
	}
	return false
}
