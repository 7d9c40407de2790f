package servertest

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/internal/porttest"
)

// Command says how a server is run.
type Command struct {
	// Program is the name or path of the program, see Installed.
	Program string

	// Args gives the arguments for the ports that were found.
	Args func(ports []int) []string

	// Ports is how many ports the server listens on, all on loopback; 0: one.
	Ports int

	// Dir is the folder that it runs in and keeps its data in; "": a new one. It is
	// there before the server starts, so it may be filled first.
	Dir string

	// Files maps names of files in Dir to texts, which are appended to them before the
	// server is first started.
	Files map[string]string

	// Env is added to the environment of the test.
	Env []string

	// Ready are texts, any of which the server writes to its standard output or error
	// once it answers. What takes longer is to be waited for by Await.
	Ready []string

	// Patience is how long the server may take to be ready, and to stop; 0: Patience.
	Patience time.Duration

	// User runs the server when the test runs as root; "": root does. That user must own
	// the directory, see Folder.
	User string

	// StopSignal asks the server to end; 0: SIGTERM does.
	StopSignal syscall.Signal

	// Clock shifts the server's wall clock, in libfaketime's notation: "+1h", "-90s"; "":
	// not at all. The monotonic clock is unchanged.
	Clock string

	// HangUp closes the test's own connections to the server, so that the next use makes
	// new ones; nil: there are none.
	HangUp func()

	// Arguments follow those of Args. Options add Settings and Plugins, which the package of
	// a kind of server writes where the server reads them.
	Arguments, Settings, Plugins []string

	// Node is the server's number in a cluster, for options of one node.
	Node int
}

// Server is one server. Its methods may be called from several goroutines, except for
// those that fail the test.
type Server struct {
	t       testing.TB
	command Command
	env     []string
	ports   []int

	mu      sync.Mutex
	process *process
	paused  bool
}

// Start starts a server on ports that are free, and waits until it is ready. It ends
// with the test, or with the process of the test; when the test has failed, the end of
// what the server wrote is shown.
func Start(t testing.TB, c Command) *Server {
	t.Helper()
	if c.Dir == "" {
		c.Dir = Folder(t, c.User)
	}
	if c.StopSignal == 0 {
		c.StopSignal = syscall.SIGTERM
	}
	if c.Patience == 0 {
		c.Patience = Patience
	}
	if c.HangUp == nil {
		c.HangUp = func() {}
	}
	s := &Server{t: t, command: c, env: slices.Clone(c.Env)}
	if c.Clock != "" {
		s.env = append(s.env, clockEnv(libfaketime(t), c.Dir)...)
		setClock(t, c.Dir, c.Clock)
	}
	t.Cleanup(s.end)
	for name, text := range c.Files {
		add(t, c.User, filepath.Join(c.Dir, name), text)
	}
	err := errPortTaken
	for range 20 {
		s.ports = nil
		for range max(1, c.Ports) {
			s.ports = append(s.ports, porttest.Free(t))
		}
		if err = s.run(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) run() error {
	cmd := CommandContext(context.Background(), s.command.Program, slices.Concat(s.command.Args(s.ports), s.command.Arguments)...)
	cmd.Dir, cmd.Env = s.command.Dir, append(cmd.Env, s.env...)
	as, err := owner(s.command.User)
	if err != nil {
		return err
	}
	setAttributes(cmd, as)
	p, err := startProcess(cmd, s.command.Ready, s.command.Patience)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process, s.paused = p, false
	return nil
}

// end kills the server at the end of its test.
func (s *Server) end() {
	s.Kill()
	if !s.t.Failed() {
		return
	}
	text := s.Log()
	s.t.Logf("the end of what the server at %s wrote:\n%s", s.Addr(), text[max(0, len(text)-shownLog):])
}

// shownLog is how many bytes of what a server wrote are shown.
const shownLog = 4 << 10

// Addr is host:port of the server's first port.
func (s *Server) Addr() string { return loopback(s.ports[0]) }

// Port is one of the server's ports.
func (s *Server) Port(i int) int { return s.ports[i] }

// Dir is the folder that the server runs in.
func (s *Server) Dir() string { return s.command.Dir }

// Log is what the server wrote since it was last started.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return ""
	}
	return s.process.log.String()
}

// Kill kills the server, as kill -9 does, with all that it has forked, and waits until
// it has ended.
func (s *Server) Kill() {
	defer s.command.HangUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.kill()
		s.ended()
	}
}

// Stop asks the server to end, by its StopSignal, and waits until it has.
func (s *Server) Stop() {
	s.t.Helper()
	s.command.HangUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.process.stop(s.command.StopSignal, s.command.Patience)
	s.ended()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) ended() {
	if s.command.Clock != "" {
		forgetClock(s.process.cmd.Process.Pid)
	}
}

// Restart starts the server again where it was, killing it first if it runs, and waits
// until it is ready.
func (s *Server) Restart() {
	s.t.Helper()
	s.command.HangUp()
	s.Kill()
	// What it had forked may hold the port until it has ended, too.
	Await(s.t, "the restart of "+s.Addr(), func() error {
		err := s.run()
		if err != nil && !errors.Is(err, errPortTaken) {
			s.t.Fatal(err)
		}
		return err
	})
}

// Pause makes the server stand still until Resume: its connections stay open, and
// nothing is answered. Other systems than Linux skip the test.
func (s *Server) Pause() {
	s.t.Helper()
	s.command.HangUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	pause(s.t, s.process.cmd.Process)
	s.paused = true
}

// Resume ends a Pause.
func (s *Server) Resume() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	resume(s.t, s.process.cmd.Process)
	s.paused = false
}

// Running says whether the server is neither killed nor paused.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && s.process.alive() && !s.paused
}

// SetClock steps the wall clock of a server that was started with a Clock.
func (s *Server) SetClock(spec string) {
	s.t.Helper()
	if s.command.Clock == "" {
		s.t.Fatal("SetClock: the server was started without Clock")
	}
	setClock(s.t, s.command.Dir, spec)
}
