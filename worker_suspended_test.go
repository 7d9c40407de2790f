package tarry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// suspendedServer is the variable by which a process of this test binary becomes
// one worker of that server, which stops itself once it has leased something.
const suspendedServer = "TARRY_TEST_SUSPENDED_SERVER"

// suspending is an engine that stops the process between a lease and its handler.
type suspending struct{ *httpengine.Engine }

func (s suspending) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	got, err := s.Engine.LeaseWait(ctx, w)
	if err == nil && len(got.Messages) > 0 {
		fmt.Println("leased")
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until it is said that we go on
	}
	return got, err
}

// workSuspended is the life of that process; it tells what happens on its output.
func workSuspended(url string) error {
	e, err := engine.Open(context.Background(), url)
	if err != nil {
		return err
	}
	defer e.Close()
	c := tarry.New(suspending{e.(*httpengine.Engine)}, nil)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 20 * time.Millisecond, Observer: func(e tarry.Event) {
		fmt.Println(e.Kind)
		if e.Kind == tarry.LeaseLost || e.Kind == tarry.Released || e.Kind == tarry.Acked {
			cancel()
		}
	}})
	tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
		fmt.Println("handled")
		return nil
	})
	return w.Run(ctx)
}

// A process that was stopped while it held a lease goes on after the lease has
// lapsed and somebody has cancelled the message.
func TestWorkerOfASuspendedProcessStartsNothingThatIsOver(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	s := httptest.NewServer(server.New(c, nil))
	defer s.Close()
	push(t, c, "q", "x", tarry.Key("k"))

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), suspendedServer+"="+s.URL)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "leased\n" {
		t.Fatalf("the worker says %q, %v", line, err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the worker did not stop: %v, %v", status, err)
	}
	for {
		err := c.Cancel(t.Context(), tarry.ByKey("k").Of("q"))
		if err == nil {
			break
		}
		if !errors.Is(err, tarry.ErrLeased) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	var said []string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		said = append(said, strings.TrimSpace(line))
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the worker: %v", err)
	}
	if len(said) != 1 || said[0] != "lease_lost" {
		t.Errorf("the worker did %q; want it to notice that the lease was lost, and no more", said)
	}
}

// wallAhead is t as if the wall clock had gone on by whole seconds while the
// monotonic clock stood still, as when the machine was suspended. In a synctest
// bubble there is no monotonic clock.
func wallAhead(t time.Time, d time.Duration) time.Time {
	type layout struct {
		wall uint64 // 1 bit of flags, 33 bits of seconds, 30 of nanoseconds
		ext  int64  // the monotonic clock
		loc  *time.Location
	}
	(*layout)(unsafe.Pointer(&t)).wall += uint64(d/time.Second) << 30
	return t
}

func TestWorkerOfASuspendedMachineStartsNothingThatIsOver(t *testing.T) {
	if now := time.Now(); wallAhead(now, time.Hour).Sub(now) != 0 || wallAhead(now, time.Hour).Round(0).Sub(now.Round(0)) != time.Hour {
		t.Fatal("package time has another layout; mend wallAhead")
	}
	var slept atomic.Int64
	now := func() time.Time { return wallAhead(time.Now(), time.Duration(slept.Load())) }
	s := newStage()
	s.Engine = memengine.New(&memengine.Config{Now: now})
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		if len(g.Queues[0].Messages) > 0 {
			slept.Store(int64(time.Hour))
			stall(t, s, 0)
		}
		return g, err
	}
	s.push, s.settle, s.watch = s.Engine.Push, s.Engine.Settle, s.Engine.Watch
	c := tarry.New(s, nil)
	defer c.Close()
	tarry.SetClock(c, now)
	ctx, cancel := context.WithCancel(t.Context())
	var rec record
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: func(e tarry.Event) {
		rec.observe(e)
		cancel()
	}})
	tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
		t.Error("a handler started")
		return nil
	})
	push(t, c, "q", "x", tarry.Key("k"))
	if err := w.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	rec.one(t, tarry.LeaseLost)
}

// The worker stalls before its k-th look at the clock, for every k; while it does
// its lease lapses and the message is cancelled.
func TestWorkerStalledAnywhereStartsNothingThatIsOver(t *testing.T) {
	const ttr = 2 * time.Millisecond
	refused := 0
	for k := int64(1); ; k++ {
		var looks atomic.Int64
		var off atomic.Int64
		var cancelled, handled atomic.Bool
		s := newStage()
		s.Engine = memengine.New(&memengine.Config{Now: func() time.Time { return time.Now().Add(time.Duration(off.Load())) }})
		s.push, s.lease, s.settle = s.Engine.Push, s.Engine.Lease, s.Engine.Settle
		s.watch = func(func(string)) func() { return func() {} }
		bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
			w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: ttr, Concurrency: 1})
			yes := func(context.Context, *tarry.Message[string]) (bool, error) { return true, nil }
			tarry.Handle(w, bytesTopic.OnlyIf(yes), func(context.Context, *tarry.Message[string]) error {
				if handled.Store(true); cancelled.Load() {
					t.Errorf("stalled before look %d, and started what had been cancelled", k)
				}
				return nil
			})
			push(t, c, "q", "x", tarry.Key("k"))
			tarry.SetWorkerClock(w, func() time.Time {
				if looks.Add(1) == k {
					off.Store(int64(5 * ttr))
					errs, err := s.Cancel(context.Background(), []engine.Ref{{Queue: "q", Key: "k"}})
					cancelled.Store(err == nil && errs[0] == nil)
				}
				return time.Now().Add(time.Duration(off.Load()))
			})
			stop := run(t, w)
			pass(time.Second)
			stop()
		})
		if cancelled.Load() && !handled.Load() {
			refused++
		}
		if looks.Load() < k {
			break
		}
	}
	if refused == 0 {
		t.Error("no stall came between a lease and its handler")
	}
}
