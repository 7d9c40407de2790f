package rabbitengine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// TestFaultBroker has a broker say that it has too little memory; then it is killed, and
// stopped, while two processes push and work: what was confirmed is handled, and all goes on
// by itself.
func TestFaultBroker(t *testing.T) {
	t.Parallel()
	s := rabbittest.Start(t, soon(), rabbittest.Settings(fmt.Sprint("max_message_size = ", maxMessage)))
	t.Run("too large", func(t *testing.T) { largest(t, s) })
	t.Run("policies", func(t *testing.T) { policies(t, s) })
	t.Run("figures", func(t *testing.T) { measures(t, s) })
	t.Run("alarm", func(t *testing.T) { alarmed(t, s) })
	t.Run("killed", func(t *testing.T) { killed(t, s) })
}

func alarmed(t *testing.T, s *rabbittest.Server) {
	c, l := client(t, s.Vhost()), book(t)
	l.Push(c, "leased meanwhile", 10*unit)
	l.Work(c, tarry.WorkerConfig{})
	s.Alarm(true)
	defer s.Alarm(false)
	for { // the broker says so to who has published
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := c.Push(ctx, "other", nil)
		cancel()
		if errors.Is(err, tarry.ErrLimit) && strings.Contains(err.Error(), "memory") {
			break
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("while there is an alarm, it says %v", err)
		}
	}
	if n := enginetest.FigureOf(t, c.Engine(), "rabbit_blocked", ""); n != 1 {
		t.Errorf("the alarm is told as %v", n)
	}
	l.Rest(faultPatience) // what is there is handled
	s.Alarm(false)
	l.Push(c, "after", 2*unit)
	l.Rest(faultPatience)
}

func killed(t *testing.T, s *rabbittest.Server) {
	url := s.Vhost()
	c, l := client(t, url), book(t)
	stop := load(l, c, client(t, url))
	for _, end := range []func(){s.Kill, s.Stop} {
		l.More(100, faultPatience)
		s.SyncQueues()
		began := time.Now()
		end()
		failed(l, began)
		s.Restart()
		t.Logf("all went on after %v", l.More(1, faultPatience))
	}
	l.More(100, faultPatience)
	stop()
	t.Logf("the rest was handled after %v, the latest %v late", l.Rest(faultPatience), l.Late)
}
