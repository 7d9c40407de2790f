package rabbittest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Eval has the broker evaluate Erlang expressions, such as `rabbit_amqqueue:list().`, and
// returns the value of the last. It takes some ten milliseconds, where Ctl takes seconds.
func (s *Server) Eval(code string) string {
	s.t.Helper()
	program := servertest.Installed(s.t, "erl_call", "erlang-base")
	s.asked.Lock() // a broker refuses one erl_call while another is connected
	defer s.asked.Unlock()
	out := s.run(code+"\n", program, "-h", "test"+strings.ToLower(rand.Text()[:8]), "-name", s.name, "-c", cookie, "-fetch_stdout", "-e")
	value, ok := strings.CutPrefix(out, "{ok, ")
	if !ok {
		s.t.Fatalf("%s: %s: %s", s.name, code, out)
	}
	return strings.TrimSuffix(value, "}")
}

// Ctl runs rabbitmqctl, and returns what it wrote. Prefer Eval: rabbitmqctl takes seconds.
func (s *Server) Ctl(args ...string) string {
	s.t.Helper()
	return s.run("", s.home.script("rabbitmqctl"), args...)
}

// Alarm sets whether the broker has too little memory, and so takes no messages: a
// connection that publishes is blocked until it has enough.
func (s *Server) Alarm(on bool) {
	s.t.Helper()
	share := "0.4"
	if on {
		share = "0.0"
	}
	s.Eval("vm_memory_monitor:set_vm_memory_high_watermark(" + share + ").")
}

// SyncQueues has the broker write down which queues it has. RabbitMQ 3.10 does so some time
// after they are declared, of quorum queues half a second: a broker killed before has lost
// what they hold.
func (s *Server) SyncQueues() {
	s.t.Helper()
	s.Eval("mnesia:sync_log(), [dets:sync(T) || T <- dets:all()].")
}

// run runs what asks the broker to its end.
func (s *Server) run(input, program string, args ...string) string {
	s.t.Helper()
	// Not the test's context, which has ended when its cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := servertest.CommandContext(ctx, program, args...)
	cmd.Env = append(cmd.Env, s.env...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %s: %v\n%s", s.name, cmd, err, out)
	}
	return string(out)
}

// Policy gives the queues of a vhost of the broker whose names begin with a prefix a policy,
// such as {"message-ttl":500}. Of several that fit a queue the one of highest priority holds.
func (s *Server) Policy(vhost, prefix, definition string, priority int) {
	s.t.Helper()
	u, err := url.Parse(vhost)
	if err != nil {
		s.t.Fatal(err)
	}
	name := cmp.Or(strings.TrimPrefix(u.Path, "/"), "/")
	said := s.Eval(fmt.Sprintf("rabbit_policy:parse_set(<<%q>>, <<%q>>, <<%q>>, <<%q>>, %d, <<%q>>, <<%q>>).",
		name, fmt.Sprint("test-", priority), "^"+prefix, definition, priority, "queues", tester))
	if said != "ok" {
		s.t.Fatalf("%s: %s: %s", s.name, definition, said)
	}
}
