package wire

import (
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// MaxBackupName is the longest name of a backup, in bytes.
const MaxBackupName = 100

var isBackupName = schema.Text(1, MaxBackupName).With("pattern", `^[A-Za-z0-9_-][A-Za-z0-9._-]*$`).With("examples", []string{"orders"})

// AppendBackup appends a request to back up.
func AppendBackup(b []byte, name string) []byte { return append(appendText(b, `{"name":`, name), '}') }

// Backing is the shape of a request to back up.
var Backing = asked("Backup", "Which backup to make.",
	must("name", isBackupName, "of the backup, a directory in the one that the server keeps for them"))

// Backup reads a request to back up.
func (r *Reader) Backup() (name string) {
	r.options(Backing, func(int) { name = r.text("name") })
	const known = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
	if name == "" || len(name) > MaxBackupName || name[0] == '.' || strings.Trim(name, known) != "" {
		r.Wrong("name: 1 to 100 letters, digits, -, _ and ., not beginning with . (it is no path)")
	}
	return name
}

// BackedUp is the shape of the answer to a backup.
var BackedUp = answered("BackedUp", "The backup that was made.",
	must("name", isBackupName, ""),
	must("taken", isTime, "what was answered before is in it"),
	must("files", isCount, "it consists of"),
	must("bytes", isCount, "in them"),
	must("copied", isCount, "of these bytes that were written; the others are shared with the store or the backup before"))

// AppendBackedUp appends the answer to a backup.
func AppendBackedUp(b []byte, name string, made engine.Backup) []byte {
	b = appendText(b, `{"name":`, name)
	b = appendTime(b, `,"taken":`, made.Taken)
	b = appendInt(b, `,"files":`, int64(made.Files))
	b = appendInt(b, `,"bytes":`, made.Bytes)
	return append(appendInt(b, `,"copied":`, made.Copied), '}')
}

// BackedUp reads the answer to a backup.
func (r *Reader) BackedUp() (made engine.Backup) {
	r.fields("answer", BackedUp, func(f int) {
		switch f {
		case 1:
			made.Taken = r.time("taken")
		case 2:
			made.Files = int(r.count("files"))
		case 3:
			made.Bytes = r.count("bytes")
		case 4:
			made.Copied = r.count("copied")
		default:
			r.skip()
		}
	})
	return made
}
