package cli

import "testing"

func TestListBounds(t *testing.T) {
	w, _ := served(t, "mem:")
	for _, args := range []string{"--key a --at 2020-01-02T15:04:05Z", "--key b --in 1h", "--key c --in 2h", "--key d --at 2126-01-02T15:04:05Z"} {
		run1(t, w, step{args: "push mail x " + args, stdout: ".*"})
	}
	keys := func(names string) string {
		want := `ID .*ATTEMPT\n`
		for _, n := range names {
			want += `\d+  ` + string(n) + ` [^\n]*\n`
		}
		return want
	}
	for _, s := range []step{
		{args: "ls mail --newest", stdout: keys("dcba")},
		{args: "ls mail --from +30m --to +90m", stdout: keys("b")},
		{args: "ls mail --from -1m", stdout: keys("bcd")},
		{args: "ls mail --to -1m", stdout: keys("a")},
		{args: "ls mail --from 2020-01-02T15:04:05Z --to 2126-01-02T15:04:05Z", stdout: keys("abc")},
		{args: "ls mail --from 2020-01-02T15:04:05.000000001Z --to 2126-01-02T15:04:05.000000001Z --newest", stdout: keys("dcb")},
		{args: "ls mail --state scheduled --limit 1 --newest --from +90m", stdout: keys("d"),
			stderr: `there are more; --limit 0 lists all\n`},
		{args: "dead ls mail --since 2h --newest", stdout: `ID .*LAST ERROR\n`, stderr: `no messages\n`},
		{args: "ls mail --from 1h", code: exitUsage, stderr: `tarry: .*"1h" is neither a time such as .* nor a duration from now such as -2h or \+30m.*\n`},
		{args: "ls mail --from -soon", code: exitUsage, stderr: `tarry: .*"-soon" is neither .*\n`},
		{args: "ls mail --from +2h --to +1h", code: exitUsage, stderr: `tarry: there is nothing between --from TIME and --to TIME .*\n`},
		{args: "ls mail --state gone", code: exitUsage, stderr: `tarry: --state "gone" is unknown.*\n`},
	} {
		run1(t, w, s)
	}
}

// What is listed can be chosen by the beginning of its key and by a header.
func TestListOfChosenMessages(t *testing.T) {
	w, _ := served(t, "mem:")
	for _, args := range []string{"--key a/1 --in 1h --header tenant=x", "--key a/2 --in 2h --header tenant=y", "--key a/3 --header tenant=x", "--key b/1"} {
		run1(t, w, step{args: "push mail x " + args, stdout: ".*"})
	}
	for _, s := range []step{
		{args: "ls mail --key-prefix a/", stdout: `ID .*\n\d+  a/3 .*\n\d+  a/1 .*\n\d+  a/2 .*\n`},
		{args: "ls mail --header tenant=x", stdout: `ID .*\n\d+  a/3 .*\n\d+  a/1 .*\n`},
		{args: "ls mail --header tenant --newest", stdout: `ID .*\n\d+  a/2 .*\n\d+  a/1 .*\n\d+  a/3 .*\n`},
		{args: "ls mail --header tenant:x --key-prefix a/ --state scheduled --body", stdout: `ID .*BODY\n\d+  a/1 .*  x\n`},
		{args: "ls mail --key-prefix a/ --limit 2", stdout: `ID .*\n\d+  a/3 .*\n\d+  a/1 .*\n`, stderr: `there are more; --limit 0 lists all\n`},
		{args: "ls mail --key-prefix a/ --limit 3 --from +90m", stdout: `ID .*\n\d+  a/2 .*\n`},
		{args: "ls mail --key-prefix z", stdout: `ID .*\n`, stderr: `no messages\n`},
		{args: "ls mail --key-prefix a --limit -1", code: exitUsage, stderr: `tarry: --limit -1 is negative .*\n`},
	} {
		run1(t, w, s)
	}
}
