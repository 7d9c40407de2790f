package beanstalk

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// verb is a command. One of its functions is set, by what follows the verb.
type verb struct {
	text  string
	plain func(*conn)                // nothing
	tube  func(*conn, []byte)        // the name of a tube
	job   func(*conn, engine.ID)     // the id of a job
	line  func(*conn, *verb, []byte) // what the function reads, which also counts it
	open  bool                       // it needs no token
	at    int                        // in verbs
}

// verbs are the commands. stats shows the counters of the first ones, in this order.
var verbs [verbCount]verb

const (
	verbCount = 26
	shown     = 22 // counters that stats shows
)

// byLength are the verbs, the longest first, since a verb is matched as a prefix.
var byLength [verbCount]*verb

// put is looked at apart: several are carried out together.
var put = &verbs[0]

func init() {
	verbs = [...]verb{
		{text: "put ", line: (*conn).put},
		{text: "peek ", job: (*conn).peek},
		{text: "peek-ready", plain: (*conn).peekReady},
		{text: "peek-delayed", plain: func(c *conn) { c.peekFirst(engine.Scheduled) }},
		{text: "peek-buried", plain: func(c *conn) { c.peekFirst(engine.Dead) }},
		{text: "reserve", plain: (*conn).reserve},
		{text: "reserve-with-timeout ", line: (*conn).reserveWithin},
		{text: "delete ", job: (*conn).delete},
		{text: "release ", line: (*conn).release},
		{text: "use ", tube: (*conn).useTube},
		{text: "watch ", tube: (*conn).watchTube},
		{text: "ignore ", tube: (*conn).ignoreTube},
		{text: "bury ", line: (*conn).bury},
		{text: "kick ", line: (*conn).kick},
		{text: "touch ", job: (*conn).touch},
		{text: "stats", plain: (*conn).stats},
		{text: "stats-job ", job: (*conn).statsJob},
		{text: "stats-tube ", tube: (*conn).statsTube},
		{text: "list-tubes", plain: (*conn).listTubes},
		{text: "list-tube-used", plain: func(c *conn) { c.say("USING ", c.use.name) }},
		{text: "list-tubes-watched", plain: func(c *conn) { c.list(names(c.watch)) }},
		{text: "pause-tube", line: (*conn).pause},
		{text: "kick-job ", job: (*conn).kickJob},
		{text: "reserve-job ", job: (*conn).reserveJob},
		{text: "quit", line: func(c *conn, _ *verb, _ []byte) { c.stop() }, open: true},
		{text: "auth ", line: (*conn).auth, open: true},
	}
	for i := range verbs {
		verbs[i].at = i
		byLength[i] = &verbs[i]
	}
	slices.SortStableFunc(byLength[:], func(a, b *verb) int { return len(b.text) - len(a.text) })
}

// name returns the verb without a space.
func (v *verb) name() string { return strings.TrimSuffix(v.text, " ") }

// parse returns the verb of a line, nil if it has none, and what follows it.
func parse(line []byte) (*verb, []byte) {
	for _, v := range byLength {
		if len(line) >= len(v.text) && string(line[:len(v.text)]) == v.text {
			return v, line[len(v.text):]
		}
	}
	return nil, nil
}

const maxU32 = 1<<32 - 1

// number reads a decimal number up to most, with leading spaces, and returns what follows it.
func number(b []byte, most uint64) (n uint64, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " ")
	i := 0
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		d := uint64(b[i] - '0')
		if n > (most-d)/10 {
			return 0, nil, false
		}
		n = n*10 + d
	}
	return n, b[i:], i > 0
}

// idOf reads a job's id, and returns what follows it.
func idOf(b []byte) (id engine.ID, rest []byte, ok bool) {
	n, rest, ok := number(b, 1<<64-1)
	return engine.ID(n), rest, ok
}

// duration reads a number of seconds, or of milliseconds if it ends in ms.
func duration(b []byte, most uint64) (d time.Duration, rest []byte, ok bool) {
	n, rest, ok := number(b, most)
	if len(rest) >= 2 && string(rest[:2]) == "ms" {
		return time.Duration(n) * time.Millisecond, rest[2:], ok
	}
	return time.Duration(n) * time.Second, rest, ok
}

// count reads the number of kick as C's strtoul does, cut to 32 bits: a sign may precede it,
// and anything may follow.
func count(b []byte) (n uint32, ok bool) {
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative, b = b[0] == '-', b[1:]
	}
	if len(b) == 0 || b[0] == ' ' {
		return 0, false
	}
	v, _, ok := number(b, 1<<64-1)
	if negative {
		v = -v
	}
	return uint32(v), ok
}

// tubeName reports whether a tube may have that name.
func tubeName(b []byte) bool {
	if len(b) == 0 || len(b) > engine.MaxQueueBytes || b[0] == '-' {
		return false
	}
	return nameLength(b) == len(b)
}

// nameLength returns how many bytes at the start of b may be in a tube's name.
func nameLength(b []byte) int {
	for i, c := range b {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || bytes.IndexByte([]byte("-+/;.$_()"), c) >= 0) {
			return i
		}
	}
	return len(b)
}

// fromBrowser reports whether a line is of an HTTP request, or begins one over TLS: a web page
// could send commands in the body, or in a session ticket of its server.
func fromBrowser(line []byte) bool {
	if n := len(line) - len(" HTTP/1.1"); n >= 0 && bytes.HasPrefix(line[n:], []byte(" HTTP/1.")) {
		return true
	}
	return len(line) >= 5 && bytes.EqualFold(line[:5], []byte("host:")) || bytes.HasPrefix(line, []byte("\x16\x03"))
}

// put is what the line of a put says.
type putLine struct {
	pri        uint32
	delay, ttr time.Duration
	bytes      int64
	rest       []byte // behind the last number
}

// parsePut reads the line of a put behind its verb.
func parsePut(b []byte) (p putLine, ok bool) {
	pri, b, ok := number(b, maxU32)
	if !ok {
		return p, false
	}
	p.pri = uint32(pri)
	if p.delay, b, ok = duration(b, maxU32); !ok {
		return p, false
	}
	if p.ttr, b, ok = duration(b, maxU32); !ok {
		return p, false
	}
	p.ttr = max(p.ttr, time.Second)
	n, b, ok := number(b, maxU32)
	p.bytes, p.rest = int64(n), b
	return p, ok
}
