//go:build linux

package measure

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

// process is a server that this one starts.
type process struct {
	b       *testing.B
	program string
	args    []string
	addr    string
	cmd     *exec.Cmd
}

// start starts a server on a free port, and kills it when the benchmark ends.
func start(b *testing.B, program string, args func(addr string) []string) *process {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	scenario.Must(b, err)
	scenario.Must(b, l.Close())
	p := &process{b: b, program: program, addr: l.Addr().String()}
	p.args = args(p.addr)
	p.Restart()
	b.Cleanup(p.Kill)
	return p
}

// Restart starts it, and waits until it accepts connections.
func (p *process) Restart() {
	p.cmd = exec.Command(p.program, p.args...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	scenario.Must(p.b, p.cmd.Start())
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", p.addr)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(began) > time.Minute {
			p.b.Fatalf("%s does not listen: %v", p.program, err)
		}
	}
}

// Kill kills it, as kill -9 does.
func (p *process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func output(b *testing.B, program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	scenario.Must(b, err)
	return strings.TrimSpace(string(out))
}

func write(b *testing.B, file, text string) {
	scenario.Must(b, os.WriteFile(file, []byte(text), 0o644))
}
