package cli

import (
	"os"
	"os/user"
	"regexp"
	"strings"
	"testing"
)

var historySteps = []step{
	{args: `get mail k`, stdout: `id  \d+\nqueue  mail\nkey  k\nstate  finished\ndue  TIME \(AWAY\)\nacked  TIME \(AWAY\)\ncreated  TIME\nattempt  2\nlate by  \S+\nran for  \S+\nacked by  w-1\nlast error  exit status 1.*\nforgotten  TIME \(AWAY\)\nfailure  TIME attempt 1 by w-1: exit status 1.*\n`},
	{args: `push mail y --key c`, stdout: `created .*`},
	{args: `cancel mail c`, stdout: `cancelled .*`},
	{args: `get mail c`, stdout: `id  \d+\nqueue  mail\nkey  c\nstate  finished\ndue  TIME \(AWAY\)\ncancelled  TIME \(AWAY\)\ncreated  TIME\nattempt  0\ncancelled by  127.0.0.1\n`},
	{args: `get mail c --raw`, code: exitNotFound, stderr: `tarry: get mail key "c": not found \(it was cancelled at TIME, and its body has gone with it\)\n`},
	{args: `ls mail`, stdout: `ID .*ATTEMPT\n`, stderr: "no messages\n"},
	{args: `ls mail --state finished --newest`, stdout: `ID  KEY  STATE  DUE  ATTEMPT  ENDING  ENDED  BY\n\d+  c  finished  TIME \(AWAY\)  0  cancelled  TIME \(AWAY\)  127.0.0.1\n\d+  k  finished  TIME \(AWAY\)  2  acked  TIME \(AWAY\)  w-1\n`},
	{args: `ls mail --state finished --to -1h`, stdout: `ID .*BY\n`, stderr: "no messages\n"},
	{args: `queues mail`, stdout: `QUEUE .*\nmail  0  0  0  0  2  1  -  -  -\n`},
	{args: `queue set mail --history 0 --history-max 5`, stdout: `.*\nhistory  never  .*\nhistory-max  5  .*`},
	{args: `ls mail --state finished`, stdout: `ID .*BY\n`, stderr: "no messages\n"},
	{args: `queue set mail --unset history`, stdout: `SETTING .*\nhistory-max  5  .*`},
	{args: `push mail z --key d`, stdout: `created .*`},
	{args: `cancel mail d`, stdout: `cancelled .*`},
	{args: `purge mail --finished --yes`, stdout: `purged 2 messages of mail\n`}, // a key and a message
	{args: `ls mail --state finished`, stdout: `ID .*BY\n`, stderr: "no messages\n"},
	{args: `queue set mail --unset history-max --json`, stdout: `{"settings":{},"revision":"3"}\n`},
}

// The environment is for serve; the flags of a queue's settings do not take it.
func TestHistory(t *testing.T) {
	w := world{env: []string{"TARRY_HISTORY=1d", "TARRY_HISTORY_MAX=2"}}
	s := w.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0")
	w.env = append(w.env, "TARRY_SERVER="+s.stdout.await(t, `listens on (http://\S+)\n(?s:.*)try`)[1])
	w.must(t, "push", "mail", "x", "--key", "k", "--remember", "1h", "--backoff", "1ms")
	if help := w.must(t, "queue", "set", "--help"); strings.Contains(help, "TARRY_HISTORY") {
		t.Error(help)
	}
	r := w.start(t, "work", "mail", "--name", "w-1", "--", "sh", "-c", "test $TARRY_ATTEMPT = 2")
	r.stderr.await(t, "acked mail id")
	r.stop(t)
	for _, s := range historySteps {
		run1(t, w, s)
	}
}

// A server of a disk store has a history unless told otherwise.
func TestHistoryByDefault(t *testing.T) {
	t.Chdir(t.TempDir())
	for store, state := range map[string]string{"disk:a": "finished", "disk:b --history 0": "", "disk:c?history=0s": "", "mem:": ""} {
		s := world{}.start(t, append([]string{"serve", "--http", "127.0.0.1:0", "--store"}, strings.Fields(store)...)...)
		w := world{env: []string{"TARRY_SERVER=" + s.stdout.await(t, `listens on (http://\S+)\n`)[1]}}
		w.must(t, "push", "mail", "x", "--key", "k", "--in", "1h")
		w.must(t, "cancel", "mail", "k")
		want := step{args: "get mail k", code: exitNotFound, stderr: `.*not found.*\n`}
		if state != "" {
			want = step{args: "get mail k", stdout: `(?s:.*\nstate  ` + state + `\n.*)`}
		}
		run1(t, w, want)
		s.stop(t)
	}
}

func TestHistoryOfAStoreIsGivenOnce(t *testing.T) {
	for args, want := range map[string]string{
		"--store mem:?history=1h --history 1h":       `tarry: --history is given, and history in the store's URL .*\n`,
		"--store mem:?history_max=1 --history-max 2": `tarry: --history-max is given, and history_max in the store's URL .*\n`,
		"--store mem: --history-max -1":              `tarry: .*history_max.*\n`,
		"--store mem: --history soon":                `tarry: invalid argument "soon" for "--history".*\n`,
	} {
		run1(t, world{}, step{args: "serve " + args, code: exitUsage, stderr: want})
	}
}

// Without a server the user is who cancels.
func TestCancelInAStoreIsByTheUser(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=disk:data?history=1d"}}
	run1(t, w, step{args: "push mail x --key k --in 1h", stdout: ".*\n"})
	run1(t, w, step{args: "cancel mail k", stdout: ".*\n"})
	run1(t, w, step{args: "get mail k", stdout: `(?s:.*)\ncancelled by  ` + regexp.QuoteMeta(u.Username+"@"+host) + `\n`})
}
