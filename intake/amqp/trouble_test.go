package amqp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rabbit "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/intake"
)

func TestEachTroubleIsNamed(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(source string) intake.Intake { return intake.Intake{Queue: "q", Source: source} }
	other := *u
	other.User = url.UserPassword("guest", "geheim")
	begin(t, "mem:", plain(with(t, other.String(), "queue", "q"))).fails(intake.CodeCredentials, "403")
	other = *u
	other.Path = "/nowhere"
	begin(t, "mem:", plain(with(t, other.String(), "queue", "q"))).fails("vhost", "")
	other.Host = "127.0.0.1:1"
	begin(t, "mem:", plain(with(t, other.String(), "queue", "q"))).fails(intake.CodeUnreachable, "refused")

	w := begin(t, "mem:", plain(with(t, at, "queue", "q")))
	w.fails("no_queue", "404")
	declare(t, ch, "q", "", "", "")
	w.Runs()
	if _, err := ch.QueueDelete("q", false, false, false); err != nil {
		t.Fatal(err)
	}
	w.fails("no_queue", "")

	declare(t, ch, "q", "", "", "")
	w = begin(t, "mem:", plain(with(t, at, "queue", "q", "exchange", "e")))
	w.fails("no_exchange", "404")
	declare(t, ch, "q", "e", "topic", "#")
	w.Runs()
	if err := ch.ExchangeDelete("e", false, false); err != nil {
		t.Fatal(err)
	}
	w.fails("no_exchange", "404")
	declare(t, ch, "q", "e", "fanout", "")
	w.Runs()
	begin(t, "mem:", plain(with(t, at, "queue", "q", "exchange", "e", "type", "topic", "declare", "true"))).fails("mismatch", "406")

	deep := any("x") // which the client does not read
	for range 40 {
		deep = []any{deep}
	}
	publish(t, ch, "", "q", rabbit.Publishing{Headers: rabbit.Table{"x": deep}})
	w.fails("frame", "invalid field")

	own := connected(t, at)
	if _, err := own.QueueDeclare("exclusive", false, false, true, false, nil); err != nil {
		t.Fatal(err)
	}
	begin(t, "mem:", plain(with(t, at, "queue", "exclusive"))).fails("locked", "405")
}

// awaits waits until a declaration succeeds.
func awaits(t testing.TB, at string, declare func(*rabbit.Channel) error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := declare(connected(t, at))
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// awaitQueue waits until messages can be got from a queue: a quorum queue is there before
// that.
func awaitQueue(t testing.TB, at, name string) {
	t.Helper()
	awaits(t, at, func(ch *rabbit.Channel) error {
		d, ok, err := ch.Get(name, false)
		if ok {
			err = d.Nack(false, true)
		}
		return err
	})
}

// awaitConsumer waits until an intake takes from a queue.
func awaitConsumer(t testing.TB, at, name string) {
	t.Helper()
	awaits(t, at, func(ch *rabbit.Channel) error {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err == nil && q.Consumers == 0 {
			err = errors.New(name + " has no consumer")
		}
		return err
	})
}

func awaitExchange(t testing.TB, at, name string) {
	t.Helper()
	awaits(t, at, func(ch *rabbit.Channel) error {
		return ch.ExchangeDeclarePassive(name, "topic", true, false, false, false, nil)
	})
}

// What is declared comes back when it is deleted.
func TestWhatIsDeletedIsDeclaredAgain(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	declare(t, ch, "orders", "work", "fanout", "")
	w := begin(t, "mem:", delayed(t, at))
	w.Runs()
	if err := ch.ExchangeDelete("delayed", false, false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDelete("tarry.delayed", false, false, false); err != nil {
		t.Fatal(err)
	}
	awaitConsumer(t, at, "tarry.delayed")
	awaitExchange(t, at, "delayed")
	w.Runs()
	publish(t, ch, "delayed", "k", rabbit.Publishing{Body: []byte("x")})
	take(t, ch, "orders")
}

func TestRights(t *testing.T) {
	t.Parallel()
	s := rabbittest.Start(t)
	s.Eval(`rabbit_auth_backend_internal:add_user(<<"poor">>, <<"geheim">>, <<"test">>).`)
	allow := func(configure, write, read string) {
		s.Eval(fmt.Sprintf(`rabbit_auth_backend_internal:set_permissions(<<"poor">>, <<"/">>, <<%q>>, <<%q>>, <<%q>>, <<"test">>).`, configure, write, read))
	}
	allow("", "", "")
	ch := connected(t, s.URL())
	declare(t, ch, "q", "", "", "")
	at := strings.Replace(s.URL(), "guest:guest", "poor:geheim", 1)
	w := begin(t, "mem:", intake.Intake{Queue: "q", Source: with(t, at, "queue", "q", "prefetch", "5")})
	w.fails(intake.CodeForbidden, "403")
	allow("", "", "^q$")
	w.Runs()
	// It may not make the queue for what is refused.
	publish(t, ch, "", "q", rabbit.Publishing{Body: []byte("x"), Headers: rabbit.Table{"x-delay": "soon"}})
	w.fails("refused_queue", "403")
	for range 20 {
		publish(t, ch, "", "q", rabbit.Publishing{Body: []byte("y")})
	}
	w.Awaits("others are pushed", func(st intake.Status) bool { return st.Pushed == 20 })
	allow("^q\\.refused$", "^amq\\.default$", ".*")
	awaitQueue(t, s.URL(), "q.refused")
	if d := take(t, ch, "q.refused"); string(d.Body) != "x" {
		t.Errorf("got %q", d.Body)
	}
	w.Runs()

	t.Run("blocked", func(t *testing.T) {
		declare(t, ch, "b", "", "", "")
		publish(t, ch, "", "b", rabbit.Publishing{Body: []byte("x"), Headers: rabbit.Table{"x-delay": "soon"}})
		idle := begin(t, "mem:", intake.Intake{Queue: "q", Source: with(t, s.URL(), "queue", "idle", "declare", "true")})
		idle.Runs()
		s.Alarm(true)
		defer s.Alarm(false)
		idle.fails("blocked", "low on memory")
		w := begin(t, "mem:", intake.Intake{Queue: "q", Source: with(t, s.URL(), "queue", "b"), Options: intake.Options{Timeout: time.Second}})
		w.fails("blocked", "low on memory")
		s.Alarm(false)
		w.Runs()
		idle.Runs()
		take(t, ch, "b.refused")
	})
	t.Run("one for good", func(t *testing.T) {
		declare(t, ch, "g", "", "", "")
		for _, body := range []string{strings.Repeat("x", 3000), "y"} {
			publish(t, ch, "", "g", rabbit.Publishing{Body: []byte(body), Headers: rabbit.Table{"x-delay": "soon"}})
		}
		publish(t, ch, "", "g", rabbit.Publishing{Body: []byte("z")})
		most := func(bytes string) { // the second is that of RabbitMQ 4
			s.Eval(fmt.Sprintf(`application:set_env(rabbit, max_message_size, %s), persistent_term:put(max_message_size, %[1]s).`, bytes))
		}
		most("2000")
		g := intake.Intake{Queue: "q", Source: with(t, s.URL(), "queue", "g")}
		w := begin(t, "mem:", g)
		awaitQueue(t, s.URL(), "g.refused")
		if d := take(t, ch, "g.refused"); string(d.Body) != "y" {
			t.Errorf("got %.10q", d.Body)
		}
		w.fails("refused_queue", "larger than")
		w.Awaits("the others are acked", func(st intake.Status) bool { return st.Pushed == 1 && st.Unacked == 1 })
		w.end()
		if q, err := ch.QueueDeclarePassive("g", true, false, false, false, nil); err != nil || q.Messages != 1 {
			t.Errorf("the queue has %d messages, %v", q.Messages, err)
		}
		most("16777216")
		begin(t, "mem:", g).Runs()
		if d := take(t, ch, "g.refused"); len(d.Body) != 3000 {
			t.Errorf("got %.10q", d.Body)
		}
	})
	t.Run("full", func(t *testing.T) {
		declare(t, ch, "f", "", "", "")
		s.Policy("/", "f.refused", `{"max-length": 2, "overflow": "reject-publish"}`, 1)
		const n = 200
		for i := range n {
			publish(t, ch, "", "f", rabbit.Publishing{Headers: rabbit.Table{"x-delay": []any{int32(1), "soon"}[i%2]}})
		}
		w := begin(t, "mem:", intake.Intake{Queue: "q", Source: with(t, s.URL(), "queue", "f", "prefetch", "20")})
		w.fails("refused_queue", "nack")
		for range n / 2 {
			take(t, ch, "f.refused")
		}
		st := w.Awaits("all are settled", func(st intake.Status) bool { return st.Pushed == n/2 && st.Unacked == 0 })
		if st.Taken != n || st.Redelivered != 0 || st.Refused != n/2 {
			t.Errorf("the status is %+v", st)
		}
		awaitNone(t, s.URL(), "f")
	})
	t.Run("unacked for too long", func(t *testing.T) {
		was := s.Eval(`{ok, T} = application:get_env(rabbit, consumer_timeout), T.`)
		s.Eval(`application:set_env(rabbit, consumer_timeout, 1000), application:set_env(rabbit, channel_tick_interval, 500).`)
		defer s.Eval(`application:set_env(rabbit, consumer_timeout, ` + was + `).`)
		var full atomic.Bool
		full.Store(true)
		w := beginWith(t, "mem:", tarry.Config{PushMiddleware: []tarry.PushMiddleware{func(next tarry.PushFunc) tarry.PushFunc {
			return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
				if full.Load() {
					return nil, &tarry.Error{Op: "push", Err: tarry.ErrNoSpace}
				}
				return next(ctx, call)
			}
		}}}, intake.Intake{Queue: "q", Source: with(t, s.URL(), "queue", "slow", "declare", "true")})
		w.Runs()
		publish(t, ch, "", "slow", rabbit.Publishing{Body: []byte("x")})
		w.fails("timeout", "")
		full.Store(false)
		w.Awaits("it is pushed", func(st intake.Status) bool { return st.Pushed == 1 && st.Unacked == 0 })
	})
	t.Run("taken again", func(t *testing.T) {
		s.SyncQueues()
		s.Kill()
		w.fails(intake.CodeUnreachable, "")
		s.Restart()
		w.Runs()
	})
}

// A message that can never be pushed is set aside as it came, and delays no other.
func TestWhatCanNeverBePushedIsSetAside(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := connected(t, at)
	declare(t, ch, "orders", "work", "fanout", "")
	w := begin(t, "mem:", delayed(t, at))
	w.Runs()
	for name, m := range map[string]rabbit.Publishing{
		"is no number of milliseconds": {Headers: rabbit.Table{"x-delay": "soon"}, Expiration: "1"},
		"is over 290 years":            {Headers: rabbit.Table{"x-delay": int64(1 << 62)}},
		"x-tarry-key is no text":       {Headers: rabbit.Table{"x-tarry-key": int32(7)}},
		"x-tarry-cancel is no text":    {Headers: rabbit.Table{"x-tarry-cancel": ""}},
		"the key has 600 bytes":        {Headers: rabbit.Table{"x-tarry-key": strings.Repeat("k", 600)}},
		"at most 8192 are allowed":     {Headers: rabbit.Table{"x": strings.Repeat("x", 7000), "x-delay": int32(1)}},
		"the body has":                 {Body: make([]byte, 1<<20+1)},
	} {
		m.MessageId = name
		publish(t, ch, "delayed", "order", m)
		awaitQueue(t, at, "tarry.delayed.refused")
		d := take(t, ch, "tarry.delayed.refused")
		why, _ := d.Headers["x-tarry-refused"].(string)
		delete(d.Headers, "x-tarry-refused")
		for _, count := range counts { // of the queue of refused messages
			delete(d.Headers, count)
		}
		if !strings.Contains(why, name) || len(d.Body) != len(m.Body) || d.MessageId != name || fmt.Sprint(d.Headers) != fmt.Sprint(m.Headers) && len(m.Headers) > 0 {
			t.Errorf("%s: refused for %q, with %.200v", name, why, d.Headers)
		}
	}
	fills := rabbit.Table{"x": strings.Repeat("x", 131_000)} // a frame, without room for a reason
	publish(t, ch, "delayed", "order", rabbit.Publishing{Headers: fills})
	if d := take(t, ch, "tarry.delayed.refused"); d.Headers["x"] != fills["x"] {
		t.Errorf("refused with %.200v", d.Headers)
	}
	publish(t, ch, "delayed", "order", rabbit.Publishing{Body: []byte("good")})
	if d := take(t, ch, "orders"); string(d.Body) != "good" {
		t.Errorf("got %q", d.Body)
	}
	st := w.Awaits("all are acked", func(st intake.Status) bool { return st.Unacked == 0 })
	if st.Refused != 8 || st.LastRefused == "" || st.Pushed != 1 {
		t.Errorf("the status is %+v", st)
	}
}

// A target that leads back to the source would publish each message again and again.
func TestALoopIsRefused(t *testing.T) {
	t.Parallel()
	for target, loops := range map[string]bool{
		"amqp://h/v?exchange=in":                 true,
		"amqp://h/v?exchange=in&metadata=true":   true,
		"amqp://h/v?exchange=out":                false,
		"amqp://h/v?exchange=in&key=due":         false,
		"amqp://h/v?exchange=in&exchanges=out":   false,
		"amqp://h/v?exchange=in&original=false":  false,
		"amqp://h/other?exchange=in":             false,
		"amqp://other/v?exchange=in":             false,
		"":                                       false,
		"amqp://geheim:geheim@h/v?exchange=in":   true,
		"amqp://geheim:geheim@h,i/v?exchange=in": false,
	} {
		err := intake.Intakes{{Queue: "q", Source: "amqp://h/v?queue=q&exchange=in", Target: target}}.Check()
		if (err != nil) != loops || loops && (!strings.Contains(err.Error(), "another exchange") || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%s: %v", target, err)
		}
	}
	if err := (intake.Intakes{{Queue: "q", Source: "amqp://h/v?queue=q", Target: "amqp://h/v"}}).Check(); err != nil {
		t.Error(err)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for u, part := range map[string]string{
		"amqp://h/v": "queue is the name",
		"amqp://h/v?queue=" + strings.Repeat("q", 250):                   "queue is the name",
		"amqp://u:geheim@h/v?queue=q&prefetch=0":                         "prefetch",
		"amqp://u:geheim@h/v?queue=q&prefetch=2001":                      "prefetch",
		"amqp://h/v?queue=q&queue_type=stream":                           "quorum or classic",
		"amqp://h/v?queue=q&type=fanout":                                 "need an exchange",
		"amqp://h/v?queue=q&exchange=e&type=odd":                         "topic, direct",
		"amqp://h/v?queue=q&exchange=e&type=direct&declare=1":            "name each routing key",
		"amqp://h/v?queue=q&exchange=e&bind=" + strings.Repeat("k", 256): "bind is a routing key",
		"amqp://h/v?queue=q&quue=q":                                      "no option",
		"amqp://:geheim@h/v?queue=q":                                     "name the user",
	} {
		_, err := intake.Open(u, intake.Options{})
		if err == nil {
			t.Errorf("%s is opened", u)
			continue
		}
		if text := err.Error(); !strings.Contains(text, part) || strings.Contains(text, "geheim") {
			t.Errorf("%s: %s", u, text)
		}
	}
}
