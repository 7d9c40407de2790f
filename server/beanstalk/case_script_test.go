package beanstalk_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// script plays a script against a server. Its lines begin with
//
//	>  a line to send; \r\n separates lines that are sent together
//	<  the answer: its body follows after " | "; $1, $2 are ids, bound when they are first seen
//	?  a command and, after " | ", a line that its answer has
//	~  the same, asked until the answer has it
//
// each perhaps after the name of a connection, "b> use t"; or they are
//
//	close b     close a connection
//	wait 200ms  let time pass
//	mark        remember the time
//	took 1s     no less has passed since mark, and little more
//	drain       accept no more jobs
type script struct {
	t     testing.TB
	at    *site
	conns map[string]*conn
	ids   map[string]string
	mark  time.Time
}

// slack is how much earlier something may come than it should: our times are whole milliseconds.
const slack = 2 * time.Millisecond

func (at *site) play(t testing.TB, text string) {
	t.Helper()
	s := &script{t: t, at: at, conns: make(map[string]*conn), ids: make(map[string]string)}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			s.step(line)
		}
	}
}

var talk = regexp.MustCompile(`^([a-z]?)([<>?~])(?: (.*))?$`)

func (s *script) step(line string) {
	s.t.Helper()
	m := talk.FindStringSubmatch(line)
	if m == nil {
		s.special(line)
		return
	}
	c := s.conn(m[1])
	what, want, _ := strings.Cut(m[3], " | ")
	switch m[2] {
	case ">":
		c.send(strings.ReplaceAll(s.fill(m[3]), `\r\n`, "\r\n") + "\r\n")
	case "<":
		if got := c.read(patience); !s.matches(m[3], got) {
			s.t.Fatalf("%s: got %q", s.fill(line), got)
		}
	case "?":
		if got := c.cmd("%s", s.fill(what)); !s.has(got, want) {
			s.t.Fatalf("%s: got %q", s.fill(line), got)
		}
	case "~":
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			got := c.cmd("%s", s.fill(what))
			if s.has(got, want) {
				return
			}
			if time.Now().After(end) {
				s.t.Fatalf("%s: got %q to the end", s.fill(line), got)
			}
		}
	}
}

func (s *script) special(line string) {
	s.t.Helper()
	verb, arg, _ := strings.Cut(line, " ")
	d, _ := time.ParseDuration(arg) // 0 where there is none
	switch verb {
	case "close":
		_ = s.conn(arg).Close()
	case "drain":
		s.at.drain()
	case "wait":
		time.Sleep(d)
	case "mark":
		s.mark = time.Now()
	case "took":
		if took := time.Since(s.mark); took < d-slack || took > d+patience {
			s.t.Fatalf("it took %v, not %v", took, d)
		}
	default:
		s.t.Fatalf("a script has %q", line)
	}
}

func (s *script) conn(name string) *conn {
	s.t.Helper()
	if s.conns[name] == nil {
		s.conns[name] = s.at.dial(s.t)
	}
	return s.conns[name]
}

var idName = regexp.MustCompile(`\$\d`)

// fill replaces the names of ids that are bound.
func (s *script) fill(text string) string {
	return idName.ReplaceAllStringFunc(text, func(name string) string {
		if id, ok := s.ids[name]; ok {
			return id
		}
		return name
	})
}

// matches compares an answer, and binds the ids in it.
func (s *script) matches(want, got string) bool {
	want, got = s.fill(want), strings.TrimRight(strings.ReplaceAll(got, "\n", " "), " ")
	name := idName.FindString(want)
	if name == "" {
		return want == got
	}
	before, after, _ := strings.Cut(want, name)
	id := strings.TrimSuffix(strings.TrimPrefix(got, before), after)
	if strings.Trim(id, "0123456789") != "" {
		return false
	}
	s.ids[name] = id
	return got == fmt.Sprint(before, id, after)
}

func (s *script) has(answer, line string) bool {
	answer = strings.ReplaceAll(answer, `"`, "") // Debian's version quotes no strings
	return strings.Contains(answer+"\n", "\n"+line+"\n")
}
