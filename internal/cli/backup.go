package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func (p *Program) backupCommand() *cobra.Command {
	cmd := p.client(refuseIt, &cobra.Command{
		Use:   "backup TO",
		Short: "Copy a disk store to a directory",
		Long: `Backup brings the backup in the directory TO up to date with the store. Everything that was
answered before is in the backup, and on disk, when the command ends. A server writes the
backup itself, to the directory TO below its --backup-dir; with --store TO is any directory.
TO is created if it is missing. It is refused if it holds anything but a backup of this
store. An interrupted backup leaves the previous one intact.

Files that never change are shared with the store by hard links. On another file system
only files that are new since the previous backup are copied.`,
		Example: "  tarry backup orders\n  tarry backup /backups/orders --store disk:tarry-data",
		Args:    exactly("TO"),
	}, func(_ context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		b, ok := c.Engine().(engine.Backuper)
		if !ok {
			return &engine.Error{Op: "backup", Err: engine.ErrUnsupported, Hint: "only a disk store is backed up so"}
		}
		made, err := b.Backup(cmd.Context(), args[0]) // may rightly take longer than the timeout
		if err != nil {
			if p.settings.levels["store"] > p.settings.levels["server"] {
				err = localFailure(err)
			}
			return err
		}
		return p.showBackup("backed up", args[0], made)
	})
	cmd.Flags().Lookup("timeout").Usage = "how long opening the store or server may take; 0: no limit"
	return cmd
}

func (p *Program) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FROM TO",
		Short: "Restore a disk store from a backup",
		Long: `Restore checks the backup in the directory FROM and makes a store of it in TO (DIR or
disk:DIR), which must be missing or empty. It asks no server.

The store is as it was at the time of the backup. Messages that were handled since then
will be leased again.

A damaged backup is refused: tarry check FROM --salvage TO makes a store of what can be
read. The backup itself does not change.`,
		Example: "  tarry restore /backups/orders disk:tarry-data",
		Args:    exactly("FROM", "TO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := storeDir(args[1])
			if err != nil {
				return err
			}
			note := p.note()
			defer note.clear()
			progress := func(n int64) { note.say("%d MiB checked and copied", n>>20) }
			made, err := diskengine.Restore(cmd.Context(), args[0], to, progress)
			note.clear()
			if err != nil {
				return localFailure(err)
			}
			return p.showBackup("restored", to, made)
		},
	}
	p.jsonFlag(cmd, "print JSON")
	return cmd
}

// localFailure makes an unreachable store or backup a failure of this call, not of a server
// elsewhere.
func localFailure(err error) error {
	if errors.Is(err, tarry.ErrUnavailable) && !errors.Is(err, context.Canceled) {
		return failed(err)
	}
	return err
}

// storeDir returns the directory of a disk store, given as DIR or disk:DIR.
func storeDir(arg string) (string, error) {
	if !strings.HasPrefix(arg, "disk:") {
		return arg, nil
	}
	u, err := url.Parse(arg)
	if err != nil {
		return "", usagef("as in disk:tarry-data", "%q is no store", arg)
	}
	r := storeurl.New(u)
	dir := r.Path()
	r.Rest()
	return dir, r.Done()
}

// backupShown is the JSON of a backup.
type backupShown struct {
	Outcome string    `json:"outcome"`
	To      string    `json:"to"`
	Taken   time.Time `json:"taken"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Copied  int64     `json:"copied"`
}

func (p *Program) showBackup(outcome, to string, b engine.Backup) error {
	object := backupShown{strings.ReplaceAll(outcome, " ", "_"), to, b.Taken.UTC(), b.Files, b.Bytes, b.Copied}
	return p.show(object, "%s to %s what was answered before %s: %s, %s, of which %s were copied",
		outcome, to, formatTime(b.Taken), counted(b.Files, "file"), sizeText(b.Bytes), sizeText(b.Copied))
}

// sizeText writes a size for people.
func sizeText(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
