package redisstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/targettest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// works is a store with one intake.
type works struct {
	*targettest.Intakes
	t *testing.T
	c *tarry.Client
}

func begin(t *testing.T, c *tarry.Client, i intake.Intake) *works {
	t.Helper()
	return &works{targettest.Take(t, c, i), t, c}
}

// length is how many entries a stream has.
func length(t *testing.T, s *redistest.Server, stream string) int64 {
	t.Helper()
	answer := s.Do("XLEN", stream)
	n, err := answer.AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *works) unacked(s *redistest.Server, want int64) {
	w.t.Helper()
	for end := time.Now().Add(targettest.Patience); ; time.Sleep(5 * time.Millisecond) {
		answer := s.Do("XPENDING", "delayed", "tarry")
		pending, err := answer.ToArray()
		if err != nil {
			w.t.Fatal(err)
		}
		n, err := pending[0].AsInt64()
		if err == nil && n == want {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%d are pending, %v", n, err)
		}
	}
}

// What a stream has is pushed, with what its fields say, and acked; what cannot be is set aside.
func TestEntriesArePushedAndAcked(t *testing.T) {
	t.Parallel()
	s, c := redistest.Start(t), targettest.Store(t)
	s.Do("XADD", "delayed", "*", "body", "early", "key", "k", "delay", "1h", "Trace", "a", "Trace", "b", "content-type", "text/plain")
	w := begin(t, c, intake.Intake{Queue: "orders", Source: s.URL() + "?stream=delayed&declare=true&delete=true"})
	s.Do("XADD", "delayed", "*", "body", "at", "due", "2100-01-02T03:04:05Z")
	s.Do("XADD", "delayed", "*", "body", "no", "delay", "soon")
	s.Do("XADD", "delayed", "*", "body", "no", "delay", "1s", "due", "2100-01-02T03:04:05Z")
	s.Do("XADD", "delayed", "*", "body", strings.Repeat("x", tarry.DefaultMaxBody+1))
	s.Do("XADD", "delayed", "*", "body", "gone", "key", "g", "delay", "1h")
	s.Do("XADD", "delayed", "*", "body", "no", "cancel", "")
	s.Do("XADD", "delayed", "*", "body", "no", "due", "tomorrow")
	s.Do("XADD", "delayed", "*", "cancel", "g")
	st := w.Awaits("all are taken", func(st intake.Status) bool { return st.Taken == 9 && st.Unacked == 0 })
	if st.Pushed != 3 || st.Cancelled != 1 || st.Refused != 5 {
		t.Errorf("the status is %+v", st)
	}
	m, err := c.Get(t.Context(), tarry.ByKey("k").Of("orders"))
	if err != nil || string(m.Body) != "early" || m.ContentType != "text/plain" || fmt.Sprint(m.Headers) != "[{Trace a} {Trace b}]" || time.Until(m.Due) < 59*time.Minute {
		t.Errorf("%+v, %v", m, err)
	}
	w.unacked(s, 0)
	w.End()
	if n := length(t, s, "delayed"); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	answer := s.Do("XRANGE", "delayed.refused", "-", "+")
	refused, err := answer.AsXRange()
	if err != nil || len(refused) != 5 || refused[0].FieldValues["body"] != "no" || !strings.Contains(refused[0].FieldValues["refused"], "delay: it is no duration such as 30m") {
		t.Errorf("%.300v, %v", refused, err)
	}
	if !slices.ContainsFunc(refused, func(e rueidis.XRangeEntry) bool {
		return strings.HasPrefix(e.FieldValues["refused"], fmt.Sprintf("the body has %d bytes; at most", tarry.DefaultMaxBody+1))
	}) {
		t.Error("no reason says how large a body may be")
	}
	source, err := intake.Open(s.URL()+"?stream=delayed", intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, found, err := source.Connect(t.Context())
	if err == nil {
		conn.Close()
	}
	if found != `the stream "delayed" has 0 entries and the group "tarry"` {
		t.Errorf("%q, %v", found, err)
	}
}

// Entries that a consumer took and did not ack are taken over, its own at once, and are pushed once.
func TestEntriesThatComeAgainArePushedOnce(t *testing.T) {
	t.Parallel()
	s, c := redistest.Start(t), targettest.Store(t)
	i := intake.Intake{Queue: "orders", Source: s.URL() + "?stream=delayed&declare=true&consumer=own&idle=1h"}
	for n := range 600 {
		s.Do("XADD", "delayed", "*", "body", fmt.Sprint(n), "delay", "1h")
	}
	s.Do("XGROUP", "CREATE", "delayed", "tarry", "0")
	s.Do("XREADGROUP", "GROUP", "tarry", "own", "COUNT", "300", "STREAMS", "delayed", ">")
	s.Do("XREADGROUP", "GROUP", "tarry", "dead", "COUNT", "200", "STREAMS", "delayed", ">")
	w := begin(t, c, i)
	st := w.Awaits("its own are taken", func(st intake.Status) bool { return st.Taken == 400 && st.Unacked == 0 })
	if st.Pushed != 400 || st.Redelivered != 300 {
		t.Errorf("the status is %+v", st)
	}
	w.unacked(s, 200)
	w.End()
	i.Source = strings.Replace(i.Source, "idle=1h", "idle=1s", 1)
	w = begin(t, c, i)
	st = w.Awaits("the others are taken", func(st intake.Status) bool { return st.Taken == 200 && st.Unacked == 0 })
	if st.Pushed != 200 || st.Redelivered != 200 {
		t.Errorf("the status is %+v", st)
	}
	w.unacked(s, 0)
	w.End()
	s.Do("XGROUP", "SETID", "delayed", "tarry", "0") // all come again
	w = begin(t, c, i)
	st = w.Awaits("all are found", func(st intake.Status) bool { return st.Taken == 600 && st.Unacked == 0 })
	if st.Doubles != 600 || st.Pushed != 0 {
		t.Errorf("the status is %+v", st)
	}
	if q, err := c.Queue(t.Context(), "orders"); err != nil || q.Scheduled != 600 {
		t.Errorf("%+v, %v", q, err)
	}
}

// Redis is killed again and again: nothing is lost, and what comes again is pushed once.
func TestNothingIsLostWhenRedisIsKilled(t *testing.T) {
	t.Parallel()
	s, c := redistest.Start(t, redistest.Args("--appendonly", "yes", "--appendfsync", "always")), targettest.Store(t)
	w := begin(t, c, intake.Intake{Queue: "orders", Source: s.URL() + "?stream=delayed&declare=true", Options: intake.Options{Timeout: 2 * time.Second}})
	const rounds, each = 3, 400
	for round := range int64(rounds) {
		w.Awaits("it runs", func(st intake.Status) bool { return st.State == intake.Running })
		for n := range each {
			s.Do("XADD", "delayed", "*", "body", fmt.Sprint(round, n), "delay", "1h")
		}
		w.Awaits("some are pushed", func(st intake.Status) bool { return st.Pushed > round*each })
		s.Kill()
		w.Fails(intake.CodeUnreachable)
		s.Restart()
	}
	w.Awaits("all are pushed", func(st intake.Status) bool { return st.Pushed == rounds*each && st.Unacked == 0 })
	w.unacked(s, 0)
	if q, err := c.Queue(t.Context(), "orders"); err != nil || q.Scheduled != rounds*each {
		t.Errorf("%+v, %v", q, err)
	}
}

// A server that is away, the missing group, a wrong key, a user without rights: each is a state.
func TestTroubles(t *testing.T) {
	t.Parallel()
	s, c := redistest.Start(t, redistest.Args("--appendonly", "yes", "--appendfsync", "always")), targettest.Store(t)
	running := func(st intake.Status) bool { return st.State == intake.Running }
	w := begin(t, c, intake.Intake{Queue: "orders", Source: s.URL() + "?stream=delayed", Options: intake.Options{Timeout: 2 * time.Second}})
	w.Fails("no_group")
	s.Do("SET", "delayed", "text")
	w.Fails("mismatch")
	s.Do("DEL", "delayed")
	s.Do("XGROUP", "CREATE", "delayed", "tarry", "0", "MKSTREAM")
	w.Awaits("it runs", running)
	s.Kill()
	if st := w.Fails(intake.CodeUnreachable); !strings.Contains(st.Hint, s.Addr()) {
		t.Errorf("the hint is %q", st.Hint)
	}
	s.Restart()
	w.Awaits("it runs", running)
	s.Do("XADD", "delayed", "*", "body", "after")
	w.Awaits("it takes", func(st intake.Status) bool { return st.Pushed == 1 && st.Unacked == 0 })
	w.End()

	s.Do("ACL", "SETUSER", "other", "on", ">geheim", "+@all", "-xadd", "~*")
	w = begin(t, c, intake.Intake{Queue: "orders", Source: "redis://other:geheimer@" + s.Addr() + "?stream=delayed"})
	w.Fails(intake.CodeCredentials)
	w.End()
	s.Do("XADD", "delayed", "*", "body", "no", "delay", "soon")
	w = begin(t, c, intake.Intake{Queue: "orders", Source: "redis://other:geheim@" + s.Addr() + "?stream=delayed&idle=1s"})
	w.Fails("refused_stream")
	claimed(t, s, 3)  // by the intake itself, which has them already
	const many = 3300 // more than an intake holds
	for range many {
		s.Do("XADD", "delayed", "*", "body", "no", "delay", "soon")
	}
	w.Awaits("no more wait", func(st intake.Status) bool { return st.Refused >= 2000 })
	s.Do("ACL", "SETUSER", "other", "+xadd")
	w.Awaits("it runs", running)
	w.unacked(s, 0)
	if n := length(t, s, "delayed.refused"); n != 1+many {
		t.Errorf("%d are set aside", n)
	}
	w.End()
	s.Do("ACL", "SETUSER", "other", "-xreadgroup")
	w = begin(t, c, intake.Intake{Queue: "orders", Source: "redis://other:geheim@" + s.Addr() + "?stream=delayed"})
	w.Fails(intake.CodeForbidden)
}

// claimed waits until the first pending entry was handed out n times.
func claimed(t *testing.T, s *redistest.Server, n int64) {
	t.Helper()
	for end := time.Now().Add(targettest.Patience); ; time.Sleep(20 * time.Millisecond) {
		answer := s.Do("XPENDING", "delayed", "tarry", "-", "+", "1")
		times, err := answer.ToArray()
		if err != nil || len(times) != 1 {
			t.Fatalf("pending are %v, %v", times, err)
		}
		if times, err = times[0].ToArray(); err != nil {
			t.Fatal(err)
		}
		if did, err := times[3].AsInt64(); err != nil || did >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it is not claimed")
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for at, part := range map[string]string{
		"redis://:geheim@h":                    "stream is missing",
		"redis://:geheim@h?stream=a&group=":    "group or consumer is empty",
		"redis://:geheim@h?stream=a&consumer=": "group or consumer is empty",
		"redis://:geheim@h?stream=a&idle=1ms":  "idle is at least",
		"redis://:geheim@h?stream=a&strem=b":   `no option "strem"`,
		"redis://:geheim@h/x?stream=a":         "database",
		"rediss://h?stream=a&ca_file=/no/such": "ca_file",
	} {
		if _, err := intake.Open(at, intake.Options{}); err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", at, err)
		}
	}
}
