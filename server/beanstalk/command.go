package beanstalk

import (
	"bytes"
	"math"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// verb is a command.
type verb struct {
	text  string
	args  []arg
	do    func(*conn, args) (answer string, err error)
	loose bool // anything may follow the arguments
	open  bool // it needs no token
	at    int  // in verbs
}

// arg is a kind of argument.
type arg uint8

const (
	anID arg = iota
	aPriority
	aDelay
	aTTR
	aTimeout
	aSize
	aCount
	aTube
	aTubeFirst // a tube, before other arguments; its name is not checked
)

// args are the arguments of a command.
type args struct {
	id    engine.ID
	pri   uint32
	delay time.Duration // or a timeout
	ttr   time.Duration
	size  int64
	count uint32
	tube  []byte
	rest  []byte // what follows the arguments
}

// verbs are the commands. stats shows the counters of the first ones, in this order.
var verbs [verbCount]verb

const (
	verbCount = 26
	shown     = 22 // counters that stats shows
)

// put is looked at apart: several are carried out together.
var put = &verbs[0]

func init() {
	verbs = [...]verb{
		{text: "put ", args: []arg{aPriority, aDelay, aTTR, aSize}, do: (*conn).put, loose: true},
		{text: "peek ", args: []arg{anID}, do: (*conn).peek},
		{text: "peek-ready", do: (*conn).peekReady},
		{text: "peek-delayed", do: func(c *conn, _ args) (string, error) { return c.peekFirst(engine.Scheduled) }},
		{text: "peek-buried", do: func(c *conn, _ args) (string, error) { return c.peekFirst(engine.Dead) }},
		{text: "reserve", do: func(c *conn, _ args) (string, error) { return c.reserve(time.Time{}) }},
		{text: "reserve-with-timeout ", args: []arg{aTimeout}, do: (*conn).reserveWithin, loose: true},
		{text: "delete ", args: []arg{anID}, do: (*conn).delete},
		{text: "release ", args: []arg{anID, aPriority, aDelay}, do: (*conn).release},
		{text: "use ", args: []arg{aTube}, do: (*conn).useTube},
		{text: "watch ", args: []arg{aTube}, do: (*conn).watchTube},
		{text: "ignore ", args: []arg{aTube}, do: (*conn).ignoreTube},
		{text: "bury ", args: []arg{anID, aPriority}, do: (*conn).bury},
		{text: "kick ", args: []arg{aCount}, do: (*conn).kick, loose: true},
		{text: "touch ", args: []arg{anID}, do: (*conn).touch},
		{text: "stats", do: (*conn).stats},
		{text: "stats-job ", args: []arg{anID}, do: (*conn).statsJob},
		{text: "stats-tube ", args: []arg{aTube}, do: (*conn).statsTube},
		{text: "list-tubes", do: (*conn).listTubes},
		{text: "list-tube-used", do: (*conn).tubeUsed},
		{text: "list-tubes-watched", do: (*conn).listWatched},
		{text: "pause-tube", args: []arg{aTubeFirst, aDelay}, do: (*conn).pause},
		{text: "kick-job ", args: []arg{anID}, do: (*conn).kickJob},
		{text: "reserve-job ", args: []arg{anID}, do: (*conn).reserveJob},
		{text: "quit", do: (*conn).quit, loose: true, open: true},
		{text: "auth ", do: (*conn).auth, loose: true, open: true},
	}
	for i := range verbs {
		verbs[i].at = i
	}
}

// name returns the verb without a space.
func (v *verb) name() string { return strings.TrimSuffix(v.text, " ") }

// parse returns the verb of a line, nil if it has none, and what follows it. A verb is a prefix
// of the line: the longest one counts.
func parse(line []byte) (v *verb, rest []byte) {
	for i := range verbs {
		text := verbs[i].text
		if len(line) >= len(text) && string(line[:len(text)]) == text && (v == nil || len(text) > len(v.text)) {
			v, rest = &verbs[i], line[len(text):]
		}
	}
	return v, rest
}

// arguments reads what follows the verb.
func (v *verb) arguments(b []byte) (a args, ok bool) {
	ok = true
	for i := 0; i < len(v.args) && ok; i++ {
		var n uint64
		switch v.args[i] {
		case anID:
			n, b, ok = number(b, math.MaxUint64)
			a.id = engine.ID(n)
		case aPriority:
			n, b, ok = number(b, maxU32)
			a.pri = uint32(n)
		case aDelay:
			a.delay, b, ok = delayOf(b, maxU32)
		case aTTR:
			a.ttr, b, ok = delayOf(b, maxU32)
			a.ttr = max(a.ttr, time.Second)
		case aTimeout:
			a.delay, b, ok = delayOf(b, math.MaxInt32)
		case aSize:
			n, b, ok = number(b, maxU32)
			a.size = int64(n)
		case aCount:
			a.count, ok = count(b)
		case aTube:
			a.tube, b, ok = b, nil, tubeName(b)
		case aTubeFirst:
			b = bytes.TrimLeft(b, " ")
			after := bytes.TrimLeft(b, inNames)
			a.tube, b, ok = b[:len(b)-len(after)], after, len(after) < len(b)
		}
	}
	a.rest = b
	return a, ok && (v.loose || len(b) == 0)
}

const maxU32 = math.MaxUint32

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

// delayOf reads a number of seconds, or of milliseconds if it ends in ms.
func delayOf(b []byte, most uint64) (d time.Duration, rest []byte, ok bool) {
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

// inNames are the bytes that may be in a tube's name.
const inNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_()"

// tubeName reports whether a tube may have that name.
func tubeName(b []byte) bool { return engine.CheckQueue("", string(b)) == nil }

// fromBrowser reports whether a line is of an HTTP request, or begins one over TLS: a web page
// could send commands in the body, or in a session ticket of its server.
func fromBrowser(line []byte) bool {
	if n := len(line) - len(" HTTP/1.1"); n >= 0 && bytes.HasPrefix(line[n:], []byte(" HTTP/1.")) {
		return true
	}
	return len(line) >= 5 && bytes.EqualFold(line[:5], []byte("host:")) || bytes.HasPrefix(line, []byte("\x16\x03"))
}
