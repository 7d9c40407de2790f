//go:build linux

package disk

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

// command is what obey does, one after the other.
type command struct {
	Do       string        // push, cancel, rest: wait until the background has caught up, or more: push to another queue until the process ends
	From, To int           // which messages
	Among    int           // of so many, jumping about, again from the first after the last; 0: in order
	Soonest  time.Time     // when they begin to fall due
	Spread   time.Duration // and over what time
	Clients  int
	Batch    int // of push
}

// answer tells what a command took.
type answer struct {
	Seconds float64
	CPU     float64 // seconds
	RSS     int64   // bytes, at its end
	Most    int64   // at most so far
	Disk    int64   // bytes of the directory; 0 of a bare log, which keeps nothing
}

// answers is the file, beside the standard ones, that obey writes to.
const answers = 3

// obey opens the store of -dir and does what its standard input says, until that ends.
func obey(b *testing.B) {
	if *dir == "" {
		b.Skip("-dir names no directory")
	}
	s, err := openIn(b.Context(), *dir)
	must(b, err)
	defer func() { must(b, s.Close()) }()
	out := json.NewEncoder(os.NewFile(answers, "answers"))
	for in := json.NewDecoder(os.Stdin); ; {
		var c command
		if err := in.Decode(&c); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		began, cpu := time.Now(), scenario.CPU()
		c.run(b, s)
		a := answer{Seconds: time.Since(began).Seconds(), CPU: (scenario.CPU() - cpu).Seconds()}
		a.RSS, a.Most = memory(b)
		if keeps() {
			a.Disk = sizeOf(*dir)
		}
		must(b, out.Encode(a))
	}
	reportMemory(b)
}

func (c *command) run(b *testing.B, s scenario.System) {
	switch c.Do {
	case "push":
		scenario.Each(b, c.Clients, c.To-c.From, c.Batch, func(ctx context.Context, from, to int) error {
			if c.Batch == 1 {
				i := c.message(from)
				return s.Push(ctx, scenario.Queue, i, c.due(i))
			}
			return s.PushMany(ctx, scenario.Queue, c.From+from, c.From+to, c.due)
		})
	case "cancel":
		scenario.Each(b, c.Clients, c.To-c.From, 1, func(ctx context.Context, i, _ int) error {
			return s.Cancel(ctx, scenario.Queue, c.message(i))
		})
	case "rest":
		rest(b)
	case "more":
		pushMore(s)
	default:
		b.Fatalf("unknown command %q", c.Do)
	}
}

// message is the number of the i-th one that a command is about.
func (c *command) message(i int) int {
	if c.Among > 0 {
		return scenario.Leaps(c.Among)((c.From + i) % c.Among)
	}
	return c.From + i
}

func (c *command) due(i int) time.Time { return c.Soonest.Add(scenario.Far(i, c.Spread)) }

// restFor is for how long nothing changes the size of a store's directory once merges have
// caught up.
const restFor = 10 * time.Second

// rest waits until merges have caught up.
func rest(b *testing.B) {
	for last, since := sizeOf(*dir), time.Now(); time.Since(since) < restFor; time.Sleep(200 * time.Millisecond) {
		if now := sizeOf(*dir); now != last {
			last, since = now, time.Now()
		}
		must(b, b.Context().Err())
	}
}

// pushMore has clients push to another queue until the process is killed, so that this
// happens in the middle of writes. It returns once they have begun.
func pushMore(s scenario.System) {
	begun := make(chan struct{}, scenario.Clients)
	first, later := int(time.Now().UnixNano()), time.Now().Add(24*time.Hour)
	for client := range scenario.Clients {
		go func() {
			for i := first + client; ; i += scenario.Clients {
				if s.Push(context.Background(), "more", i, later) != nil {
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		}()
	}
	for range scenario.Clients {
		<-begun
	}
}
