//go:build linux

package workertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

const (
	poisonTTR      = 4 * time.Second // must not pass for a message that kills no process
	poisonAttempts = 5
	innocents      = 19
	poisoned       = innocents / 2 // the key of the message that kills its process
)

// RunPoison pushes twenty messages, one of which kills the process that handles it. One
// process after another handles them until none is left. In the end the message must have
// killed as many processes as it has attempts, and be dead. All others must be handled.
//
// The processes are the test binary, which runs the same test again. They do not call open,
// which makes a store and returns its URL. So call RunPoison first, before anything else is
// started. No other process may have the store open.
func RunPoison(t *testing.T, open func() (url string)) {
	if os.Getenv(processURL) != "" {
		atPoison(t)
		return
	}
	url, queue := open(), fmt.Sprint("poison-", time.Now().UnixNano())
	withClient(t, url, func(c *tarry.Client) {
		for i := range innocents + 1 {
			if _, err := tarry.NewTopic[int](queue).Push(t.Context(), c, i, tarry.Key(strconv.Itoa(i)), tarry.MaxAttempts(poisonAttempts)); err != nil {
				t.Fatal(err)
			}
		}
	})
	killed := 0
	for ended := false; !ended; {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), processURL+"="+url, processQueue+"="+queue)
		out, err := cmd.CombinedOutput()
		state := cmd.ProcessState.Sys().(syscall.WaitStatus)
		switch {
		case err == nil:
			ended = true
		case state.Signaled() && state.Signal() == syscall.SIGKILL && t.Context().Err() == nil:
			killed++
		default:
			t.Fatalf("after %d kills: %v\n%s", killed, err, out)
		}
	}
	if killed != poisonAttempts {
		t.Errorf("%d processes were killed by a message with %d attempts", killed, poisonAttempts)
	}
	withClient(t, url, func(c *tarry.Client) {
		q, err := c.Queue(t.Context(), queue)
		if err != nil || q.Dead != 1 || q.Scheduled+q.Ready+q.Leased > 0 {
			t.Errorf("what is left: %+v, %v", q, err)
		}
		if m, err := c.Get(t.Context(), tarry.ByKey(strconv.Itoa(poisoned)).Of(queue)); err != nil || m.State != tarry.Dead || m.Attempt != poisonAttempts {
			t.Errorf("the poisoned message is %s at attempt %d, %v", m.State, m.Attempt, err)
		}
	})
}

// atPoison works until only dead messages are left, or it is killed.
func atPoison(t *testing.T) {
	withClient(t, os.Getenv(processURL), func(c *tarry.Client) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		queue := os.Getenv(processQueue)
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 4, LeaseTTR: poisonTTR})
		tarry.Handle(w, tarry.NewTopic[int](queue), func(_ context.Context, m *tarry.Message[int]) error {
			if m.Body == poisoned {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		})
		var working sync.WaitGroup
		working.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		for ; ; time.Sleep(20 * time.Millisecond) {
			if q, err := c.Queue(ctx, queue); err != nil {
				t.Error(err)
				break
			} else if q.Scheduled+q.Ready+q.Leased == 0 {
				break
			}
		}
		stop()
		working.Wait()
	})
}

func withClient(t *testing.T, url string, do func(c *tarry.Client)) {
	t.Helper()
	c, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	do(c)
}
