package cost

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// crowd are those who watch a server.
type crowd struct {
	url  string
	http *http.Client

	size   int
	events atomic.Int64
	reads  atomic.Int64 // of pages

	leave  context.CancelFunc
	people sync.WaitGroup
	begun  chan error
}

// watch does what its input says until that ends, and answers with a number: "watch KIND N"
// has so many watch, once all are told of what changes; "leave" has them go; "events" counts
// the events that they were told, "reads" what their pages
// have read, and "used" the processors' time, in nanoseconds.
func watch(addr string, in io.Reader, out io.Writer) error {
	c := &crowd{url: "http://" + addr, leave: func() {}, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10_000, MaxIdleConns: 10_000}}}
	defer c.goAway()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var answer int64
		switch words := strings.Fields(lines.Text()); words[0] {
		case "watch":
			n, err := strconv.Atoi(words[2])
			if err == nil {
				err = c.come(words[1], n)
			}
			if err != nil {
				return err
			}
		case "leave":
			c.goAway()
		case "events":
			answer = c.events.Load()
		case "reads":
			answer = c.reads.Load()
		case "used":
			answer = used()
		}
		fmt.Fprintln(out, answer)
	}
	return nil
}

func (c *crowd) come(kind string, n int) error {
	ctx, leave := context.WithCancel(context.Background())
	c.size = n
	c.leave, c.begun = leave, make(chan error, n)
	for range n {
		c.people.Go(func() {
			if err := c.look(ctx, kind); err != nil && ctx.Err() == nil {
				c.begun <- err
			}
		})
	}
	for range n {
		if err := <-c.begun; err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) goAway() {
	c.leave()
	c.people.Wait()
}

// look watches until ctx ends.
func (c *crowd) look(ctx context.Context, kind string) error {
	query := "queues=orders"
	if kind == "overview" {
		query = "overview=changes"
	}
	r, err := http.NewRequestWithContext(ctx, "GET", c.url+"/v1/live?"+query, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("to watch was answered %s", resp.Status)
	}
	var p *page
	if kind == "page" {
		p = newPage(ctx, c)
		defer p.readers.Wait()
	}
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		switch {
		case bytes.HasPrefix(line, []byte("event: begin")):
			c.begun <- nil
		case bytes.HasPrefix(line, []byte("event: queues")):
			c.events.Add(1)
			if p != nil {
				p.changed()
			}
		}
	}
}
