package wire

import "reflect"

// Intake is an intake of a server.
type Intake struct {
	Name        string `json:"name"`
	Queue       string `json:"queue" doc:"that it pushes to"`
	State       string `json:"state" doc:"running, connecting or failing; more may come"`
	Since       Time   `json:"since" doc:"when the state began"`
	Code        string `json:"code,omitempty" doc:"of what fails, for programs"`
	Error       string `json:"error,omitempty" doc:"what fails, for people; may change"`
	Hint        string `json:"hint,omitempty" doc:"what to do about it"`
	Taken       int64  `json:"taken" doc:"messages that the source handed over"`
	Pushed      int64  `json:"pushed" doc:"of these, new or changed in the store"`
	Doubles     int64  `json:"doubles" doc:"of these, found in the store already and not pushed again"`
	Cancelled   int64  `json:"cancelled" doc:"of these, cancels that removed a message"`
	Missed      int64  `json:"missed" doc:"of these, cancels that found no message or came too late"`
	Refused     int64  `json:"refused" doc:"of these, set aside at the source"`
	Redelivered int64  `json:"redelivered" doc:"of these, handed over before"`
	Doubtful    int64  `json:"doubtful" doc:"pushed again without a key after an unknown outcome: perhaps twice"`
	Unacked     int64  `json:"unacked" doc:"taken, and not settled yet"`
	LastRefused string `json:"last_refused,omitempty" doc:"why the last message was refused"`
}

// Intakes are the intakes of a server.
type Intakes struct {
	Intakes []Intake `json:"intakes" doc:"in the order of their configuration"`
}

// IntakesAnswer is the shape of Intakes, made from its tags.
var IntakesAnswer = newShape("Intakes", "The intakes of a server.", false, tagged(reflect.TypeFor[Intakes]()))
