package wire

import (
	"net/url"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// Escape percent-encodes a segment of a path, even . and .., which clients would remove.
func Escape(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// QueuePath returns the path of a queue.
func QueuePath(queue string) string { return "/v1/queues/" + Escape(queue) }

// SchedulePath returns the path of a schedule.
func SchedulePath(name string) string { return "/v1/schedules/" + Escape(name) }

// RefPath returns the path of a message.
func RefPath(ref engine.Ref) string {
	if ref.ID != 0 {
		return QueuePath(ref.Queue) + "/messages/" + ref.ID.String()
	}
	return QueuePath(ref.Queue) + "/keys/" + Escape(ref.Key)
}

// MaxSegments is the most segments that a path of the API has.
const MaxSegments = 6

// Path is a path of the API, split into segments and unescaped: /v1/queues/QUEUE/KIND/NAME/…
type Path struct {
	segments [MaxSegments]string
	n        int
}

// ParsePath splits an escaped path before it unescapes the segments, so that escaped slashes
// stay in their segment. It returns false for a path that does not begin with a slash, and
// for one with a segment that is ., .. or empty, since its caller forgot to escape
// something. A slash at the end is allowed.
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

// Is reports whether the path matches a pattern of as many segments, each the same or "*".
func (p *Path) Is(pattern []string) bool {
	if len(pattern) != p.n {
		return false
	}
	for i := len(pattern) - 1; i >= 0; i-- { // most paths differ at the end
		if pattern[i] != "*" && pattern[i] != p.segments[i] {
			return false
		}
	}
	return true
}

// BelowName reports whether the path has more segments after a queue or schedule.
func (p *Path) BelowName() bool {
	return p.n > 3 && p.segments[0] == "v1" && (p.segments[1] == "queues" || p.segments[1] == "schedules")
}

// Queue returns the queue that the path names.
func (p *Path) Queue() string { return p.segments[2] }

// Schedule returns the schedule that the path names.
func (p *Path) Schedule() string { return p.segments[2] }

// Key returns the key that the path names.
func (p *Path) Key() string { return p.segments[4] }

// Ref returns the message that the path names, by key or id.
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

// Variable returns the name of the variable that segment i of a pattern, a "*", stands for.
func Variable(pattern []string, i int) string {
	switch pattern[i-1] {
	case "queues":
		return "queue"
	case "keys":
		return "key"
	case "schedules":
		return "name"
	}
	return "id"
}

// Variables returns the variables of Variable, as parameters of the OpenAPI document.
func Variables() Schema {
	parameter := func(name string, is Schema, doc string) Schema {
		return Schema{{Name: "name", Value: name}, {Name: "in", Value: "path"}, {Name: "required", Value: true}, {Name: "description", Value: doc}, {Name: "schema", Value: is}}
	}
	return Schema{
		{Name: "queue", Value: parameter("queue", isQueue, "the name of a queue")},
		{Name: "key", Value: parameter("key", isKey, "your name for a message; not . or ..")},
		{Name: "name", Value: parameter("name", isQueue, "the name of a schedule")},
		{Name: "id", Value: parameter("id", isID, "the id of a message")},
	}
}
