package redistest_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m)
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
