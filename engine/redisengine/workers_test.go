package redisengine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry"
)

// The environment in which this test binary is a worker.
const (
	workerURL  = "TARRY_TEST_WORKER_URL"
	workerHold = "TARRY_TEST_WORKER_HOLD" // blocks in its handler after this many messages
)

const holding = "holding"

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

// process is what a process that works knows of itself.
type process struct {
	pid   string
	hold  int64          // blocks in its handler after this many messages; 0: never
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

// say writes a line for the parent process.
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
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent process
		cancel()
	}()
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
}
