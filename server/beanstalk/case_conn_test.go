package beanstalk_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// conn is a connection of a test.
type conn struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// dial connects to the server. The end of the test closes the connection.
func (s *site) dial(t testing.TB) *conn {
	t.Helper()
	c, err := net.Dial(s.network, s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &conn{Conn: c, t: t, r: bufio.NewReader(c)}
}

// send sends bytes as they are.
func (c *conn) send(text string) {
	c.t.Helper()
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next answer: a line, and the body that it announces, after " | ". Lines of YAML are
// separated by LF. Besides: "EOF", "RESET", and "NO ANSWER" within d.
func (c *conn) read(d time.Duration) string {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.r.Peek(1); err != nil {
		return failed(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil { // the rest of what has begun comes
		c.t.Fatal(err)
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return line + failed(err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return line
	}
	switch words[0] {
	case "RESERVED", "FOUND", "OK":
		n, err := strconv.Atoi(words[len(words)-1])
		if err != nil {
			return line
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, body); err != nil {
			return line + " | " + failed(err)
		}
		if string(body[n:]) != "\r\n" {
			return fmt.Sprintf("%s | %q", line, body)
		}
		return line + " | " + string(body[:n])
	}
	return line
}

func failed(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "NO ANSWER"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "EOF"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "RESET"
	}
	return err.Error()
}

// cmd sends a line and returns its answer.
func (c *conn) cmd(format string, args ...any) string {
	c.t.Helper()
	c.send(fmt.Sprintf(format, args...) + "\r\n")
	return c.read(patience)
}

// quit ends the connection, and waits until the server has ended it.
func (c *conn) quit() {
	c.t.Helper()
	if a := c.cmd("quit"); a != "EOF" {
		c.t.Fatalf("quit: %q", a)
	}
	_ = c.Close()
}

// put puts a job and returns its id.
func (c *conn) put(pri, delay, ttr uint32, body string) (id string) {
	c.t.Helper()
	a := c.cmd("put %d %d %d %d\r\n%s", pri, delay, ttr, len(body), body)
	id, ok := strings.CutPrefix(a, "INSERTED ")
	if !ok {
		c.t.Fatalf("put: %q", a)
	}
	return id
}

// yaml returns what a stats command answers, key by key.
func yaml(answer string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(answer) {
		if k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok {
			m[k] = strings.Trim(v, `"`)
		}
	}
	return m
}
