//go:build linux

package disk

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/bench/scenario"
	"github.com/tarryhq/tarry/bench/table"
)

// system is one of those that are measured in turns.
type system struct{ name, store string }

// process is this program once more, measuring a system. It runs as the command tarry does.
type process struct {
	system  system
	job     string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	output  bytes.Buffer
	ended   bool
}

// start has a process run a job of BenchmarkSystem on n messages.
func start(b testing.TB, s system, job string, n int, args ...string) *process {
	b.Helper()
	p := &process{system: s, job: job}
	p.cmd = exec.Command(os.Args[0], append([]string{
		"-test.run", "^$", "-test.bench", "^BenchmarkSystem$/^" + job + "$", "-test.benchtime", strconv.Itoa(n) + "x",
		"-test.cpu", strconv.Itoa(2 * runtime.NumCPU()), "-store", s.store, "-keys", *scenario.Keys, "-body", strconv.Itoa(*scenario.BodySize),
	}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, os.Stderr // where progress is told
	// Else one that is stopped would stay when this one is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	answers, theirs, err := os.Pipe()
	must(b, err)
	p.cmd.ExtraFiles = []*os.File{theirs}
	p.answers = json.NewDecoder(answers)
	p.in, err = p.cmd.StdinPipe()
	must(b, err)
	must(b, p.cmd.Start())
	must(b, theirs.Close())
	b.Cleanup(func() {
		p.kill()
		_ = answers.Close()
	})
	return p
}

// ask has obey do something.
func (p *process) ask(b testing.TB, c command) (a answer) {
	b.Helper()
	err := json.NewEncoder(p.in).Encode(c)
	if err == nil {
		err = p.answers.Decode(&a)
	}
	if err != nil {
		_ = p.end()
		b.Fatalf("%s did not %s: %v\n%s", p.system.name, c.Do, err, &p.output)
	}
	return a
}

// figures waits until the process has ended, and returns what it reported.
func (p *process) figures(b testing.TB) map[string]float64 {
	b.Helper()
	if err := p.end(); err != nil {
		b.Fatalf("%s: %s: %v\n%s", p.system.name, p.job, err, &p.output)
	}
	r, err := table.Read(&p.output)
	must(b, err)
	f := r.Figures["System/"+p.job]
	if f == nil {
		b.Fatalf("%s: %s reported nothing", p.system.name, p.job)
	}
	return f
}

func (p *process) end() error {
	p.ended = true
	_ = p.in.Close()
	return p.cmd.Wait()
}

// kill ends the process, as kill -9 does.
func (p *process) kill() {
	if !p.ended {
		_ = p.cmd.Process.Kill()
		_ = p.end()
	}
}

// pause keeps the process from running until it is resumed.
func (p *process) pause(b testing.TB)  { must(b, p.cmd.Process.Signal(syscall.SIGSTOP)) }
func (p *process) resume(b testing.TB) { must(b, p.cmd.Process.Signal(syscall.SIGCONT)) }
