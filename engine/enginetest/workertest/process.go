//go:build linux

package workertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Environment variables that make a test binary one of the processes of RunProcesses.
const (
	processURL   = "TARRY_TEST_PROCESS_URL"
	processQueue = "TARRY_TEST_PROCESS_QUEUE"
	processDir   = "TARRY_TEST_PROCESS_DIR"
	processOff   = "TARRY_TEST_PROCESS_OFF" // offset of its clock
)

const (
	processTTR  = 15 * time.Second       // on a busy machine calls may take seconds
	followAfter = 700 * time.Millisecond // delay of messages that handlers push
)

// process is a worker process.
type process struct {
	client *tarry.Client
	topic  *tarry.Topic[bool]
	dir    string
	off    time.Duration

	speaks sync.Mutex
}

// atWork runs a worker until its standard input ends. It begins when told to, and writes a
// line for each event.
func atWork(t *testing.T) {
	p := &process{topic: tarry.NewTopic[bool](os.Getenv(processQueue)), dir: os.Getenv(processDir)}
	var err error
	if p.off, err = time.ParseDuration(os.Getenv(processOff)); err == nil && p.off != 0 {
		err = setClock(p.off)
	}
	if err == nil {
		p.client, err = tarry.Open(t.Context(), os.Getenv(processURL), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.client.Close()
	w := tarry.NewWorker(p.client, &tarry.WorkerConfig{Concurrency: 8, LeaseTTR: processTTR, OnError: func(m tarry.Info, err error) {
		if errors.Is(err, tarry.ErrUnconfirmed) || errors.Is(err, context.DeadlineExceeded) { // a call took long
			p.say("unconfirmed", m.Key)
			return
		}
		p.say("failed", m.Key, strings.ReplaceAll(err.Error(), "\n", "; "))
	}})
	tarry.Handle(w, p.topic, p.handle)
	p.run(t, w)
}

// run runs a worker from when the process is told to begin until its standard input ends.
func (p *process) run(t *testing.T, w *tarry.Worker) {
	p.say("up")
	told := bufio.NewScanner(os.Stdin)
	told.Scan()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		told.Scan() // ends with the parent process
		stop()
	}()
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
}

// say writes a line for the parent process.
func (p *process) say(what ...any) {
	p.speaks.Lock()
	defer p.speaks.Unlock()
	fmt.Println(append([]any{spoken}, what...)...)
}

// now returns the common time of all processes, in microseconds.
func (p *process) now() int64 { return time.Now().Add(-p.off).UnixMicro() }

// handle holds a lock of the message, which ends with the process. Sometimes it pushes
// another message.
func (p *process) handle(ctx context.Context, m *tarry.Message[bool]) error {
	began := p.now()
	lock, err := os.OpenFile(filepath.Join(p.dir, m.Key), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		p.say("met", m.Key)
	} else if err != nil {
		return err
	}
	p.say("began", m.Key, m.Due.UnixMicro(), began)
	if m.Body {
		before, key := p.now(), followed+m.Key
		pushed, err := p.topic.Push(ctx, p.client, false, tarry.In(followAfter), tarry.Key(key), tarry.OnConflict(tarry.Keep), tarry.Remember(time.Hour))
		if err != nil {
			return err
		}
		if pushed.Outcome == tarry.Created {
			p.say("pushed", key, before, pushed.Due.UnixMicro(), p.now())
		}
	}
	time.Sleep(time.Duration(5+rand.IntN(20)) * time.Millisecond)
	p.say("ended", m.Key)
	return nil
}
