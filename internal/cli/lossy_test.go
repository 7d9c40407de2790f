//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// errorsTo starts a tarry of its own whose standard error is a pipe that nobody reads.
// full: the pipe takes no more, else it has no reader any more.
func errorsTo(t *testing.T, full bool, args ...string) (cmd *exec.Cmd, stdout *awaited, r *os.File) {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
	if full {
		if err := errors.Join(syscall.SetNonblock(fds[1], true), fill(fds[1]), syscall.SetNonblock(fds[1], false)); err != nil {
			t.Fatal(err)
		}
	}
	r, w := os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write")
	if !full {
		r.Close()
	}
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TARRY_TEST_MAIN=1")
	stdout = newAwaited()
	cmd.Stdout, cmd.Stderr = stdout, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { r.Close() })
	return cmd, stdout, r
}

// fill writes lines until there is no room.
func fill(fd int) error {
	for size := 4096; size > 0; {
		_, err := syscall.Write(fd, []byte(strings.Repeat(".", size-1)+"\n"))
		switch {
		case errors.Is(err, syscall.EAGAIN):
			size /= 2
		case err != nil && !errors.Is(err, syscall.EINTR):
			return err
		}
	}
	return nil
}

func TestServeOutlivesItsStandardError(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"gone": false, "full": true} {
		t.Run(name, func(t *testing.T) {
			store := "disk:" + t.TempDir() + "/data"
			cmd, stdout, r := errorsTo(t, full, "serve", "--store", store, "--http", "127.0.0.1:0")
			url := stdout.await(t, `listens on (http://\S+)\n`)[1]
			w := world{env: []string{"TARRY_SERVER=" + url}}
			for _, queue := range []string{"a", "b", "c"} {
				w.must(t, "pause", queue) // has a line in the audit log
			}
			w.must(t, "push", "mail", "x", "--key", "ann")
			told := func(missing bool) func() error {
				return func() error {
					_, body, err := fetch(t, url+"/readyz")
					if err == nil && (!strings.Contains(string(body), `"status":"ready"`) || strings.Contains(string(body), "lines missing") != missing) {
						err = fmt.Errorf("it says %s", body)
					}
					return err
				}
			}
			awaits(t, "trouble", told(true))
			if full {
				read := newAwaited()
				go func() { _, _ = io.Copy(read, r) }()
				awaits(t, "the end of trouble", told(false))
				read.await(t, `tarry: lines missing here, as they could not be written: \d+\n(?s:.*)"what":"lines lost","count":2}`)
			}
			signalTo(t, cmd, syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			world{}.must(t, "get", "mail", "ann", "--store", store)
		})
	}
}

func TestServeEndsThoughNobodyReadsItsStandardError(t *testing.T) {
	store := "disk:" + t.TempDir() + "/data"
	cmd, stdout, _ := errorsTo(t, true, "serve", "--store", store, "--http", "127.0.0.1:0")
	stdout.await(t, `listens on`)
	signalTo(t, cmd, syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	world{}.must(t, "queues", "--store", store)
}

func TestWorkOutlivesItsStandardError(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"gone": false, "full": true} {
		t.Run(name, func(t *testing.T) {
			w, _ := served(t, "mem:")
			url, _ := w.program(nil, nil).env("TARRY_SERVER")
			cmd, stdout, _ := errorsTo(t, full, "work", "mail", "--server", url, "--", "sh", "-c", `echo "$TARRY_KEY" done; kill -s PIPE $$`)
			for _, key := range []string{"ann", "bob"} {
				w.must(t, "push", "mail", "x", "--key", key, "--backoff", "1h")
				stdout.await(t, key+" done\n")
				// A command still ends by the signal.
				awaits(t, "the retry", func() error {
					if m := object(t, w.must(t, "get", "mail", key, "--json")); m["last_error"] != "signal: broken pipe" {
						return fmt.Errorf("%v", m)
					}
					return nil
				})
			}
			signalTo(t, cmd, syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// That its output cannot be passed on is no fault of the command.
func TestWorkAcksACommandWhoseStandardErrorIsLost(t *testing.T) {
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	cmd, _, _ := errorsTo(t, false, "work", "mail", "--server", url, "--", "sh", "-c", "echo beware >&2")
	w.must(t, "queue", "set", "mail", "--remember", "1h")
	w.must(t, "push", "mail", "x", "--key", "ann", "--backoff", "1h")
	awaits(t, "the ack", func() error {
		m := object(t, w.must(t, "queues", "mail", "--json"))
		if m["finished"] != 1.0 {
			return fmt.Errorf("%v", m)
		}
		return nil
	})
	signalTo(t, cmd, syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestWorkTakesItsCommandsWithIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with the one that started it")
	}
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	w.must(t, "push", "mail", "x")
	path, ended := pipe(t)
	c := startChild(t, []string{"TARRY_TEST_MAIN=1"}, os.Args[0], "work", "mail", "--server", url, "--", "sh", "-c", `exec 9>"$0"; echo running; exec sleep 1000`, path)
	c.out.await(t, "running")
	c.end()
	<-ended
}

func TestWorkAsProcess1WantsAnInit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has name spaces for processes")
	}
	c := startChild(t, []string{"TARRY_TEST_MAIN=1"}, "unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child",
		os.Args[0], "work", "mail", "--quiet", "--store", "mem:", "--", "true")
	c.out.await(t, `runs as process 1 .* docker run --init`)
}
