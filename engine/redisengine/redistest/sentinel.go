package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// MasterName is the sentinels' name of the master.
const MasterName = "tarry"

const sentinelCount = 3

// How long a node is silent until sentinels count it as dead, in milliseconds. On a busy
// machine a healthy node is silent for seconds, so only NewMaster makes sentinels quick.
const (
	quick = "1000"
	slow  = "120000"
)

// Sentinels are a master with two replicas, and three sentinels that watch them.
type Sentinels struct {
	Nodes     []*Server // the first master, then the replicas
	Sentinels []*Server // two of which elect a new master

	t testing.TB
}

// StartSentinel starts a master, replicas and sentinels, and waits until all have found one
// another. Options apply to the Nodes. A dead master is replaced when NewMaster waits for
// that.
func StartSentinel(t testing.TB, opts ...Option) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t}
	for i := range 3 {
		s.Nodes = append(s.Nodes, start(t, i, opts))
	}
	master := s.Nodes[0]
	for _, n := range s.Nodes[1:] {
		n.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(master.Port(0)))
		servertest.Await(t, "a replica", n.replicationIll)
	}
	for _, n := range s.Nodes {
		n.Do("CONFIG", "REWRITE")
	}
	for range sentinelCount {
		n := run(t, servertest.Command{Arguments: []string{"--sentinel"}}, fmt.Sprintf(""+
			"sentinel monitor %[1]s 127.0.0.1 %[2]d 2\n"+
			"sentinel down-after-milliseconds %[1]s %[3]s\n"+
			"sentinel failover-timeout %[1]s 5000\n", MasterName, master.Port(0), slow))
		// A quick sentinel must ping more often than once a second, which is the default. A
		// much shorter period stops failovers: a replica must have answered within five
		// periods, and it is asked only once a second. The other periods are shortened to
		// speed up discovery.
		n.Do("SENTINEL", "DEBUG", "PING-PERIOD", "500", "INFO-PERIOD", "1000", "PUBLISH-PERIOD", "200")
		s.Sentinels = append(s.Sentinels, n)
	}
	s.Await()
	return s
}

// Await waits until the running sentinels know all nodes, and the running nodes follow the
// master.
func (s *Sentinels) Await() {
	s.t.Helper()
	servertest.Await(s.t, "sentinels and replicas to be well", s.ill)
}

// URL names the sentinels and the master.
func (s *Sentinels) URL() string { return urlOf("redis+sentinel", "/"+MasterName, s.Sentinels) }

// Master returns the node that a sentinel names as the master. For some seconds after the
// master's death that is still the dead node.
func (s *Sentinels) Master() *Server {
	s.t.Helper()
	for _, n := range s.Sentinels {
		if !n.Running() {
			continue
		}
		m, err := s.named(n)
		if err != nil {
			s.t.Fatal(err)
		}
		return m
	}
	s.t.Fatal("no sentinel runs")
	return nil
}

// NewMaster waits until the running sentinels agree on a live master other than old, which
// does not run.
func (s *Sentinels) NewMaster(old *Server) *Server {
	s.t.Helper()
	s.suspectAfter(quick)
	defer s.suspectAfter(slow)
	var master *Server
	servertest.Await(s.t, "a new master", func() error {
		master = nil
		for _, n := range s.Sentinels {
			if !n.Running() {
				continue
			}
			m, err := s.named(n)
			if err != nil {
				return err
			}
			if m == old || master != nil && m != master {
				return fmt.Errorf("%s still names %s", n.Addr(), m.Addr())
			}
			master = m
		}
		if master == nil {
			return errors.New("no sentinel runs")
		}
		info, err := master.info("INFO", "replication")
		if err == nil && info["role"] != "master" {
			err = fmt.Errorf("%s is a %s", master.Addr(), info["role"])
		}
		return err
	})
	return master
}

// suspectAfter sets how long a node is silent until the running sentinels count it as dead.
func (s *Sentinels) suspectAfter(ms string) {
	s.t.Helper()
	for _, n := range s.Sentinels {
		if n.Running() {
			n.Do("SENTINEL", "SET", MasterName, "down-after-milliseconds", ms)
		}
	}
}

// named returns the master that one sentinel names.
func (s *Sentinels) named(sentinel *Server) (*Server, error) {
	m, err := sentinel.try("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
	if err != nil {
		return nil, err
	}
	addr, err := m.AsStrSlice()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.Nodes, func(n *Server) bool {
		return slices.Equal(addr, []string{"127.0.0.1", strconv.Itoa(n.Port(0))})
	})
	if i < 0 {
		return nil, fmt.Errorf("sentinel %s names %q, which is none of the nodes", sentinel.Addr(), addr)
	}
	return s.Nodes[i], nil
}

// ill returns what is wrong, or nil.
func (s *Sentinels) ill() error {
	for _, n := range s.Sentinels {
		if !n.Running() {
			continue
		}
		if err := s.sentinelIll(n); err != nil {
			return fmt.Errorf("sentinel %s: %w", n.Addr(), err)
		}
	}
	master := s.Master()
	for _, n := range s.Nodes {
		if n == master || !n.Running() {
			continue
		}
		info, err := n.info("INFO", "replication")
		if err != nil {
			return err
		}
		if info["master_port"] != strconv.Itoa(master.Port(0)) || info["master_link_status"] != "up" {
			return fmt.Errorf("%s does not follow the master", n.Addr())
		}
	}
	return nil
}

func (s *Sentinels) sentinelIll(n *Server) error {
	m, err := n.try("SENTINEL", "MASTER", MasterName)
	if err != nil {
		return err
	}
	known, err := m.AsStrMap()
	if err != nil {
		return err
	}
	if known["num-slaves"] != "2" || known["num-other-sentinels"] != "2" || known["flags"] != "master" {
		return fmt.Errorf("it knows %s replicas, %s other sentinels and a %s",
			known["num-slaves"], known["num-other-sentinels"], known["flags"])
	}
	return nil
}
