//go:build unix

package cli

import "testing"

// Who has a message, and how it failed, is shown by get and ls.
func TestNameOfAWorkerIsShown(t *testing.T) {
	w, _ := served(t, "mem:")
	run1(t, w, step{args: "push mail x --key ann --backoff 0s", stdout: ".*"})
	r := w.start(t, "work", "mail", "--name", "mailer 1", "--drain", "0s", "--", "sh", "-c", `[ "$TARRY_ATTEMPT" = 2 ] && echo begun && exec sleep 1000; echo no luck >&2; exit 1`)
	r.stdout.await(t, "begun")
	run1(t, w, step{args: "ls mail --state leased", stdout: `ID .*ATTEMPT  WORKER\n\d+  ann  leased .* 2/20 +mailer 1\n`})
	run1(t, w, step{args: "get mail ann", stdout: `.*leased by  mailer 1\n.*failure  TIME attempt 1 by mailer 1: exit status 1: no luck\n.*`})
	r.stop(t)
	run1(t, w, step{args: "work mail --name \n -- true", code: exitUsage, stderr: `tarry: .*control character.*\n`})
}
