package calls

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestFateOf(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if c, err := l.Accept(); err == nil {
			_ = c.Close() // with the request unread or read: it does not tell
		}
	}()
	_, err = http.Get("http://" + addr)
	if err == nil || FateOf(err) != Unknown {
		t.Errorf("the fate of %v is %d", err, FateOf(err))
	}
	<-gone
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = http.Get("http://" + addr)
	if err == nil || FateOf(err) != NotRun {
		t.Errorf("the fate of %v is %d", err, FateOf(err))
	}
	for _, err := range []error{io.EOF, context.Canceled, context.DeadlineExceeded, &net.OpError{Op: "read", Err: io.EOF}} {
		if FateOf(err) != Unknown {
			t.Errorf("the fate of %v is %d", err, FateOf(err))
		}
	}
}

func TestBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := Within(time.Second, time.Minute)
		if b.Over() || time.Until(b.Answer) != time.Minute {
			t.Errorf("%+v", b)
		}
		time.Sleep(time.Second)
		if !b.Over() {
			t.Error("it is not over after its time")
		}
		if b := Once(time.Minute); !b.Over() || time.Until(b.Answer) != time.Minute {
			t.Errorf("%+v", b)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := Pause{Least: 30 * time.Millisecond, Most: 100 * time.Millisecond}
		for n, want := range []time.Duration{30, 60, 100, 100} {
			began := time.Now()
			if !p.Wait(ctx) || time.Since(began) != want*time.Millisecond {
				t.Errorf("pause %d took %v", n, time.Since(began))
			}
		}
		p.Reset()
		began := time.Now()
		if p.Wait(ctx); time.Since(began) != 30*time.Millisecond {
			t.Errorf("the first anew took %v", time.Since(began))
		}
		time.AfterFunc(time.Millisecond, cancel)
		began = time.Now()
		if p.Wait(ctx) || time.Since(began) != time.Millisecond {
			t.Errorf("it waited %v for a context that ended", time.Since(began))
		}
	})
}
