package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// filterStep is a step on a queue of its own, which holds the same in each: of "dead" three
// that died of a timeout, a minute apart, and two of a wrong address; of "wait" four due in
// 1 h, 2 h, 3 h and 4 h, with keys a/1, a/2, b/3, b/4, and one ready, c.
type filterStep struct {
	step
	left string // what the queues hold then: dead, waiting
}

var filterSteps = map[string]filterStep{
	"redrive an error":   {step{args: `dead redrive Q --error timeout`, stdout: `redriven 3 messages of Q\n`}, "2 8"},
	"redrive a limit":    {step{args: `dead redrive Q --limit 4`, stdout: `redriven 4 messages of Q\n`}, "1 9"},
	"redrive since":      {step{args: `dead redrive Q --since 1h --error address --json`, stdout: `{"queue":"Q","outcome":"redriven","redriven":2,"skipped":0}\n`}, "3 7"},
	"redrive prefix":     {step{args: `dead redrive Q --key-prefix d1`, stdout: `redriven 1 message of Q\n`}, "4 6"},
	"redrive none":       {step{args: `dead redrive Q --until 1h`, stdout: `redriven 0 messages of Q\n`}, "5 5"},
	"redrive all":        {step{args: `dead redrive Q`, code: exitUsage, stderr: `tarry: this would redrive 5 messages of Q, all there are, and nobody is there to ask \(confirm with --yes\)\n`}, "5 5"},
	"redrive all so":     {step{args: `dead redrive Q --since 1h`, code: exitUsage, stderr: `tarry: this would redrive 5 messages of Q, all there are, and .*\n`}, "5 5"},
	"redrive all, yes":   {step{args: `dead redrive Q --yes`, stdout: `redriven 5 messages of Q\n`}, "0 10"},
	"drop an error":      {step{args: `dead drop Q --error address`, code: exitUsage, stderr: `tarry: this would drop for good 2 messages of Q, and nobody .*\n`}, "5 5"},
	"drop an error, yes": {step{args: `dead drop Q --error address --yes --json`, stdout: `{"queue":"Q","outcome":"dropped","count":2}\n`}, "3 5"},
	"redrive no group":   {step{args: "dead redrive Q --group time", code: exitNotFound, stderr: `tarry: redrive Q: not found \(no such group; tarry dead groups Q lists them\)\n`}, "5 5"},
	"redrive none, yes":  {step{args: "dead redrive Q --group time --yes", code: exitNotFound, stderr: `tarry: redrive Q: not found \(no such group; .*\n`}, "5 5"},
	"drop no group":      {step{args: "dead drop Q --group wrong", code: exitNotFound, stderr: `tarry: drop Q: not found \(no such group; tarry dead groups Q lists them\)\n`}, "5 5"},
	"redrive a group":    {step{args: "dead redrive Q --group wrong\taddress --group nothing", stdout: `redriven 2 messages of Q\n`}, "3 7"},
	"ls a group":         {step{args: `dead ls Q --group timeout --limit 2`, stdout: `ID .*\n.*d0 .*\n.*d1 .*timeout\n`, stderr: `there are more.* --limit.*\n`}, "5 5"},
	"groups":             {step{args: `dead groups Q`, stdout: `COUNT  FIRST DIED  LAST DIED  ERROR\n3 .* timeout\n2 .* wrong address\n`}, "5 5"},
	"groups of some":     {step{args: `dead groups Q --key-prefix d4 --json`, stdout: `{"queue":"Q","error":"wrong address","count":1,"first_died":"TIME","last_died":"TIME","failures":\[{"at":"TIME","attempt":1,"worker":"","error":"wrong address"}\]}\n`}, "5 5"},
	"drop none":          {step{args: `dead drop Q --error nothing`, stdout: `dropped 0 messages of Q\n`}, "5 5"},
	"drop ids and error": {step{args: `dead drop Q 7 --error x`, code: exitUsage, stderr: `tarry: ids are given, and flags that choose .*\n`}, "5 5"},
	"ls an error":        {step{args: `dead ls Q --error address`, stdout: `ID .*\n\d+  d3  .*address\n\d+  d4  .*address\n`}, "5 5"},
	"ls a limit":         {step{args: `dead ls Q --error timeout --limit 2`, stdout: `ID .*\n.*d0 .*\n.*d1 .*timeout\n`, stderr: `there are more.* --limit.*\n`}, "5 5"},
	"ls the newest":      {step{args: `dead ls Q --error address --newest`, stdout: `ID .*\n\d+  d4  .*address\n\d+  d3  .*address\n`}, "5 5"},
	"ls until":           {step{args: `dead ls Q --until 1h`, stdout: `ID .*ERROR\n`, stderr: `no messages\n`}, "5 5"},
	"purge before":       {step{args: `purge Q --due-before 150m --yes`, stdout: `cancelled 3 messages of Q\n`}, "5 2"},
	"purge after":        {step{args: `purge Q --due-after 150m --key-prefix b/ --limit 1 --yes`, stdout: `cancelled 1 message of Q\n`}, "5 4"},
	"purge ready":        {step{args: `purge Q --due-before 0s --yes`, stdout: `cancelled 1 message of Q\n`}, "5 4"},
	"purge asks":         {step{args: `purge Q --key-prefix a/`, code: exitUsage, stderr: `tarry: this would cancel 2 messages of Q, and nobody .*\n`}, "5 5"},
	"purge dead so":      {step{args: `purge Q --key-prefix a/ --dead --yes`, code: exitUsage, stderr: `tarry: --dead and --finished take all there are .*\n`}, "5 5"},
	"purge nonsense":     {step{args: `purge Q --due-after 2h --due-before 1h --yes`, code: exitUsage, stderr: `tarry: there is nothing between --due-after TIME and --due-before TIME .*\n`}, "5 5"},
	"reschedule some":    {step{args: `reschedule Q --due-before 150m --in 10m`, stdout: `rescheduled 3 messages of Q\n`}, "5 5"},
	"reschedule all":     {step{args: `reschedule Q --all --in 10m`, code: exitUsage, stderr: `tarry: this would reschedule 5 messages of Q, all there are, .*\n`}, "5 5"},
	"reschedule, yes":    {step{args: `reschedule Q --all --in 10m --yes --json`, stdout: `{"queue":"Q","outcome":"rescheduled","count":5}\n`}, "5 5"},
	"reschedule none":    {step{args: `reschedule Q --error nothing --in 10m`, stdout: `rescheduled 0 messages of Q\n`}, "5 5"},
	"reschedule a key":   {step{args: `reschedule Q c --all --in 10m`, code: exitUsage, stderr: `tarry: one message is named, and flags that choose many are given .*\n`}, "5 5"},
	"reschedule a limit": {step{args: `reschedule Q --limit 3 --in 10m`, code: exitUsage, stderr: `tarry: --limit is for many messages .*\n`}, "5 5"},
	"reschedule to when": {step{args: `reschedule Q --all --yes`, code: exitUsage, stderr: `tarry: no new due time is given .*\n`}, "5 5"},
	"not a time":         {step{args: `dead drop Q --since yesterday`, code: exitUsage, stderr: `tarry: .*"yesterday" is neither a time such as .* nor a duration such as 2h .*\n`}, "5 5"},
}

func TestFilters(t *testing.T) {
	w, _ := served(t, "mem:")
	_, url, _ := strings.Cut(w.env[0], "=")
	c, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := 0
	for name, s := range filterSteps {
		n++
		queue := fmt.Sprint("mail", n)
		fillForFilters(t, c, queue)
		t.Run(name, func(t *testing.T) {
			s.args = strings.ReplaceAll(s.args, "Q", queue)
			s.stdout = strings.ReplaceAll(s.stdout, "Q", queue)
			s.stderr = strings.ReplaceAll(s.stderr, "Q", queue)
			run1(t, w, s.step)
			q, err := c.Queue(t.Context(), queue)
			if left := fmt.Sprint(q.Dead, q.Scheduled+q.Ready); err != nil || left != s.left {
				t.Errorf("left are %s, %v; want %s", left, err, s.left)
			}
		})
	}
}

func fillForFilters(t *testing.T, c *tarry.Client, queue string) {
	t.Helper()
	for i, reason := range []string{"timeout", "timeout", "timeout", "wrong address", "wrong address"} {
		if _, err := c.Push(t.Context(), queue, nil, tarry.Key(fmt.Sprint("d", i))); err != nil {
			t.Fatal(err)
		}
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{queue}, Max: 1, LeaseOptions: tarry.LeaseOptions{Remote: true}})
		if err != nil || len(got.Messages) != 1 {
			t.Fatal(got, err)
		}
		if _, err := c.Settle(t.Context(), []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoBury, Reason: reason}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, key := range []string{"c", "a/1", "a/2", "b/3", "b/4"} {
		if _, err := c.Push(t.Context(), queue, nil, tarry.Key(key), tarry.In(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// Somebody who sits there is asked, and sees how far long work has come.
func TestFiltersOnATerminal(t *testing.T) {
	w, _ := served(t, "mem:")
	_, url, _ := strings.Cut(w.env[0], "=")
	c, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fillForFilters(t, c, "mail")
	w.terminal = true
	run1(t, w, step{args: "dead drop mail --error timeout", stdin: "n\n", code: exitFailed,
		stderr: `This will drop for good 3 messages of mail. Go on\? \[y/N\] tarry: nothing was done.*\n`})
	run1(t, w, step{args: "dead drop mail --error timeout", stdin: "y\n", stdout: "dropped 3 messages of mail\n", stderr: "This will .*"})

	// What dies while the question stands stays, also when one of those counted is gone by then.
	thinks, decide := io.Pipe()
	var asked onText
	asked.then = sync.OnceFunc(func() {
		if n, err := c.RedriveWhere(t.Context(), tarry.Filter{Queue: "mail", Limit: 1}); err != nil || n.Done != 1 {
			t.Error(n, err)
		}
		if _, err := c.Push(t.Context(), "mail", nil, tarry.Key("late"), tarry.Priority(0)); err != nil {
			t.Error(err)
		}
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"mail"}, Max: 1})
		if err != nil || len(got.Messages) != 1 {
			t.Fatal(got, err)
		}
		if _, err := c.Settle(t.Context(), []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoBury}}); err != nil {
			t.Error(err)
		}
		go func() {
			_, _ = io.WriteString(decide, "y\n")
			_ = decide.Close()
		}()
	})
	var done strings.Builder
	p := w.program(&done, &asked, "dead", "drop", "mail")
	p.Stdin = thinks
	if code := p.Run(t.Context()); code != exitOK || done.String() != "dropped 1 message of mail\n" {
		t.Errorf("exit code %d, told %q and %q", code, asked.String(), done.String())
	}
	if q, err := c.Queue(t.Context(), "mail"); err != nil || q.Dead != 1 {
		t.Errorf("%+v, %v", q, err)
	}

	// Who interrupts the question has answered it.
	held, answer := io.Pipe()
	defer answer.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var told onText
	told.then = func() {
		if strings.Contains(told.String(), "[y/N]") {
			interrupt()
		}
	}
	q := w.program(io.Discard, &told, "dead", "drop", "mail")
	q.Stdin = held
	if code := q.Run(ctx); code != exitFailed || !strings.HasSuffix(told.String(), "Go on? [y/N] \ntarry: interrupted\n") {
		t.Errorf("exit code %d, told %q", code, told.String())
	}

	var out, err1 strings.Builder
	p = w.program(&out, &err1, "dead", "redrive", "mail", "--yes")
	now := time.Now()
	p.Now = func() time.Time { now = now.Add(2 * time.Second); return now }
	if code := p.Run(t.Context()); code != exitOK || !regexp.MustCompile(`^\r\x1b\[K1 redriven, 0 skipped, 1 looked at\r\x1b\[K$`).MatchString(err1.String()) {
		t.Errorf("exit code %d, told %q", code, err1.String())
	}
}

// onText gathers what is written, and does something then.
type onText struct {
	strings.Builder
	then func()
}

func (o *onText) Write(b []byte) (int, error) {
	n, err := o.Builder.Write(b)
	o.then()
	return n, err
}

// Who interrupts long work is told how far it has come, and goes on with the same command.
func TestInterruptedMidway(t *testing.T) {
	w, _ := served(t, "mem:")
	_, url, _ := strings.Cut(w.env[0], "=")
	c, err := tarry.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const n = 1200
	drafts := make([]tarry.Draft, n)
	for i := range drafts {
		drafts[i] = tarry.NewDraft("mail", nil, tarry.In(time.Hour))
	}
	if _, err := c.PushMany(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	w.terminal = true
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	told := onText{then: interrupt}
	p := w.program(io.Discard, &told, "purge", "mail", "--due-after", "1m", "--yes")
	now := time.Now()
	p.Now = func() time.Time { now = now.Add(2 * time.Second); return now }
	if code := p.Run(ctx); code != exitFailed || !strings.HasSuffix(told.String(), "\x1b[Ktarry: interrupted; 500 messages were cancelled before (run it again for the rest)\n") {
		t.Errorf("exit code %d, told %q", code, told.String())
	}
	run1(t, w, step{args: "purge mail --due-after 1m --yes --json", stdout: `{"queue":"mail","outcome":"cancelled","count":700}\n`})
}
