package wire

import (
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// MaxBackupName is the longest name of a backup, in bytes.
const MaxBackupName = 100

var isBackupName = schema.Text(1, MaxBackupName).With("pattern", `^[A-Za-z0-9_-][A-Za-z0-9._-]*$`).With("examples", []string{"orders"})

// Backing is a request to update the backup of this name.
var Backing = requestObject("Backup", "Which backup to make.",
	required("name", asText.described(isBackupName).checked(func(r *Reader, _, name string) {
		const known = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
		if name == "" || len(name) > MaxBackupName || name[0] == '.' || strings.Trim(name, known) != "" {
			r.Wrong("name: 1 to 100 letters, digits, -, _ and ., not beginning with . (it is no path)")
		}
	}), itself, "of the backup, a directory in the one that the server keeps for them"))

// Backup is a backup that was made.
type Backup struct {
	Name string
	engine.Backup
}

// BackedUp is the answer to a request to back up.
var BackedUp = answerObject("BackedUp", "The backup that was made.",
	required("name", asText.described(isBackupName), func(b *Backup) *string { return &b.Name }, ""),
	required("taken", asTime, func(b *Backup) *time.Time { return &b.Taken }, "what was answered before is in it"),
	required("files", count[int](), func(b *Backup) *int { return &b.Files }, "it consists of"),
	required("bytes", count[int64](), func(b *Backup) *int64 { return &b.Bytes }, "in them"),
	required("copied", count[int64](), func(b *Backup) *int64 { return &b.Copied }, "of these bytes that were written; the others are shared with the store or the backup before"))
