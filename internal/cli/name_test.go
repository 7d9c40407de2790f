//go:build unix

package cli

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// Who has a message, and how it failed, is shown by get, ls and workers.
func TestNameOfAWorkerIsShown(t *testing.T) {
	w, _ := served(t, "mem:")
	run1(t, w, step{args: "push mail x --key ann --backoff 0s", stdout: ".*"})
	r := w.start(t, "work", "mail", "--name", "mailer 1", "--drain", "0s", "--", "sh", "-c", `[ "$TARRY_ATTEMPT" = 2 ] && echo begun && exec sleep 1000; echo no luck >&2; exit 1`)
	r.stdout.await(t, "begun")
	run1(t, w, step{args: "ls mail --state leased", stdout: `ID .*ATTEMPT  WORKER\n\d+  ann  leased .* 2/20 +mailer 1\n`})
	run1(t, w, step{args: "get mail ann", stdout: `.*leased by  mailer 1\n.*failure  TIME attempt 1 by mailer 1: exit status 1: no luck\n.*`})
	workers := `NAME  ADDRESS .*QUEUES\nmailer 1  127.0.0.1  1  0  1  AWAY  (AWAY|now)  tarry/\S+  mail\n`
	run1(t, w, step{args: "workers", stdout: workers})
	run1(t, w, step{args: "workers --json", stdout: `{"name":"mailer 1","address":"127.0.0.1","queues":\["mail"\],"more_queues":false,"leased":1,"handled":0,"failed":1,"since":"TIME","seen":"TIME","version":"tarry/\S+","elsewhere":false}\n`})
	r.stop(t)
	run1(t, w, step{args: "work mail --name \n -- true", code: exitUsage, stderr: `tarry: .*control character.*\n`})
}

// A store that no server serves knows the workers that hold leases.
func TestWorkersOfAStore(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=disk:data"}}
	run1(t, w, step{args: "push mail x", stdout: ".*"})
	run1(t, w, step{args: "workers", stdout: `NAME .*QUEUES\n`})
	c, err := tarry.Open(t.Context(), "disk:data", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"mail"}, Max: 1, LeaseOptions: tarry.LeaseOptions{TTR: time.Hour, Remote: true, Worker: "mailer 1"}})
	if err != nil || len(got.Messages) != 1 {
		t.Fatal(got, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	run1(t, w, step{args: "workers", stdout: `NAME .*QUEUES\nmailer 1  elsewhere  1  -  -  -  -  -  mail\n`})
}
