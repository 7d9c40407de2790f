package servertest

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// errPortTaken means that the server should be started on another port.
var errPortTaken = errors.New("a port is taken")

// process is one run of a server.
type process struct {
	cmd   *exec.Cmd
	log   *log
	ended chan struct{} // closed when the process has ended
}

// startProcess runs cmd and waits until it has written one of the ready texts.
func startProcess(cmd *exec.Cmd, ready []string, patience time.Duration) (*process, error) {
	p := &process{cmd: cmd, log: newLog(ready), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	// A child of the server may keep the output open, so do not wait for that.
	cmd.WaitDelay = time.Second
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	select {
	case <-p.log.ready:
		return p, nil
	case <-p.ended:
		if strings.Contains(p.log.String(), "ddress already in use") {
			return nil, errPortTaken
		}
		return nil, fmt.Errorf("%s has ended at once:\n%s", cmd, p.log)
	case <-time.After(patience):
		p.kill()
		return nil, fmt.Errorf("%s was not ready after %v:\n%s", cmd, patience, p.log)
	}
}

// run stays on one thread for the life of the process: with Pdeathsig, Linux kills a process
// when the thread that started it ends.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // a server that is killed ends with an error
	close(p.ended)
}

// alive reports whether the process runs.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill kills the process and its children, and waits until all have ended.
func (p *process) kill() {
	if p.alive() {
		killFamily(p.cmd.Process)
		<-p.ended
	}
}

// stop sends a signal, and waits until the process has ended.
func (p *process) stop(signal syscall.Signal, patience time.Duration) error {
	if !p.alive() {
		return nil
	}
	_ = p.cmd.Process.Signal(signal) // it may have ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("%s had not ended %v after it was asked to:\n%s", p.cmd, patience, p.log)
	}
}
