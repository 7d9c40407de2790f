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

// Eval makes the broker evaluate Erlang expressions, such as `rabbit_amqqueue:list().`, and
// returns the last value. It takes some ten milliseconds; rabbitmqctl takes seconds.
func (s *Server) Eval(code string) string {
	s.t.Helper()
	program := servertest.Installed(s.t, "erl_call", "erlang-base")
	s.asked.Lock() // a broker refuses one erl_call while another is connected
	defer s.asked.Unlock()
	// Not the test's context: that has ended when cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := servertest.CommandContext(ctx, program, "-h", "test"+strings.ToLower(rand.Text()[:8]), "-name", s.name, "-c", cookie, "-fetch_stdout", "-e")
	cmd.Env = append(cmd.Env, s.env...)
	cmd.Stdin = strings.NewReader(code + "\n")
	out, err := cmd.CombinedOutput()
	value, ok := strings.CutPrefix(string(out), "{ok, ")
	if err != nil || !ok {
		s.t.Fatalf("%s: %s: %v\n%s", s.name, code, err, out)
	}
	return strings.TrimSuffix(value, "}")
}

// Alarm sets or clears a memory alarm. Meanwhile the broker accepts no messages: publishing
// connections are blocked.
func (s *Server) Alarm(on bool) {
	s.t.Helper()
	share := "0.4"
	if on {
		share = "0.0"
	}
	s.Eval("vm_memory_monitor:set_vm_memory_high_watermark(" + share + ").")
}

// SyncQueues makes the broker write its list of queues. RabbitMQ 3.10 delays that, for
// quorum queues by half a second; a broker killed earlier loses their messages.
func (s *Server) SyncQueues() {
	s.t.Helper()
	s.Eval("mnesia:sync_log(), [dets:sync(T) || T <- dets:all()].")
}

// Policy sets a policy, such as {"message-ttl":500}, for the queues of a vhost with a
// prefix. If several match a queue, the highest priority wins.
func (s *Server) Policy(vhost, prefix, definition string, priority int) {
	s.t.Helper()
	u, err := url.Parse(vhost)
	if err != nil {
		s.t.Fatal(err)
	}
	name := cmp.Or(strings.TrimPrefix(u.Path, "/"), "/")
	answer := s.Eval(fmt.Sprintf("rabbit_policy:parse_set(<<%q>>, <<%q>>, <<%q>>, <<%q>>, %d, <<%q>>, <<%q>>).",
		name, fmt.Sprint("test-", priority), "^"+prefix, definition, priority, "queues", tester))
	if answer != "ok" {
		s.t.Fatalf("%s: %s: %s", s.name, definition, answer)
	}
}
