package servertest_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

func proxied(t *testing.T) (*servertest.Server, *servertest.Proxy) {
	t.Helper()
	s := servertest.Start(t, command())
	return s, servertest.StartProxy(t, "echo://"+s.Addr())
}

// heard waits until the server has heard so many lines.
func heard(t *testing.T, s *servertest.Server, n int) {
	t.Helper()
	servertest.Await(t, "the server to hear", func() error {
		b, _ := os.ReadFile(s.Dir() + "/lines")
		if strings.Count(string(b), "\n") < n {
			return errors.New("it has not")
		}
		return nil
	})
}

func TestProxyCuts(t *testing.T) {
	t.Parallel()
	_, p := proxied(t)
	c := dial(t, p.Addr())
	c.ask("one")
	p.Cut()
	c.broken()
	dial(t, p.Addr()).ask("two")
}

func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	_, p := proxied(t)
	c := dial(t, p.Addr())
	c.ask("one")
	p.Refuse(true)
	p.Refuse(true)
	if _, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Fatal("it accepts")
	}
	c.ask("two")
	p.Refuse(false)
	p.Refuse(false)
	dial(t, p.Addr()).ask("three")
}

func TestProxyDropsReplies(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	c := dial(t, p.Addr())
	c.ask("one")
	p.DropReplies(true)
	c.write("two")
	heard(t, s, 2)
	p.Cut()
	c.broken()
	dial(t, p.Addr()).ask("three")
}

func TestProxyLosesAnAnswer(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	c := dial(t, p.Addr())
	p.LoseAnswer(2)
	c.ask("one")
	c.write("two")
	c.broken()
	heard(t, s, 2)
	if !p.LoseAnswer(0) {
		t.Error("it says that none was lost")
	}
	dial(t, p.Addr()).ask("three")
}

func TestProxyHangs(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	c, cut := dial(t, p.Addr()), dial(t, p.Addr())
	c.ask("one")
	p.Hang(true)
	p.Hang(true)
	c.write("two")
	c.silent()
	dial(t, s.Addr()).ask("past it")
	p.Hang(false)
	p.Hang(false)
	c.reads("two")
	p.Hang(true)
	cut.write("three")
	p.Cut() // what hangs can be cut
	cut.broken()
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	c := dial(t, p.Addr())
	const delay = 50 * time.Millisecond
	p.Delay(delay)
	began := time.Now()
	c.ask("one")
	if d := time.Since(began); d < delay {
		t.Errorf("answered after %v", d)
	}
	p.Delay(time.Hour)
	c.write("two")
	heard(t, s, 2)
	p.Cut() // what is delayed can be cut
	c.broken()
}

func TestProxyEndsAConnectionWithItsServer(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	c := dial(t, p.Addr())
	c.ask("one")
	s.Kill()
	c.broken()
	dial(t, p.Addr()).broken()
}

func TestProxyDeliversLate(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	c := dial(t, p.Addr())
	p.Withhold("two")
	c.ask("one")
	c.write("two")
	c.broken()
	dial(t, p.Addr()).ask("three")
	heard(t, s, 2)
	if !p.Deliver() {
		t.Error("nothing was withheld")
	}
	heard(t, s, 3)
	if p.Deliver() {
		t.Error("it is delivered twice")
	}
	c = dial(t, p.Addr())
	p.Withhold("four") // and nobody ever delivers it
	c.write("four")
	c.broken()
}

func TestProxyLeadsElsewhere(t *testing.T) {
	t.Parallel()
	one, p := proxied(t)
	other := servertest.Start(t, command())
	c := dial(t, p.Addr())
	c.ask("one")
	p.Lead(other.Addr())
	c.ask("two")
	dial(t, p.Addr()).ask("three")
	heard(t, one, 2)
	heard(t, other, 1)
}
