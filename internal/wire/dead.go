package wire

import (
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var (
	uuids  = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
	digits = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)
	joined = regexp.MustCompile(`#([-.:/_+]+#)+`)
)

// MaxCause is how many bytes of an error are used; the rest is cut. No cause is longer.
const MaxCause = 300

// Cause reduces errors that differ only by numbers, ids, addresses and times to a common
// form, so that dead messages can be grouped by error. It returns the text with # in place of each word with digits, such as numbers, ids,
// addresses and times. Such words that are joined by punctuation become one #. Cause is
// idempotent.
func Cause(text string) string {
	if len(text) > MaxCause {
		text = strings.ToValidUTF8(text[:MaxCause], "")
	}
	text = uuids.ReplaceAllLiteralString(text, "#")
	text = digits.ReplaceAllLiteralString(text, "#")
	return joined.ReplaceAllLiteralString(text, "#")
}

// DeadGroup is a group of dead messages with about the same error.
type DeadGroup struct {
	Error   string   `json:"error" doc:"with # for numbers, ids, addresses and times"`
	Example string   `json:"example" doc:"the error of the first id as it is"`
	Count   int      `json:"count"`
	First   Time     `json:"first_died"`
	Last    Time     `json:"last_died"`
	IDs     []string `json:"ids" doc:"of them all, as /redrive and /v1/cancel take them"`

	Failures []Failure `json:"failures" doc:"of the first id, oldest first"`
}

// Failure is a failed attempt of a message.
type Failure struct {
	At      Time   `json:"at"`
	Attempt uint32 `json:"attempt"`
	Worker  string `json:"worker"`
	Error   string `json:"error"`
}

// Failures returns failures as groups have them.
func Failures(of []engine.Failure) []Failure {
	all := make([]Failure, len(of))
	for i, f := range of {
		all[i] = Failure{Time{Time: f.At}, f.Attempt, f.Worker, f.Reason}
	}
	return all
}

// DeadGroups are a queue's dead messages, grouped by error.
type DeadGroups struct {
	Groups []DeadGroup `json:"groups" doc:"the most frequent first, 200 at most"`
	Others int         `json:"others" doc:"how many messages are in further groups"`
	Seen   int         `json:"seen" doc:"how many dead messages were looked at"`
	More   bool        `json:"more" doc:"whether there are more, which died before"`
}

// DeadGroupsAnswer is the shape of DeadGroups, made from its tags.
var DeadGroupsAnswer = newShape("DeadGroups", "What messages of a queue died of.", false, tagged(reflect.TypeFor[DeadGroups]()))

// MaxGroups is the most groups of dead messages that an answer has, or a request may choose.
const MaxGroups = 200

// Sweep is a request to redrive or drop dead messages: those with the given ids, or else
// those that meet all the other conditions.
type Sweep struct {
	IDs       []engine.ID
	Limit     int      // 0: all
	Groups    []string // nil: any
	Error     string   // "": any
	KeyPrefix string
	From, To  time.Time
	DryRun    bool
}

// Filters reports whether a request chooses among the dead messages.
func (s *Sweep) Filters() bool {
	return s.Groups != nil || s.Error != "" || s.KeyPrefix != "" || !s.From.IsZero() || !s.To.IsZero()
}

// Redriving and Dropping are requests to redrive and to drop. Dropping must not be empty.
var (
	Redriving = requestObject("Redrive", "Which dead messages become ready: those named, else those of which all of the rest holds, else all.",
		optional("ids", someIDs, func(s *Sweep) *[]engine.ID { return &s.IDs }, "goes with nothing else but the limit, which does not count then"),
		optional("limit", whole[int](0, math.MaxInt32), func(s *Sweep) *int { return &s.Limit }, "how many, those that died first; 0: all"),
		optional("groups", someGroups, func(s *Sweep) *[]string { return &s.Groups }, "of one of these groups, by the error that /dead/groups tells of each"),
		optional("error", textOf(engine.MaxReason), func(s *Sweep) *string { return &s.Error }, "whose error contains this"),
		optional("key_prefix", textOf(engine.MaxKeyBytes), func(s *Sweep) *string { return &s.KeyPrefix }, "whose key begins so"),
		optional("from", asTime, func(s *Sweep) *time.Time { return &s.From }, "that died then or later"),
		optional("to", asTime, func(s *Sweep) *time.Time { return &s.To }, "that died before"),
		optional("dry_run", asFlag, func(s *Sweep) *bool { return &s.DryRun }, "change nothing: tell how many it would be"),
	).checked(checkSweep).orNothing()
	Dropping = Redriving.only("Drop", "Which dead messages are dropped: those of which all of this holds, or all.", nil, Redriving.without("ids")).checked(checkSweep)
)

func checkSweep(r *Reader, _ Fields, s *Sweep) {
	if !s.From.IsZero() && !s.To.IsZero() && !s.From.Before(s.To) {
		r.Wrong("to: nothing lies between from and to")
	}
	if s.IDs != nil && (s.Filters() || s.DryRun) {
		r.Wrong("ids: do not go with a filter or dry_run")
	}
}

var (
	someIDs = list(asID, engine.MaxBatch).described(arraySchema(isID, engine.MaxBatch).With("minItems", 1)).
		checked(func(r *Reader, _ string, ids []engine.ID) {
			if len(ids) == 0 {
				r.Wrong("ids: is empty; leave it out to redrive all")
			}
		})
	someGroups = list(asGroup, MaxGroups).described(arraySchema(asGroup.is, MaxGroups).With("minItems", 1)).
			checked(func(r *Reader, _ string, groups []string) {
			if len(groups) == 0 {
				r.Wrong("groups: is empty; leave it out for all of them")
			}
		})
	asGroup = asText.described(textSchema(0, MaxCause)).checked(func(r *Reader, name, group string) {
		if len(group) > MaxCause {
			r.Wrong("%s: longer than %d bytes", name, MaxCause)
		}
	})
)

// textOf returns the kind of texts of 1 to most bytes. An empty text would choose all messages,
// perhaps only because the caller forgot to set a variable.
func textOf(most int) kind[string] {
	return asText.described(textSchema(1, most)).checked(func(r *Reader, name, text string) {
		switch {
		case text == "":
			r.Wrong("%s: is empty; leave it out for all of them", name)
		case len(text) > most:
			r.Wrong("%s: longer than %d bytes", name, most)
		}
	})
}

// Swept is the progress of a redrive or drop, or its end.
type Swept struct {
	Count, Skipped int64
	Seen           *int64    // nil: not told
	To             time.Time // zero: there was nothing
	Done           *bool     // nil: not told
	Failed         error     // nil: it did not fail
}

// Redriven is the answer to a redrive or drop, or a line of it.
var Redriven = answerObject("Redriven", "How many dead messages became ready, or are gone.",
	required("count", count[int64](), func(s *Swept) *int64 { return &s.Count }, "those that became ready, or are gone; of a dry run those that would"),
	required("skipped", count[int64](), func(s *Swept) *int64 { return &s.Skipped }, "those that could not: they were dead no more by then, or a live message holds their key"),
	optional("seen", pointer(count[int64]()), func(s *Swept) **int64 { return &s.Seen }, "of a filter: how many were looked at"),
	optional("to", asTime, func(s *Swept) *time.Time { return &s.To }, "of a filter: what died then or later was left alone; the same to in a later request chooses among the same"),
	optional("done", pointer(asFlag), func(s *Swept) **bool { return &s.Done }, "in an answer of lines: this is the last"),
	optional("error", asFailure, func(s *Swept) *error { return &s.Failed }, "in an answer of lines: what ended it before its time"))
