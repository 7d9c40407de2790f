package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/tarryhq/tarry/server"
)

// BenchmarkCrowd measures what a message costs, from its push to the connection on
// which it is answered and which polls again, when so many poll one queue.
func BenchmarkCrowd(b *testing.B) {
	for _, polls := range []int{1, 5000} {
		b.Run(fmt.Sprint(polls), func(b *testing.B) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			s := serveListener(b, &server.Config{MaxConnections: 2 * polls}, ln)
			defer s.end()
			answered := make(chan error, polls)
			again := []byte(request("POST", "/v1/lease", `{"queues":["q"],"wait":"60s","max":1}`))
			for range polls {
				conn, err := net.Dial("tcp", ln.Addr().String())
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
			push := func() {
				if _, err := s.c.Push(b.Context(), "q", nil); err != nil {
					b.Fatal(err)
				}
				if err := <-answered; err != nil {
					b.Fatal(err)
				}
			}
			for range 2 * polls {
				push()
			}
			before := cpu()
			for b.Loop() {
				push()
			}
			b.ReportMetric(float64(cpu()-before)/1e3/float64(b.N), "cpu-µs/op")
		})
	}
}
