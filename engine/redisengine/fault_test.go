package redisengine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// longWait is how long tests wait for what must come, on however busy a machine.
const longWait = 2 * time.Minute

// openClient opens a client, which is closed with the test.
func openClient(t *testing.T, rawURL string, more ...string) *tarry.Client {
	t.Helper()
	c := tarry.New(openStore(t, rawURL, more...), nil)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// fact is one number of a server's INFO.
func fact(t *testing.T, s *redistest.Server, section, name string) int {
	t.Helper()
	m := s.Do("INFO", section)
	text, err := m.ToString()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("INFO %s does not tell %s", section, name)
	return 0
}

// catchUp waits until replicas have all that their master has now.
func catchUp(t *testing.T, master *redistest.Server, replicas ...*redistest.Server) {
	t.Helper()
	at := fact(t, master, "replication", "master_repl_offset")
	for _, r := range replicas {
		outage.Succeeds(t, longWait, func() error {
			if is := fact(t, r, "replication", "slave_repl_offset"); is < at {
				return fmt.Errorf("%s is at %d, its master at %d", r.Addr(), is, at)
			}
			return nil
		})
	}
}
