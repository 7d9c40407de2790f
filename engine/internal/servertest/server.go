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

	"github.com/tarryhq/tarry/internal/nettest"
)

// Command says how to run a server.
type Command struct {
	// Program is the name or path of the program: see Installed.
	Program string

	// Args returns the arguments for the chosen ports.
	Args func(ports []int) []string

	// Ports is how many ports the server listens on, all on loopback; 0: one.
	Ports int

	// Dir is the directory in which the server runs and keeps its data; "": a new one. It
	// exists before the server starts, so it may be filled first.
	Dir string

	// Files maps names of files in Dir to texts. The texts are appended before the first
	// start.
	Files map[string]string

	// Env is added to the environment of the test.
	Env []string

	// Ready lists texts. The server is ready once it has written one of them to its standard
	// output or error. Use Await for anything that takes longer.
	Ready []string

	// Patience is how long the server may take to become ready, and to stop; 0: the constant
	// Patience.
	Patience time.Duration

	// User runs the server if the test runs as root; "": root. The user must own the
	// directory: see Folder.
	User string

	// StopSignal asks the server to end; 0: SIGTERM.
	StopSignal syscall.Signal

	// Clock shifts the server's wall clock, in libfaketime's notation: "+1h", "-90s"; "": no
	// shift. The monotonic clock is unchanged.
	Clock string

	// HangUp closes the test's own connections to the server, so that their next use opens
	// new ones; nil: there are none.
	HangUp func()

	// Arguments follow those of Args. Options add Settings and Plugins; the package of a kind
	// of server writes these where the server reads them.
	Arguments, Settings, Plugins []string

	// Node is the server's number in a cluster, for options of one node.
	Node int
}

// Server is one server. Its methods are safe for concurrent use, except those that fail the
// test.
type Server struct {
	t       testing.TB
	command Command
	env     []string
	ports   []int

	mu      sync.Mutex
	process *process
	paused  bool
}

// Start starts a server on free ports, and waits until it is ready. The server ends with the
// test or its process. If the test fails, the end of the server's output is logged.
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
			s.ports = append(s.ports, nettest.FreePort(t))
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

// shownLog is how many bytes of a server's output are logged.
const shownLog = 4 << 10

// Addr returns host:port of the server's first port.
func (s *Server) Addr() string { return loopback(s.ports[0]) }

// Port returns the i-th port of the server.
func (s *Server) Port(i int) int { return s.ports[i] }

// Dir returns the directory in which the server runs.
func (s *Server) Dir() string { return s.command.Dir }

// Log returns the server's output since its last start.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return ""
	}
	return s.process.log.String()
}

// Kill kills the server and its children as kill -9 does, and waits until they have ended.
func (s *Server) Kill() {
	defer s.command.HangUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.kill()
		s.ended()
	}
}

// Stop sends the server its StopSignal, and waits until it has ended.
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

// Restart starts the server again with the same directory and ports, and waits until it is
// ready. It first kills a running server.
func (s *Server) Restart() {
	s.t.Helper()
	s.command.HangUp()
	s.Kill()
	// Its children may hold the port until they have ended, too.
	Await(s.t, "the restart of "+s.Addr(), func() error {
		err := s.run()
		if err != nil && !errors.Is(err, errPortTaken) {
			s.t.Fatal(err)
		}
		return err
	})
}

// Pause stops the server's processes until Resume: connections stay open, and nothing is
// answered. On other systems than Linux it skips the test.
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

// Running reports whether the server is neither killed nor paused.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && s.process.alive() && !s.paused
}

// SetClock changes the wall clock of a server that was started with a Clock.
func (s *Server) SetClock(spec string) {
	s.t.Helper()
	if s.command.Clock == "" {
		s.t.Fatal("SetClock: the server was started without Clock")
	}
	setClock(s.t, s.command.Dir, spec)
}
