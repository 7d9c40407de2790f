//go:build linux

package beanstalk

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tarryhq/tarry/bench/scenario"
)

// client is a connection.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(b testing.TB, s *server) *client {
	b.Helper()
	c, err := net.Dial("tcp", s.address)
	must(b, err)
	b.Cleanup(func() { _ = c.Close() })
	must(b, c.SetDeadline(time.Now().Add(10*time.Minute)))
	return &client{c, bufio.NewReaderSize(c, 16<<10)}
}

// each has n clients do something at the same time.
func each(b testing.TB, s *server, n int, do func(c *client) error) {
	b.Helper()
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = dial(b, s)
	}
	var all errgroup.Group
	for _, c := range clients {
		all.Go(func() error { return do(c) })
	}
	must(b, all.Wait())
}

// line reads an answer that has to begin with want, and returns the rest of its line.
func (c *client) line(want string) ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte(want))
	if !ok {
		return nil, fmt.Errorf("the answer is %q, not %s", line, want)
	}
	return rest, nil
}

// ask sends a command and reads its answer.
func (c *client) ask(command, want string) error {
	if _, err := io.WriteString(c.conn, command+"\r\n"); err != nil {
		return err
	}
	_, err := c.line(want)
	return err
}

// put puts n jobs, batch of them before it reads the answers.
func (c *client) put(n, batch int, delay time.Duration) error {
	command := fmt.Sprintf("put 1024 %d 60 %d\r\n%s\r\n", int(delay.Seconds()), *scenario.BodySize, bytes.Repeat([]byte("x"), *scenario.BodySize))
	for n > 0 {
		now := min(batch, n)
		if _, err := c.conn.Write(bytes.Repeat([]byte(command), now)); err != nil {
			return err
		}
		for range now {
			if _, err := c.line("INSERTED "); err != nil {
				return err
			}
		}
		n -= now
	}
	return nil
}

// work reserves and deletes n jobs.
func (c *client) work(n int) error {
	for range n {
		if _, err := io.WriteString(c.conn, "reserve\r\n"); err != nil {
			return err
		}
		rest, err := c.line("RESERVED ")
		if err != nil {
			return err
		}
		id, size, _ := bytes.Cut(rest, []byte(" "))
		command := fmt.Appendf(nil, "delete %s\r\n", id)
		length, err := strconv.Atoi(string(size))
		if err != nil || length != *scenario.BodySize {
			return fmt.Errorf("a job of %q bytes came", size)
		}
		if _, err := c.in.Discard(length + 2); err != nil {
			return err
		}
		if _, err := c.conn.Write(command); err != nil {
			return err
		}
		if _, err := c.line("DELETED"); err != nil {
			return err
		}
	}
	return nil
}
