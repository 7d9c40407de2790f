package wire

import (
	"reflect"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// Worker is a worker that leases from a server, or that holds leases in its store.
type Worker struct {
	Name      string   `json:"name" doc:"empty: it gave none"`
	Address   string   `json:"address" doc:"from which it last asked; empty: elsewhere, or in the server itself"`
	Queues    []string `json:"queues" doc:"from which it asked to lease in the last 5 minutes, or holds leases; 100 at most"`
	More      bool     `json:"more_queues" doc:"there are more queues"`
	Leased    int64    `json:"leased" doc:"messages that it holds"`
	Handled   int64    `json:"handled" doc:"messages that it acked over HTTP"`
	Failed    int64    `json:"failed" doc:"attempts that it retried or buried over HTTP"`
	Since     Time     `json:"since" doc:"when it first asked; null: without an address"`
	Seen      Time     `json:"seen" doc:"when it last asked, settled or extended; null: without an address"`
	Version   string   `json:"version" doc:"the User-Agent of its requests"`
	Elsewhere bool     `json:"elsewhere" doc:"it holds leases in the store that this server did not give it"`
}

// Workers are the workers that a server knows.
type Workers struct {
	Workers []Worker `json:"workers" doc:"by name"`
	More    bool     `json:"more" doc:"there may be more: some were forgotten, or not all leases of the store were read"`
}

// WorkersAnswer is the shape of Workers, made from its tags.
var WorkersAnswer = newShape("Workers", "The workers that a server knows.", false, tagged(reflect.TypeFor[Workers]()))

// MaxWorkerQueues is how many queues a Worker names.
const MaxWorkerQueues = 100

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

const (
	// DefaultLate is how long a message may be ready before it is late.
	DefaultLate = 30 * time.Second
	// MaxProblems is how many problems an answer has at most.
	MaxProblems = 1000
)

// Problem is something wrong with a server, its store or a queue, and what to do about it.
type Problem struct {
	Problem string `json:"problem" doc:"server, store, intake, no_worker, late, deaths, schedule, paused or was_late; more may come"`
	Queue   string `json:"queue,omitempty" doc:"missing: it is the server's or its store's"`
	Message string `json:"message" doc:"for people; may change"`
	Hint    string `json:"hint" doc:"what to do about it"`
}

// Problems is what is wrong, the worst first.
type Problems struct {
	Problems []Problem `json:"problems"`
	More     bool      `json:"more"`
}

// ProblemsAnswer is the shape of Problems.
var ProblemsAnswer = newShape("Problems", "What is wrong, the worst first.", false, []field{
	{"problems", arraySchema(problemFields.Ref(), MaxProblems), "", true},
	{"more", isFlag, "there are more, or not all queues could be read", true},
})

var problemFields = newShape("Problem", "What is wrong, and what to do about it.", false, tagged(reflect.TypeFor[Problem]()))

// ProblemsQuery asks for problems. It says when a message is late.
var ProblemsQuery = requestObject("", "",
	optional("late", asDuration.described(isDuration.With("default", duration.Format(DefaultLate))), itself, "messages that have been ready for so long are late").unless(nil),
).checked(func(_ *Reader, got Fields, late *time.Duration) {
	const given = 0
	if !got.Has(given) {
		*late = DefaultLate
	}
})

// MaxBackupName is the longest name of a backup, in bytes.
const MaxBackupName = 100

var isBackupName = textSchema(1, MaxBackupName).With("pattern", `^[A-Za-z0-9_-][A-Za-z0-9._-]*$`).With("examples", []string{"orders"})

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
