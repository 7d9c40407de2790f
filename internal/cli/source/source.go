package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarryhq/tarry/engine"
)

// page is how many entries Next reads at a time, about.
const page = 500

// Entry is one delayed message of another system.
type Entry struct {
	ID             string // its name there
	engine.Message        // the push that makes the same message here, without a content type
	Err            error  // why there can be none; nil: there can

	New bool // pushing it made a new message; for the caller to set
	was any  // what Remove needs
}

// Source is where messages are delayed today. It is not safe for concurrent use.
type Source interface {
	// Name names it for people: a queue, a set or a table.
	Name() string

	// Next returns some further entries, in no order, and none at the end. What is in the
	// source all the time is returned at least once.
	Next(ctx context.Context) ([]Entry, error)

	// Remove removes entries that are still as Next returned them, and reports for each
	// whether it did.
	Remove(ctx context.Context, entries []Entry) (removed []bool, err error)
}

// keyFor returns name if it may be a key, else a digest of it.
func keyFor(name string) string {
	if engine.CheckKey("", "", name) == nil {
		return name
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
}

// unreached returns the error of connecting to FROM.
func unreached(u *url.URL, err error) error {
	return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %v", engine.ErrUnavailable, err), Hint: "check that FROM runs at " + u.Host}
}

// typeHeader is the header in which a task's type travels.
const typeHeader = "asynq-type"

// Asynq returns the scheduled tasks of queues of asynq, or of all, and those that wait for a
// retry. They go to the queue of the same name or, with byType, of their type's, with dots for
// colons.
func Asynq(ctx context.Context, u *url.URL, queues []string, byType bool) (all []Source, done func(), err error) {
	client, err := connect(u)
	if err != nil {
		return nil, nil, err
	}
	if len(queues) == 0 {
		queues, err = client.Do(ctx, client.B().Smembers().Key("asynq:queues").Build()).AsStrSlice()
		slices.Sort(queues)
	}
	for _, q := range queues {
		prefix := "asynq:{" + q + "}:"
		all = append(all, &ZSet{Set: q, Queue: q, PerSecond: 1, Body: prefix + "t:{}#msg",
			client: client, sets: []string{prefix + "scheduled", prefix + "retry"}, lock: "unique_key",
			finish: func(e *Entry) error { return fill(e, byType) }})
	}
	return all, client.Close, err
}

// Fields of asynq's TaskMessage, a protobuf.
const (
	taskType    = 1
	taskPayload = 2
	taskRetry   = 5 // how often it may be retried
	taskRetried = 6
	taskGroup   = 14
	taskHeaders = 15 // each with a name, 1, and a value, 2
)

// fill makes an entry whose body is a task the message of that task. It may be tried as often
// as the task still could.
func fill(e *Entry, byType bool) error {
	texts, numbers, err := read(e.Body)
	if err != nil {
		return err
	}
	text := func(field protowire.Number) string { return strings.Join(texts[field], "") } // there is one
	if text(taskGroup) != "" {
		return errors.New("it is of a group, which tarry does not know")
	}
	for _, pair := range texts[taskHeaders] {
		h, _, err := read([]byte(pair))
		if err != nil {
			return err
		}
		e.Headers = append(e.Headers, engine.Header{Name: strings.Join(h[1], ""), Value: strings.Join(h[2], "")})
	}
	slices.SortFunc(e.Headers, func(a, b engine.Header) int { return strings.Compare(a.Name, b.Name) })
	e.Headers = append(e.Headers, engine.Header{Name: typeHeader, Value: text(taskType)})
	e.MaxAttempts = uint32(max(0, numbers[taskRetry]-numbers[taskRetried])) + 1
	e.Body = []byte(text(taskPayload))
	if byType {
		e.Queue = strings.ReplaceAll(text(taskType), ":", ".")
	}
	return nil
}

// read returns the fields of a protobuf that are bytes or numbers.
func read(b []byte) (texts map[protowire.Number][]string, numbers map[protowire.Number]int32, err error) {
	texts, numbers = make(map[protowire.Number][]string), make(map[protowire.Number]int32)
	for len(b) > 0 {
		field, kind, size := protowire.ConsumeField(b)
		if size < 0 {
			return nil, nil, protowire.ParseError(size)
		}
		_, _, tag := protowire.ConsumeTag(b)
		switch kind {
		case protowire.BytesType:
			value, _ := protowire.ConsumeBytes(b[tag:])
			texts[field] = append(texts[field], string(value))
		case protowire.VarintType:
			value, _ := protowire.ConsumeVarint(b[tag:])
			numbers[field] = int32(value)
		}
		b = b[size:]
	}
	return texts, numbers, nil
}
