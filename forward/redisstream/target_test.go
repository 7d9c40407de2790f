package redisstream_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/redisstream"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/internal/targettest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	message = targettest.Message
	send    = targettest.Send
)

// entries are the fields and values of a stream's entries.
func entries(t *testing.T, s *redistest.Server, stream string) [][]string {
	t.Helper()
	c := s.Client()
	all, err := c.Do(t.Context(), c.B().Arbitrary("XRANGE").Keys(stream).Args("-", "+").Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, e := range all {
		pair, err := e.ToArray()
		if err != nil {
			t.Fatal(err)
		}
		fields, err := pair[1].AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fields)
	}
	return out
}

func TestAnEntryHasTheBodyAndTheMetadata(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := &forward.Options{Headers: []forward.Header{{Name: "Team", Value: "shop"}}}
	target := targettest.Open(t, s.URL()+"?stream=due", o)
	m := message(7, "\x00\xff binary", forward.Header{Name: "Trace", Value: "ä"}, forward.Header{Name: "Body", Value: "feigned"}, forward.Header{Name: "content-type", Value: "feigned"})
	send(t, target, m)
	want := []string{"body", "\x00\xff binary", "content-type", "text/plain",
		"Tarry-Id", "7", "Tarry-Queue", "orders", "Tarry-Key", "order-7", "Tarry-Due", "2026-05-04T03:02:01.020Z", "Tarry-Attempt", "2",
		"Trace", "ä", "Team", "shop"}
	if got := entries(t, s, "due"); len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	byQueue := targettest.Open(t, s.URL(), nil)
	m.ContentType = ""
	send(t, byQueue, m)
	if got := entries(t, s, "orders"); len(got) != 1 || got[0][2] != "Tarry-Id" {
		t.Errorf("in the queue's own stream stands %q", got)
	}
}

func TestManySendsShareAConnectionAndMaxlenBoundsTheStream(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	target := targettest.Open(t, s.URL()+"?stream=due&maxlen=100", nil)
	targettest.SendMany(t, target, 64, func(id uint64) *tarry.Message[[]byte] { return message(id, "x") })
	if n := len(entries(t, s, "due")); n < 100 || n > 300 {
		t.Errorf("%d entries stand in a stream of roughly 100", n)
	}
	info := s.Do("CLIENT", "LIST")
	list, err := info.ToString()
	if err != nil {
		t.Fatal(err)
	}
	if n := countName(list); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func countName(list string) (n int) {
	for i := range len(list) {
		if len(list)-i > 10 && list[i:i+10] == "name=tarry" {
			n++
		}
	}
	return n
}

func TestAServerThatIsDownAtFirstAndLater(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Args("--appendonly", "yes", "--appendfsync", "always"))
	target := targettest.Open(t, s.URL()+"?stream=due", nil)
	s.Kill()
	targettest.Retried(t, target.Send(t.Context(), message(1, "one")), s.Addr(), "check that Redis runs")
	s.Restart()
	targettest.Recovers(t, target, message(1, "one"))
	s.Kill()
	targettest.Retried(t, target.Send(t.Context(), message(2, "two")))
	s.Restart()
	targettest.Recovers(t, target, message(2, "two"))
	got := entries(t, s, "due")
	if len(got) < 2 || got[0][1] != "one" || got[len(got)-1][1] != "two" {
		t.Errorf("there are %q", got)
	}
}

func TestASendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	target := targettest.Open(t, s.URL()+"?stream=due", nil)
	send(t, target, message(1, "one"))
	short := targettest.Open(t, s.URL()+"?stream=due", &forward.Options{Timeout: 200 * time.Millisecond})
	targettest.Recovers(t, short, message(1, "one"))
	s.Pause()
	defer s.Resume()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	err := target.Send(ctx, message(2, "two"))
	targettest.Retried(t, err, "canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	targettest.Retried(t, short.Send(t.Context(), message(3, "three")))
}

func TestWhatIsRetriedAndWhatIsBuried(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	target := targettest.Open(t, s.URL()+"?stream=due", nil)
	send(t, target, message(1, "one"))

	t.Run("a key that is no stream", func(t *testing.T) {
		s.Do("SET", "text", "x")
		other := targettest.Open(t, s.URL()+"?stream=text", nil)
		targettest.BuriedWith(t, other.Send(t.Context(), message(1, "one")), "WRONGTYPE", "choose another")
	})
	t.Run("a full server", func(t *testing.T) {
		s.Do("CONFIG", "SET", "maxmemory", "1")
		targettest.Retried(t, target.Send(t.Context(), message(2, "two")), "OOM", "maxmemory")
		s.Do("CONFIG", "SET", "maxmemory", "0")
		send(t, target, message(2, "two"))
	})
	t.Run("a replica", func(t *testing.T) {
		s.Do("REPLICAOF", "127.0.0.1", "1")
		targettest.Retried(t, target.Send(t.Context(), message(3, "three")), "READONLY", "master")
		s.Do("REPLICAOF", "NO", "ONE")
		send(t, target, message(3, "three"))
	})
	t.Run("a user without the right", func(t *testing.T) {
		s.Do("ACL", "SETUSER", "other", "on", ">geheim", "+hello", "+ping", "+client", "~other")
		denied := targettest.Open(t, "redis://other:geheim@"+s.Addr()+"?stream=due", nil)
		targettest.Retried(t, denied.Send(t.Context(), message(4, "four")), "NOPERM", "+xadd")
		wrong := targettest.Open(t, "redis://other:geheimer@"+s.Addr()+"?stream=due", nil)
		targettest.Retried(t, wrong.Send(t.Context(), message(4, "four")), "WRONGPASS", "check the user")
	})
	t.Run("a database that is not there", func(t *testing.T) {
		other := targettest.Open(t, s.URL()+"/99?stream=due", nil)
		targettest.Retried(t, other.Send(t.Context(), message(5, "five")), "no database 99")
	})
	if n := len(entries(t, s, "due")); n != 3 {
		t.Errorf("%d entries", n)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	_, unconfigured := redisstream.New(redisstream.Config{}, nil)
	targettest.RefusedURLs(t, "redis", map[string]string{
		"redis://:geheim@h?strem=due":                     "stream",
		"redis://:geheim@h?maxlen=-1":                     "maxlen",
		"redis://:geheim@h/x":                             "database",
		"redis://:geheim@h?stream=":                       "empty",
		"redis:///0":                                      "an example",
		"redis://:geheim@h?password_file=/etc/none/there": "password_file",
		"rediss://h?ca_file=/etc/none/there":              "ca_file",
	}, unconfigured)
	if _, err := redisstream.New(redisstream.Config{Client: rueidis.ClientOption{InitAddress: []string{"h"}}, MaxLen: -1}, nil); !errors.Is(err, tarry.ErrInvalid) {
		t.Errorf("with maxlen -1: %v", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	target := targettest.Open(t, s.URL(), nil)
	send(t, target, message(1, "one"))
	for range 2 {
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := target.Send(t.Context(), message(2, strconv.Itoa(2))); !errors.Is(err, tarry.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	_, cert, key := nettest.Certificate(t)
	s := redistest.Start(t)
	for name, file := range map[string]string{"tls-ca-cert-file": cert, "tls-cert-file": cert, "tls-key-file": key, "tls-auth-clients": "no"} {
		s.Do("CONFIG", "SET", name, file)
	}
	port := strconv.Itoa(nettest.FreePort(t))
	s.Do("CONFIG", "SET", "tls-port", port)
	send(t, targettest.Open(t, "rediss://127.0.0.1:"+port+"?ca_file="+cert, nil), message(1, "one"))
	targettest.Retried(t, targettest.Open(t, "rediss://127.0.0.1:"+port, nil).Send(t.Context(), message(1, "one")), "certificate")
}
