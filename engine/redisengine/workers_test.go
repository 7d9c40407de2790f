package redisengine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/ledger"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// The environment in which this test binary is a worker.
const (
	workerURL  = "TARRY_TEST_WORKER_URL"
	workerHold = "TARRY_TEST_WORKER_HOLD" // it holds fast what it has after so many messages
)

const (
	workerTTR = 2 * time.Second
	holding   = "holding"
)

// TestWorkers has eight processes work on one queue, two of which are killed.
func TestWorkers(t *testing.T) {
	if url := os.Getenv(workerURL); url != "" {
		workerProcess(t, url)
		return
	}
	t.Parallel()
	const all = 4000
	s := redistest.Start(t)
	c := openClient(t, s.URL())
	msgs := make([]engine.Message, all)
	for i := range msgs {
		msgs[i] = tarry.NewDraft("q", nil, tarry.Key(strconv.Itoa(i)), tarry.In(time.Duration(i%1000)*time.Millisecond))
	}
	if pushed, err := c.PushMany(t.Context(), msgs); err != nil || slices.ContainsFunc(pushed, func(p tarry.Pushed) bool { return p.Err != nil }) {
		t.Fatal(pushed, err)
	}

	began := time.Now()
	lines := make(chan string, all) // key and worker of each message handled
	var workers []*worker
	// First those that are killed, lest the others have done all when they are up.
	const holders = 2
	for range holders {
		workers = append(workers, startWorker(t, s.URL(), all/200, lines))
	}
	up := make(map[string]bool)
	killed := make(map[string]bool)
	handled := make(map[string]string) // by whom, by key
	giveUp := time.After(60 * time.Second)
	for len(handled) < all {
		select {
		case line := <-lines:
			key, pid, _ := strings.Cut(line, " ")
			if up[pid] = true; len(up) == holders && len(workers) == holders {
				for range 6 {
					workers = append(workers, startWorker(t, s.URL(), 0, lines))
				}
			}
			if key == holding {
				for _, w := range workers {
					if w.pid() == pid && !killed[pid] {
						w.kill(t)
						killed[pid] = true
						t.Logf("killed a worker that held messages after %v, when %d were handled", time.Since(began), len(handled))
					}
				}
				continue
			}
			if by, twice := handled[key]; twice && !killed[by] {
				t.Errorf("%s was handled twice, though who did it first lives", key)
			}
			handled[key] = pid
		case <-giveUp:
			t.Fatalf("%d of %d messages are handled", len(handled), all)
		}
	}
	t.Logf("all were handled after %v", time.Since(began))
	ledger.Counts(t, c, "q", 5*time.Second, 0, 0, 0)
	var ending sync.WaitGroup // those with the race detector take a second
	for _, w := range workers {
		if !killed[w.pid()] {
			ending.Go(func() { w.stop(t) })
		}
	}
	ending.Wait()
	if len(killed) != holders {
		t.Errorf("%d were killed", len(killed))
	}

	// Whom did others find at work on what they were given?
	m := s.Do("LRANGE", "met", "0", "-1")
	met, err := m.AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range met {
		if _, pid, _ := strings.Cut(line, " "); !killed[pid] {
			t.Errorf("a message was handled by two at once: %s", line)
		}
	}
	if len(met) == 0 {
		t.Error("nothing came back from those that were killed")
	}
	t.Logf("%d messages came back from those that were killed", len(met))
}

// worker is a process that works.
type worker struct {
	cmd   *exec.Cmd
	stdin io.Closer
	read  sync.WaitGroup
}

func startWorker(t *testing.T, url string, hold int, lines chan<- string) *worker {
	t.Helper()
	w := &worker{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")}
	w.cmd.Env = append(os.Environ(), workerURL+"="+url, workerHold+"="+strconv.Itoa(hold))
	w.cmd.Stderr = os.Stderr
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.stdin = stdin
	w.read.Go(func() {
		for in := bufio.NewScanner(stdout); in.Scan(); {
			if strings.Contains(in.Text(), " ") { // not what the testing package prints
				lines <- in.Text()
			}
		}
	})
	return w
}

func (w *worker) pid() string { return strconv.Itoa(w.cmd.Process.Pid) }

func (w *worker) kill(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	w.read.Wait()
	_ = w.cmd.Wait() // it was killed
}

func (w *worker) stop(t *testing.T) {
	t.Helper()
	_ = w.stdin.Close()
	w.read.Wait()
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("a worker ended with %v", err)
	}
}

// workerProcess works until its standard input ends, and writes a line when a message
// is handled. Who is at work on a message keeps its pid in Redis meanwhile.
func workerProcess(t *testing.T, url string) {
	p := newProcess(t, url)
	var n atomic.Int64
	p.work(t, url, workerTTR, func(ctx context.Context, m *tarry.Message[string]) error {
		lock := "lock:" + m.Key
		other, err := p.redis.Do(ctx, p.redis.B().Set().Key(lock).Value(p.pid).Nx().Get().Build()).ToString()
		if err == nil { // somebody has it
			err = p.redis.Do(ctx, p.redis.B().Rpush().Key("met").Element(m.Key+" "+other).Build()).Error()
		} else if rueidis.IsRedisNil(err) {
			err = nil
		}
		if err != nil {
			return err
		}
		p.holdFast(n.Add(1), 10)
		time.Sleep(2 * time.Millisecond)
		if err := p.redis.Do(ctx, p.redis.B().Del().Key(lock).Build()).Error(); err != nil {
			return err
		}
		p.say(m.Key)
		return nil
	})
}

// process is what a process that works knows of itself.
type process struct {
	pid   string
	hold  int64          // it holds fast what it has after so many messages; 0: never
	redis rueidis.Client // beside the store's own

	speaks sync.Mutex
}

func newProcess(t *testing.T, url string) *process {
	t.Helper()
	hold, err := strconv.ParseInt(os.Getenv(workerHold), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	option, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	option.DisableCache = true
	c, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &process{pid: strconv.Itoa(os.Getpid()), hold: hold, redis: c}
}

// say writes a line for the one who has started this.
func (p *process) say(what string) {
	p.speaks.Lock()
	defer p.speaks.Unlock()
	fmt.Println(what, p.pid)
}

// holdFast keeps a handler, the n-th, that is to hold its message until the process is
// killed, and says so when there are enough of them.
func (p *process) holdFast(n, enough int64) {
	if p.hold == 0 || n <= p.hold {
		return
	}
	if n == p.hold+enough {
		p.say(holding)
	}
	select {}
}

// work handles the messages of the queue until standard input ends.
func (p *process) work(t *testing.T, url string, ttr time.Duration, handle func(context.Context, *tarry.Message[string]) error) {
	t.Helper()
	c, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 20, LeaseTTR: ttr})
	tarry.Handle(w, tarry.NewTopic[string]("q"), handle)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the one who has started this
		cancel()
	}()
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
}
