package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const diskStore = "disk:data"

// A store is backed up, again to the same place, and restored; both are sound.
func TestBackupAndRestore(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=" + diskStore}}
	for _, s := range []step{
		{args: "push mail x --key ann --in 1h", stdout: `created .*\n`},
		{args: "push mail y --key bob --in 1h", stdout: `created .*\n`},
		{args: "backup copies/mail", stdout: `backed up to copies/mail what was answered before TIME: \d+ files?, .* were copied\n`},
		{args: "cancel mail ann", stdout: `cancelled mail ann\n`},
		{args: "push mail z --key cat --in 1h", stdout: `created .*\n`},
		{args: "backup copies/mail --json", stdout: `{"outcome":"backed_up","to":"copies/mail","taken":"TIME","files":\d+,"bytes":\d+,"copied":\d+}\n`},
		{args: "push mail late --key dan --in 1h", stdout: `created .*\n`},
		{args: "check copies/mail", stdout: `copies/mail is sound: 0 sstables with 0 entries, \d+ records in the log\nQUEUE  LIVE  DEAD  FINISHED  REMEMBERED\nmail  2  0  0  0\n`},
		{args: "restore copies/mail disk:again", stdout: `restored to again what was answered before TIME: .*\n`},
		{args: "check again --json", stdout: `{"dir":"again","from":"","sound":true,"closed":true,"sstables":\d+,"entries":\d+,"records":\d+,"findings":\[\],"more":0,"leftovers":\[\],"losses":\[\],"notes":\[\],"queues":\[{"queue":"mail","live":2,"dead":0,"finished":0,"history":0}\]}\n`},
		{args: "ls mail --store disk:again", stdout: `ID .*\n\d+  bob .*\n\d+  cat .*\n`},
		{args: "ls mail", stdout: `ID .*\n\d+  bob .*\n\d+  cat .*\n\d+  dan .*\n`},
		{args: "restore copies/mail third --json", stdout: `{"outcome":"restored","to":"third",.*}\n`},
	} {
		run1(t, w, s)
	}
}

// A server makes the backup itself, in its own directory.
func TestBackupOfAServer(t *testing.T) {
	t.Chdir(t.TempDir())
	s := world{}.start(t, "serve", "--store", diskStore, "--http", "127.0.0.1:0", "--backup-dir", "copies")
	w := world{env: []string{"TARRY_SERVER=" + s.stdout.await(t, `listens on (http://\S+)\n(?s:.*)try`)[1]}}
	for _, s := range []step{
		{args: "push mail x --key ann --in 1h", stdout: `created .*\n`},
		{args: "backup daily", stdout: `backed up to daily what was answered before TIME: \d+ files?, .* were copied\n`},
		{args: "push mail x --key bob --in 1h", stdout: `created .*\n`},
		{args: "backup daily --json", stdout: `{"outcome":"backed_up","to":"daily","taken":"TIME","files":\d+,"bytes":\d+,"copied":\d+}\n`},
		{args: "backup ../elsewhere", code: exitUsage, stderr: `tarry: .*name: 1 to 100 letters, .*\n`},
		{args: "restore copies/daily again", stdout: `restored .*\n`},
		{args: "check again", stdout: `again is sound: .*\nmail  2  0  0  0\n`},
	} {
		run1(t, w, s)
	}
	for store, hint := range map[string]string{"disk:other": `--backup-dir`, "mem:": `not backed up`} {
		w, _ := served(t, store)
		run1(t, w, step{args: "backup daily", code: exitFailed, stderr: `tarry: .*not supported.*` + hint + `.*\n`})
	}
}

func TestBackupRefusals(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=" + diskStore}}
	w.must(t, "push", "mail", "x")
	w.must(t, "backup", "copy")
	w.must(t, "push", "mail", "x", "--store", "disk:other")
	if err := os.MkdirAll("photos/holiday", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, s := range []step{
		{args: "backup", code: exitUsage, stderr: `tarry: TO is missing .*\n`},
		{args: "backup photos", code: exitUsage, stderr: `tarry: .*this is no backup: photos holds holiday \(name another directory\)\n`},
		{args: "backup data", code: exitUsage, stderr: `tarry: .*this is no backup: data holds [A-Z]+ .*\n`},
		{args: "backup copy --store disk:other", code: exitUsage, stderr: `tarry: .*this is a backup of another store: copy \(name another directory\)\n`},
		{args: "backup more --store mem:", code: exitFailed, stderr: `tarry: .*only a disk store .*\n`},
		{args: "restore copy", code: exitUsage, stderr: `tarry: TO is missing .*\n`},
		{args: "restore copy data", code: exitUsage, stderr: `tarry: .*the directory is not empty: data holds [A-Z]+ \(name one that is missing or empty\)\n`},
		{args: "restore data new", code: exitUsage, stderr: `tarry: .*this is no backup: data holds [A-Z]+ .*\n`},
		{args: "restore nowhere new", code: exitUsage, stderr: `tarry: .*nowhere: .*\n`},
		{args: "check photos", code: exitUsage, stderr: `tarry: .*\(name the directory of a disk store, or of a backup of one\)\n`},
		{args: "check nowhere", code: exitUsage, stderr: `tarry: .*nowhere.*\n`},
	} {
		run1(t, w, s)
	}
	if names, _ := filepath.Glob("*"); !slices.Equal(names, []string{"copy", "data", "other", "photos"}) {
		t.Errorf("left %v", names)
	}
}

// What is damaged is told, with file and place, and is not restored.
func TestCheckTellsDamage(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=" + diskStore}}
	w.must(t, "push", "mail", "x")
	w.must(t, "backup", "copy")
	left := filepath.Join("data", "runs", strings.Repeat("0", 14)+"ff.run")
	if err := os.WriteFile(left, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	run1(t, w, step{args: "check data", stdout: `data.runs.00000000000000ff.run: nothing names it; opening removes it\ndata is sound: .*`})
	logs, _ := filepath.Glob("copy/*/log/*.log")
	more, _ := filepath.Glob("data/log/*1.log")
	for _, name := range append(logs, more...) {
		spoilLog(t, name)
	}
	for _, s := range []step{
		{args: "check data", code: exitFailed, stdout: `data.log.0000000000000001.log, offset 4128: .*\n`, stderr: `tarry: data is damaged: 1 finding \(restore a sound backup, .*\)\n`},
		{args: "check copy", code: exitFailed, stdout: `copy.0000000000000001.log.*, offset 4128: .*\n`, stderr: `tarry: copy is damaged: 1 finding .*\n`},
		{args: "check data --json", code: exitFailed, stdout: `{"dir":"data","from":"","sound":false,.*"findings":\[{"file":"data.log.0000000000000001.log","offset":4128,"what":".*"}\].*}\n`, stderr: `tarry: .*\n`},
		{args: "restore copy new", code: exitFailed, stderr: `tarry: restore: .*the backup is damaged: copy.*offset 4128: .* \(tarry check copy --salvage NEW makes .*\)\n`},
	} {
		run1(t, w, s)
	}
	if _, err := os.Stat("new"); !os.IsNotExist(err) {
		t.Errorf("something was restored: %v", err)
	}
}

// A store that is damaged is not backed up, by a server neither: the backup before stays, and the error says
// what to do. Of one that is damaged itself is restored what can be read.
func TestBackupOfADamagedStore(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=" + diskStore}}
	w.must(t, "push", "mail", "x", "--key", "ann", "--in", "1h")
	w.must(t, "backup", "copies/mail")
	w.must(t, "push", "mail", "y", "--key", "bob", "--in", "1h")
	s := world{}.start(t, "serve", "--store", diskStore, "--http", "127.0.0.1:0", "--backup-dir", "copies")
	of := world{env: []string{"TARRY_SERVER=" + s.stdout.await(t, `listens on (http://\S+)\n(?s:.*)try`)[1]}}
	name := filepath.Join("data", "log", strings.Repeat("0", 15)+"1.log")
	spoilLog(t, name)
	for _, dir := range []string{"mail", "first"} {
		run1(t, of, step{args: "backup " + dir, code: exitFailed, stderr: `tarry: .*the store is damaged: \S*data.log.0000000000000001.log, offset 4128: .*tarry check \S*data says.*\n`})
	}
	spoilLog(t, name)
	for _, s := range []step{
		{args: "check copies/mail", stdout: `copies/mail is sound: .*\n.*\nmail  1  0  0  0\n`},
		{args: "check copies/first", code: exitUsage, stderr: `tarry: .*the backup was never finished: make it again: copies.first\n`},
		{args: "restore copies/first new", code: exitUsage, stderr: `tarry: .*the backup was never finished: make it again: copies.first\n`},
		{args: "check copies/first --salvage new", code: exitUsage, stderr: `tarry: .*the backup was never finished: make it again: copies.first\n`},
	} {
		run1(t, w, s)
	}
	run1(t, of, step{args: "backup mail", stdout: `backed up .*\n`})
	logs, err := filepath.Glob("copies/mail/*/log/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	was := spoilLog(t, logs[0])
	const loss = `copies.mail.0000000000000002.log.*the log are missing.*\n`
	for _, s := range []step{
		{args: "check copies/mail", code: exitFailed, stdout: `.*offset 4128: .*\n`, stderr: `tarry: .*\(restore a sound backup, or salvage the rest: tarry check copies/mail --salvage NEW\)\n`},
		{args: "restore copies/mail new", code: exitFailed, stderr: `tarry: .*tarry check copies/mail --salvage NEW makes a store of what can be read\)\n`},
		{args: "check copies/mail --salvage new", stdout: `.*offset 4128: .*\nlost ` + loss + `(?s:.*)new is sound: (?s:.*)`},
		{args: "check new", stdout: `new is sound: .*\n(?s:.*)lost-1  1  0  0  0\n`}, // its name stood there too
		{args: "ls lost-1 --store disk:new", stdout: `ID .*\n\d+  bob .*\n`},
	} {
		run1(t, w, s)
	}
	if is, err := os.ReadFile(logs[0]); err != nil || string(is) != string(was) {
		t.Errorf("the backup is changed: %v", err)
	}
}
