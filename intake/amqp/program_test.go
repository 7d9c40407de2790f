package amqp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	rabbit "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/intake"
)

// childEnv holds the store and the intake of a child process, in JSON.
const childEnv = "TARRY_TEST_INTAKE"

type childConfig struct{ Store, Queue, Source, Target string }

// newChild is a child with an intake.
func newChild(store string, i intake.Intake) childConfig {
	return childConfig{store, i.Queue, i.Source, i.Target}
}

// child runs an intake and its route until it is killed, or drains when its input ends.
func child(text string) {
	var cfg childConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		panic(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	c, err := tarry.Open(context.Background(), cfg.Store, &tarry.Config{Logger: quiet})
	if err != nil {
		panic(err)
	}
	runner := intake.NewRunner(c, &intake.RunnerConfig{Logger: quiet})
	router := forward.NewRouter(c, &forward.RouterConfig{Logger: quiet})
	all := intake.Intakes{{Queue: cfg.Queue, Source: cfg.Source, Target: cfg.Target}}
	if err := errors.Join(runner.Set(all), router.Set(all.Routes())); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	for _, run := range []func(context.Context) error{router.Run, runner.Run} {
		ran.Go(func() { _ = run(ctx) }) // the test sees what is left
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	ran.Wait()
	_ = c.Close()
}

// startChild starts a child, and returns what kills it, and what has it drain.
func startChild(t testing.TB, cfg childConfig) (kill, drain func(), pid int) {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe() // which ends with this process
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	end := func(how func() error) {
		once.Do(func() {
			_ = how()
			_ = cmd.Wait() // it may have been killed
		})
	}
	kill = func() { end(cmd.Process.Kill) }
	t.Cleanup(kill)
	return kill, func() { end(input.Close) }, cmd.Process.Pid
}

// program is a program written for the delayed-message plugin: it publishes with x-delay to
// one exchange, and consumes from a queue. It publishes again what was not confirmed.
type program struct {
	t     *testing.T
	url   string
	work  sync.WaitGroup
	ended chan struct{}

	delays []time.Duration // by message; negative: it is cancelled

	mu       sync.Mutex
	due      []time.Time // by message: when it may come at the earliest
	came     map[int]int
	early    int
	doubles  int
	stray    int // messages that were cancelled
	expected int
	progress chan struct{} // closed and renewed when one comes
}

// open opens a channel again and again until the broker runs.
func (p *program) open() (*rabbit.Connection, *rabbit.Channel) {
	for {
		conn, err := rabbit.DialConfig(p.url, rabbit.Config{Heartbeat: 2 * time.Second, Dial: rabbit.DefaultDial(5 * time.Second)})
		if err == nil {
			ch, err := conn.Channel()
			if err == nil {
				return conn, ch
			}
			_ = conn.Close()
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-p.ended:
			return nil, nil
		}
	}
}

// publishAll publishes messages until each is confirmed, in batches. after is told how many
// are.
func (p *program) publishAll(messages []rabbit.Publishing, after func(n int)) {
	const batch = 200
	for n := 0; n < len(messages); {
		conn, ch := p.open()
		if conn == nil {
			return
		}
		if err := ch.Confirm(false); err != nil {
			_ = conn.Close()
			continue
		}
		for n < len(messages) {
			part := messages[n:min(n+batch, len(messages))]
			p.sending(part)
			if !publishBatch(ch, part) {
				break
			}
			n += len(part)
			after(n)
		}
		_ = conn.Close()
	}
}

// sending records when messages are sent first.
func (p *program) sending(messages []rabbit.Publishing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range messages {
		if n, err := strconv.Atoi(string(m.Body)); err == nil && p.due[n].IsZero() {
			p.due[n] = time.Now().Add(p.delays[n])
		}
	}
}

func publishBatch(ch *rabbit.Channel, messages []rabbit.Publishing) bool {
	confirms := make([]*rabbit.DeferredConfirmation, len(messages))
	for n := range messages {
		var err error
		if confirms[n], err = ch.PublishWithDeferredConfirm("delayed", "order.due", true, false, messages[n]); err != nil {
			return false
		}
	}
	for _, c := range confirms {
		if !c.Wait() {
			return false
		}
	}
	return true
}

// consume takes what comes to the queue orders until the program ends.
func (p *program) consume() {
	for {
		conn, ch := p.open()
		if conn == nil {
			return
		}
		if err := ch.Qos(100, 0, false); err != nil {
			_ = conn.Close()
			continue
		}
		deliveries, err := ch.Consume("orders", "", false, false, false, false, nil)
		for err == nil {
			select {
			case d, ok := <-deliveries:
				if !ok {
					err = rabbit.ErrClosed
					break
				}
				p.arrived(&d)
				err = d.Ack(false)
			case <-p.ended:
				_ = conn.Close()
				return
			}
		}
		_ = conn.Close()
	}
}

func (p *program) arrived(d *rabbit.Delivery) {
	n, err := strconv.Atoi(string(d.Body))
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil || n >= len(p.due):
		p.t.Errorf("a strange message came: %q", d.Body)
	case p.delays[n] < 0:
		p.stray++
	case time.Now().Before(p.due[n]):
		p.early++
	}
	p.came[n]++
	if p.came[n] > 1 {
		p.doubles++
	}
	close(p.progress)
	p.progress = make(chan struct{})
}

// awaitAll waits until each message has come, and returns how many have not.
func (p *program) awaitAll() (left int) {
	for end := time.After(patience); ; {
		p.mu.Lock()
		left, progress := p.expected-len(p.came), p.progress
		p.mu.Unlock()
		if left <= 0 {
			return 0
		}
		select {
		case <-progress:
		case <-end:
			return left
		}
	}
}

// number is a number from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// A program written for the plugin goes on with another exchange, while broker and tarry are
// killed by turns. TARRY_INTAKE_MESSAGES and TARRY_INTAKE_KILLS make it longer.
func TestAProgramWrittenForThePlugin(t *testing.T) {
	t.Parallel()
	messages, kills := number("TARRY_INTAKE_MESSAGES", 6000), number("TARRY_INTAKE_KILLS", 3)
	s := rabbittest.Start(t)
	ch := connected(t, s.URL())
	declareQuorum(t, ch, "orders")
	if err := ch.ExchangeDeclare("work", "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("orders", "order.*", "work", false, nil); err != nil {
		t.Fatal(err)
	}
	cfg := newChild("disk:"+t.TempDir(), delayed(t, s.URL()))
	kill, drain, _ := startChild(t, cfg)
	awaitConsumer(t, s.URL(), "tarry.delayed") // then the bindings are there, too
	s.SyncQueues()

	p := &program{t: t, url: s.URL(), ended: make(chan struct{}), came: make(map[int]int), progress: make(chan struct{})}
	p.work.Go(p.consume)
	defer p.work.Wait()
	defer close(p.ended)
	sent, cancels := p.make(messages)
	confirmed := make(chan int, messages)
	p.work.Go(func() {
		p.publishAll(sent, func(n int) { confirmed <- n })
		p.publishAll(cancels, func(int) {})
		close(confirmed)
	})
	killed := 0
	for n := range confirmed {
		if killed == kills || n < messages*(killed+1)/(kills+1) {
			continue
		}
		if killed++; killed%2 == 1 {
			kill()
			kill, drain, _ = startChild(t, cfg)
		} else {
			s.Kill()
			s.Restart()
		}
	}
	left := p.awaitAll()
	if left == 0 {
		awaitNone(t, s.URL(), "tarry.delayed")
	}
	drain()
	if left > 0 {
		t.Errorf("%d messages are lost; queues and bindings: %s", left, s.Eval(`{[{N, M} || {resource, _, _, N} <- [element(2, Q) || Q <- rabbit_amqqueue:list()], M <- [element(2, rabbit_amqqueue:stat(element(2, rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, N)))))]], length(rabbit_binding:list(<<"/">>))}.`))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.Logf("%d messages, %d cancelled, %d kills: %d doubles, %d early, %d came although cancelled", p.expected, len(cancels), killed, p.doubles, p.early, p.stray)
	if p.early > 0 || p.stray > 0 || killed != kills {
		t.Error("messages came early, or although they were cancelled, or nothing was killed")
	}
	if most := kills * 1000; p.doubles > most { // a route has 512 in flight and some acks on their way, the program 100
		t.Errorf("%d doubles are more than was in flight at %d kills", p.doubles, kills)
	}
	p.holdsNothing(cfg.Store)
}

// make makes messages, a fifth of which are cancelled long before they are due.
func (p *program) make(n int) (sent, cancels []rabbit.Publishing) {
	p.due = make([]time.Time, n)
	for i := range n {
		m := rabbit.Publishing{Body: []byte(strconv.Itoa(i)), DeliveryMode: rabbit.Persistent, Headers: rabbit.Table{}, MessageId: fmt.Sprint("m-", i)}
		if i%5 == 0 {
			m.Headers["x-delay"], m.Headers["x-tarry-key"] = int32(3600_000), fmt.Sprint("k-", i)
			cancels = append(cancels, rabbit.Publishing{DeliveryMode: rabbit.Persistent, Headers: rabbit.Table{"x-tarry-cancel": fmt.Sprint("k-", i)}})
			p.delays = append(p.delays, -1)
		} else {
			delay := rand.IntN(5000)
			m.Headers["x-delay"] = int32(delay)
			p.delays = append(p.delays, time.Duration(delay)*time.Millisecond)
			p.expected++
		}
		sent = append(sent, m)
	}
	return sent, cancels
}

// holdsNothing fails the test if the store still holds a message.
func (p *program) holdsNothing(store string) {
	p.t.Helper()
	c, err := tarry.Open(p.t.Context(), store, &tarry.Config{Logger: quiet})
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	q, err := c.Queue(p.t.Context(), "delayed")
	if err != nil || q.Scheduled+q.Ready+q.Leased+q.Dead != 0 {
		p.t.Errorf("the store holds %+v, %v", q, err)
	}
}

// awaitNone waits until a queue has no message, neither ready nor unacked.
func awaitNone(t testing.TB, at, queue string) {
	t.Helper()
	ch := connected(t, at)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if q.Messages == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s still has %d messages", queue, q.Messages)
		}
	}
}
