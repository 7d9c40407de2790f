package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

// node is a library for Node, in a process of its own: see bench/node/run.mjs.
type node struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	last    int
	waiting map[int]chan nodeLine
	started func(i int, at time.Time)
	ended   error // why there are no more answers
}

// nodeLine is what it says.
type nodeLine struct {
	ID      int
	Ready   bool
	N       int
	Seconds float64
	Error   string
	Started [][2]float64
}

// Node starts the peer of that name in bench/node, which is at dir, on the server of a URL.
func Node(ctx context.Context, dir, name, url string) (scenario.System, error) {
	s := &node{cmd: exec.Command("node", "run.mjs", name, url), waiting: make(map[int]chan nodeLine)}
	s.cmd.Dir, s.cmd.Stderr = dir, os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	ready := make(chan nodeLine, 1)
	s.waiting[0] = ready
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.read(out)
	select {
	case line := <-ready:
		if line.Error != "" {
			return nil, errors.Join(errors.New(line.Error), s.Close())
		}
		return s, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), s.Close())
	}
}

// PID returns the id of the process, which is a client and no part of a server.
func (s *node) PID() int { return s.cmd.Process.Pid }

func (s *node) read(out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<16)
	for {
		text, err := lines.ReadBytes('\n')
		var line nodeLine
		if err == nil {
			err = json.Unmarshal(text, &line)
		}
		if err != nil {
			s.end(fmt.Errorf("the process of Node says no more: %w", err))
			return
		}
		s.mu.Lock()
		started, waiting := s.started, s.waiting[line.ID]
		if len(line.Started) == 0 {
			delete(s.waiting, line.ID)
		}
		s.mu.Unlock()
		for _, m := range line.Started {
			started(int(m[0]), time.UnixMicro(int64(m[1]*1000)))
		}
		if len(line.Started) == 0 && waiting != nil {
			waiting <- line
		}
	}
}

// end fails who waits for an answer.
func (s *node) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
	for _, waiting := range s.waiting {
		waiting <- nodeLine{Error: err.Error()}
	}
	clear(s.waiting)
}

// ask sends a command and waits for its answer.
func (s *node) ask(ctx context.Context, command map[string]any) (nodeLine, error) {
	answer := make(chan nodeLine, 1)
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return nodeLine{}, s.ended
	}
	s.last++
	command["id"] = s.last
	s.waiting[s.last] = answer
	err := json.NewEncoder(s.in).Encode(command)
	s.mu.Unlock()
	if err != nil {
		return nodeLine{}, err
	}
	select {
	case line := <-answer:
		if line.Error != "" {
			err = errors.New(line.Error)
		}
		return line, err
	case <-ctx.Done():
		return nodeLine{}, ctx.Err()
	}
}

func (s *node) Load(ctx context.Context, l Load) (n int, took time.Duration, err error) {
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	a, err := s.ask(ctx, map[string]any{
		"do": "load", "kind": l.Kind, "queue": l.Queue, "clients": l.Clients, "batch": l.Batch, "from": l.From, "to": l.To,
		"first": l.First.UnixMilli(), "step": milliseconds(l.Step), "spread": milliseconds(l.Spread), "seconds": l.For.Seconds(),
	})
	return a.N, time.Duration(a.Seconds * float64(time.Second)), err
}

func (s *node) Push(ctx context.Context, queue string, i int, due time.Time) error {
	_, _, err := s.Load(ctx, Load{Kind: "push", Queue: queue, Clients: 1, Batch: 1, From: i, To: i + 1, First: due})
	return err
}

// PushMany is not used: loads run in the process.
func (s *node) PushMany(context.Context, string, int, int, func(i int) time.Time) error {
	return errors.ErrUnsupported
}

func (s *node) Cancel(ctx context.Context, queue string, i int) error {
	_, _, err := s.Load(ctx, Load{Kind: "cancel", Queue: queue, Clients: 1, Batch: 1, From: i, To: i + 1})
	return err
}

func (s *node) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	return s.WorkTimed(b, queues, func(i int, _ time.Time) { started(i) })
}

// WorkTimed also tells when a message was started: the process knows.
func (s *node) WorkTimed(b *testing.B, queues []string, started func(i int, at time.Time)) (stop func()) {
	s.mu.Lock()
	s.started = started
	s.mu.Unlock()
	_, err := s.ask(b.Context(), map[string]any{"do": "work", "queue": queues[0]})
	scenario.Must(b, err)
	return func() {
		_, err := s.ask(context.WithoutCancel(b.Context()), map[string]any{"do": "stop"})
		scenario.Must(b, err)
	}
}

func (s *node) Empty(ctx context.Context, queue string) (bool, error) {
	n, err := s.Count(ctx, queue)
	return n == 0, err
}

func (s *node) Count(ctx context.Context, queue string) (int, error) {
	a, err := s.ask(ctx, map[string]any{"do": "count", "queue": queue})
	return a.N, err
}

// Close ends the process, whose input has then ended.
func (s *node) Close() error {
	_ = s.in.Close()
	dead := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer dead.Stop()
	return s.cmd.Wait()
}
