package names

import "strings"

// reserved is the prefix of tarry's own queues, such as tarry.schedules. Only patterns that
// start with this prefix match them.
const reserved = "tarry."

// IsPattern reports whether s, of a route or a token, is a pattern and not the name of a queue.
func IsPattern(s string) bool { return strings.Contains(s, "*") }

// Reserved reports whether the name or pattern is one of tarry's own queues.
func Reserved(queue string) bool { return strings.HasPrefix(queue, reserved) }

// Match reports whether s is the queue's name, or a pattern that matches it.
func Match(s, queue string) bool { return s == queue || IsPattern(s) && fits(s, queue) }

// fits reports whether a pattern matches a queue's name. Each * matches any characters,
// dots and slashes included, or none.
func fits(pattern, queue string) bool {
	if Reserved(queue) && !Reserved(pattern) {
		return false
	}
	head, rest, _ := strings.Cut(pattern, "*")
	queue, ok := strings.CutPrefix(queue, head)
	if !ok {
		return false
	}
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(queue, part)
		}
		i := strings.Index(queue, part)
		if i < 0 {
			return false
		}
		queue, rest = queue[i+len(part):], after
	}
}
