package redistest

import (
	"fmt"
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
	return m.flags != "" && !strings.Contains(m.flags, "fail") && !strings.Contains(m.flags, "handshake")
}

func (m member) master() bool { return strings.Contains(m.flags, "master") }

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
