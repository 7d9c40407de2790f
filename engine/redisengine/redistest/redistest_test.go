package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
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

func first(m rueidis.RedisMessage) (string, error) {
	parts, err := m.ToArray()
	if err != nil {
		return "", err
	}
	return parts[0].ToString()
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

func TestServerKeepsItsDataOverKillAndRestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Args("--appendonly", "yes"))
	c := s.Client()
	s.Do("SET", "k", "v")
	addr := s.Addr()
	s.Kill()
	if s.Running() {
		t.Fatal("it runs")
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Fatal("something listens")
	}
	s.Restart()
	if s.Addr() != addr {
		t.Fatalf("it has moved from %s to %s", addr, s.Addr())
	}
	is(t, s.Do("GET", "k"), "v")
	s.Restart()
	is(t, s.Do("GET", "k"), "v")
	if m := s.Do("GET", "absent"); !m.IsNil() {
		t.Fatalf("found %v", m)
	}
	if v, err := c.Do(t.Context(), c.B().Get().Key("k").Build()).ToString(); err != nil || v != "v" {
		t.Fatalf("a client from before reads %q, %v", v, err)
	}
}

func TestServerForgetsWithoutAppendonly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("SET", "k", "v")
	s.Restart()
	if m := s.Do("GET", "k"); !m.IsNil() {
		t.Fatalf("found %v", m)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := s.Client()
	s.Do("SET", "k", "v")
	s.Pause()
	if s.Running() {
		t.Fatal("it runs")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Do(ctx, c.B().Get().Key("k").Build()).Error(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the error is %v", err)
	}
	s.Resume()
	is(t, s.Do("GET", "k"), "v")
	s.Pause() // a paused server can be killed too
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

// recorder is a test that may be skipped or fail without harm.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Skipf(format string, args ...any) { r.stop("skip: "+format, args) }

func (r *recorder) Fatalf(format string, args ...any) { r.stop("fail: "+format, args) }

func (r *recorder) stop(format string, args []any) {
	r.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestMissingServer(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("TARRY_TEST_ROOT", "")
	for require, want := range map[string]string{"": "skip: ", "require": "fail: "} {
		t.Setenv("TARRY_TEST_SERVERS", require)
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			redistest.Start(r)
		}()
		<-done
		if !strings.HasPrefix(r.said, want) || !strings.Contains(r.said, "redis-server") {
			t.Errorf("TARRY_TEST_SERVERS=%q: it says %q", require, r.said)
		}
	}
}

func TestShared(t *testing.T) {
	t.Setenv("TARRY_TEST_REDIS_URL", "redis://example.org:1")
	if url := redistest.Shared(t); url != "redis://example.org:1" {
		t.Fatalf("the URL is %s", url)
	}
	t.Setenv("TARRY_TEST_REDIS_URL", "")
	option, err := rueidis.ParseURL(redistest.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
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

// TestMoveSlotUnderLoad moves more keys than go at once, and one that changes.
func TestMoveSlotUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	m := c.Nodes[0].Do("CLUSTER", "KEYSLOT", "{q}")
	slot, err := m.AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	from := c.Owner(int(slot))
	from.Do("EVAL", `for i = 1, 1000 do redis.call("SET", KEYS[1] .. i, i) end`, "1", "{q}")
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{from.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	stop, counted := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { counted <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := client.Do(t.Context(), client.B().Incr().Key("{q}").Build()).Error(); err != nil {
				t.Errorf("after %d: %v", n, err)
				return
			}
			n++
		}
	}()
	for _, to := range c.Masters() {
		c.MoveSlot(int(slot), to)
	}
	close(stop)
	n := <-counted
	t.Logf("counted to %d", n)
	owner := c.Owner(int(slot))
	is(t, owner.Do("GET", "{q}"), strconv.Itoa(n))
	m = owner.Do("CLUSTER", "COUNTKEYSINSLOT", strconv.FormatInt(slot, 10))
	if n, err := m.AsInt64(); err != nil || n != 1001 {
		t.Fatalf("%d keys, %v", n, err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, redistest.Args("--appendonly", "yes"))
	if want := "redis+sentinel://" + s.Sentinels[0].Addr() + "/tarry?addr=" + s.Sentinels[1].Addr() + "&addr=" + s.Sentinels[2].Addr(); s.URL() != want {
		t.Fatalf("the URL is %s", s.URL())
	}
	master := s.Master()
	if master != s.Nodes[0] {
		t.Fatal("another is the master")
	}
	master.Do("SET", "k", "v")
	is(t, master.Do("GET", "k"), "v")
	master.Do("WAIT", "2", "0")
	began := time.Now()
	master.Kill()
	next := s.NewMaster(master)
	t.Logf("a new master after %v", time.Since(began))
	is(t, next.Do("GET", "k"), "v")
	if s.Master() == master {
		t.Fatal("a sentinel names the old master")
	}
	master.Restart()
	s.Await()
	t.Logf("the old master follows after %v", time.Since(began))
	next.Restart() // and is still a master, as it has written down
	is(t, next.Do("GET", "k"), "v")
	if role, err := first(next.Do("ROLE")); err != nil || role != "master" {
		t.Fatalf("it is a %s, %v", role, err)
	}
}
