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
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// workFlags are the flags of work.
type workFlags struct {
	name        string
	concurrency int
	ttr         time.Duration
	limit       time.Duration
	drain       time.Duration
	quiet       bool
}

func (p *Program) workCommand() *cobra.Command {
	w := workFlags{drain: tarry.DefaultDrainTimeout}
	cmd := &cobra.Command{
		Use:        "work QUEUE -- CMD ARGS…",
		SuggestFor: []string{"worker", "lease"},
		Short:      "Run a command for each message as it falls due",
		Long: `Work waits for messages of a queue and runs the command once for each, with the
body on standard input and TARRY_QUEUE, TARRY_ID, TARRY_KEY, TARRY_ATTEMPT and
TARRY_DUE in the environment.

The command's exit status decides: 0 acks, 65 buries, anything else retries after
the message's backoff. The end of its standard error is kept as the reason. The
lease is renewed while the command runs. If the lease is lost, the command is killed
with all its child processes. The first interrupt lets running commands finish, for
up to --drain; the second ends them at once.`,
		Example: "  tarry work mail -- ./send-mail --verbose",
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 || dash == len(args) {
				return usagef("usage: "+cmd.UseLine(), "the command to run for each message is missing")
			}
			return exactly("QUEUE")(cmd, args[:dash])
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if w.concurrency < 1 {
			return usagef("it is how many commands run at a time", "--concurrency %d is less than 1", w.concurrency)
		}
		if err := engine.CheckWorker("work", "", w.name); err != nil {
			return err
		}
		path, err := exec.LookPath(args[1])
		if err != nil {
			return usagef("give the path of a program", "the command cannot be run: %v", err)
		}
		c, err := p.open(cmd, refuseIt)
		if err != nil {
			return err
		}
		return closing(c, p.work(cmd.Context(), c, &w, args[0], append([]string{path}, args[2:]...)))
	}
	f := cmd.Flags()
	f.StringVar(&w.name, "name", "", "name of the worker, which look-ups, lists and failures show (default: host:pid)")
	f.IntVar(&w.concurrency, "concurrency", 4, "commands at a time")
	f.Var(durationFlag(&w.ttr), "ttr", "length of a lease between renewals; 0: each message's own")
	f.Var(durationFlag(&w.limit), "limit", "kill a command that runs longer; 0: never")
	f.Var(durationFlag(&w.drain), "drain", "how long running commands may take to finish after an interrupt")
	f.BoolVar(&w.quiet, "quiet", false, "do not report each message on standard error")
	p.connectFlags(cmd)
	return cmd
}

// work handles messages with commands until ctx ends.
func (p *Program) work(ctx context.Context, c *tarry.Client, w *workFlags, queue string, argv []string) error {
	p.outliveOutput()
	p.sayLimit()
	if os.Getpid() == 1 {
		fmt.Fprintln(p.Stderr, "tarry: work runs as process 1 and reaps no processes that commands leave behind; give the container an init, as in docker run --init")
	}
	cfg := &tarry.WorkerConfig{
		Name:           w.name,
		Concurrency:    w.concurrency,
		LeaseTTR:       w.ttr,
		HandlerTimeout: w.limit,
		DrainTimeout:   w.drain,
	}
	if w.drain == 0 {
		cfg.DrainTimeout = -1
	}
	cfg.OnError = func(tarry.Info, error) {} // the Observer prints a line for each message
	if !w.quiet {
		cfg.Observer = func(e tarry.Event) {
			if line := tell(e); line != "" {
				fmt.Fprintln(p.Stderr, line)
			}
		}
	}
	worker := tarry.NewWorker(c, cfg)
	tarry.Handle(worker, tarry.NewTopic[[]byte](queue), func(ctx context.Context, m *tarry.Message[[]byte]) error {
		return p.runCommand(ctx, argv, m)
	})
	if !w.quiet {
		fmt.Fprintf(p.Stderr, "tarry: waiting for messages of %s; ctrl-C stops\n", queue)
	}
	err := worker.Run(ctx)
	// A drain that took too long is not the store's fault.
	if errors.Is(err, context.DeadlineExceeded) {
		return failed(err)
	}
	return err
}

// tell returns a line about an event; "" if it needs none.
func tell(e tarry.Event) string {
	e.Queue = shown(e.Queue)
	what := fmt.Sprintf("tarry: %s %s id %s", e.Kind, e.Queue, e.ID)
	if e.Key != "" {
		what += " key " + shown(e.Key)
	}
	switch e.Kind {
	case tarry.Started:
		return ""
	case tarry.Acked:
		return fmt.Sprintf("%s in %s, %s late", what, e.Duration.Round(time.Millisecond), max(e.Lateness, 0).Round(time.Millisecond))
	case tarry.Expired:
		return fmt.Sprintf("tarry: dropped %s of %s past expiry", counted(e.Count, "message"), e.Queue)
	case tarry.EngineFailed:
		return oneLine(fmt.Sprint("the store fails, trying again: ", e.Err))
	case tarry.Died:
		if e.ID == 0 {
			return fmt.Sprintf("tarry: %s of %s died: all attempts are used up", counted(e.Count, "message"), e.Queue)
		}
	case tarry.Retried:
		what += fmt.Sprintf(" attempt %d, again at %s", e.Attempt, formatTime(e.Until))
	}
	if e.Err != nil {
		what += ": " + shown(cell(strings.TrimPrefix(e.Err.Error(), "bury: ")))
	}
	return what
}

// exitBury is the exit status with which a command says that its message is hopeless:
// EX_DATAERR in sysexits.h.
const exitBury = 65

// pipeGrace is how long to wait for more output after a command has ended, while something it
// started still holds the pipe.
const pipeGrace = 2 * time.Second

// runCommand runs the command for one message. Its exit status decides what becomes of the
// message.
func (p *Program) runCommand(ctx context.Context, argv []string, m *tarry.Message[[]byte]) error {
	if strings.Contains(m.Key, "\x00") {
		return tarry.Bury(errors.New("the key holds a NUL byte, so that no command can be given it in TARRY_KEY"))
	}
	tail := &tailWriter{to: p.Stderr, most: engine.MaxReason / 2}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(p.Env[:len(p.Env):len(p.Env)],
		"TARRY_QUEUE="+m.Queue,
		"TARRY_ID="+m.ID.String(),
		"TARRY_KEY="+m.Key,
		"TARRY_ATTEMPT="+strconv.FormatUint(uint64(m.Attempt), 10),
		"TARRY_DUE="+formatTime(m.Due),
	)
	cmd.Stdin = bytes.NewReader(m.Body)
	cmd.Stdout = p.Stdout
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
	failed := err
	if text := tail.String(); text != "" {
		failed = fmt.Errorf("%w: %s", err, text)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitBury {
		return tarry.Bury(failed)
	}
	return failed
}

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
