package server

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// starved is a listener whose first calls find no file descriptor free.
type starved struct {
	net.Listener
	err  syscall.Errno
	left atomic.Int32
}

func (s *starved) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: s.Addr(), Err: os.NewSyscallError("accept4", s.err)}
	}
	return s.Listener.Accept()
}

// A server without a free file descriptor says which limit to raise, and goes on once one
// is free.
func TestStarvedOfFiles(t *testing.T) {
	for err, want := range map[syscall.Errno]string{
		syscall.EMFILE: "LimitNOFILE",
		syscall.ENFILE: "fs.file-max",
	} {
		t.Run(err.Error(), func(t *testing.T) {
			c := tarry.New(memengine.New(nil), nil)
			defer func() {
				_ = c.Close()
				_ = c.Engine().Close()
			}()
			ln, e := net.Listen("tcp", "127.0.0.1:0")
			if e != nil {
				t.Fatal(e)
			}
			s := &starved{Listener: ln, err: err}
			s.left.Store(3)
			log := new(lines)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- New(c, &Config{Logger: slog.New(slog.NewTextHandler(log, nil))}).Serve(ctx, s)
			}()
			resp, e := http.Get("http://" + ln.Addr().String() + "/healthz")
			if e != nil {
				t.Fatal(e)
			}
			_ = resp.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			stop()
			if e := <-done; e != nil {
				t.Error(e)
			}
			told := log.String()
			if !strings.Contains(told, err.Error()) || !strings.Contains(told, want) {
				t.Errorf("the log says\n%s", told)
			}
		})
	}
}
