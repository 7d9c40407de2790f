package peer

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

// beanstalk is a client of beanstalkd, with a connection for each caller.
type beanstalk struct {
	addr  string
	conns chan *beanstalkConn

	mu  sync.Mutex
	ids map[int]string // of jobs, which are deleted by them
}

type beanstalkConn struct {
	net.Conn
	in   *bufio.Reader
	tube string
}

// Beanstalk opens beanstalkd, whose delays are whole seconds: they are rounded up.
func Beanstalk(addr string) (scenario.System, error) {
	s := &beanstalk{addr: addr, conns: make(chan *beanstalkConn, scenario.Clients), ids: make(map[int]string)}
	for range scenario.Clients {
		c, err := s.dial()
		if err != nil {
			return nil, err
		}
		s.conns <- c
	}
	return s, nil
}

func (s *beanstalk) dial() (*beanstalkConn, error) {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return &beanstalkConn{Conn: c, in: bufio.NewReaderSize(c, 16<<10)}, nil
}

// ask sends a command, and returns the rest of its answer, which must begin with want.
func (c *beanstalkConn) ask(command, want string) (string, error) {
	if _, err := io.WriteString(c, command); err != nil {
		return "", err
	}
	return c.answer(want)
}

func (c *beanstalkConn) answer(want string) (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), want)
	if !ok {
		return "", fmt.Errorf("beanstalkd answers %q, not %s", line, want)
	}
	return strings.TrimSpace(rest), nil
}

// body reads what an answer announces: so many bytes.
func (c *beanstalkConn) body(size string) ([]byte, error) {
	n, err := strconv.Atoi(size)
	if err != nil {
		return nil, err
	}
	body := make([]byte, n+2)
	_, err = io.ReadFull(c.in, body)
	return body[:n], err
}

// with has a connection that uses a tube do something.
func (s *beanstalk) with(tube string, do func(c *beanstalkConn) error) error {
	c := <-s.conns
	defer func() { s.conns <- c }()
	if c.tube != tube {
		if _, err := c.ask("use "+tube+"\r\n", "USING"); err != nil {
			return err
		}
		c.tube = tube
	}
	return do(c)
}

func (s *beanstalk) Push(ctx context.Context, queue string, i int, due time.Time) error {
	return s.PushMany(ctx, queue, i, i+1, func(int) time.Time { return due })
}

// PushMany sends all before it reads the answers.
func (s *beanstalk) PushMany(_ context.Context, queue string, from, to int, due func(i int) time.Time) error {
	return s.with(queue, func(c *beanstalkConn) error {
		var out bytes.Buffer
		for i := from; i < to; i++ {
			delay := (time.Until(due(i)) + time.Second - 1) / time.Second
			body := numbered(i)
			fmt.Fprintf(&out, "put 1024 %d 60 %d\r\n%s\r\n", max(delay, 0), len(body), body)
		}
		if _, err := c.Write(out.Bytes()); err != nil {
			return err
		}
		ids := make([]string, to-from)
		for k := range ids {
			var err error
			if ids[k], err = c.answer("INSERTED"); err != nil {
				return err
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for k, id := range ids {
			s.ids[from+k] = id
		}
		return nil
	})
}

func (s *beanstalk) Cancel(_ context.Context, queue string, i int) error {
	s.mu.Lock()
	id := s.ids[i]
	s.mu.Unlock()
	return s.with(queue, func(c *beanstalkConn) error {
		_, err := c.ask("delete "+id+"\r\n", "DELETED")
		return err
	})
}

// Work has a connection for each worker.
func (s *beanstalk) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var workers sync.WaitGroup
	for range scenario.Clients {
		c, err := s.dial()
		scenario.Must(b, err)
		for _, q := range queues {
			_, err := c.ask("watch "+q+"\r\n", "WATCHING")
			scenario.Must(b, err)
		}
		context.AfterFunc(ctx, func() { _ = c.Close() }) // while it waits for a job
		workers.Go(func() {
			for {
				if err := c.handle(started); err != nil {
					if ctx.Err() == nil {
						b.Error(err)
					}
					return
				}
			}
		})
	}
	return func() {
		cancel()
		workers.Wait()
	}
}

func (c *beanstalkConn) handle(started func(i int)) error {
	job, err := c.ask("reserve\r\n", "RESERVED")
	if err != nil {
		return err
	}
	id, size, _ := strings.Cut(job, " ")
	body, err := c.body(size)
	if err != nil {
		return err
	}
	started(number(body))
	_, err = c.ask("delete "+id+"\r\n", "DELETED")
	return err
}

func (s *beanstalk) Empty(ctx context.Context, queue string) (bool, error) {
	n, err := s.Count(ctx, queue)
	return n == 0, err
}

func (s *beanstalk) Count(_ context.Context, queue string) (n int, err error) {
	err = s.with(queue, func(c *beanstalkConn) error {
		size, err := c.ask("stats-tube "+queue+"\r\n", "OK")
		if err != nil {
			return err
		}
		text, err := c.body(size)
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch name {
			case "current-jobs-ready", "current-jobs-delayed", "current-jobs-reserved", "current-jobs-buried":
				jobs, _ := strconv.Atoi(value)
				n += jobs
			}
		}
		return err
	})
	return n, err
}

func (s *beanstalk) Close() error {
	for range scenario.Clients {
		_ = (<-s.conns).Close()
	}
	return nil
}
