// Package names is about names: patterns and sets of those of queues, and the schemes of URLs.
package names

import (
	"cmp"
	"slices"
	"strings"
)

// chunkNames is the most names in a chunk.
const chunkNames = 256

// Set is an ordered set of names: the cost of a page depends on its length and not on the
// number of names. The zero Set is empty. Callers lock.
//
// It is an ordered list of chunks, none of them empty. Adding or removing a name moves at
// most one chunk of names. It also moves the list when a chunk is split or emptied.
type Set struct {
	chunks [][]string
}

// find returns the chunk and the place in it to which a name belongs, and whether it is
// there.
func (s *Set) find(name string) (chunk, at int, found bool) {
	chunk, found = slices.BinarySearchFunc(s.chunks, name, func(c []string, name string) int { return cmp.Compare(c[0], name) })
	if found || len(s.chunks) == 0 {
		return chunk, 0, found
	}
	chunk = max(0, chunk-1)
	at, found = slices.BinarySearch(s.chunks[chunk], name)
	return chunk, at, found
}

// Add adds a name.
func (s *Set) Add(name string) {
	i, at, found := s.find(name)
	switch {
	case found:
		return
	case len(s.chunks) == 0:
		s.chunks = [][]string{{name}}
		return
	}
	c := slices.Insert(s.chunks[i], at, name)
	if len(c) <= chunkNames {
		s.chunks[i] = c
		return
	}
	half := len(c) / 2
	if at == len(c)-1 && i == len(s.chunks)-1 { // names added in order fill their chunks
		half = at
	}
	s.chunks[i] = slices.Clip(c[:half])
	s.chunks = slices.Insert(s.chunks, i+1, slices.Clone(c[half:]))
}

// Remove removes a name.
func (s *Set) Remove(name string) {
	i, at, found := s.find(name)
	if !found {
		return
	}
	if c := slices.Delete(s.chunks[i], at, at+1); len(c) > 0 {
		s.chunks[i] = c
	} else {
		s.chunks = slices.Delete(s.chunks, i, i+1)
	}
}

// After appends to names, in order, at most n of the names after a given one.
func (s *Set) After(names []string, after string, n int) []string {
	i, at, found := s.find(after)
	if found {
		at++
	}
	for ; i < len(s.chunks) && n > 0; i, at = i+1, 0 {
		c := s.chunks[i][at:]
		c = c[:min(n, len(c))]
		names, n = append(names, c...), n-len(c)
	}
	return names
}

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
