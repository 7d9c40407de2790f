package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// arrives waits for an entry of a stream, and returns its body.
func arrives(t *testing.T, s *redistest.Server, stream string) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		answer := s.Do("XRANGE", stream, "-", "+")
		if all, err := answer.AsXRange(); err != nil || len(all) > 0 {
			s.Do("DEL", stream)
			return all[0].FieldValues["body"]
		}
	}
	t.Fatalf("nothing arrives in %s", stream)
	return ""
}

// Serve takes what has a delay and forwards it when due, reads its intakes again, shows what
// they do, and drains them.
func TestServeProcessTakesMessages(t *testing.T) {
	s := redistest.Start(t)
	source := write(t, "source", s.URL()+"?stream=delayed&declare=true\n")
	config := write(t, "c.json", `{"intakes": [{"queue": "orders", "source_file": "`+source+`", "target": "`+s.URL()+`?stream=due"}]}`)
	cmd, w, stderr := serveProcess(t, config, nil)
	s.Do("XADD", "delayed", "*", "body", "hello", "delay", "50ms")
	if got := arrives(t, s, "due"); got != "hello" {
		t.Errorf("got %q", got)
	}
	awaits(t, "the ack", func() error { // which the target does not wait for
		if out := w.must(t, "status"); !strings.Contains(out, "no problems\nintake orders into orders: running, 1 taken, 1 pushed, 0 doubles, 0 refused, 0 unacked\n") {
			return errors.New(out)
		}
		return nil
	})
	w.must(t, "intake", "add", "mail", s.URL()+"?stream=mail&declare=true", "--target", s.URL()+"?stream=sent", "--config", config)
	signalTo(t, cmd, syscall.SIGHUP)
	stderr.await(t, `c.json was read again: 2 routes, 2 intakes\n`)
	s.Do("XADD", "mail", "*", "body", "letter")
	if got := arrives(t, s, "sent"); got != "letter" {
		t.Errorf("got %q", got)
	}
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	writeMode(t, config, `{"intakes": [{"queue": "mail", "source": "gopher:"}]}`, 0o600)
	signalTo(t, cmd, syscall.SIGHUP)
	stderr.await(t, `tarry: \S+c.json: intake 1 \(mail\): .*; the routes and intakes stay as they were\n`)
	writeMode(t, config, string(before), 0o600)

	s.Kill()
	var out outcome
	awaits(t, "both to fail", func() error {
		out = w.tarry(t, "status")
		for _, name := range []string{"mail", "orders"} {
			if !strings.Contains(out.stdout, name+": the intake "+name+" fails") {
				return errors.New(out.stdout)
			}
		}
		return nil
	})
	if out.code != exitFailed || !strings.Contains(out.stdout, "check that Redis runs at "+s.Addr()) || !strings.Contains(out.stdout, "intake mail into mail: failing, 1 taken") {
		t.Errorf("%+v", out)
	}
	all := object(t, w.tarry(t, "status", "--json").stdout)["intakes"].([]any)
	if i := all[0].(map[string]any); i["name"] != "orders" || i["state"] != "failing" || i["code"] != "unreachable" || i["taken"] != 1.0 {
		t.Errorf("%v", i)
	}
	signalTo(t, cmd, os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
}

func TestServeWithWrongIntakes(t *testing.T) {
	const good = `{"queue": "q", "source": "redis://h?stream=s"}`
	for intakes, want := range map[string]string{
		`{}`:                              `intakes is not an array of intakes \(as in .*\)`,
		`[null]`:                          `intake 1: it is null`,
		`["x"]`:                           `intake 1: it is a JSON string and not an object \(as in .*source_file.*\)`,
		`[{}]`:                            `intake 1: it has no queue .*`,
		`[{"queue": "q"}]`:                `intake 1 \(q\): it has neither source nor source_file .*`,
		`[{"queue": "q", "sauce": "s"}]`:  `intake 1 \(q\): unknown field "sauce" \(known are name, .*source_file.*\)`,
		`[{"queue": "q", "remember": 7}]`: `intake 1 \(q\): remember: JSON value must be string type`,
		`[` + good + `, ` + good + `]`:    `intake 2 \(q\): invalid \(another intake has this name already; .*\)`,
		`[{"queue": "q", "source": "redis://h?stream=s", "source_file": "x"}]`:                                                             `intake 1 \(q\): both source and source_file .*`,
		`[{"queue": "q", "source_file": "/no/such"}]`:                                                                                      `intake 1 \(q\): source_file: open /no/such: .*`,
		`[{"queue": "q", "source": "redis://:geheim@h"}]`:                                                                                  `intake 1 \(q\): invalid \(stream is missing.*\)`,
		`[{"queue": "q", "source": "amqp://u:geheim@h"}]`:                                                                                  `intake 1 \(q\): invalid \(queue is .*\)`,
		`[{"queue": "q", "source": "nats://u:geheim@h"}]`:                                                                                  `intake 1 \(q\): invalid \(stream is missing.*\)`,
		`[{"queue": "q", "source": "gopher://u:geheim@h"}]`:                                                                                `intake 1 \(q\): invalid \(no source has the scheme "gopher"; known here: .*\)`,
		`[{"queue": "q!", "source": "redis://h?stream=s"}]`:                                                                                `intake 1 \(q!\): invalid \(byte 2 of the queue's name .*\)`,
		`[{"queue": "q", "source": "redis://h?stream=s", "on_conflict": "both"}]`:                                                          `intake 1 \(q\): invalid \(on_conflict is .*\)`,
		`[{"queue": "q", "source": "redis://h?stream=s", "remember": "-1s"}]`:                                                              `intake 1 \(q\): remember: the duration -1s is negative`,
		`[{"queue": "q", "source": "redis://h?stream=s", "timeout": "0s"}]`:                                                                `intake 1 \(q\): the timeout is 0 .*`,
		`[{"queue": "q", "source": "redis://h?stream=s", "target": "gopher://u:geheim@h"}]`:                                                `.*\(q\): invalid \(no target has the scheme "gopher"; .*\)`,
		`[{"queue": "p", "source": "redis://h?stream=s", "target": "redis://h"}], "routes": [` + route("p", "https://a.example", "") + `]`: `routes and intakes: .*\(p\): invalid \(route 1 has this queue already.*\).*`,
	} {
		config := write(t, "c.json", `{"intakes": `+intakes+`}`)
		commands := []string{"serve --store mem: --http 127.0.0.1:0", "intake ls", "intake test q"}
		if strings.Contains(intakes, "routes") {
			commands = commands[:1]
		}
		for _, command := range commands {
			o := (world{}).tarry(t, strings.Split(command+" --config "+config, " ")...)
			if is, err := regexp.MatchString(`^tarry: \S+c\.json: `+want+`\n$`, o.stderr); err != nil || !is || o.code != exitUsage || strings.Contains(o.stderr, "geheim") {
				t.Errorf("%s of %s: %+v, want %s", command, intakes, o, want)
			}
		}
	}
}

// Add and rm change the intakes, and nothing else of the file.
func TestIntakesInTheFile(t *testing.T) {
	source := write(t, "source", "amqp://u:geheim@h/v?queue=delayed\n")
	open := filepath.Join(t.TempDir(), "open")
	writeMode(t, open, "amqp://u:geheim@h/v?queue=delayed\n", 0o644)
	config := filepath.Join(t.TempDir(), "c.json")
	const before = "{\n  \"timeout\":   \"10s\",\n  \"routes\": [ {\"queue\":\"a\", \"target\":\"https://a.example\"} ]\n}\n"
	writeMode(t, config, before, 0o640)
	steps := func(all ...step) {
		t.Helper()
		for _, s := range all {
			s.args += " --config " + config
			run1(t, world{}, s)
		}
	}
	steps(
		step{args: "intake ls", stdout: `NAME .*TIMEOUT\n`},
		step{args: "intake add orders --source-file " + source + " --remember 7d --name shop --on-conflict replace", stdout: `added the intake shop, in \S+c.json; send serve SIGHUP to read it again\n`},
		step{args: "intake add mail redis://ann@h?stream=s&password_file=" + source + " --target nats://h --source-timeout 5s --json", stdout: `{"config":".*c.json","intake":"mail","outcome":"added"}\n`},
		step{args: "intake ls", stdout: `NAME  QUEUE  SOURCE  TARGET  ON CONFLICT  REMEMBER  TIMEOUT
shop  orders  amqp://h/…  -  replace  (7d|168h)  10s
mail  mail  redis://xxxxx@h\?\S+  nats://h  keep  (24h|1d)  5s
`},
	)
	data, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	const added = ",\n  \"intakes\": [\n    {\"name\":\"shop\","
	if kept, _, found := strings.Cut(string(data), added); !found || kept != strings.TrimSuffix(before, "\n}\n") || !strings.HasSuffix(string(data), "}\n  ]\n}\n") {
		t.Errorf("the file is %s", data)
	}
	if info, err := os.Stat(config); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	const stays = `tarry: .*c\.json: `
	steps(
		step{args: "intake add mail --source-file " + source, code: exitUsage, stderr: stays + `intake 3 \(mail\): invalid \(another intake has this name already; .*\n`},
		step{args: "intake add a redis://h?stream=s --target nats://h", code: exitUsage, stderr: stays + `routes and intakes: .*\n`},
		step{args: "intake add b redis://:geheim@h?stream=s", code: exitUsage, stderr: `tarry: a password on the command line can be read by others .*\n`},
		step{args: "intake add b nats://geheim@h?stream=s", code: exitUsage, stderr: `tarry: a password on the command line can be read by others .*\n`},
		step{args: "intake add b --source-file " + open, code: exitUsage, stderr: stays + `intake 3 \(b\): source_file: others may read .*\n`},
		step{args: "intake add", code: exitUsage, stderr: `tarry: QUEUE is missing .*\n`},
		step{args: "intake rm ride", code: exitNotFound, stderr: `tarry: intake rm ride: not found \(.*tarry intake ls.*\)\n`},
	)
	if after, err := os.ReadFile(config); err != nil || string(after) != string(data) {
		t.Errorf("the file is %s, %v", after, err)
	}
	steps(
		step{args: "intake rm shop", stdout: `removed the intake shop, from \S+c.json; .*\n`},
		step{args: "intake rm mail", stdout: `removed the intake mail, from \S+c.json; .*\n`},
	)
	if after, err := os.ReadFile(config); err != nil || string(after) != strings.TrimSuffix(before, "\n}\n")+",\n  \"intakes\": []\n}\n" {
		t.Errorf("the file is %s, %v", after, err)
	}
	writeMode(t, config, "{}", 0o600)
	steps(step{args: "intake add orders --source-file " + source, stdout: `added .*\n`}, step{args: "intake ls --json", stdout: `{"name":"orders",.*"source":"amqp://h/…",.*}\n`})
	writeMode(t, config+".new", "", 0o600)
	steps(step{args: "intake rm orders", code: exitFailed, stderr: `tarry: the file stays as it was: .*somebody is changing .*\n`})
	run1(t, world{}, step{args: "intake ls", code: exitUsage, stderr: `tarry: no --config file is given, .*\n`})
	run1(t, world{}, step{args: "intake add a redis://h?stream=s", code: exitUsage, stderr: `tarry: no --config file is given, .*\n`})
	run1(t, world{}, step{args: "intake", code: exitUsage, stderr: `tarry: tarry intake is missing what to do .*\n`})
}

// Test says what the source of an intake has, or why it has none; it takes nothing.
func TestIntakeTest(t *testing.T) {
	s := redistest.Start(t)
	s.Do("XADD", "there", "*", "body", "x")
	rabbit := write(t, "rabbit", rabbittest.Shared(t)+"?queue=delayed&declare=true")
	config := write(t, "c.json", `{"intakes": [{"queue": "made", "source": "`+s.URL()+`?stream=there&declare=true"},
		{"queue": "missing", "source": "`+s.URL()+`?stream=none"}, {"queue": "rabbit", "source_file": "`+rabbit+`"}]}`)
	for range 2 {
		run1(t, world{}, step{args: "intake test made --config " + config,
			stdout: `redis://\S+: the stream "there" has 1 entries and the group "tarry" \(\S+\)\n`})
	}
	run1(t, world{}, step{args: "intake test rabbit --json --config " + config,
		stdout: `{"found":"the queue \\"delayed\\" of RabbitMQ has 0 messages ready and 0 consumers","intake":"rabbit","outcome":"found","queue":"rabbit","source":"amqp://127.0.0.1:\d+/…","took":"\S+"}\n`})
	run1(t, world{}, step{args: "intake test missing --config " + config, code: exitFailed, stderr: `tarry: redis://\S+, after \S+: NOGROUP .* \(make the stream .*\)\n`})
	run1(t, world{}, step{args: "intake test missing --json --config " + config, code: exitFailed,
		stdout: `{"code":"no_group","error":"NOGROUP .*","hint":"make .*","intake":"missing","outcome":"failed",.*}\n`, stderr: `tarry: .*\n`})
}

// Each trouble of a source has its code, says what to do, and tells no secret.
func TestIntakeTestTellsTroubles(t *testing.T) {
	s, rabbit := redistest.Start(t), rabbittest.Shared(t)
	s.Do("SET", "text", "x")
	s.Do("ACL", "SETUSER", "other", "on", ">geheim", "+hello", "+ping", "+client")
	broker, _ := url.Parse(rabbit)
	there := write(t, "there.json", `{"intakes": [{"queue": "q", "source_file": "`+write(t, "there", rabbit+"?queue=there&declare=true")+`"}]}`)
	run1(t, world{}, step{args: "intake test q --config " + there, stdout: `amqp://.*\n`})
	for source, want := range map[string]string{
		"redis://127.0.0.1:1?stream=s":                                       "unreachable check that Redis runs at 127.0.0.1:1",
		"redis://other:geheimer@" + s.Addr() + "?stream=s":                   "credentials check the user",
		"redis://other:geheim@" + s.Addr() + "?stream=s":                     "forbidden the user needs",
		s.URL() + "?stream=s":                                                "no_group make the stream",
		s.URL() + "?stream=text":                                             "mismatch the key is no stream",
		"nats://u:geheim@127.0.0.1:1?stream=s":                               "unreachable check that NATS runs at nats://127.0.0.1:1",
		"amqp://u:geheim@127.0.0.1:1/?queue=q":                               "unreachable check that RabbitMQ runs at",
		"amqp://guest:geheim@" + broker.Host + broker.Path + "?queue=q":      "credentials check the user",
		"amqp://guest:guest@" + broker.Host + "/geheim-not?queue=q":          "vhost check the vhost",
		rabbit + "?queue=none":                                               "no_queue make the queue",
		rabbit + "?queue=there&exchange=none":                                "no_exchange make the exchange",
		rabbit + "?queue=there&declare=true&exchange=amq.direct&type=fanout": "mismatch the broker has it with other settings",
	} {
		config := write(t, "c.json", `{"intakes": [{"queue": "q", "source_file": "`+write(t, "source", source)+`", "timeout": "5s"}]}`)
		o := (world{}).tarry(t, "intake", "test", "q", "--json", "--config", config)
		told := object(t, o.stdout)
		if got := fmt.Sprint(told["code"], " ", told["hint"]); o.code != exitFailed || !strings.HasPrefix(got, want) || strings.Contains(o.stdout+o.stderr, "geheim@") || strings.Contains(o.stdout+o.stderr, "geheimer") {
			t.Errorf("%s: %+v, want %s", source, o, want)
		}
	}
}

// At the end of serve what was taken is in the store and acked, and the rest is at the source.
func TestServeProcessDrainsIntakes(t *testing.T) {
	s := redistest.Start(t)
	const all = 3000
	for n := range all {
		s.Do("XADD", "delayed", "*", "body", fmt.Sprint(n), "delay", "1h")
	}
	config := write(t, "c.json", `{"intakes": [{"queue": "orders", "source": "`+s.URL()+`?stream=delayed&declare=true&delete=true"}]}`)
	cmd, w, stderr := serveProcess(t, config, nil)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if i := object(t, w.must(t, "status", "--json"))["intakes"].([]any)[0].(map[string]any); i["pushed"].(float64) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing is taken")
		}
	}
	signalTo(t, cmd, os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
	q := object(t, world{}.must(t, "queues", "orders", "--json", "--store", cmd.Args[3]))
	answer := s.Do("XLEN", "delayed")
	left, err := answer.AsInt64()
	if kept := q["scheduled"].(float64); err != nil || kept == 0 || kept+float64(left) != all {
		t.Errorf("%v are kept and %d are left of %d, %v", kept, left, all, err)
	}
}
