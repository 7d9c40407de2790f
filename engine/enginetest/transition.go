package enginetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// Situation is the situation of a message when an operation meets it. It is finer than
// engine.State: a lapsed or spent message shows as ready or dead, but its old token still
// settles it.
type Situation string

// The situations, in the order of the table's columns.
const (
	absent    Situation = "absent"    // no such message, or past its expiry and not remembered
	scheduled Situation = "scheduled" // its due time is in the future
	ready     Situation = "ready"     // due
	leased    Situation = "leased"    // its deadline is in the future
	lapsed    Situation = "lapsed"    // the deadline has passed, attempts are left: shows as ready
	spent     Situation = "spent"     // the deadline has passed, no attempts are left: shows as dead
	dead      Situation = "dead"      // buried, or attempts used up
	finished  Situation = "finished"  // gone, its key remembered
)

var situations = []Situation{absent, scheduled, ready, leased, lapsed, spent, dead, finished}

// Op is an operation of the table. The six settlements, and the push with a token, use the
// newest token of the message; any older token gets lease_lost everywhere.
type Op string

// The operations, in the order of the table's rows.
const (
	opPushReject    Op = "push, reject"
	opPushKeep      Op = "push, keep"
	opPushReplace   Op = "push, replace"
	opPushKeepDue   Op = "push, keep_due"
	opPushRearm     Op = "push, rearm"
	opPushToken     Op = "push, replace, token"
	opLease         Op = "lease"
	opClaim         Op = "claim"
	opClaimIfKey    Op = "claim by key, if_state"
	opClaimIfID     Op = "claim by id, if_state"
	opGetKey        Op = "get by key"
	opGetID         Op = "get by id"
	opCancelKey     Op = "cancel by key"
	opCancelID      Op = "cancel by id"
	opReschedule    Op = "reschedule"
	opAck           Op = "ack"
	opRetry         Op = "retry"
	opSnooze        Op = "snooze"
	opRelease       Op = "release"
	opBury          Op = "bury"
	opExtend        Op = "extend"
	opRedrive       Op = "redrive"
	opPurge         Op = "purge"
	opPurgeDead     Op = "purge with dead"
	opPurgeFinished Op = "purge with finished"
	opExpiryPasses  Op = "(expiry passes)"
	opLapse         Op = "(deadline passes)"
	opForget        Op = "(remember passes)"
)

var pushOps = map[engine.Conflict]Op{
	engine.Reject: opPushReject, engine.Keep: opPushKeep, engine.Replace: opPushReplace,
	engine.KeepDue: opPushKeepDue, engine.Rearm: opPushRearm,
}

var settleOps = map[engine.Action]Op{
	engine.Ack: opAck, engine.Retry: opRetry, engine.Snooze: opSnooze,
	engine.Release: opRelease, engine.Bury: opBury, engine.Extend: opExtend,
}

// Next is the situation after an operation.
type Next string

// The values of Next.
const (
	unchanged  Next = ""
	toGone     Next = "gone"
	toFinished Next = "gone or finished"         // depending on its remember
	toFree     Next = "absent"                   // the key is forgotten
	toDue      Next = "scheduled or ready"       // depending on its due time
	toRetry    Next = "scheduled, ready or dead" // dead when the attempts are used up
	toReady    Next = "ready"
	toLeased   Next = "leased"
	toDead     Next = "dead"
	toLapsed   Next = "lapsed or spent" // depending on its attempts
	newMessage Next = "a new message"   // an existing dead one stays as it is, a finished one is forgotten
)

// Count is what an operation does to the attempt.
type Count string

// The values of Count.
const (
	same     Count = ""
	zero     Count = "0"
	plusOne  Count = "+1"
	minusOne Count = "−1" // never below 0
)

// Transition is one cell of the table: what an operation does to a message.
type Transition struct {
	State   Situation
	Op      Op
	Result  string // "ok", "created", "kept", "replaced", "skipped" or the code of an error
	Next    Next   // "": unchanged
	Attempt Count  // "": unchanged
	Fails   bool   // it is a failure of the message
}

// Err returns the error of Result, nil if there is none.
func (t Transition) Err() error { return engine.FromCode(t.Result) }

// String returns the cell as Markdown prints it.
func (t Transition) String() string {
	s := t.Result
	if t.Err() != nil {
		s = "`" + s + "`"
	}
	if t.Result == created.result || t.Result == replaced.result { // the page says what they are
		return s
	}
	if t.Next != unchanged {
		s += " → " + string(t.Next)
	}
	if t.Attempt != same {
		s += ", " + string(t.Attempt)
	}
	if t.Fails {
		s += ", a failure"
	}
	return s
}

// effect is a Transition without its place.
type effect struct {
	result  string
	next    Next
	attempt Count
	fails   bool
}

func refuse(code string) effect                { return effect{result: code} }
func do(result string, n Next, c Count) effect { return effect{result, n, c, false} }
func failed(n Next) effect                     { return effect{"ok", n, same, true} }

var (
	skip     = do("skipped", unchanged, same)
	created  = do("created", newMessage, zero)
	kept     = do("kept", unchanged, same)
	replaced = do("replaced", toDue, zero)
	removed  = do("ok", toGone, same)
	ended    = do("ok", toFinished, same)
	forgot   = do("ok", toFree, same)
	moved    = do("ok", toDue, zero)
	taken    = do("ok", toLeased, plusOne)
	found    = do("ok", unchanged, same)
	none     = do("–", unchanged, same)

	exists   = refuse("exists")
	isLeased = refuse("leased")
	notDue   = refuse("not_due")
	notFound = refuse("not_found")
	lost     = refuse("lease_lost")
)

// grid is the contract. A snooze, release or extend of a spent message needs a key that no
// live message holds, else it gets lease_lost. So does a redrive, which else skips the
// message, and a claim if_state dead, which else gets exists. They drop a memory of the key.
// A claim if_state is of the state that the message shows, or of any if there is none.
var grid = []struct {
	op    Op
	cells [8]effect // in the order of situations
}{
	//                 absent    scheduled ready     leased    lapsed    spent     dead      finished
	{opPushReject, [8]effect{created, exists, exists, exists, exists, created, created, exists}},
	{opPushKeep, [8]effect{created, kept, kept, kept, kept, created, created, kept}},
	{opPushReplace, [8]effect{created, replaced, replaced, isLeased, replaced, created, created, created}},
	{opPushKeepDue, [8]effect{created, replaced, replaced, isLeased, replaced, created, created, created}},
	{opPushRearm, [8]effect{created, replaced, replaced, isLeased, replaced, created, created, created}},
	{opPushToken, held(replaced, lost)},
	{opLease, [8]effect{skip, skip, taken, skip, taken, skip, skip, skip}},
	{opClaim, [8]effect{notFound, notDue, taken, isLeased, taken, notFound, notFound, notFound}},
	{opClaimIfKey, [8]effect{notFound, taken, taken, isLeased, taken, notFound, notFound, notFound}},
	{opClaimIfID, [8]effect{notFound, taken, taken, isLeased, taken, taken, taken, notFound}},
	{opGetKey, [8]effect{notFound, found, found, found, found, found, found, found}},
	{opGetID, [8]effect{notFound, found, found, found, found, found, found, notFound}},
	{opCancelKey, [8]effect{notFound, ended, ended, isLeased, ended, notFound, notFound, notFound}},
	{opCancelID, [8]effect{notFound, ended, ended, isLeased, ended, removed, removed, notFound}},
	{opReschedule, [8]effect{notFound, moved, moved, isLeased, moved, notFound, notFound, notFound}},
	{opAck, held(ended, ended)},
	{opRetry, held(failed(toRetry), failed(toDead))},
	{opSnooze, held(do("ok", toDue, minusOne), do("ok", toDue, minusOne))},
	{opRelease, held(do("ok", toReady, minusOne), do("ok", toReady, minusOne))},
	{opBury, held(failed(toDead), failed(toDead))},
	{opExtend, held(do("ok", toLeased, same), do("ok", toLeased, same))},
	{opRedrive, [8]effect{skip, skip, skip, skip, skip, do("ok", toReady, zero), do("ok", toReady, zero), skip}},
	{opPurge, [8]effect{skip, removed, removed, skip, removed, skip, skip, skip}},
	{opPurgeDead, [8]effect{skip, removed, removed, skip, removed, removed, removed, skip}},
	{opPurgeFinished, [8]effect{skip, removed, removed, skip, removed, skip, skip, forgot}},
	{opExpiryPasses, [8]effect{none, ended, ended, none, ended, none, none, none}},
	{opLapse, [8]effect{none, none, none, failed(toLapsed), none, none, none, none}},
	{opForget, [8]effect{none, none, none, none, none, none, none, forgot}},
}

// held returns the row of a settlement: one effect on a leased or lapsed message, one on a
// spent message, and lease_lost elsewhere.
func held(live, spent effect) [8]effect {
	return [8]effect{lost, lost, lost, live, live, spent, lost, lost}
}

// TransitionTable returns every cell of the contract's table, operation by operation. The
// caller may change the slice.
func TransitionTable() []Transition {
	var all []Transition
	for _, row := range grid {
		for i, e := range row.cells {
			all = append(all, Transition{situations[i], row.op, e.result, e.next, e.attempt, e.fails})
		}
	}
	return all
}

// transition returns one cell.
func transition(s Situation, op Op) Transition {
	for _, row := range grid {
		if row.op == op {
			e := row.cells[slices.Index(situations, s)]
			return Transition{s, op, e.result, e.next, e.attempt, e.fails}
		}
	}
	panic("enginetest: no such operation: " + string(op))
}

// Markdown renders TransitionTable as a Markdown table, with a column for each situation and
// a row for each operation, or for several that follow one another and do the same. Each cell
// has the result, the new state if it changes, and the change of the attempt and a failure if
// there is one.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| operation |")
	for _, s := range situations {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(situations)) + "\n")
	ops := ""
	for n, row := range grid {
		ops += string(row.op)
		if n+1 < len(grid) && grid[n+1].cells == row.cells {
			ops += "; "
			continue
		}
		fmt.Fprintf(&b, "| %s |", ops)
		ops = ""
		for i, e := range row.cells {
			fmt.Fprintf(&b, " %s |", Transition{situations[i], row.op, e.result, e.next, e.attempt, e.fails})
		}
		b.WriteString("\n")
	}
	return b.String()
}
