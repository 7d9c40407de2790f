package cli

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

const (
	nightly  = `schedule set nightly 30␣2␣*␣*␣* --queue report --zone Europe/Berlin {"of":"yesterday"}`
	nextLine = `TIME \(AWAY\)`
)

var scheduleSteps = []step{
	{args: `schedule ls`, stdout: `NAME  SPEC  ZONE  QUEUE  NEXT  ERROR\n`, stderr: noStoreYet},
	{args: nightly, stdout: `set nightly, next: TIME \(AWAY\)\n`},
	{args: nightly, stdout: `set nightly, next: TIME \(AWAY\)\n`},
	{args: nightly + ` --revision 0`, code: exitConflict, stderr: `tarry: .*nightly.*changed meanwhile.*\n`},
	{args: `schedule get other`, code: exitNotFound, stderr: `tarry: schedule get other: not found \(no schedule has this name; tarry schedule ls shows them\)\n`},
	{args: `schedule next other`, code: exitNotFound, stderr: `tarry: schedule next other: not found \(.*\n`},
	{args: `schedule set tick @every␣90s --queue tick --jitter 30s --catch-up skip --start 2030-01-02T15:04:05Z --end 2031-01-01T00:00:00Z --priority 7 --max-attempts 3 --backoff 1s,2m --ttr 10s --expire-after 1h --remember 7d --isolate=false --header a=b --header c=d␣e --content-type text/x --json -`, stdin: "tick",
		stdout: `{"name":"tick","spec":"@every 90s","zone":"UTC","jitter":"30s","catch_up":"skip","start":"TIME","end":"TIME","message":{"queue":"tick","body_base64":"dGljaw==","content_type":"text/x","headers":{"a":"b","c":"d e"},"priority":7,"max_attempts":3,"ttr":"10s","backoff":\["1s","2m"\],"expire_after":"1h","remember":"168h","isolate":false},"state":"active",.*}\n`},
	{args: `schedule set gone @daily --queue report --start 2020-01-01T00:00:00Z --end 2020-01-03T00:00:00Z`, stdout: `set gone, next: ended\n`},
	{args: `schedule ls`, stdout: `NAME .*\nnightly  30 2 \* \* \*  Europe/Berlin  report  TIME \(AWAY\)  -\ntick  @every 90s  UTC  tick  TIME \(AWAY\)  -\ngone  @daily  UTC  report  ended  -\n`},
	{args: `schedule ls --json`, stdout: `{"name":"nightly",[^\n]*}\n{"name":"tick",[^\n]*}\n{"name":"gone",[^\n]*}\n`},
	{args: `schedule get tick`, stdout: `tick, next: TIME \(AWAY\)\n{\n\s+"name": "tick",\n\s+"spec": "@every 90s",\n.*\n}\n\ntick\n`},
	{args: `schedule get nightly --json`, stdout: `{"name":"nightly","spec":"30 2 \* \* \*","zone":"Europe/Berlin","message":{"queue":"report","body":{"of":"yesterday"},"content_type":"application/json"},"state":"active","revision":"\w+","changed":"TIME","next":"TIME"}\n`},
	{args: `schedule next nightly --n 2`, stdout: `.*02:30.*\nIN Europe/Berlin  HERE  FROM NOW\n\w{3} \d{4}-\d\d-\d\d (02:30|03:00):00 \+0[12]:00  .*AWAY\n.* (02:30|03:00):00 .*AWAY\n`},
	{args: `schedule next nightly --n 1 --json`, stdout: `{"next":\["TIME"\],"explain":\[".*"\]}\n`},
	{args: `schedule next gone`, stdout: `.*IN UTC  HERE  FROM NOW\nand none after\n`},
	{args: `schedule pause nightly`, stdout: `paused nightly, next: paused\n`},
	{args: `schedule next nightly --n 1`, stdout: `.*(02:30|03:00):00 \+.*\n`, stderr: `it is paused; these are its instants if it is resumed\n`},
	{args: `schedule trigger nightly`, stdout: `triggered nightly: id N key nightly@TIME\n`},
	{args: `schedule trigger nightly --json`, stdout: `{"instant":"TIME","pushed":"TIME","key":"nightly@TIME","id":"\d+","manual":true}\n`},
	{args: `ls report --header tarry-schedule=nightly`, stdout: `ID .*\n\d+  nightly@TIME  ready  .*\n\d+  nightly@TIME  ready  .*\n`},
	{args: `schedule get nightly --json`, stdout: `{.*"state":"paused".*"runs":\[{"instant":"TIME","pushed":"TIME","key":"nightly@TIME","id":"\d+","manual":true,"state":"ready"},{[^}]*}\]}\n`},
	{args: `purge report --yes`, stdout: `purged 2 .*\n`},
	{args: `schedule get nightly --json`, stdout: `{.*"id":"\d+","manual":true},{[^}]*"manual":true}\]}\n`},
	{args: `schedule resume nightly`, stdout: `resumed nightly, next: TIME \(AWAY\)\n`},
	{args: `schedule rm nightly --revision 1`, code: exitConflict, stderr: `tarry: .*nightly.*changed meanwhile.*\n`},
	{args: `schedule rm nightly`, stdout: `removed nightly\n`},
	{args: `schedule rm nightly`, code: exitNotFound, stderr: `tarry: schedule rm nightly: not found \(.*\n`},
	{args: `schedule pause nightly`, code: exitNotFound, stderr: `tarry: schedule pause nightly: not found \(.*\n`},
	{args: `schedule resume nightly`, code: exitNotFound, stderr: `tarry: schedule resume nightly: not found \(.*\n`},
	{args: `schedule trigger nightly`, code: exitNotFound, stderr: `tarry: schedule trigger nightly: not found \(.*\n`},
	{args: `schedule rm tick --json`, stdout: `{"name":"tick","outcome":"removed"}\n`},
	{args: `schedule set tick @daily --queue tarry.mine`, stdout: `set tick, .*\n`, stderr: `tarry: names that begin with tarry\. are tarry's own: .*\n`},
}

func TestSchedulesOverHTTP(t *testing.T) {
	w, _ := served(t, "mem:")
	for _, s := range scheduleSteps {
		run1(t, w, s)
	}
}

func TestSchedulesOnAStore(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=disk:data"}}
	for _, s := range scheduleSteps {
		run1(t, w, s)
	}
}

// A token is for the schedules of its queues.
func TestSchedulesWithTokens(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	for name, queue := range map[string]string{"ours": "report", "theirs": "other"} {
		world{}.must(t, "token", "create", name, "--tokens", tokens, "--scope", "push,read", "--queue", queue, "--out", tokens+"."+name)
	}
	w, _ := served(t, "mem:", "--tokens", tokens)
	with := func(name string, all ...step) {
		t.Helper()
		for _, s := range all {
			run1(t, world{env: append(w.env, "TARRY_TOKEN_FILE="+tokens+"."+name)}, s)
		}
	}
	file := write(t, "s.json", `{"nightly": {"spec": "30 2 * * *", "zone": "Europe/Berlin", "message": {"queue": "report", "body": {"of":"yesterday"}}}}`)
	with("ours",
		step{args: nightly, stdout: `set nightly, .*\n`},
		step{args: "schedule apply " + file, stdout: `nothing to change\n`},
		step{args: "schedule next nightly --n 1", stdout: `.*(02:30|03:00):00.*\n`},
	)
	with("theirs",
		step{args: "schedule ls", stdout: `NAME [^\n]*\n`},
		step{args: "schedule get nightly", code: exitFailed, stderr: `tarry: .*token theirs may not do this.*\n`},
		step{args: "schedule rm nightly", code: exitFailed, stderr: `tarry: .*token theirs may not do this.*\n`},
		step{args: "schedule set nightly @daily --queue other", code: exitFailed, stderr: `tarry: .*token theirs may not do this.*\n`},
		step{args: "schedule apply --prune --yes " + write(t, "s.json", `{}`), stdout: `nothing to change\n`},
	)
	with("ours",
		step{args: "schedule trigger nightly", stdout: `triggered .*\n`},
		step{args: "schedule get nightly --json", stdout: `{.*"spec":"30 2 [^\n]*"runs":\[{[^}]*"state":"ready"}\]}\n`},
		step{args: "schedule pause nightly", stdout: `paused .*\n`},
		step{args: "schedule resume nightly", stdout: `resumed .*\n`},
		step{args: "schedule rm nightly", stdout: `removed nightly\n`},
	)
}

func TestSchedulesWrongUsage(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "schedule", "set", "tick", "@daily", "--queue", "q")
	for _, s := range []step{
		{args: "schedule", stderr: `tarry schedule is missing what to do .*`},
		{args: "schedule create", stderr: `unknown command "create" for tarry schedule .*`},
		{args: "schedule set", stderr: `NAME is missing .*`},
		{args: "schedule set x", stderr: `SPEC is missing .*`},
		{args: "schedule set x 0 2 * * *", stderr: `too many arguments .*; quote what holds spaces\)`},
		{args: "schedule set x @daily", stderr: `.*queue.*`},
		{args: "schedule set x @daily --queue q --revision=", stderr: `--revision is empty .*`},
		{args: "schedule set x @daily --queue q --catch-up none", stderr: `.*catch_up is last, skip or all, not "none".*`},
		{args: "schedule set x @daily --queue q --key k", stderr: `unknown flag: --key .*`},
		{args: "schedule set x @daily --queue q --in 1h", stderr: `unknown flag: --in .*`},
		{args: "schedule set x @daily --queue q --start tomorrow", stderr: `.*"tomorrow" is not a time.*`},
		{args: "schedule set x @daily --queue q --jitter 25h", stderr: `.*jitter.*24h.*`},
		{args: "schedule set x @daily --queue q --zone Mars/Olympus", stderr: `.*Mars/Olympus.*`},
		{args: "schedule set x@y @daily --queue q", stderr: `.*name.*`},
		{args: "schedule set x 0␣0␣30␣2␣* --queue q", stderr: `.*never fires.*`},
		{args: "schedule set x @every␣1ms --queue q", stderr: `.*at least 1s.*`},
		{args: "schedule next tick --n 0", stderr: `.*1 to 1000.*`},
		{args: "schedule explain 0␣2␣*␣*", stderr: `.*4 fields.*`},
		{args: "schedule explain @daily --zone Local", stderr: `.*another on each machine.*`},
		{args: "schedule explain @daily --n 1001", stderr: `.*1 to 1000.*`},
		{args: "schedule apply", stderr: `FILE is missing .*`},
		{args: "schedule apply /no/such", stderr: `open /no/such: .*`},
	} {
		s.code, s.stderr = exitUsage, "tarry: "+s.stderr+"\n"
		run1(t, w, s)
	}
}

// Explain says what clock changes do, in the zone of the schedule and in the viewer's.
func TestScheduleExplained(t *testing.T) {
	viewer, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	var out, stderr strings.Builder
	p := world{}.program(&out, &stderr, "schedule", "explain", "30 2 * * *", "--zone", "Europe/Berlin", "--n", "2")
	p.Now = func() time.Time { return time.Date(2027, 3, 26, 20, 0, 0, 0, viewer) }
	if code := p.Run(t.Context()); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	const want = `IN Europe/Berlin                HERE                            FROM NOW
Sat 2027-03-27 02:30:00 +01:00  Fri 2027-03-26 21:30:00 -04:00  in 1h30m
Sun 2027-03-28 03:00:00 +02:00  Sat 2027-03-27 21:00:00 -04:00  in 25h
`
	if words, ok := strings.CutSuffix(out.String(), want); !ok || !strings.Contains(words, "2027-03-28") {
		t.Errorf("%s", &out)
	}
	run1(t, world{}, step{args: `schedule explain @every␣90s --json`, stdout: `{"next":\["TIME","TIME","TIME","TIME","TIME"\],"explain":\[".*"\]}\n`})
}

// Apply makes the schedules those of a file, and a second time changes nothing.
func TestScheduleApply(t *testing.T) {
	w, _ := served(t, "mem:")
	steps := func(all ...step) {
		t.Helper()
		for _, s := range all {
			run1(t, w, s)
		}
	}
	first := write(t, "s.json", `{"tick": {"spec": "@every 90s", "message": {"queue": "tick", "body_base64": "dGljaw=="}},
		"nightly": {"spec": "30 2 * * *", "zone": "Europe/Berlin", "message": {"queue": "report", "body": {"of": "yesterday"}, "headers": {"a": "b"}}}}`)
	steps(
		step{args: "schedule apply --dry-run " + first, stdout: `\+ nightly\n\+ tick\n2 changes to make\n`},
		step{args: "schedule ls", stdout: `NAME .*ERROR\n`},
		step{args: "schedule apply " + first, stdout: `\+ nightly\n\+ tick\n2 changes made\n`},
		step{args: "schedule apply " + first, stdout: `nothing to change\n`},
		step{args: "schedule pause tick", stdout: `paused .*\n`},
		step{args: `schedule set other @daily --queue other`, stdout: `set .*\n`},
	)
	second := write(t, "s.json", `{"tick": {"spec": "@every 90s", "zone": "UTC", "jitter": "5s", "message": {"queue": "tick", "body_base64": "dG9jaw==", "backoff": ["1s", "2m"]}},
		"nightly": {"spec": "30 2 * * *", "zone": "Europe/Berlin", "message": {"queue": "report", "body": {"of": "today"}}}}`)
	const plan = `~ nightly\n  body: {"of": "yesterday"} → {"of": "today"}\n  headers: {"a":"b"} → -\n` +
		`~ tick\n  backoff: - → \["1s","2m"\]\n  body: tick → tock\n  jitter: - → "5s"\n`
	steps(
		step{args: "schedule apply --prune --dry-run " + second, stdout: `- other\n` + plan + `3 changes to make\n`},
		step{args: "schedule apply --prune " + second, code: exitUsage, stdout: `- other\n`, stderr: `tarry: this would remove 1 schedule, and nobody is there to ask \(confirm with --yes\)\n`},
		step{args: "schedule apply " + second, stdout: plan + `2 changes made\n`},
		step{args: "schedule get tick --json", stdout: `.*"state":"paused".*\n`},
		step{args: "schedule apply --prune --yes --json " + second, stdout: `{"name":"other","change":"removed"}\n{"name":"nightly","change":"unchanged"}\n{"name":"tick","change":"unchanged"}\n`},
		step{args: "schedule apply --prune " + second, stdout: `nothing to change\n`},
		step{args: "schedule apply --json " + first, stdout: `{"name":"nightly","change":"changed","fields":{"body":\["{\\"of\\": \\"today\\"}","{\\"of\\": \\"yesterday\\"}"\],"headers":\["","{\\"a\\":\\"b\\"}"\]}}\n.*`},
	)
}

func TestScheduleDryRunMakesNoStore(t *testing.T) {
	t.Chdir(t.TempDir())
	file := write(t, "s.json", `{"a": {"spec": "@daily", "message": {"queue": "q"}}}`)
	run1(t, world{}, step{args: "schedule apply --store disk:data --dry-run " + file, stdout: `\+ a\n1 change to make\n`, stderr: noStoreYet})
	if _, err := os.Stat("data"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a store: %v", err)
	}
}

func TestScheduleFilesThatAreWrong(t *testing.T) {
	w, _ := served(t, "mem:")
	for text, want := range map[string]string{
		``:         `line 1: it ends too early \(as in .*\)`,
		`[]`:       `it is not an object \(as in .*\)`,
		`{"a": 7}`: `a: request: must be an object, not a number.*`,
		`{"a": {"spec": "@daily", "message": {"queue": "q"}}, "a": {}}`:                                                 `line 1: duplicate .*`,
		`{"a": {"message": {"queue": "q"}}}`:                                                                            `a: spec: is missing.*`,
		`{"a": {"spec": "@daily"}}`:                                                                                     `a: message: is missing.*`,
		`{"a": {"spec": "@daily", "message": {}}}`:                                                                      `a: .*queue: is missing.*`,
		`{"a": {"spec": "@daily", "message": {"queue": "q", "key": "k"}}}`:                                              `a: .*key: is set by the schedule.*`,
		`{"a": {"spec": "@daily", "every": "1s", "message": {"queue": "q"}}}`:                                           `a: every: no such field.*`,
		`{"a": {"spec": "@daily", "revision": "1", "message": {"queue": "q"}}}`:                                         `a: revision: leave it out.*`,
		`{"a": {"spec": "0 0 30 2 *", "message": {"queue": "q"}}}`:                                                      `a: .*never fires.*`,
		`{"a b": {"spec": "@daily", "message": {"queue": "q"}}}`:                                                        `a b: .*name.*`,
		`{"good": {"spec": "@daily", "message": {"queue": "q"}}, "bad": {"spec": "@dayly", "message": {"queue": "q"}}}`: `bad: .*@dayly.*`,
	} {
		run1(t, w, step{args: "schedule apply " + write(t, "s.json", text), code: exitUsage, stderr: `tarry: \S+s\.json: ` + want + `\n`})
	}
	run1(t, w, step{args: "schedule ls", stdout: `NAME .*ERROR\n`})
}

// meddled is a store in which somebody else makes a schedule that was looked for in vain.
type meddled struct{ *memengine.Engine }

func (m meddled) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	got, err := m.Engine.Get(ctx, ref)
	if ref.Queue == tarry.ScheduleQueue && errors.Is(err, engine.ErrNotFound) {
		if _, err := tarry.New(m.Engine, nil).SetSchedule(ctx, tarry.Schedule{Name: ref.Key, Spec: "@daily", Draft: tarry.NewDraft("theirs", nil)}, ""); err != nil {
			return got, err
		}
	}
	return got, err
}

func init() {
	engine.Register("meddled", func(context.Context, *url.URL) (engine.Engine, error) { return meddled{memengine.New(nil)}, nil })
}

// What apply has not compared with it does not overwrite.
func TestScheduleMadeMeanwhile(t *testing.T) {
	file := write(t, "s.json", `{"a": {"spec": "@daily", "message": {"queue": "ours"}}}`)
	run1(t, world{}, step{args: "schedule apply --store meddled: " + file, code: exitConflict, stdout: `\+ a\n`, stderr: `tarry: .*changed meanwhile.*\n`})
}
