package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// exitBury is the exit status with which a command says that its message is hopeless:
// EX_DATAERR in sysexits.h.
const exitBury = 65

// pipeGrace is how long to wait for more output after a command has ended, while something it
// started still holds the pipe.
const pipeGrace = 2 * time.Second

// runner runs a command for each message.
type runner struct {
	p      *Program
	argv   []string
	stdout io.Writer
}

// sharedWriter lets many commands write to w. They inherit a file as it is; any other writer
// gets a lock.
func sharedWriter(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return &lockedWriter{w: w}
}

// handle runs the command for one message. Its exit status decides what becomes of the
// message.
func (r *runner) handle(ctx context.Context, m *tarry.Message[[]byte]) error {
	if strings.Contains(m.Key, "\x00") {
		return tarry.Bury(errors.New("the key holds a NUL byte, so that no command can be given it in TARRY_KEY"))
	}
	tail := &tailWriter{to: r.p.Stderr, most: engine.MaxReason / 2}
	cmd := exec.CommandContext(ctx, r.argv[0], r.argv[1:]...)
	cmd.Env = append(r.p.Env[:len(r.p.Env):len(r.p.Env)],
		"TARRY_QUEUE="+m.Queue,
		"TARRY_ID="+m.ID.String(),
		"TARRY_KEY="+m.Key,
		"TARRY_ATTEMPT="+strconv.FormatUint(uint64(m.Attempt), 10),
		"TARRY_DUE="+formatTime(m.Due),
	)
	cmd.Stdin = bytes.NewReader(m.Body)
	cmd.Stdout = r.stdout
	cmd.Stderr = tail
	cmd.WaitDelay = pipeGrace
	ownGroup(cmd)
	// On Linux a command dies with the thread that started it: see ownGroup.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("the command was killed: %w", context.Cause(ctx))
	}
	// The command succeeded; something it left behind keeps its output open.
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	failed := &commandError{err: err, tail: tail.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitBury {
		return tarry.Bury(failed)
	}
	return failed
}

// commandError is the failure of a command, with the end of its standard error.
type commandError struct {
	err  error
	tail string
}

func (e *commandError) Error() string {
	if e.tail == "" {
		return e.err.Error()
	}
	return e.err.Error() + ": " + e.tail
}
func (e *commandError) Unwrap() error { return e.err }

// tailWriter passes on what is written to it, and keeps the last bytes. It ignores a failure
// to pass on, which is not the command's fault. Only one goroutine may write.
type tailWriter struct {
	to   io.Writer
	most int
	buf  []byte
}

func (t *tailWriter) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b[max(0, len(b)-t.most):]...)
	if over := len(t.buf) - t.most; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	_, _ = t.to.Write(b)
	return len(b), nil
}

// String returns the kept bytes as valid UTF-8, trimmed of white space.
func (t *tailWriter) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(t.buf), ""))
}

// lockedWriter lets many goroutines write; their writes do not mix.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(b)
}
