package rabbittest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/porttest"
)

func TestMain(m *testing.M) {
	leaktest.Main(rabbittest.Main(m))
}

// dial opens a channel on a connection that the test's end closes.
func dial(t *testing.T, url string) (*amqp.Connection, *amqp.Channel) {
	t.Helper()
	c, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may be cut
	ch, err := c.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, ch
}

func declare(t *testing.T, ch *amqp.Channel, name, kind string) {
	t.Helper()
	if _, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": kind}); err != nil {
		t.Fatal(err)
	}
}

// publish puts a persistent message into a queue, and returns what tells of its confirm.
func publish(t *testing.T, ch *amqp.Channel, queue, body string) *amqp.DeferredConfirmation {
	t.Helper()
	d, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, false, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func confirmed(t *testing.T, d *amqp.DeferredConfirmation) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	if ok, err := d.WaitContext(ctx); err != nil || !ok {
		t.Fatalf("it is not confirmed: %v, %v", ok, err)
	}
}

// holds awaits that a queue gives this message, and puts it back.
func holds(t *testing.T, url, queue, body string) {
	t.Helper()
	servertest.Await(t, "the message", func() error {
		c, err := amqp.Dial(url)
		if err != nil {
			return err
		}
		defer c.Close() // which puts it back
		ch, err := c.Channel()
		if err != nil {
			return err
		}
		m, ok, err := ch.Get(queue, false)
		if err == nil && (!ok || string(m.Body) != body) {
			err = errors.New("the queue gives " + strconv.Quote(string(m.Body)))
		}
		return err
	})
}

func TestServer(t *testing.T) {
	t.Parallel()
	var dir string
	t.Run("one", func(t *testing.T) {
		s := rabbittest.Start(t)
		dir = s.Dir()
		if len(servertest.InFolder(t, dir)) == 0 {
			t.Errorf("none runs in %s", dir)
		}
		t.Run("alarm", func(t *testing.T) { holdsUpWhoPublishes(t, s) })
		t.Run("kill and restart", func(t *testing.T) { keepsItsData(t, s) })
	})
	if left := servertest.InFolder(t, dir); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left is %s", dir)
	}
}

func keepsItsData(t *testing.T, s *rabbittest.Server) {
	_, ch := dial(t, s.URL())
	for _, kind := range []string{"classic", "quorum"} {
		declare(t, ch, kind, kind)
		confirmed(t, publish(t, ch, kind, "1"))
	}
	s.SyncQueues()
	addr := s.Addr()
	for what, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		end()
		if s.Running() {
			t.Fatalf("%s: it runs", what)
		}
		if _, err := net.Dial("tcp", addr); err == nil {
			t.Fatalf("%s: something listens", what)
		}
		if left := servertest.InFolder(t, s.Dir()); len(left) > 0 {
			t.Fatalf("%s: left are %q", what, left)
		}
		s.Restart()
		if s.Addr() != addr {
			t.Fatalf("%s: it has moved from %s to %s", what, addr, s.Addr())
		}
		holds(t, s.URL(), "classic", "1")
		holds(t, s.URL(), "quorum", "1")
	}
}

func holdsUpWhoPublishes(t *testing.T, s *rabbittest.Server) {
	c, ch := dial(t, s.URL())
	blocked := c.NotifyBlocked(make(chan amqp.Blocking, 2))
	declare(t, ch, "q", "quorum")
	confirmed(t, publish(t, ch, "q", "1"))
	s.Alarm(true)
	var d *amqp.DeferredConfirmation
	for told := false; !told; {
		d = publish(t, ch, "q", "2")
		select {
		case b := <-blocked:
			if told = true; !b.Active || !strings.Contains(b.Reason, "memory") {
				t.Fatalf("it says %+v", b)
			}
		case <-d.Done(): // the connection does not know of the alarm yet
		}
	}
	if d.Acked() {
		t.Fatal("it is confirmed")
	}
	s.Alarm(false)
	confirmed(t, d)
	if b := <-blocked; b.Active {
		t.Fatal("it stays blocked")
	}

	// A paused broker answers once it goes on.
	s.Pause()
	if s.Running() {
		t.Fatal("it runs")
	}
	d = publish(t, ch, "q", "3")
	select {
	case <-d.Done():
		t.Fatal("a paused broker answers")
	case <-time.After(50 * time.Millisecond):
	}
	s.Resume()
	confirmed(t, d)

	if out := s.Ctl("--quiet", "list_queues", "name", "type"); !strings.Contains(out, "q\tquorum") {
		t.Fatalf("rabbitmqctl says %q", out)
	}
}

func TestClusterOutlivesANode(t *testing.T) {
	t.Parallel()
	c := rabbittest.StartCluster(t, 3)
	_, ch := dial(t, c.Nodes[0].URL())
	declare(t, ch, "q", "quorum")
	confirmed(t, publish(t, ch, "q", "1"))
	c.Nodes[0].Kill() // the queue's leader
	c.Await()
	holds(t, c.Nodes[1].URL(), "q", "1")
	holds(t, c.Nodes[2].URL(), "q", "1")
	c.Nodes[0].Restart()
	c.Await()
	c.Nodes[1].Kill()
	holds(t, c.Nodes[0].URL(), "q", "1")
}

func TestSettingsAndPlugins(t *testing.T) {
	port := strconv.Itoa(porttest.Free(t))
	s := rabbittest.Start(t, rabbittest.Settings("channel_max = 7", "management.tcp.ip = 127.0.0.1", "management.tcp.port = "+port),
		rabbittest.Plugins("rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_web_dispatch"))
	if c, _ := dial(t, s.URL()); c.Config.ChannelMax != 7 {
		t.Fatalf("it allows %d channels", c.Config.ChannelMax)
	}

	// What the variables name is used by Shared.
	t.Setenv("TARRY_TEST_RABBIT_URL", s.URL())
	t.Setenv("TARRY_TEST_RABBIT_MANAGEMENT_URL", "http://127.0.0.1:"+port)
	t.Run("shared", func(t *testing.T) {
		url := rabbittest.Shared(t)
		if !strings.HasPrefix(url, s.URL()+"/tarry-test-") {
			t.Errorf("the URL is %s", url)
		}
		_, ch := dial(t, url)
		declare(t, ch, "q", "quorum")
	})
	if n := s.Eval("length(rabbit_vhost:list_names())."); n != "1" {
		t.Fatalf("left are %s vhosts", n)
	}
}

func TestSharedServer(t *testing.T) {
	var first string
	t.Run("one", func(t *testing.T) {
		first = rabbittest.Shared(t)
		_, ch := dial(t, first)
		declare(t, ch, "q", "classic")
		confirmed(t, publish(t, ch, "q", "1"))
	})
	second := rabbittest.Shared(t)
	if first[:strings.LastIndexByte(first, '/')] != second[:strings.LastIndexByte(second, '/')] || first == second {
		t.Fatalf("the URLs are %s and %s", first, second)
	}
	if _, err := amqp.Dial(first); err == nil {
		t.Fatal("a vhost is left")
	}
	_, ch := dial(t, second)
	if q, err := ch.QueueDeclarePassive("q", true, false, false, false, nil); err == nil {
		t.Fatalf("the vhost is not empty: %+v", q)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	proxy := rabbittest.StartProxy(t, rabbittest.Shared(t))
	c, ch := dial(t, proxy.URL())
	declare(t, ch, "q", "quorum")
	gone := c.NotifyClose(make(chan *amqp.Error, 1))
	proxy.Cut()
	<-gone
	_, ch = dial(t, proxy.URL())
	declare(t, ch, "q", "quorum")
}
