package rabbittest_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/nettest"
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

func TestSettingsAndPlugins(t *testing.T) {
	var dir string
	t.Run("a broker", func(t *testing.T) { dir = hasSettingsAndPlugins(t) })
	if left := servertest.InFolder(t, dir); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left is %s", dir)
	}
}

func hasSettingsAndPlugins(t *testing.T) (dir string) {
	port := strconv.Itoa(nettest.FreePort(t))
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
		if !strings.HasPrefix(url, s.URL()+"/tarry_test_") {
			t.Errorf("the URL is %s", url)
		}
		_, ch := dial(t, url)
		declare(t, ch, "q", "quorum")
	})
	if n := s.Eval("length(rabbit_vhost:list_names())."); n != "1" {
		t.Fatalf("left are %s vhosts", n)
	}
	return s.Dir()
}

func TestSharedServer(t *testing.T) {
	var first string
	t.Run("one", func(t *testing.T) {
		first = rabbittest.Shared(t)
		_, ch := dial(t, first)
		declare(t, ch, "q", "classic")
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
