package wire

import (
	"reflect"

	"github.com/tarryhq/tarry/engine"
)

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
