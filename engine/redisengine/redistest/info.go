package redistest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// info sends a command whose answer is lines of name:value.
func (s *Server) info(args ...string) (map[string]string, error) {
	m, err := s.try(args...)
	if err != nil {
		return nil, err
	}
	text, err := m.ToString()
	if err != nil {
		return nil, err
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// replicationIll returns what is wrong with a replica's link to its master, or nil.
func (s *Server) replicationIll() error {
	info, err := s.info("INFO", "replication")
	if err == nil && info["role"] == "slave" && info["master_link_status"] != "up" {
		err = fmt.Errorf("its link to the master is %q", info["master_link_status"])
	}
	return err
}

func text(t testing.TB, m rueidis.RedisMessage) string {
	t.Helper()
	s, err := m.ToString()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
