package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A repair says what it would lose, loses it only when it may, and says where the files are as they were.
func TestCheckAllowsLoss(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=" + diskStore}}
	for _, key := range []string{"a", "b", "c"} {
		w.must(t, "push", "mail", "x", "--key", key, "--in", "1h")
	}
	b := spoilLog(t, filepath.Join("data", "log", "0000000000000001.log"))
	const loss = `data.log: \d+ bytes of the log are missing, from position 0 on: it is not known how many messages are lost; what was acked or cancelled there may be handed out again\n`
	for _, s := range []step{
		{args: "check data --allow-loss", code: exitUsage, stderr: `tarry: .*--allow-loss goes with --repair.*\n`},
		{args: "ls mail", code: exitFailed, stderr: `tarry: open: .*data.log.0000000000000001.log, offset 4128: .*restore a backup, or see by tarry check \S*data --repair .*\n`},
		{args: "check data", code: exitFailed, stdout: `data.log.*offset 4128: .*\n`, stderr: `tarry: data is damaged: 1 finding \(restore a backup, or see what --repair mends\)\n`},
		{args: "check data --repair", code: exitFailed, stdout: `data.log.*offset 4128: .*\nwould be lost: ` + loss, stderr: `tarry: data is damaged: 1 finding \(restore a backup, or give up what would be lost: --repair --allow-loss\)\n`},
		{args: "check data --repair --json", code: exitFailed, stdout: `{"dir":"data","sound":false,.*"losses":\[{"file":"data.log","offset":null,.*"messages":null,.*"again":true}\],"notes":\[.*\],"aside":"",.*}\n`, stderr: `tarry: .*\n`},
		{args: "check data --repair --allow-loss", stdout: `lost ` + loss + `(?s:.*)the files as they were are in data.damaged-.*Z, with the list of what is lost; remove it when nobody needs it\nkept: 2 live, 0 dead, 0 remembered; lost: 0 messages, 0 remembered keys, and some of which it is not known how many\ndata is sound: .*\n(?s:.*)`},
		{args: "check data --repair --allow-loss --json", stdout: `{"dir":"data","sound":true,"closed":true,.*"losses":\[\],"notes":\[\],"aside":"",.*"live":2,.*}\n`},
	} {
		run1(t, w, s)
	}
	kept, err := filepath.Glob("data/damaged-*/log/*1.log")
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if was, err := os.ReadFile(kept[0]); err != nil || string(was) != string(b) {
		t.Errorf("it is not as it was: %v", err)
	}
	w.must(t, "push", "mail", "x", "--key", "d")
	run1(t, w, step{args: "check data", stdout: `data is sound: (?s:.*)`})
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
