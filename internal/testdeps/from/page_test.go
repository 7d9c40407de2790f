// Package from does what the pages of docs/from say: it runs their commands against real
// servers, and compiles their Go.
package from

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/internal/cli"
	"github.com/tarryhq/tarry/internal/nettest"
)

// TestMain lets the test binary be the program that the pages call.
func TestMain(m *testing.M) {
	if os.Getenv("TARRY_TEST_MAIN") != "" {
		os.Exit(cli.Main())
	}
	os.Exit(pgtest.Main(m).Run())
}

const patience = time.Minute

// Mail is the body in the examples.
type Mail struct {
	To string `json:"to"`
}

// page is a page that is followed, in a directory of its own.
type page struct {
	*testing.T
	text, dir, addr string
	put             *strings.Replacer
	steps           []string // its shell blocks that are still to be run
}

// follow opens a page. In its commands the given addresses are replaced by those of the test's
// servers, and tarry's by a free one.
func follow(t *testing.T, name string, addresses ...string) *page {
	t.Helper()
	text, err := os.ReadFile("../../../docs/from/" + name)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{T: t, text: string(text), dir: t.TempDir(), addr: fmt.Sprint("127.0.0.1:", nettest.FreePort(t))}
	host, port, _ := net.SplitHostPort(p.addr)
	p.put = strings.NewReplacer(append(addresses, "127.0.0.1:8277", p.addr, host+" -p 11301", host+" -p "+port)...)
	if err := os.Symlink(os.Args[0], filepath.Join(p.dir, "tarry")); err != nil {
		t.Fatal(err)
	}
	p.steps = p.blocks("sh")
	return p
}

// blocks returns the blocks of a language.
func (p *page) blocks(language string) (all []string) {
	for _, block := range regexp.MustCompile("(?ms)^ *```"+language+"\n(.*?)^ *```$").FindAllStringSubmatch(p.text, -1) {
		all = append(all, block[1])
	}
	return all
}

// program lets the page's commands call another program with arguments put first.
func (p *page) program(name string, args ...string) {
	p.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		p.Fatal(err)
	}
	script := "#!/bin/sh\nexec '" + path + "' '" + strings.Join(args, "' '") + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(script), 0o755); err != nil {
		p.Fatal(err)
	}
}

// run runs the next shell block, and returns what it printed. A server goes on running.
func (p *page) run() string {
	p.Helper()
	out, err := p.try()
	if err != nil {
		p.Fatalf("%v: %s", err, out)
	}
	return out
}

// try is run, but the block may fail.
func (p *page) try() (string, error) {
	p.Helper()
	if len(p.steps) == 0 {
		p.Fatal("the page has no further step")
	}
	step := p.put.Replace(p.steps[0])
	p.steps = p.steps[1:]
	cmd := exec.Command("sh", "-ec", step)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+p.dir+":"+os.Getenv("PATH"), "TARRY_TEST_MAIN=1", "TARRY_HTTP="+p.addr, "TARRY_SERVER=http://"+p.addr)
	if strings.Contains(step, "tarry serve") || strings.Contains(step, "tarry beanstalkd") {
		p.background(cmd)
		return "", nil
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// background runs a server until the test ends. It returns when the server listens.
func (p *page) background(cmd *exec.Cmd) {
	p.Helper()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.Output(), p.Output(), &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait()
	})
	p.await("the server to listen", func() bool {
		conn, err := net.Dial("tcp", p.addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// await waits for what no event tells.
func (p *page) await(what string, ok func() bool) {
	p.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("%s: in vain", what)
		}
	}
}

// done fails the test if the page has steps that were not run.
func (p *page) done() {
	p.Helper()
	if len(p.steps) > 0 {
		p.Errorf("these steps were not run: %q", p.steps)
	}
}

// compiled fails the test unless the Go of the page is in a file of this package.
func (p *page) compiled(file string) {
	p.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	blocks := p.blocks("go")
	if len(blocks) == 0 {
		p.Error("the page has no Go")
	}
	for _, block := range blocks {
		for part := range strings.SplitSeq(flat(block), "\n\n") {
			if !strings.Contains(flat(string(source)), strings.TrimSpace(part)) {
				p.Errorf("%s has not the Go of the page:\n%s", file, part)
			}
		}
	}
}

// flat removes the indentation of all lines.
func flat(text string) string { return regexp.MustCompile(`(?m)^[\t ]+`).ReplaceAllString(text, "") }

// client opens a client of the page's server.
func (p *page) client() *tarry.Client {
	p.Helper()
	c, err := tarry.Open(p.Context(), "http://"+p.addr, nil)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if err := c.Close(); err != nil {
			p.Error(err)
		}
	})
	return c
}

// mails are the messages whose bodies are Mail.
var mails = tarry.NewTopic[Mail]("mail")

// handled makes a message due now, and returns the body that a worker gets.
func (p *page) handled(c *tarry.Client, topic *tarry.Topic[Mail], key string) Mail {
	p.Helper()
	if _, err := topic.Reschedule(p.Context(), c, tarry.ByKey(key), tarry.In(0)); err != nil {
		p.Fatal(err)
	}
	ctx, stop := context.WithTimeout(p.Context(), patience)
	defer stop()
	bodies := make(chan Mail, 1)
	w := tarry.NewWorker(c, nil)
	tarry.Handle(w, topic, func(_ context.Context, m *tarry.Message[Mail]) error {
		bodies <- m.Body
		stop()
		return nil
	})
	if err := w.Run(ctx); err != nil {
		p.Fatal(err)
	}
	if len(bodies) == 0 {
		p.Fatal("no worker got it")
	}
	return <-bodies
}

// has fails the test unless the page's server has exactly these messages in a queue.
func (p *page) has(c *tarry.Client, queue string, keys ...string) {
	p.Helper()
	var got []string
	for _, state := range []tarry.State{tarry.Scheduled, tarry.Ready} {
		for m, err := range c.List(p.Context(), queue, state) {
			check(p.T, err)
			got = append(got, m.Key)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, keys) {
		p.Errorf("%s has %q, want %q", queue, got, keys)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
