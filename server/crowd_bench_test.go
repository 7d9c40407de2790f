package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/tarryhq/tarry/server"
)

// BenchmarkCrowd measures what a message costs, from its push to the connection on
// which it is answered and which polls again, when so many poll one queue: beside what
// it costs net/http to wake one of so many requests it shows what the queue adds.
func BenchmarkCrowd(b *testing.B) {
	for _, polls := range []int{1, 5000} {
		b.Run(fmt.Sprint("net-http/", polls), func(b *testing.B) {
			ln := listen(b)
			wake := make(chan struct{})
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- serveWaking(ctx, ln, wake) }()
			crowd(b, ln.Addr(), polls, func() error {
				wake <- struct{}{}
				return nil
			})
			stop()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
		b.Run(fmt.Sprint("mem/", polls), func(b *testing.B) {
			ln := listen(b)
			s := serveListener(b, &server.Config{MaxConnections: 2 * polls}, ln)
			defer s.end()
			crowd(b, ln.Addr(), polls, func() error {
				_, err := s.c.Push(b.Context(), "q", nil)
				return err
			})
		})
	}
}

func listen(b *testing.B) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return ln
}

// crowd has so many connections poll, and pushes messages one after the other.
func crowd(b *testing.B, addr net.Addr, polls int, push func() error) {
	answered := make(chan error, polls)
	again := []byte(request("POST", "/v1/lease", `{"queues":["q"],"wait":"60s","max":1}`))
	for range polls {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		go func() {
			in := bufio.NewReaderSize(conn, 1<<10)
			for {
				if _, err := conn.Write(again); err != nil {
					return
				}
				length, err := skipAnswer(in, 200)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil || length > 200 { // it has a message
					answered <- err
				}
				if err != nil {
					return
				}
			}
		}()
	}
	pass := func() {
		if err := push(); err != nil {
			b.Fatal(err)
		}
		if err := <-answered; err != nil {
			b.Fatal(err)
		}
	}
	for range 2 * polls {
		pass()
	}
	before := cpu()
	for b.Loop() {
		pass()
	}
	b.ReportMetric(float64(cpu()-before)/1e3/float64(b.N), "cpu-µs/op")
}

// serveWaking answers a request when it is woken, with about as much as a lease takes.
func serveWaking(ctx context.Context, ln net.Listener, wake <-chan struct{}) error {
	const answer = `{"messages":[{"id":"123456","queue":"q","key":"","state":"leased","due":"2030-03-01T12:30:00.000Z","created":"2030-03-01T12:30:00.000Z",` +
		`"attempt":1,"max_attempts":5,"priority":4,"ttr":"30s","content_type":"","body":null,"last_error":"","lease":"123456.1.abcdefghijklmnop",` +
		`"lease_expires":"2030-03-01T12:30:30.000Z"}],"now":"2030-03-01T12:30:00.000Z"}`
	return servePlain(ctx, ln, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-wake:
			answerPlain(w, http.StatusOK, answer)
		case <-r.Context().Done():
		}
	})
}
