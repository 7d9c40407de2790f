package rabbitengine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *journal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// says waits until the log has a text.
func (s *journal) says(t *testing.T, text string) {
	t.Helper()
	servertest.Await(t, "the log", func() error { return s.has(text) })
}

// has fails with the log if a text is missing in it.
func (s *journal) has(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(s.text.String(), text) {
		return errors.New(s.text.String())
	}
	return nil
}

// policies has the broker's policies meddle with tarry's queues.
func policies(t *testing.T, s *rabbittest.Server) {
	t.Run("message-ttl", func(t *testing.T) {
		t.Parallel()
		url, log := s.Vhost(), new(journal)
		s.Policy(url, "tarry.delay", `{"message-ttl":300}`, 0)
		e := opened(t, url, Config{Unit: unit, Logger: log.logger()})
		began := time.Now()
		const delay = 4 * time.Second
		want := pushed(t, e, engine.Message{Due: engine.When{In: delay}})
		l := leased(t, e, 1, time.Minute)[0]
		if took := time.Since(began); l.ID != want.ID || l.Attempt != 1 || took < delay {
			t.Errorf("%v came after %s, attempt %d", l.ID, took, l.Attempt)
		}
		log.says(t, "before they were due")
	})
	t.Run("dead-letter-routing-key", func(t *testing.T) {
		t.Parallel()
		url, log := s.Vhost(), new(journal)
		s.Policy(url, "tarry.delay", `{"dead-letter-routing-key":"elsewhere"}`, 0)
		e := opened(t, url, Config{Unit: unit, Logger: log.logger()})
		want := pushed(t, e, engine.Message{Due: engine.When{In: 4 * unit}})
		if l := leased(t, e, 1, time.Minute)[0]; l.ID != want.ID || l.Attempt != 1 {
			t.Errorf("%+v", l)
		}
		log.says(t, "had parked messages")
	})
	t.Run("kept off", func(t *testing.T) {
		t.Parallel()
		for _, queues := range []QueueType{Quorum, Classic} {
			url := s.Vhost()
			s.Policy(url, "", `{"message-ttl":300,"expires":60000,"delivery-limit":2}`, 0)
			s.Policy(url, `tarry\.`, `{"max-length":1000000000}`, 100)
			e := opened(t, url, Config{Unit: unit, Queues: queues})
			pushed(t, e, engine.Message{Due: engine.When{In: 2 * time.Second}})
			leased(t, e, 1, time.Minute)
			if n := e.measured.deliveries.Load(); n != 1 {
				t.Errorf("%s: it went round %d times", queues, n-1)
			}
		}
	})
	t.Run("expires", func(t *testing.T) {
		t.Parallel()
		url, log := s.Vhost(), new(journal)
		s.Policy(url, "tarry.delay", `{"expires":500}`, 0)
		e := opened(t, url, Config{Unit: unit, Logger: log.logger()})
		servertest.Await(t, "a push before the queue has expired", func() error {
			r, err := e.Push(patience(t), []engine.Message{{Queue: "q", Due: engine.When{In: time.Hour}}})
			ok(t, err)
			return r[0].Err
		})
		// A look at a queue puts its expiry off, and attend looks at one of them only.
		expired := fmt.Sprintf("not lists:any(fun({resource, _, queue, <<\"tarry.delay\", _/binary>>}) -> true; (_) -> false end, rabbit_amqqueue:list_names(<<%q>>)).", path.Base(url))
		servertest.Await(t, "the loss to be logged", func() error {
			if s.Eval(expired) != "true" {
				return errors.New("a queue for delays is left")
			}
			now(t, e).missQueues(log.logger())
			return log.has("its messages are lost")
		})
	})
	for _, limit := range []string{"0", "2"} {
		t.Run("delivery-limit "+limit, func(t *testing.T) {
			t.Parallel()
			url := s.Vhost()
			s.Policy(url, "tarry.queue", `{"delivery-limit":`+limit+`}`, 0)
			const attempts = 5
			want := pushed(t, opened(t, url, Config{Unit: unit}), engine.Message{Terms: engine.Terms{MaxAttempts: attempts}})
			for n := range attempts {
				e := opened(t, url, Config{Unit: unit})
				if l := leased(t, e, 1, time.Hour)[0]; l.Attempt != uint32(n+1) {
					t.Fatalf("attempt %d: %+v", n+1, l)
				}
				ok(t, e.Close())
			}
			e := opened(t, url, Config{Unit: unit})
			servertest.Await(t, "its death", func() error {
				got, err := e.LeaseWait(t.Context(), engine.Wait{Queues: []string{"q"}, Max: 1, For: time.Second})
				ok(t, err)
				if len(got.Messages) > 0 {
					t.Fatalf("%+v", got.Messages[0])
				}
				if dead := deadOf(t, e, 10); len(dead) != 1 || dead[0].ID != want.ID {
					return errors.New("it is not dead")
				}
				return nil
			})
		})
	}
}

// largest has pushes that are too large for the broker go beside many small ones.
func largest(t *testing.T, s *rabbittest.Server) {
	e := opened(t, s.Vhost(), Config{Unit: unit})
	pushed(t, e, engine.Message{Content: engine.Content{Body: make([]byte, large+1)}})
	var pushes sync.WaitGroup
	for range 4 {
		pushes.Go(func() {
			r, err := e.Push(patience(t), []engine.Message{{Queue: "q", Content: engine.Content{Body: make([]byte, maxMessage+1)}}})
			if err != nil || !errors.Is(r[0].Err, engine.ErrTooLarge) || !strings.Contains(r[0].Err.Error(), "max_message_size") {
				t.Errorf("too large: %+v, %v", r, err)
			}
		})
	}
	for range 32 {
		pushes.Go(func() {
			for range 25 {
				r, err := e.Push(patience(t), []engine.Message{{Queue: "q"}, {Queue: "q"}})
				if err != nil || r[0].Err != nil || r[1].Err != nil {
					t.Errorf("beside it: %+v, %v", r, err)
					return
				}
			}
		})
	}
	pushes.Wait()
}

// maxMessage is the largest message that the broker of these tests takes.
const maxMessage = 2 << 20
