package tarry

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/tarryhq/tarry/internal/calls"
)

// Topic is a queue with values of type T as bodies. It is a mere description: cheap,
// immutable, made once as a package variable, and used with any Client.
type Topic[T any] struct {
	queue  string
	codec  Codec
	opts   []PushOption
	guards []func(context.Context, *Message[T]) (bool, error)
}

// NewTopic describes a queue of T. Bodies are JSON, or the raw bytes when T is []byte or
// string; see WithCodec. The options become the defaults of each push. An invalid queue
// name is reported by the first call that uses it.
func NewTopic[T any](queue string, defaults ...PushOption) *Topic[T] {
	t := &Topic[T]{queue: queue, codec: JSON, opts: defaults}
	switch any(*new(T)).(type) {
	case []byte, string:
		t.codec = Bytes
	}
	return t
}

// WithCodec returns the same topic with another codec.
func (t *Topic[T]) WithCodec(c Codec) *Topic[T] {
	u := *t
	u.codec = c
	return &u
}

// OnlyIf returns the same topic with a guard, for Handle and Claim. When a message is due,
// guard says whether the reason for it still holds. If so, the message is handled; if not,
// it is dropped, and the observer gets Dropped. An error of guard counts as one of the
// handler. guard runs within the handler's context and timeout. Several guards run in
// order. OnlyIf panics when guard is nil.
func (t *Topic[T]) OnlyIf(guard func(ctx context.Context, m *Message[T]) (bool, error)) *Topic[T] {
	if guard == nil {
		panic("tarry: queue " + t.queue + ": the guard is nil")
	}
	u := *t
	u.guards = append(slices.Clip(t.guards), guard)
	return &u
}

// Queue returns the queue's name.
func (t *Topic[T]) Queue() string { return t.queue }

// Draft encodes v and returns the message that Push would push, for Client.PushMany and
// PushAtomic.
func (t *Topic[T]) Draft(v T, opts ...PushOption) (Draft, error) {
	body, err := t.codec.Encode(v)
	if err != nil {
		return Draft{Queue: t.queue}, &Error{Op: "push", Queue: t.queue, Err: ErrInvalid, Hint: "the body cannot be encoded: " + err.Error()}
	}
	m := NewDraft(t.queue, body)
	m.ContentType = t.codec.ContentType()
	for _, o := range t.opts {
		o.apply(&m)
	}
	for _, o := range opts {
		o.apply(&m)
	}
	return m, nil
}

// Push pushes v; see Client.Push.
func (t *Topic[T]) Push(ctx context.Context, c *Client, v T, opts ...PushOption) (Pushed, error) {
	m, err := t.Draft(v, opts...)
	if err != nil {
		return Pushed{}, err
	}
	return c.pushOne(ctx, m)
}

// PushMany pushes many values with the same options; see Client.PushMany. A value that
// cannot be encoded fails alone.
func (t *Topic[T]) PushMany(ctx context.Context, c *Client, vs []T, opts ...PushOption) ([]Pushed, error) {
	return t.PushEach(ctx, c, vs, func(T) []PushOption { return opts })
}

// PushEach is PushMany with options for each value, such as its key.
func (t *Topic[T]) PushEach(ctx context.Context, c *Client, vs []T, opts func(T) []PushOption) ([]Pushed, error) {
	drafts := make([]Draft, len(vs))
	good, errs := calls.Sift(drafts, func(i int) (err error) {
		drafts[i], err = t.Draft(vs[i], opts(vs[i])...)
		return err
	})
	pushed, err := c.PushMany(ctx, good.Items)
	if err != nil || errs == nil {
		return pushed, err
	}
	out := refused(drafts, errs)
	for j, p := range pushed {
		out[good.At(j)] = p
	}
	return out, nil
}

// Rearm resets the due time of the message with this key and keeps its body, or pushes v if
// there is none: for heartbeats and debouncing. ErrLeased when a worker already holds the
// message.
func (t *Topic[T]) Rearm(ctx context.Context, c *Client, key string, due Due, v T, opts ...PushOption) (Pushed, error) {
	m, err := t.Draft(v, opts...)
	if err != nil {
		return Pushed{}, err
	}
	m.Key, m.Due, m.OnConflict = key, due.when, Rearm
	return c.pushOne(ctx, m)
}

// Cancel removes a message; see Client.Cancel.
func (t *Topic[T]) Cancel(ctx context.Context, c *Client, ref Ref) error {
	ref, err := t.ref("cancel", ref)
	if err != nil {
		return err
	}
	return c.Cancel(ctx, ref)
}

// CancelMany cancels messages; see Client.CancelMany. A reference to another queue fails
// the whole call.
func (t *Topic[T]) CancelMany(ctx context.Context, c *Client, refs []Ref) ([]CancelResult, error) {
	refs = slices.Clone(refs)
	for i := range refs {
		var err error
		if refs[i], err = t.ref("cancel", refs[i]); err != nil {
			return nil, err
		}
	}
	return c.CancelMany(ctx, refs)
}

// Reschedule moves a message's due time; see Client.Reschedule.
func (t *Topic[T]) Reschedule(ctx context.Context, c *Client, ref Ref, due Due) (Info, error) {
	ref, err := t.ref("reschedule", ref)
	if err != nil {
		return Info{}, err
	}
	return c.Reschedule(ctx, ref, due)
}

// Found is a message that Get or List has found.
type Found[T any] struct {
	// Body is the decoded body, unless the message is finished. It hides Info.Body, the raw
	// bytes.
	Body T
	Info
}

// Get looks a message up; see Client.Get. A body that does not fit T is ErrInvalid; Get then
// still returns the Info.
func (t *Topic[T]) Get(ctx context.Context, c *Client, ref Ref) (Found[T], error) {
	ref, err := t.ref("get", ref)
	if err != nil {
		return Found[T]{}, err
	}
	info, err := c.Get(ctx, ref)
	if err != nil {
		return Found[T]{Info: info}, err
	}
	return t.found(info)
}

// List yields the messages in one state; see ListWhere.
func (t *Topic[T]) List(ctx context.Context, c *Client, state State) iter.Seq2[Found[T], error] {
	return t.ListWhere(ctx, c, Filter{States: []State{state}})
}

// ListWhere yields the messages that a filter chooses, with bodies; see Client.ListWhere. A
// message with a body that does not fit T comes with ErrInvalid, and the list goes on after
// it.
func (t *Topic[T]) ListWhere(ctx context.Context, c *Client, f Filter) iter.Seq2[Found[T], error] {
	return func(yield func(Found[T], error) bool) {
		ref, err := t.ref("list", Ref{Queue: f.Queue})
		if err != nil {
			yield(Found[T]{}, err)
			return
		}
		f.Queue, f.Body = ref.Queue, true
		for info, err := range c.ListWhere(ctx, f) {
			found := Found[T]{Info: info}
			if err == nil {
				found, err = t.found(info)
			}
			if !yield(found, err) {
				return
			}
		}
	}
}

// found decodes the body of a message.
func (t *Topic[T]) found(info Info) (f Found[T], err error) {
	if f.Info = info; info.State == Finished { // its body is gone
		return f, nil
	}
	f.Body, err = t.Decode(info)
	return f, err
}

// Decode returns the body of a message that was found without the topic. A body that does
// not fit T is ErrInvalid.
func (t *Topic[T]) Decode(m Info) (body T, err error) {
	if err := t.codec.Decode(m.Body, &body); err != nil {
		return body, &Error{Op: "decode", Queue: t.queue, ID: m.ID, Err: ErrInvalid, Hint: "the body does not fit the topic's type: " + err.Error()}
	}
	return body, nil
}

// Codec turns the values of a Topic into bodies and back. It must be safe for
// concurrent use.
type Codec interface {
	// ContentType names the encoding, such as "application/json".
	ContentType() string
	Encode(v any) ([]byte, error)
	// Decode decodes body into the value that v points to.
	Decode(body []byte, v any) error
}

// JSON is the default codec of a Topic.
var JSON Codec = jsonCodec{}

// Bytes passes []byte and string values through as they are; the default for
// topics of these types.
var Bytes Codec = bytesCodec{}

type jsonCodec struct{}

func (jsonCodec) ContentType() string             { return "application/json" }
func (jsonCodec) Encode(v any) ([]byte, error)    { return json.Marshal(v) }
func (jsonCodec) Decode(body []byte, v any) error { return json.Unmarshal(body, v) }

type bytesCodec struct{}

func (bytesCodec) ContentType() string { return "application/octet-stream" }

func (bytesCodec) Encode(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("the codec Bytes takes []byte and string, not %T", v)
}

func (bytesCodec) Decode(body []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = body
	case *string:
		*v = string(body)
	default:
		return fmt.Errorf("the codec Bytes fills []byte and string, not %T", v)
	}
	return nil
}
