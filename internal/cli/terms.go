package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
)

// termFlags are the flags for the terms of messages.
type termFlags struct {
	given    func(flag string) bool
	terms    tarry.Terms
	priority uint32
	isolate  bool
}

// add adds the flags. In otherwise, %s stands for the default that holds without the flag.
func (t *termFlags) add(cmd *cobra.Command, otherwise string) {
	f := cmd.Flags()
	t.given = f.Changed
	unset := func(usage, def string) string { return fmt.Sprintf("%s (%s)", usage, fmt.Sprintf(otherwise, def)) }
	f.Uint32Var(&t.priority, "priority", 0, unset("lower goes first among ready messages", fmt.Sprint(tarry.DefaultPriority)))
	f.Uint32Var(&t.terms.MaxAttempts, "max-attempts", 0, unset("attempts before the message is dead", fmt.Sprint(tarry.DefaultMaxAttempts)))
	f.Var(durationsFlag(&t.terms.Backoff), "backoff", unset("rest after the 1st, 2nd, … failed attempt, such as 15s,30s,3m", "1s doubling up to 1h"))
	f.Var(durationFlag(&t.terms.TTR), "ttr", unset("how long a worker may hold it", tarry.FormatDuration(tarry.DefaultTTR)))
	f.Var(durationFlag(&t.terms.ExpireAfter), "expire-after", unset("drop it when it cannot be handed out until this long after it was due; 0: never", "never"))
	f.Var(durationFlag(&t.terms.Remember), "remember", unset("how long its key stays known when it has gone; 0: not at all", "not at all"))
	f.BoolVar(&t.isolate, "isolate", true, unset("lease it alone once it has lapsed twice", "true"))
}

// get returns the terms that the flags set.
func (t *termFlags) get() (tarry.Terms, error) {
	switch {
	case t.given("max-attempts") && t.terms.MaxAttempts == 0:
		return t.terms, usagef("leave it out for the default", "--max-attempts must be at least 1")
	case t.given("ttr") && t.terms.TTR == 0:
		return t.terms, usagef("leave it out for the default", "--ttr must be at least 1ms")
	}
	terms := t.terms
	if t.given("priority") {
		terms.Priority = &t.priority
	}
	if t.given("isolate") {
		terms.Isolate = &t.isolate
	}
	if t.given("expire-after") && terms.ExpireAfter == 0 {
		terms.ExpireAfter = tarry.Never
	}
	if t.given("remember") && terms.Remember == 0 {
		terms.Remember = tarry.Never
	}
	return terms, nil
}
