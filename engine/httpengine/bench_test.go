package httpengine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// listen runs a server as the command does, on a listener of its own.
func listen(t testing.TB, eng engine.Engine) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := tarry.New(eng, nil)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.New(c, nil).Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = c.Close()
		_ = eng.Close()
	})
	return "http://" + ln.Addr().String()
}

// BenchmarkPush pushes messages of 200 bytes with keys from 64 clients over loopback,
// client and server in this process.
func BenchmarkPush(b *testing.B) {
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			e := open(b, listen(b, memengine.New(nil)))
			defer e.Close()
			c := tarry.New(e, nil)
			defer c.Close()
			body := make([]byte, 200)
			calls := make(chan int, 1024)
			var before syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				for i := range b.N {
					calls <- i
				}
				close(calls)
			}()
			done := make(chan error)
			for range 64 {
				go func() {
					var err error
					for i := range calls {
						if err == nil {
							err = pushSome(b.Context(), c, body, i*batch, batch)
						}
					}
					done <- err
				}()
			}
			for range 64 {
				if err := <-done; err != nil {
					b.Error(err)
				}
			}
			var after syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(cpu)/1e3/float64(b.N*batch), "cpu-µs/msg") // what counts on a shared machine
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

func pushSome(ctx context.Context, c *tarry.Client, body []byte, first, n int) error {
	if n == 1 {
		_, err := c.Push(ctx, "orders", body, tarry.Key(strconv.Itoa(first)), tarry.In(3600e9))
		return err
	}
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = tarry.NewDraft("orders", body, tarry.Key(strconv.Itoa(first+i)), tarry.In(3600e9))
	}
	pushed, err := c.PushMany(ctx, msgs)
	for _, p := range pushed {
		err = errors.Join(err, p.Err)
	}
	return err
}
