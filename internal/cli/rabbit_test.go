package cli

import (
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// What RabbitMQ has, from outside: a delay, a worker, the dead.
func TestCommandsOnRabbitMQ(t *testing.T) {
	w := world{env: []string{"TARRY_STORE=" + rabbittest.Shared(t)}}
	w.must(t, "push", "mail", "hello", "--in", "200ms")
	r := w.start(t, "work", "mail", "--", "sh", "-c", "exit 65")
	r.stderr.await(t, `buried mail id \d+`)
	r.stop(t)
	if out := w.must(t, "dead", "ls", "mail"); !strings.Contains(out, "exit status 65") {
		t.Errorf("the dead are %s", out)
	}
	if out := w.must(t, "dead", "redrive", "mail", "--yes"); !strings.Contains(out, "redriven 1 message of mail") {
		t.Errorf("%s", out)
	}
	r = w.start(t, "work", "mail", "--", "cat")
	r.stderr.await(t, `acked mail id \d+`)
	r.stop(t)
	if got := r.stdout.String(); got != "hello" {
		t.Errorf("the command wrote %q", got)
	}
	for _, args := range [][]string{{"push", "mail", "x", "--key", "ann"}, {"cancel", "mail", "ann"}, {"queues"}, {"schedule", "ls"}, {"schedule", "set", "x", "@daily", "--queue", "mail"}, {"dead", "redrive", "mail", "--since", "1h", "--yes"}} {
		if got := w.tarry(t, args...); got.code != exitFailed || !strings.Contains(got.stderr, "not supported") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
