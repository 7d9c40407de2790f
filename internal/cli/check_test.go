package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A salvage says what is lost, makes another store of the rest, and leaves what it was made of as it is.
func TestCheckSalvages(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=" + diskStore}}
	for _, key := range []string{"a", "b", "c"} {
		w.must(t, "push", "mail", "x", "--key", key, "--in", "1h")
	}
	name := filepath.Join("data", "log", "0000000000000001.log")
	was := spoilLog(t, name)
	const finding = `data.log.*offset 4128: .*\n`
	const loss = `data.log: \d+ bytes of the log are missing, from position 0 on: it is not known how many messages are lost; what was acked or cancelled there may be handed out again\n`
	for _, s := range []step{
		{args: "check data --dry-run", code: exitUsage, stderr: `tarry: .*--dry-run goes with --salvage.*\n`},
		{args: "check data --salvage data", code: exitUsage, stderr: `tarry: .*the directory is not empty: data holds [A-Z]+ \(name one that is missing or empty\)\n`},
		{args: "check data --salvage ./data/new", code: exitUsage, stderr: `tarry: .*data/new is within data: name another directory\)\n`},
		{args: "ls mail", code: exitFailed, stderr: `tarry: open: .*data.log.0000000000000001.log, offset 4128: .*restore a backup, or salvage the rest: tarry check \S*data --salvage NEW makes a store of what can be read\)\n`},
		{args: "check data", code: exitFailed, stdout: finding, stderr: `tarry: data is damaged: 1 finding \(restore a sound backup, or salvage the rest: tarry check data --salvage NEW\)\n`},
		{args: "check data --salvage new --dry-run", code: exitFailed, stdout: finding + `would be lost: ` + loss + `(?s:.*)`, stderr: `tarry: data is damaged: 1 finding .*\n`},
		{args: "check data --salvage new --dry-run --json", code: exitFailed, stdout: `{"dir":"data","from":"","sound":false,.*"losses":\[{"file":"data.log","offset":null,.*"messages":null,.*"again":true}\],"notes":\[.*\],.*}\n`, stderr: `tarry: .*\n`},
		{args: "check new", code: exitUsage, stderr: `tarry: .*\n`},
		{args: "check data --salvage disk:new", stdout: finding + `lost ` + loss + `(?s:.*)kept: 2 live, 0 dead, 0 remembered; lost: at least 0 messages, 0 remembered keys\nnew is sound: .*\n(?s:.*)`},
		{args: "check data --salvage more --json", stdout: `{"dir":"more","from":"data","sound":true,"closed":true,.*"losses":\[{.*}\],.*"live":2,.*}\n`},
		{args: "check new --salvage third", stdout: `kept: 2 live, 0 dead, 0 remembered; lost: 0 messages, 0 remembered keys\nthird is sound: (?s:.*)`},
		{args: "check new --salvage fourth --dry-run", stdout: `new is sound: (?s:.*)`},
	} {
		run1(t, w, s)
	}
	if is, err := os.ReadFile(name); err != nil || string(is) != string(was) {
		t.Errorf("it is not as it was: %v", err)
	}
	w.must(t, "push", "mail", "x", "--key", "d", "--store", "disk:new")
	run1(t, w, step{args: "check new", stdout: `new is sound: (?s:.*)`})
}

// spoilLog changes a bit of the first frame of a segment, and returns what is in the file then.
func spoilLog(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[4096+40] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}
