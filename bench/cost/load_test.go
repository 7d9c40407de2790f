package cost

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	clients  = 64
	bodySize = 200
)

// each has the clients make calls for 0 to n-1, batch at a time.
func each(n, batch int, call func(from, to int) error) error {
	var (
		next    atomic.Int64
		callers sync.WaitGroup
		failed  = make(chan error, clients)
	)
	for range min(clients, (n+batch-1)/batch) {
		callers.Go(func() {
			for {
				from := int(next.Add(int64(batch))) - batch
				if from >= n {
					return
				}
				if err := call(from, min(from+batch, n)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	callers.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// target is a server with a keep-alive connection for each client.
type target struct {
	addr  string
	conns chan *conn
	keys  int
}

type conn struct {
	net.Conn
	in          *bufio.Reader
	out, answer []byte
}

func dial(addr string) (*target, error) {
	t := &target{addr: addr, conns: make(chan *conn, clients)}
	for range clients {
		c, err := net.DialTimeout("tcp", addr, patience)
		if err != nil {
			return nil, err
		}
		t.conns <- &conn{Conn: c, in: bufio.NewReader(c)}
	}
	return t, nil
}

func (t *target) close() {
	for range clients {
		(<-t.conns).Close()
	}
}

// call makes a request, and hands what was answered to read, if that is not nil.
func (t *target) call(path, body string, read func(answer []byte) error) error {
	c := <-t.conns
	defer func() { t.conns <- c }()
	c.out = fmt.Appendf(c.out[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, t.addr, len(body), body)
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.Write(c.out); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := bytes.NewBuffer(c.answer[:0])
	if _, err := io.Copy(answer, resp.Body); err != nil {
		return err
	}
	c.answer = answer.Bytes()
	if resp.StatusCode >= 300 || bytes.Contains(c.answer, []byte(`"error":{`)) {
		return fmt.Errorf("%s was answered %s: %s", path, resp.Status, c.answer)
	}
	if read == nil {
		return nil
	}
	return read(c.answer)
}

var body = strings.Repeat("0123456789", bodySize/10)

// message is one to push, without the brace before it.
func message(key int, delay string) string {
	return `"key":"order-` + strconv.Itoa(key) + `","delay":"` + delay + `","body":"` + body + `"}`
}

// push pushes n messages, each in a request of its own.
func (t *target) push(n int) error {
	first := t.take(n)
	return each(n, 1, func(i, _ int) error {
		return t.call("/v1/queues/orders/messages", "{"+message(first+i, "24h"), nil)
	})
}

// pushBatch pushes n messages, batchSize a request.
func (t *target) pushBatch(n int) error { return t.pushMany(n, "24h") }

const (
	batchSize = 100
	leaseSize = 10
)

func (t *target) pushMany(n int, delay string) error {
	first := t.take(n)
	return each(n, batchSize, func(from, to int) error {
		var b strings.Builder
		for i := from; i < to; i++ {
			b.WriteString(`,{"queue":"orders",` + message(first+i, delay))
		}
		return t.call("/v1/messages", `{"messages":[`+b.String()[1:]+`]}`, nil)
	})
}

// fill pushes n messages that are due.
func (t *target) fill(n int) error { return t.pushMany(n, "0s") }

// work leases n messages and acks them, leaseSize at a time.
func (t *target) work(n int) error {
	var got atomic.Int64
	err := each(n, leaseSize, func(from, to int) error {
		var leased struct {
			Messages []struct{ Lease string }
		}
		err := t.call("/v1/lease", `{"queues":["orders"],"max":`+strconv.Itoa(to-from)+`}`, func(answer []byte) error { return json.Unmarshal(answer, &leased) })
		if err != nil || len(leased.Messages) == 0 {
			return err
		}
		got.Add(int64(len(leased.Messages)))
		var b strings.Builder
		for _, m := range leased.Messages {
			b.WriteString(`,{"lease":"` + m.Lease + `","do":"ack"}`)
		}
		return t.call("/v1/settle", `{"settlements":[`+b.String()[1:]+`]}`, nil)
	})
	if err == nil && got.Load() != int64(n) {
		err = fmt.Errorf("%d messages were leased, not %d", got.Load(), n)
	}
	return err
}

// purge makes room after a turn.
func (t *target) purge() error { return t.call("/v1/queues/orders/purge", "{}", nil) }

func (t *target) take(n int) (first int) {
	first = t.keys
	t.keys += n
	return first
}
