package wire

import (
	"net/url"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// Escape percent-encodes a segment of a path, also . and .., which would vanish.
func Escape(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// QueuePath is the path of a queue.
func QueuePath(queue string) string { return "/v1/queues/" + Escape(queue) }

// RefPath is the path of a message.
func RefPath(ref engine.Ref) string {
	if ref.ID != 0 {
		return QueuePath(ref.Queue) + "/messages/" + ref.ID.String()
	}
	return QueuePath(ref.Queue) + "/keys/" + Escape(ref.Key)
}

// MaxSegments is how many segments a path of the API has at most.
const MaxSegments = 6

// Path is a path of the API, taken apart and unescaped: /v1/queues/QUEUE/KIND/NAME/…
type Path struct {
	segments [MaxSegments]string
	n        int
}

// ParsePath takes an escaped path apart, so that what is escaped in a segment, slashes
// too, stays in it. It is false for a path without a slash before it, and for one with
// an empty segment, . or .. but for a slash at its end: whoever meant that left
// something unescaped.
func ParsePath(escaped string) (p Path, ok bool) {
	if escaped == "" || escaped[0] != '/' {
		return p, false
	}
	for rest, more := escaped[1:], true; more; p.n++ {
		var s string
		s, rest, more = strings.Cut(rest, "/")
		if s == "." || s == ".." || (s == "" && more) {
			return p, false
		}
		if p.n < MaxSegments {
			var err error
			if p.segments[p.n], err = url.PathUnescape(s); err != nil {
				return p, false
			}
		}
	}
	return p, true
}

// Is reports whether the path is the one of a pattern: as many segments, each the same
// or "*".
func (p *Path) Is(pattern []string) bool {
	if len(pattern) != p.n {
		return false
	}
	for i := len(pattern) - 1; i >= 0; i-- { // they differ in the end
		if pattern[i] != "*" && pattern[i] != p.segments[i] {
			return false
		}
	}
	return true
}

// BelowQueue reports whether the path goes on behind a queue.
func (p *Path) BelowQueue() bool {
	return p.n > 3 && p.segments[0] == "v1" && p.segments[1] == "queues"
}

// Queue is the queue that the path names.
func (p *Path) Queue() string { return p.segments[2] }

// Key is the key that the path names.
func (p *Path) Key() string { return p.segments[4] }

// Ref is the message that the path names, by key or id.
func (p *Path) Ref() (engine.Ref, error) {
	if p.segments[3] == "keys" {
		return engine.Ref{Queue: p.Queue(), Key: p.Key()}, nil
	}
	id, err := engine.ParseID(p.segments[4])
	if err != nil {
		return engine.Ref{}, Wrong("id: %q is not an id", engine.Clip(p.segments[4])).WithHint("an id is a decimal number such as 42; by key the path is /v1/queues/{queue}/keys/{key}")
	}
	return engine.Ref{Queue: p.Queue(), ID: id}, nil
}

// Variable names the segment of a pattern that may be any.
func Variable(pattern []string, i int) string {
	switch pattern[i-1] {
	case "queues":
		return "queue"
	case "keys":
		return "key"
	}
	return "id"
}

// Variables are the segments that Variable names, as parameters.
func Variables() schema.Object {
	parameter := func(name string, is schema.Object, doc string) schema.Object {
		return schema.Object{{Name: "name", Value: name}, {Name: "in", Value: "path"}, {Name: "required", Value: true}, {Name: "description", Value: doc}, {Name: "schema", Value: is}}
	}
	return schema.Object{
		{Name: "queue", Value: parameter("queue", isQueue, "the name of a queue")},
		{Name: "key", Value: parameter("key", isKey, "your name for a message; not . or ..")},
		{Name: "id", Value: parameter("id", isID, "the id of a message")},
	}
}
