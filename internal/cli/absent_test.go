package cli

import (
	"os"
	"testing"
)

// Who only looks at a store that is not there sees an empty one and is told so, and none is made where he
// mistyped its name.
func TestLookingMakesNoStore(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("empty", 0o700); err != nil {
		t.Fatal(err)
	}
	const note = `there is no store in (typo|empty) yet; it is shown as empty\n`
	none := `\{"queue":"mail","scheduled":0,"ready":0,"leased":0,"dead":0,"finished":0,.*\}\n`
	for _, dir := range []string{"typo", "empty"} {
		w := world{env: []string{"TARRY_STORE=disk:" + dir}}
		for _, s := range []step{
			{args: "queues --json"},
			{args: "queues mail --json", stdout: none},
			{args: "ls mail --json"},
			{args: "dead ls mail --json"},
			{args: "dead groups mail --json"},
			{args: "forecast mail", stdout: `FROM  COUNT\n0 within 48h from this minute on; 0 overdue\n`},
			{args: "queue get mail --json", stdout: `.*"settings":\{\}.*\n`},
			{args: "status", stdout: `tarry \S+, store disk:` + dir + `, engine disk: ready\nno problems\n0 queues: .*\n`},
			{args: "top", stdout: `tarry \S+, store disk:` + dir + `, engine disk, .*\n`},
		} {
			s.stderr = note
			run1(t, w, s)
		}
		if o := w.tarry(t, "get", "mail", "42"); o.code != exitNotFound {
			t.Errorf("get: exit code %d: %s", o.code, o.stderr)
		}
		run1(t, w, step{args: "queues --store disk:" + dir + "?bogus=1", code: exitUsage, stderr: `tarry: .*bogus.*\n`})
		if names, err := os.ReadDir(dir); len(names) > 0 || dir == "typo" && !os.IsNotExist(err) {
			t.Errorf("%s holds %v, %v", dir, names, err)
		}
		run1(t, w, step{args: "push mail x --in 1h", stdout: `created .*\n`})
		run1(t, w, step{args: "queues", stdout: `QUEUE .*\nmail  1 .*\n`})
	}
}

// Who changes what is in a store already makes none where he mistyped its name.
func TestChangingMakesNoStore(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=disk:typo"}}
	for op, args := range map[string]string{
		"cancel": "cancel mail k", "reschedule": "reschedule mail k --in 1h", "pause": "pause mail", "resume": "resume mail",
		"purge": "purge mail --yes", "redrive": "dead redrive mail --yes", "drop": "dead drop mail --yes", "work": "work mail -- true",
		"backup": "backup kept",
	} {
		run1(t, w, step{args: args, code: exitNotFound, stderr: `tarry: ` + op + `: not found \(there is no store in typo\)\n`})
	}
	if names, err := os.ReadDir("."); err != nil || len(names) > 0 {
		t.Errorf("there are %v, %v", names, err)
	}
}
