package redisengine

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestWorkersInFlight has four processes, with 20 handlers each, work on a queue that lets
// 10 messages be leased at once. Two of the processes are killed at work.
func TestWorkersInFlight(t *testing.T) {
	if url := os.Getenv(workerURL); url != "" {
		inFlightProcess(t, url)
		return
	}
	t.Parallel()
	const all, most, holders, holds = 600, 10, 2, 3
	s := redistest.Start(t)
	c := openClient(t, s.URL(), "shards=1")
	if _, err := c.Configure(t.Context(), "q", tarry.Settings{InFlight: most}, ""); err != nil {
		t.Fatal(err)
	}
	msgs := make([]engine.Message, all)
	for i := range msgs {
		msgs[i] = tarry.NewDraft("q", nil, tarry.Key(strconv.Itoa(i)))
	}
	if pushed, err := c.PushMany(t.Context(), msgs); err != nil || slices.ContainsFunc(pushed, func(p tarry.Pushed) bool { return p.Err != nil }) {
		t.Fatal(pushed, err)
	}

	lines := make(chan string, 2*all) // key and worker of each message handled
	var workers []*worker
	for range holders { // they handle some, and then hold places until they are killed
		workers = append(workers, startWorker(t, s.URL(), holds, lines))
	}
	killed := make(map[string]bool)
	handled := make(map[string]string) // worker by key
	giveUp := time.After(90 * time.Second)
	for len(handled) < all {
		select {
		case line := <-lines:
			key, pid, _ := strings.Cut(line, " ")
			if key != holding {
				if by, twice := handled[key]; twice && !killed[by] {
					t.Errorf("%s was handled twice, though who did it first lives", key)
				}
				handled[key] = pid
				continue
			}
			if len(workers) == holders { // others come while places are held
				workers = append(workers, startWorker(t, s.URL(), 0, lines), startWorker(t, s.URL(), 0, lines))
			}
			for _, w := range workers {
				if w.pid() == pid && !killed[pid] {
					w.kill(t)
					killed[pid] = true
					s.Do("HDEL", "working", pid) // its handlers are no more; its leases are, for a while
				}
			}
		case <-giveUp:
			t.Fatalf("%d of %d messages are handled, %d workers were killed", len(handled), all, len(killed))
		}
	}
	outage.Counts(t, c, "q", longWait, 0, 0, 0)
	for _, w := range workers {
		if !killed[w.pid()] {
			w.stop(t)
		}
	}
	if len(killed) != holders {
		t.Errorf("%d were killed", len(killed))
	}
	m := s.Do("GET", "most")
	n, err := m.AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	if n > most {
		t.Errorf("%d handlers at once", n)
	}
	if n < 2 {
		t.Errorf("no more than %d handlers were at work at once, of whom nothing can be said", n)
	}
	t.Logf("%d handlers at once at most", n)
}

// atWork counts one more handler of a process, and keeps how many there were at most.
const atWork = `
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
local n = 0
for _, v in ipairs(redis.call('HVALS', KEYS[1])) do n = n + v end
if n > tonumber(redis.call('GET', KEYS[2]) or 0) then redis.call('SET', KEYS[2], n) end
return n`

// inFlightProcess works until its standard input ends, and counts the handlers in progress
// in Redis.
func inFlightProcess(t *testing.T, url string) {
	p := newProcess(t, url)
	var n atomic.Int64
	p.work(t, url, 5*time.Second, func(ctx context.Context, m *tarry.Message[string]) error {
		if err := p.redis.Do(ctx, p.redis.B().Eval().Script(atWork).Numkeys(2).Key("working", "most").Arg(p.pid).Build()).Error(); err != nil {
			return err
		}
		p.holdFast(n.Add(1), 1)
		time.Sleep(2 * time.Millisecond)
		if err := p.redis.Do(ctx, p.redis.B().Hincrby().Key("working").Field(p.pid).Increment(-1).Build()).Error(); err != nil {
			return err
		}
		p.say(m.Key)
		return nil
	})
}
