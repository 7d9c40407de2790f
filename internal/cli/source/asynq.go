package source

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/rueidis"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarryhq/tarry/engine"
)

// typeHeader is the header in which a task's type travels.
const typeHeader = "asynq-type"

// AsynqQueues returns the names of asynq's queues.
func AsynqQueues(ctx context.Context, client rueidis.Client) ([]string, error) {
	names, err := client.Do(ctx, client.B().Smembers().Key("asynq:queues").Build()).AsStrSlice()
	slices.Sort(names)
	return names, err
}

// Asynq returns the scheduled tasks of a queue of asynq, and those that wait for a retry. They
// go to the queue of the same name or, with byType, of their type's, with dots for colons.
func Asynq(client rueidis.Client, queue string, byType bool) Source {
	prefix := "asynq:{" + queue + "}:"
	return &zset{
		ZSet:   ZSet{Set: queue, Queue: queue, PerSecond: 1, Body: prefix + "t:{}#msg"},
		client: client,
		sets:   []string{prefix + "scheduled", prefix + "retry"},
		lock:   "unique_key",
		finish: func(e *Entry) error { return fill(e, byType) },
	}
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
	t, err := read(e.Body)
	if err != nil {
		return err
	}
	if t.texts[taskGroup] != "" {
		return errors.New("it is of a group, which tarry does not know")
	}
	for _, pair := range t.headers {
		h, err := read(pair)
		if err != nil {
			return err
		}
		e.Headers = append(e.Headers, engine.Header{Name: h.texts[1], Value: h.texts[2]})
	}
	slices.SortFunc(e.Headers, func(a, b engine.Header) int { return strings.Compare(a.Name, b.Name) })
	e.Headers = append(e.Headers, engine.Header{Name: typeHeader, Value: t.texts[taskType]})
	e.MaxAttempts = uint32(max(0, t.numbers[taskRetry]-t.numbers[taskRetried])) + 1
	e.Body = []byte(t.texts[taskPayload])
	if byType {
		e.Queue = strings.ReplaceAll(t.texts[taskType], ":", ".")
	}
	return nil
}

// protobuf has the fields of a message that are bytes or numbers; of repeated ones the last.
type protobuf struct {
	texts   map[protowire.Number]string
	numbers map[protowire.Number]int32
	headers [][]byte // all of a task
}

func read(b []byte) (*protobuf, error) {
	p := &protobuf{texts: make(map[protowire.Number]string), numbers: make(map[protowire.Number]int32)}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			return nil, protowire.ParseError(n)
		}
		switch kind {
		case protowire.BytesType:
			value, _ := protowire.ConsumeBytes(b)
			if p.texts[field] = string(value); field == taskHeaders {
				p.headers = append(p.headers, value)
			}
		case protowire.VarintType:
			value, _ := protowire.ConsumeVarint(b)
			p.numbers[field] = int32(value)
		}
		b = b[n:]
	}
	return p, nil
}
