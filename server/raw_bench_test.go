package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// BenchmarkRawPush pushes messages of 200 bytes, one a request, from 64 raw keep-alive
// connections on the same cores: beside what net/http takes for an answer of the same
// length it shows what the server adds, and beside that what an engine does.
func BenchmarkRawPush(b *testing.B) {
	body := func(i int64) string {
		return `{"key":"order-` + strconv.FormatInt(i, 10) + `","delay":"30m","body":"` + strings.Repeat("x", 200) + `"}`
	}
	for _, bench := range []struct {
		name  string
		serve func(ctx context.Context, ln net.Listener) error
	}{
		{"net-http", serveTrivial},
		{"nothing", serveEngine(func() engine.Engine { return idle{memengine.New(nil)} })},
		{"mem", serveEngine(func() engine.Engine { return memengine.New(nil) })},
	} {
		b.Run(bench.name, func(b *testing.B) {
			ln := listen(b)
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- bench.serve(ctx, ln) }()
			b.ReportAllocs()
			before := cpu()
			b.ResetTimer()
			rawClients(b, ln.Addr().String(), body)
			b.StopTimer()
			b.ReportMetric(float64(cpu()-before)/1e3/float64(b.N), "cpu-µs/op") // what counts on a shared machine
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
			stop()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
}

func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// rawClients makes b.N requests and checks that each is answered 201.
func rawClients(b *testing.B, addr string, body func(i int64) string) {
	var next atomic.Int64
	var clients sync.WaitGroup
	for range 64 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		clients.Go(func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			var out []byte
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				out = append(out[:0], request("POST", "/v1/queues/orders/messages", body(i))...)
				if _, err := conn.Write(out); err != nil {
					b.Error(err)
					return
				}
				if _, err := skipAnswer(in, 201); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
}

// skipAnswer reads an answer with as little as it takes, and returns its length.
func skipAnswer(in *bufio.Reader, status int) (length int, err error) {
	length = -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if first {
			if got, _ := strconv.Atoi(string(line[min(len(line), 9):min(len(line), 12)])); got != status {
				return 0, fmt.Errorf("answered %q", line)
			}
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
		if len(line) == 2 {
			break
		}
	}
	if length < 0 {
		return 0, fmt.Errorf("no length")
	}
	_, err = in.Discard(length)
	return length, err
}

func serveTrivial(ctx context.Context, ln net.Listener) error {
	const answer = `{"outcome":"created","id":"123456","queue":"orders","key":"order-123456","due":"2030-03-01T12:30:00.000Z","state":"scheduled"}`
	return servePlain(ctx, ln, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answerPlain(w, http.StatusCreated, answer)
	})
}

// servePlain serves with net/http alone.
func servePlain(ctx context.Context, ln net.Listener, handle http.HandlerFunc) error {
	s := &http.Server{Handler: handle}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(ln); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func answerPlain(w http.ResponseWriter, status int, answer string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func serveEngine(open func() engine.Engine) func(ctx context.Context, ln net.Listener) error {
	return func(ctx context.Context, ln net.Listener) error {
		eng := open()
		defer eng.Close()
		c := tarry.New(eng, nil)
		defer c.Close()
		return server.New(c, nil).Serve(ctx, ln)
	}
}

// idle is an engine that does nothing.
type idle struct{ *memengine.Engine }

func (idle) Push(_ context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	rs := make([]engine.PushResult, len(msgs))
	for i := range rs {
		rs[i] = engine.PushResult{Outcome: engine.Created, ID: 123456, Due: time.Unix(1_900_000_000, 0), State: engine.Scheduled}
	}
	return rs, nil
}
