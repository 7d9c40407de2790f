package redistest_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/internal/leaktest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	leaktest.Main(m,
		// A client of a cluster sleeps out its last delays, of five seconds at most,
		// after it is closed.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// is fails the test unless the answer is this string.
func is(t *testing.T, m rueidis.RedisMessage, want string) {
	t.Helper()
	if got, err := m.ToString(); err != nil || got != want {
		t.Fatalf("the answer is %q, %v, not %q", got, err, want)
	}
}

// ahead is how far a server's clock is ahead of ours.
func ahead(t *testing.T, s *redistest.Server) time.Duration {
	t.Helper()
	now := s.Do("TIME")
	parts, err := now.AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	sec, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(time.Unix(sec, 0)).Round(time.Minute)
}

func TestClock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Clock("+1h"))
	if d := ahead(t, s); d != time.Hour {
		t.Fatalf("it is %v ahead", d)
	}
	s.Do("SET", "k", "v", "EX", "60")
	s.SetClock("-1h")
	if d := ahead(t, s); d != -time.Hour {
		t.Fatalf("it is %v ahead", d)
	}
	s.SetClock("+2h")
	if m := s.Do("GET", "k"); !m.IsNil() {
		t.Fatalf("found %v", m)
	}
	s.Restart()
	if d := ahead(t, s); d != 2*time.Hour {
		t.Fatalf("it is %v ahead", d)
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, redistest.NodeOption(3, redistest.Clock("+1h")))
	url := "redis+cluster://" + c.Nodes[0].Addr() + "?addr=" + c.Nodes[1].Addr() + "&addr="
	if !strings.HasPrefix(c.URL(), url) || strings.Count(c.URL(), "addr=") != 5 {
		t.Fatalf("the URL is %s", c.URL())
	}
	for i, n := range c.Nodes {
		want := time.Duration(0)
		if i == 3 {
			want = time.Hour
		}
		if d := ahead(t, n); d != want {
			t.Errorf("node %d is %v ahead", i, d)
		}
	}
	if masters := c.Masters(); len(masters) != 3 || masters[0] != c.Nodes[0] {
		t.Fatalf("the masters are %v", masters)
	}
	for i, n := range c.Nodes[:3] {
		if c.Replica(n) != c.Nodes[i+3] {
			t.Errorf("node %d has another replica", i)
		}
	}
	m := c.Nodes[0].Do("CLUSTER", "KEYSLOT", "k")
	slot64, err := m.AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	slot := int(slot64)
	from := c.Owner(slot)
	from.Do("SET", "k", "v")
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	c.MoveSlot(slot, to)
	c.MoveSlot(slot, to)
	if c.Owner(slot) != to {
		t.Fatal("the slot is not where it was moved")
	}
	is(t, to.Do("GET", "k"), "v")

	// The first master's replica, an hour ahead, takes over.
	c.Nodes[0].Kill()
	if c.Owner(1) != c.Nodes[3] {
		t.Fatal("another has taken over")
	}
	c.Await()
	c.Nodes[0].Restart()
	c.Await()
	if c.Replica(c.Nodes[3]) != c.Nodes[0] {
		t.Fatal("the old master does not follow the new one")
	}
}
