package beanstalk_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/server/beanstalk"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// dial starts a server and connects to it.
func dial(t *testing.T) *client.Conn {
	t.Helper()
	c, err := tarry.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := beanstalk.New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- s.Serve(context.WithoutCancel(t.Context()), ln) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := client.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// job is what a test does with jobs; each of its calls has to succeed.
type job struct {
	t    *testing.T
	conn *client.Conn
	tube *client.Tube
	set  *client.TubeSet
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) put(body string, pri uint32, delay time.Duration) uint64 {
	j.t.Helper()
	id, err := j.tube.Put([]byte(body), pri, delay, time.Minute)
	j.must(err)
	return id
}

func (j *job) reserve(want uint64, body string) {
	j.t.Helper()
	id, got, err := j.set.Reserve(time.Minute)
	j.must(err)
	if id != want || string(got) != body {
		j.t.Fatalf("reserved %d %q, not %d %q", id, got, want, body)
	}
}

func (j *job) kick(want int) {
	j.t.Helper()
	n, err := j.tube.Kick(10)
	j.must(err)
	if n != want {
		j.t.Fatalf("kicked %d jobs, not %d", n, want)
	}
}

// has checks what stats say: "state: ready, pri: 5".
func (j *job) has(stats map[string]string, err error, want string) {
	j.t.Helper()
	j.must(err)
	for line := range strings.SplitSeq(want, ", ") {
		if k, v, _ := strings.Cut(line, ": "); stats[k] != v {
			j.t.Fatalf("%s is %q, not %q", k, stats[k], v)
		}
	}
}

// TestClient puts, delays, reserves, touches, releases, buries, kicks and pauses with the Go client of the
// makers of beanstalkd.
func TestClient(t *testing.T) {
	t.Parallel()
	conn := dial(t)
	j := &job{t: t, conn: conn, tube: client.NewTube(conn, "mail"), set: client.NewTubeSet(conn, "mail")}
	id := j.put("body", 9, 0)
	j.reserve(id, "body")
	j.must(conn.Touch(id))
	j.must(conn.Release(id, 5, 0))
	stats, err := conn.StatsJob(id)
	j.has(stats, err, "state: ready, pri: 5, reserves: 1, releases: 1")
	j.reserve(id, "body")
	j.must(conn.Bury(id, 7))
	if buried, body, err := j.tube.PeekBuried(); err != nil || buried != id || string(body) != "body" {
		t.Fatalf("buried is %d %q, %v", buried, body, err)
	}
	j.kick(1)
	later := j.put("later", 1, time.Hour)
	if delayed, _, err := j.tube.PeekDelayed(); err != nil || delayed != later {
		t.Fatalf("delayed is %d, %v", delayed, err)
	}
	stats, err = j.tube.Stats()
	j.has(stats, err, "current-jobs-ready: 1, current-jobs-delayed: 1, total-jobs: 2")
	j.kick(1)
	paused := time.Now()
	j.must(j.tube.Pause(time.Second))
	j.reserve(later, "later")
	if d := time.Since(paused); d < time.Second-2*time.Millisecond {
		t.Errorf("the pause lasted %v", d)
	}
	j.must(conn.Delete(later))
	j.reserve(id, "body")
	j.must(conn.Delete(id))
	if err := conn.Delete(id); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a second delete: %v", err)
	}
	if _, _, err := j.set.Reserve(0); !errors.Is(err, client.ErrTimeout) {
		t.Errorf("a reserve of nothing: %v", err)
	}
}

// TestErrors: the client knows each refusal.
func TestErrors(t *testing.T) {
	t.Parallel()
	conn := dial(t)
	j := &job{t: t, conn: conn, tube: &conn.Tube, set: &conn.TubeSet}
	if _, err := j.tube.Put(make([]byte, 1<<16), 0, 0, time.Minute); !errors.Is(err, client.ErrJobTooBig) {
		t.Errorf("a job of 64 KiB: %v", err)
	}
	id, err := j.tube.Put([]byte{}, 0, 0, time.Second)
	j.must(err)
	j.reserve(id, "")
	if _, _, err := j.set.Reserve(time.Minute); !errors.Is(err, client.ErrDeadline) {
		t.Errorf("a reserve in the margin: %v", err)
	}
	if _, err := conn.Peek(id + 1000); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a peek at nothing: %v", err)
	}
}
