package cli

import (
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/internal/nettest"
)

// step is one call and what must come of it; stdout and stderr are regular
// expressions on the output made plain, "" for none.
type step struct {
	args   string // apart by spaces; ␣ is a space within one
	stdin  string
	code   int
	stdout string
	stderr string
}

func run1(t *testing.T, w world, s step) {
	t.Helper()
	w.stdin = s.stdin
	args := strings.Split(s.args, " ")
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "␣", " ")
	}
	o := w.tarry(t, args...)
	check := func(stream, got, want string) {
		if ok, err := regexp.MatchString("^(?s:"+want+")$", plain(got)); err != nil || !ok {
			t.Errorf("tarry %s\n%s: %q\n  want: %q %v", s.args, stream, plain(got), want, err)
		}
	}
	if o.code != s.code {
		t.Errorf("tarry %s: exit code %d, want %d", s.args, o.code, s.code)
	}
	check("stdout", o.stdout, s.stdout)
	check("stderr", o.stderr, s.stderr)
	if o.code != exitOK && !w.terminal && strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("tarry %s: the error is not one line: %q", s.args, o.stderr)
	}
}

// noStoreYet is what is said of a directory without a store; of a server nothing is.
const noStoreYet = `(there is no store in data yet; it is shown as empty\n)?`

var commandSteps = []step{
	{args: "queues", stdout: `QUEUE  SCHEDULED  READY .*PAUSED\n`, stderr: noStoreYet},
	{args: `push mail {"to":"ann"} --in 30m --key ann`, stdout: `created mail id N key ann, due TIME \(AWAY\)\n`},
	{args: `push --in 30m mail --key ann again`, code: exitConflict, stderr: `tarry: push mail .*id N holds it, scheduled, due TIME; choose with --on-conflict.*\n`},
	{args: `push mail again --key ann --on-conflict keep`, stdout: `kept mail id N key ann, due TIME \(AWAY\)\n`},
	{args: `push mail again --key ann --on-conflict keep_due --json`, stdout: `{"outcome":"replaced","id":"\d+","queue":"mail","key":"ann","due":"TIME","state":"scheduled"}\n`},
	{args: `get mail ann`, stdout: `id  \d+\nqueue  mail\nkey  ann\nstate  scheduled\ndue  TIME \(AWAY\)\ncreated  TIME\nattempt  0 of 20\npriority  1024\nttr  1m\ncontent type  text/plain; charset=utf-8\n\nagain\n`},
	{args: `get mail ann --raw`, stdout: `again`},
	{args: `push mail - --key bob --at 2126-01-02T15:04:05Z --priority 7 --header trace=42 --max-attempts 3 --backoff 15s,30s,3m --ttr 10s --expire-after 7d`, stdin: `{"b": [1]}`, stdout: `created mail .*\n`},
	{args: `get mail bob --json`, stdout: `{"id":"\d+","queue":"mail","key":"bob","state":"scheduled","due":"TIME","created":"TIME","attempt":0,"max_attempts":3,"priority":7,"ttr":"10s","backoff":\["15s","30s","3m"\],"expire_after":"168h","expires":"TIME","headers":{"trace":"42"},"content_type":"application/json","body":{"b":\[1\]},"last_error":""}\n`},
	{args: `push mail now`, stdout: `created mail id N, due TIME \(AWAY\)\n`},
	{args: `queues`, stdout: `QUEUE .*\nmail  2  1  0  0  0  0  AWAY  AWAY  -\n`},
	{args: `push tarry.mine x --in 1h`, stdout: `created tarry.mine .*\n`, stderr: `tarry: names that begin with tarry\. are tarry's own: no pattern such as \* takes them in routes and for tokens\n`},
	{args: `rearm tarry.mine ann x --in 1h`, stdout: `created tarry.mine .*\n`, stderr: `tarry: names that begin with tarry\. are tarry's own: .*\n`},
	{args: `cancel tarry.mine ann`, stdout: `cancelled .*\n`},
	{args: `purge tarry.mine --yes`, stdout: `purged 1 .*\n`},
	{args: `queues mail none --json`, stdout: `{"queue":"mail","scheduled":2,"ready":1,"leased":0,"dead":0,"finished":0,"history":0,"next_due":"TIME","oldest_ready":"TIME","paused":false}\n{"queue":"none","scheduled":0,"ready":0,"leased":0,"dead":0,"finished":0,"history":0,"next_due":null,"oldest_ready":null,"paused":false}\n`},
	{args: `ls mail`, stdout: `ID  KEY  STATE  DUE  ATTEMPT\n\d+  -  ready  .*\n\d+  ann  scheduled  .*\n\d+  bob  scheduled  .*0/3\n`},
	{args: `ls mail --state scheduled --limit 1 --json --body`, stdout: `{"id":"\d+","queue":"mail","key":"ann".*"body_base64":"YWdhaW4=","last_error":""}\n`, stderr: `there are more; --limit 0 lists all\n`},
	{args: `forecast mail --span 2h`, stdout: `FROM  COUNT\n(overdue  1  #+\n)?(TIME  \d  #+\n)+[12] within 2h from this minute on; [01] overdue\n`},
	{args: `push old x --at 2020-01-02T15:04:05Z`, stdout: `created .*\n`},
	{args: `forecast old`, stdout: `FROM  COUNT\noverdue  1  #+\n0 within 48h from this minute on; 1 overdue\n`},
	{args: `purge old --yes`, stdout: `purged 1 message of old\n`},
	{args: `forecast mail --step 30m --span 1h --json`, stdout: `{"overdue":[01]}\n{"from":"TIME","count":\d}\n{"from":"TIME","count":\d}\n`},
	{args: `reschedule mail ann --in 2h`, stdout: `rescheduled mail ann, due TIME \(AWAY\)\n`},
	{args: `reschedule mail ann`, code: exitUsage, stderr: `tarry: no new due time is given \(as in --in 30m.*\)\n`},
	{args: `reschedule mail nobody --in 2h`, code: exitNotFound, stderr: `tarry: .*not found.*\n`},
	{args: `rearm mail ann --in 30s`, stdout: `rearmed mail id N key ann, due TIME \(AWAY\)\n`},
	{args: `rearm mail cat purr --in 1h`, stdout: `created mail id N key cat, .*\n`},
	{args: `rearm mail cat hiss --in 2h`, stdout: `rearmed mail id N key cat, .*\n`},
	{args: `push mail hiss --key cat --on-conflict rearm --in 2h`, stdout: `rearmed mail id N key cat, .*\n`},
	{args: `get mail cat --raw`, stdout: `purr`},
	{args: `cancel mail cat`, stdout: `cancelled mail cat\n`},
	{args: `cancel mail cat`, code: exitNotFound, stderr: `tarry: cancel mail key "cat": not found.*\n`},
	{args: `cancel mail bob --json`, stdout: `{"key":"bob","outcome":"cancelled","queue":"mail"}\n`},
	{args: `pause mail --for 10m`, stdout: `paused mail for 10m\n`},
	{args: `queues mail`, stdout: `.*until TIME\n`},
	{args: `pause mail --json`, stdout: `{"outcome":"paused","queue":"mail"}\n`},
	{args: `queues mail`, stdout: `.*until resumed\n`},
	{args: `resume mail`, stdout: `resumed mail\n`},
	{args: `purge mail`, code: exitUsage, stderr: `tarry: this would remove 2 messages of mail for good, and nobody is there to ask \(confirm with --yes\)\n`},
	{args: `purge mail --yes --json`, stdout: `{"queue":"mail","outcome":"purged","count":2}\n`},
	{args: `dead ls mail`, stdout: `ID  KEY  STATE  DUE  ATTEMPT  LAST ERROR\n`, stderr: `no messages\n`},
	{args: `dead redrive mail`, stdout: `redriven 0 messages of mail\n`},
	{args: `dead drop mail --yes`, stdout: `dropped 0 messages of mail\n`},
	{args: `dead drop mail 99 --yes`, code: exitNotFound, stderr: `tarry: .*not found.*\n`},
}

func TestCommandsOverHTTP(t *testing.T) {
	w, _ := served(t, "mem:")
	for _, s := range commandSteps {
		run1(t, w, s)
	}
}

func TestCommandsOnAStore(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=disk:data"}}
	for _, s := range commandSteps {
		run1(t, w, s)
	}
}

func TestByID(t *testing.T) {
	w, _ := served(t, "mem:")
	id := object(t, w.must(t, "push", "mail", "x", "--in", "1h", "--json"))["id"].(string)
	for _, args := range [][]string{
		{"get", "mail", "--id", id},
		{"get", "mail", "--id=" + id},
		{"get", "--id", id, "mail"},
		{"reschedule", "mail", "--id", id, "--in", "2h"},
		{"rearm", "mail", "--id", id, "--in", "3h"},
		{"cancel", "mail", "--id", id},
	} {
		w.must(t, args...)
	}
	id = object(t, w.must(t, "push", "mail", "x", "--in", "1h", "--json"))["id"].(string)
	run1(t, w, step{args: "rearm mail --id " + id + " --in 3h", stdout: `rearmed mail id N, due TIME \(AWAY\)\n`})
	w.must(t, "cancel", "mail", "--id", id)
	run1(t, w, step{args: "get mail --id " + id, code: exitNotFound, stderr: "tarry: get mail id N: not found.*\n"})
}

func TestWrongUsage(t *testing.T) {
	w, _ := served(t, "mem:")
	for _, s := range []step{
		{args: "bogus", stderr: `tarry: unknown command "bogus" \(tarry help lists the commands\)`},
		{args: "serv", stderr: `tarry: unknown command "serv" \(did you mean tarry serve\? tarry help lists the commands\)`},
		{args: "delete mail x --yes", stderr: `tarry: unknown command "delete" \(did you mean tarry cancel\? .*`},
		{args: "help bogus", stderr: `tarry: unknown command "bogus" \(tarry help lists the commands\)`},
		{args: "help dead bury", stderr: `tarry: unknown command "bury" for tarry dead \(.*`},
		{args: "push", stderr: `tarry: QUEUE is missing \(usage: tarry push QUEUE BODY.*`},
		{args: "push mail", stderr: `tarry: BODY is missing .*`},
		{args: "push mail a b", stderr: `tarry: too many arguments .*quote.*`},
		{args: "push mail x --bogus", stderr: `tarry: unknown flag: --bogus \(tarry push --help.*`},
		{args: "push mail x --delay 5s", stderr: `tarry: unknown flag: --delay \(did you mean --in\? tarry push --help.*`},
		{args: "reschedule mail k --due 2126-01-02T15:04:05Z", stderr: `tarry: unknown flag: --due \(did you mean --at\? .*`},
		{args: "serve --listen :80", stderr: `tarry: unknown flag: --listen \(did you mean --http\? tarry serve --help.*`},
		{args: "queue set mail --dead-max many", stderr: `tarry: invalid argument "many" for --dead-max: not a whole number \(tarry queue set --help.*`},
		{args: "queue set mail --dead-max 99999999999999999999", stderr: `tarry: invalid argument "99999999999999999999" for --dead-max: out of range \(.*`},
		{args: "push mail x --max-attempts -1", stderr: `tarry: invalid argument "-1" for --max-attempts: not a whole number from 0 on \(.*`},
		{args: "serve --trends=perhaps", stderr: `tarry: invalid argument "perhaps" for --trends: not true or false \(.*`},
		{args: "push mail x --max_attempts 3", stderr: `tarry: unknown flag: --max_attempts \(did you mean --max-attempts\? .*`},
		{args: "push mail x --in -5s", stderr: `tarry: .*the duration -5s is negative.*`},
		{args: "push mail x --in soon", stderr: `tarry: .*"soon" is not a duration such as.*`},
		{args: "push mail x --at tomorrow", stderr: `tarry: .*"tomorrow" is not a time such as.*`},
		{args: "push mail x --in 1h --at 2126-01-02T15:04:05Z", stderr: `tarry: both --in and --at are given.*`},
		{args: "push mail x --in 999999999999h", stderr: `tarry: .*"999999999999h" is out of range: a duration is at most 106751d.*`},
		{args: "dead ls mail --since 999999999999h", stderr: `tarry: .*"999999999999h" is out of range: a duration is at most 106751d.*`},
		{args: "push ma!l x", stderr: `tarry: push .*byte 3 of the queue's name.*`},
		{args: "push -- -mail x", stderr: `tarry: push .*must not begin with -.*`},
		{args: "push " + strings.Repeat("q", 201) + " x", stderr: `tarry: push .*at most 200.*`},
		{args: "push mail x --key " + strings.Repeat("k", 513), stderr: `tarry: push .*at most 512.*`},
		{args: "push mail x --key .", stderr: `tarry: push .*`},
		{args: "push mail x --key=", stderr: `tarry: the key is empty.*`},
		{args: "push mail x --on-conflict maybe", stderr: `tarry: --on-conflict "maybe" is unknown.*`},
		{args: "push mail x --header trace", stderr: `tarry: --header "trace" is not NAME=VALUE.*`},
		{args: "push mail x --max-attempts 0", stderr: `tarry: --max-attempts must be at least 1.*`},
		{args: "push mail x --max-attempts -1", stderr: `tarry: .*`},
		{args: "push mail x --backoff 1s,x", stderr: `tarry: .*"x" is not a duration.*`},
		{args: "push mail x --ttr 25h", stderr: `tarry: push .*time to run.*`},
		{args: "get mail", stderr: `tarry: KEY is missing.*`},
		{args: "get mail x y", stderr: `tarry: too many arguments.*`},
		{args: "get mail --id", stderr: `tarry: flag needs an argument: --id .*`},
		{args: "get mail --id=", stderr: `tarry: KEY is missing.*`},
		{args: "get mail --id 042", stderr: `tarry: "042" is not an id.*`},
		{args: "rearm mail --id 42 body --in 1s", stderr: `tarry: rearm by --id takes no body.*`},
		{args: "ls mail --state gone", stderr: `tarry: --state "gone" is unknown.*`},
		{args: "ls mail --limit -1", stderr: `tarry: --limit -1 is negative.*`},
		{args: "forecast mail --step 90s", stderr: `tarry: forecast .*whole number of minutes.*`},
		{args: "pause mail --for 0s", stderr: `tarry: --for is 0.*`},
		{args: "dead", stderr: `tarry: tarry dead is missing what to do.*`},
		{args: "dead bury", stderr: `tarry: unknown command "bury".*`},
		{args: "dead redrive", stderr: `tarry: QUEUE is missing.*`},
		{args: "dead redrive mail x", stderr: `tarry: "x" is not an id.*`},
		{args: "dead redrive mail --limit -1", stderr: `tarry: --limit -1.*`},
		{args: "work mail", stderr: `tarry: the command to run.*`},
		{args: "work mail --", stderr: `tarry: the command to run.*`},
		{args: "work mail sh -c x", stderr: `tarry: unknown shorthand flag.*\(put -- before the command: tarry work QUEUE -- CMD ARGS….*\)`},
		{args: "work -- cat", stderr: `tarry: QUEUE is missing.*`},
		{args: "work mail -- no-such-program-here", stderr: `tarry: the command cannot be run.*`},
		{args: "work mail --concurrency 0 -- cat", stderr: `tarry: --concurrency 0.*`},
		{args: "completion", stderr: `tarry: tarry completion is missing what to do.*`},
		{args: "completion tcsh", stderr: `tarry: unknown command "tcsh".*`},
		{args: "version 2", stderr: `tarry: too many arguments.*`},
		{args: "serve --http nowhere", stderr: `tarry: --http "nowhere" is not an address.*`},
		{args: "serve --http 127.0.0.1:99999", stderr: `tarry: cannot listen on .*`},
		{args: "serve --max-body 10MO --http 127.0.0.1:0", stderr: `tarry: .*"10MO" is not a size such as 65536, 64KiB, 256M or 2GiB.*`},
		{args: "serve --max-body 0 --http 127.0.0.1:0", stderr: `tarry: --max-body 0.*`},
		{args: "serve --max-buffered 0 --http 127.0.0.1:0", stderr: `tarry: --max-buffered 0.*`},
		{args: "serve --max-connections -1 --http 127.0.0.1:0", stderr: `tarry: --max-connections -1.*`},
		{args: "serve --host http://tarry.example.com --http 127.0.0.1:0", stderr: `tarry: --host: "http://tarry.example.com" is not .*without http:// and port.*`},
		{args: "serve --store tarry-data --http 127.0.0.1:0", stderr: `tarry: open: invalid \(the store has no scheme; for a directory put disk: before it, as in disk:tarry-data\)`},
		{args: "serve --store nowhere: --http 127.0.0.1:0", stderr: `tarry: open: .*no engine has the scheme "nowhere".*`},
		{args: "bench", stderr: `tarry: --store is missing.*`},
		{args: "bench --store mem: --scenario race", stderr: `tarry: unknown scenario "race".*`},
		{args: "bench --store mem: --clients 0", stderr: `tarry: --clients is 0 .*`},
		{args: "bench --store mem: --n 0", stderr: `tarry: --n is 0.*`},
		{args: "bench --store mem: --scenario recover --n 5 --quiet", stderr: `tarry: recover needs a durable store.*`},
		{args: "queues --server nowhere", stderr: `tarry: --server is not an http URL.*`},
		{args: "queues --server http://127.0.0.1:1 --store mem:", stderr: `tarry: both --server and --store are given.*`},
	} {
		s.code = exitUsage
		s.stderr += "\n"
		run1(t, w, s)
	}
	for _, hostPort := range []string{"127.0.0.1:1", "localhost:1"} {
		run1(t, w, step{args: "queues --server " + hostPort, code: exitUnavailable, stderr: `tarry: .*the server at http://` + hostPort + ` does not answer.*\n`})
	}
	env := world{env: []string{"TARRY_SERVER=nowhere"}}
	run1(t, env, step{args: "queues", code: exitUsage, stderr: `tarry: TARRY_SERVER is not an http URL.*\n`})
}

func TestTooLargeBody(t *testing.T) {
	w, _ := served(t, "mem:")
	for _, s := range []step{
		{args: "push mail -", stdin: strings.Repeat("x", 1<<20+1)},
		{args: "push mail " + strings.Repeat("x", 1<<20+1)},
	} {
		s.code, s.stderr = exitFailed, "tarry: push .*too large.*at most 1048576.*\n"
		run1(t, w, s)
	}
	w.stdin = strings.Repeat("x", 1<<20)
	w.must(t, "push", "mail", "-")
}

func TestNotReachable(t *testing.T) {
	for _, command := range []string{"queues", "status", "status --ready", "top"} {
		run1(t, world{}, step{args: command + " --server http://127.0.0.1:1", code: exitUnavailable, stderr: "tarry: (open|status): .*is it running. tarry serve starts a server.*\n"})
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	run1(t, world{}, step{args: "queues --timeout 100ms --server http://" + silent.Addr().String(), code: exitUnavailable, stderr: `tarry: open: .*\(the server at 127\.0\.0\.1:\d+ did not answer within 100ms; --timeout allows more\)\n`})
	run1(t, world{}, step{args: "serve --store redis://127.0.0.1:1 --http 127.0.0.1:0", code: exitUnavailable, stderr: "tarry: open: .*check that Redis runs.*\n"})
}

func TestConfirm(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x")
	w.terminal = true
	for _, no := range []string{"", "\n", "n\n", "yep\n"} {
		run1(t, w, step{args: "purge mail", stdin: no, code: exitFailed,
			stderr: `This will remove 1 message of mail for good. Go on\? \[y/N\] \n?tarry: nothing was done.*\n`})
	}
	run1(t, w, step{args: "purge mail", stdin: "y\n", stdout: "purged 1 message of mail\n", stderr: "This will .*"})
}

func TestVersionHelpAndCompletion(t *testing.T) {
	w := world{}
	if got := w.must(t, "version"); !strings.HasPrefix(got, "tarry version ") {
		t.Errorf("version prints %q", got)
	}
	for _, flag := range []string{"--version", "-v"} {
		if got, want := w.must(t, flag), w.must(t, "version"); got != want {
			t.Errorf("%s prints %q, version %q", flag, got, want)
		}
	}
	if got := w.must(t, "help", "dead", "drop"); !strings.Contains(got, "tarry dead drop QUEUE") {
		t.Errorf("help dead drop prints %q", got)
	}
	if v := object(t, w.must(t, "version", "--json")); v["version"] == "" || v["go"] == "" {
		t.Errorf("version --json prints %v", v)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := w.must(t, "completion", shell); !strings.Contains(out, "tarry") {
			t.Errorf("completion %s prints %q", shell, out)
		}
	}
	help := w.must(t, "help")
	for _, name := range strings.Fields("serve demo push cancel get reschedule rearm status top ls queues queue forecast work dead route schedule pause resume purge copy bench completion version") {
		if !strings.Contains(help, "\n  "+name+" ") {
			t.Errorf("help does not list %s", name)
		}
		if out := w.must(t, name, "--help"); !strings.Contains(out, "Usage:") {
			t.Errorf("%s --help prints %q", name, out)
		}
	}
}

// A server runs, but is asked by the scheme of the other kind.
func TestWrongScheme(t *testing.T) {
	_, cert, key := nettest.Certificate(t)
	secure := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	host := secure.stdout.await(t, `listens on https://(\S+)\n`)[1]
	plain, _ := served(t, "mem:")
	url, _ := plain.program(nil, nil).env("TARRY_SERVER")
	for _, args := range []string{"queues", "status --ready"} {
		run1(t, world{}, step{args: args + " --server " + strings.Replace(url, "http", "https", 1), code: exitUnavailable,
			stderr: `tarry: \w+: .*\(the server answers in plain HTTP; use ` + url + `\)\n`})
		run1(t, world{}, step{args: args + " --server http://" + host, code: exitUnavailable,
			stderr: `tarry: \w+: .*\(the server answers in TLS; use https://` + host + `\)\n`})
	}
}

// It runs, but it is not the one that is asked for.
func TestNotTrusted(t *testing.T) {
	_, cert, key := nettest.Certificate(t)
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	url := s.stdout.await(t, `listens on (https://\S+)\n`)[1]
	run1(t, world{}, step{args: "queues --server " + url, code: exitUnavailable,
		stderr: `tarry: open: .*\(the certificate of ` + url + ` is not trusted; name its authority by ca_file, as in ` + url + `\?ca_file=PATH.*\)\n`})
	if o := (world{}).tarry(t, "queues", "--server", url); strings.Contains(o.stderr, "is it running") {
		t.Errorf("it says %s", o.stderr)
	}
}
