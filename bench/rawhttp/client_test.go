//go:build linux

package rawhttp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
)

// client is one keep-alive connection.
type client struct {
	net.Conn
	in          *bufio.Reader
	out, answer []byte
}

// dialAll opens the connections of a load.
func dialAll(b testing.TB, address string) []*client {
	all := make([]*client, *conns)
	for i := range all {
		c, err := net.Dial("tcp", address)
		must(b, err)
		b.Cleanup(func() { _ = c.Close() })
		all[i] = &client{Conn: c, in: bufio.NewReader(c)}
	}
	return all
}

// each has all clients do their share of n calls.
func each(b testing.TB, all []*client, n int, call func(c *client, i int) error) {
	b.Helper()
	var next atomic.Int64
	var g errgroup.Group
	for _, c := range all {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := call(c, i); err != nil {
					return err
				}
			}
		})
	}
	must(b, g.Wait())
}

// post makes a request and reads its answer, which must have this status and state its length.
func (c *client) post(path string, body []byte, status int) ([]byte, error) {
	c.out = append(append(append(c.out[:0], "POST "...), path...), " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "...)
	c.out = append(append(strconv.AppendInt(c.out, int64(len(body)), 10), "\r\n\r\n"...), body...)
	if _, err := c.Write(c.out); err != nil {
		return nil, err
	}
	length, got := -1, ""
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if first {
			got = strings.TrimSpace(string(line))
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
		if len(line) == 2 {
			break
		}
	}
	if length < 0 {
		return nil, fmt.Errorf("%s: no length", got)
	}
	c.answer = append(c.answer[:0], make([]byte, length)...)
	if _, err := io.ReadFull(c.in, c.answer); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(got, "HTTP/1.1 "+strconv.Itoa(status)) {
		return nil, fmt.Errorf("%s: %s", got, c.answer)
	}
	return c.answer, nil
}

var filler = strings.Repeat("x", 200)

// push pushes a message with a key of its own.
func (c *client) push(key int) error { return c.pushIn(key, "24h") }

// pushDue pushes one that is due at once.
func (c *client) pushDue(key int) error { return c.pushIn(key, "0s") }

func (c *client) pushIn(key int, delay string) error {
	body := make([]byte, 0, 300)
	body = append(strconv.AppendInt(append(body, `{"key":"order-`...), int64(key), 10), `","delay":"`...)
	body = append(append(append(append(body, delay...), `","body":"`...), filler...), `"}`...)
	_, err := c.post("/v1/queues/orders/messages", body, 201)
	return err
}

// work leases one message and acks it.
func (c *client) work(int) error {
	answer, err := c.post("/v1/lease", []byte(`{"queues":["orders"],"max":1}`), 200)
	if err != nil {
		return err
	}
	_, rest, ok := bytes.Cut(answer, []byte(`"lease":"`))
	if !ok {
		return fmt.Errorf("nothing was leased: %s", answer)
	}
	token, _, _ := bytes.Cut(rest, []byte(`"`))
	answer, err = c.post("/v1/settle", fmt.Appendf(nil, `{"settlements":[{"lease":"%s","do":"ack"}]}`, token), 200)
	if err == nil && bytes.Contains(answer, []byte("error")) {
		err = fmt.Errorf("an ack was answered %s", answer)
	}
	return err
}
