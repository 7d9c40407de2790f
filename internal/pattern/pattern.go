// Package pattern tells which queues a pattern of their names means, in routes and for
// tokens alike.
package pattern

import "strings"

// reserved begins the names of queues that are tarry's own, such as tarry.schedules. No
// pattern takes them that does not begin so itself.
const reserved = "tarry."

// Is reports whether s is a pattern and not the name of a queue.
func Is(s string) bool { return strings.Contains(s, "*") }

// Reserved reports whether a queue's name, or a pattern, is of those that are tarry's own.
func Reserved(queue string) bool { return strings.HasPrefix(queue, reserved) }

// Takes reports whether s is a queue's name, or a pattern that the name fits.
func Takes(s, queue string) bool { return s == queue || Is(s) && fits(s, queue) }

// fits reports whether a queue's name fits a pattern, in which each * stands for any
// characters, also for none, for dots and for slashes.
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
