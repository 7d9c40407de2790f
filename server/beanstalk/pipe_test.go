package beanstalk

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/nettest"
)

// bubble calls test in a bubble of synctest with a server and a function that connects to it.
func bubble(t *testing.T, test func(t *testing.T, f *front, dial func() *client)) {
	synctest.Test(t, func(t *testing.T) {
		ln := nettest.Listen()
		test(t, serveOn(t, ln, nil), func() *client {
			nc, err := ln.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = nc.Close() })
			return &client{t, nc, bufio.NewReader(nc)}
		})
	})
}

// took returns how long f took.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// TestNothingFollowsHalfAnAnswer: a client that reads again once the time to write is over finds its
// job cut, and the job is given back uncounted.
func TestNothingFollowsHalfAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, f *front, dial func() *client) {
		if _, err := f.c.Push(t.Context(), "default", make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		deaf := dial()
		deaf.send("reserve\r\n")
		time.Sleep(f.limits.write * 3 / 2)
		got, err := io.ReadAll(deaf.Conn)
		if err != nil || bytes.HasSuffix(got, []byte("\r\n")) {
			t.Errorf("%d bytes, which end in %q, %v", len(got), got[max(0, len(got)-5):], err)
		}
		for m, err := range f.c.List(t.Context(), "default", engine.Ready) {
			if err != nil || m.Attempt != 0 {
				t.Errorf("attempt %d, %v", m.Attempt, err)
			}
		}
	})
}

func TestTimesOfAWait(t *testing.T) {
	bubble(t, func(t *testing.T, f *front, dial func() *client) {
		c := dial()
		for _, s := range []struct {
			command, want string
			took          time.Duration
		}{
			{"reserve-with-timeout 0", "TIMED_OUT", 0},
			{"reserve-with-timeout 3", "TIMED_OUT", 3 * time.Second},
			{"reserve-with-timeout 1500ms", "TIMED_OUT", 1500 * time.Millisecond},
			{"reserve-with-timeout 10000", "TIMED_OUT", 10_000 * time.Second}, // waits for more than an hour in pieces
		} {
			if d := took(func() { c.wants(s.command, s.want) }); d < s.took || d > s.took+10*time.Millisecond {
				t.Errorf("%s took %s", s.command, d)
			}
		}
		c.send("reserve\r\n")
		time.Sleep(10 * time.Hour)
		id := dial().put(0, 0, 60, 1)
		if got := c.answer(); got != "RESERVED "+id+" 1" {
			t.Error(got)
		}
	})
}

func TestTimeOfAJob(t *testing.T) {
	bubble(t, func(t *testing.T, f *front, dial func() *client) {
		c, other := dial(), dial()
		id := c.put(0, 0, 3, 1)
		c.wants("reserve", "RESERVED "+id)
		if d := took(func() { c.wants("reserve-with-timeout 9", "DEADLINE_SOON") }); d < 2*time.Second || d > 2010*time.Millisecond {
			t.Errorf("the margin came after %s", d)
		}
		c.wants("touch "+id, "TOUCHED")
		time.Sleep(2900 * time.Millisecond)
		other.wants("delete "+id, "NOT_FOUND")
		other.send("reserve\r\n")
		time.Sleep(110 * time.Millisecond) // its time is over
		if got := other.answer(); got != "RESERVED "+id+" 1" {
			t.Error(got)
		}
		if n := f.counts.timeouts.Load(); n != 1 { // though the first has not asked anything since
			t.Errorf("%d timeouts", n)
		}
		for _, command := range []string{"touch %", "release % 0 0", "bury % 0", "delete %"} {
			c.wants(strings.Replace(command, "%", id, 1), "NOT_FOUND")
		}
		time.Sleep(3001 * time.Millisecond)
		c.wants("delete "+id, "DELETED") // it is ready: anybody may
		id = c.put(0, 0, 1, 1)
		c.wants("reserve", "RESERVED "+id)
		time.Sleep(time.Second)
		other.wants("reserve", "RESERVED "+id)
		other.wants("release "+id+" 0 0", "RELEASED")
		c.wants("delete "+id, "DELETED")
	})
}

// TestTimeOfASilentConnection: jobs time out though their connection asks nothing, also when the
// one that would have been the first is gone.
func TestTimeOfASilentConnection(t *testing.T) {
	bubble(t, func(t *testing.T, f *front, dial func() *client) {
		c := dial()
		first, second := c.put(0, 0, 3, 1), c.put(1, 0, 5, 1)
		c.put(2, 0, 9, 1)
		for range 3 {
			c.wants("reserve-with-timeout 0", "RESERVED")
		}
		c.wants("delete "+first, "DELETED")
		for _, step := range []struct {
			pass     time.Duration
			timeouts uint64
		}{{4 * time.Second, 0}, {1010 * time.Millisecond, 1}, {4 * time.Second, 2}} {
			time.Sleep(step.pass)
			if n := f.counts.timeouts.Load(); n != step.timeouts {
				t.Errorf("%d timeouts, want %d", n, step.timeouts)
			}
		}
		c.wants("touch "+second, "NOT_FOUND")
	})
}

// TestTTRBeyondThatOfALease: a job is held for 24 h at most.
func TestTTRBeyondThatOfALease(t *testing.T) {
	bubble(t, func(t *testing.T, _ *front, dial func() *client) {
		c, other := dial(), dial()
		id := c.put(0, 0, 200_000, 1)
		c.wants("reserve", "RESERVED "+id)
		time.Sleep(engine.MaxTTR - 2*time.Second)
		other.wants("reserve-with-timeout 0", "TIMED_OUT")
		if d := took(func() { c.wants("reserve", "DEADLINE_SOON") }); d < time.Second || d > 1010*time.Millisecond {
			t.Errorf("the margin came after %s", d)
		}
		c.wants("touch "+id, "TOUCHED")
		c.send("stats-job " + id + "\r\n")
		stats := make([]string, 1+1+14+1) // OK, ---, the keys, an empty line
		for i := range stats {
			stats[i] = c.line()
		}
		if !slices.Contains(stats, "ttr: 200000\n") {
			t.Errorf("%q", stats)
		}
		time.Sleep(engine.MaxTTR - 10*time.Millisecond)
		other.wants("reserve-with-timeout 0", "TIMED_OUT")
		time.Sleep(10 * time.Millisecond)
		other.wants("reserve-with-timeout 0", "RESERVED "+id)
		c.wants("touch "+id, "NOT_FOUND")
		other.wants("release "+id+" 0 0", "RELEASED")
	})
}
