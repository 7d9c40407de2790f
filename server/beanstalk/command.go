package beanstalk

import (
	"bytes"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// op is a command.
type op uint8

const (
	opUnknown op = iota
	opPut
	opPeek
	opReserve
	opDelete
	opRelease
	opBury
	opKick
	opStats
	opStatsJob
	opPeekBuried
	opUse
	opWatch
	opIgnore
	opListTubes
	opListTubeUsed
	opListTubesWatched
	opStatsTube
	opPeekReady
	opPeekDelayed
	opReserveTimeout
	opTouch
	opQuit
	opPauseTube
	opKickJob
	opReserveJob
	opAuth
	ops
)

// verbs are matched as prefixes, in this order.
var verbs = [...]struct {
	text string
	op   op
}{
	{"put ", opPut},
	{"reserve-with-timeout ", opReserveTimeout},
	{"reserve-job ", opReserveJob},
	{"reserve", opReserve},
	{"delete ", opDelete},
	{"release ", opRelease},
	{"bury ", opBury},
	{"touch ", opTouch},
	{"use ", opUse},
	{"watch ", opWatch},
	{"ignore ", opIgnore},
	{"peek ", opPeek},
	{"peek-ready", opPeekReady},
	{"peek-delayed", opPeekDelayed},
	{"peek-buried", opPeekBuried},
	{"kick ", opKick},
	{"kick-job ", opKickJob},
	{"stats-job ", opStatsJob},
	{"stats-tube ", opStatsTube},
	{"stats", opStats},
	{"list-tubes-watched", opListTubesWatched},
	{"list-tube-used", opListTubeUsed},
	{"list-tubes", opListTubes},
	{"quit", opQuit},
	{"pause-tube", opPauseTube},
	{"auth ", opAuth},
}

// opNames are the verbs without a space, by op.
var opNames = func() (names [ops]string) {
	for _, v := range verbs {
		names[v.op] = string(bytes.TrimSpace([]byte(v.text)))
	}
	return names
}()

// parse returns the command of a line, and what follows its verb.
func parse(line []byte) (op, []byte) {
	for i := range verbs {
		v := &verbs[i]
		if len(line) >= len(v.text) && string(line[:len(v.text)]) == v.text {
			return v.op, line[len(v.text):]
		}
	}
	return opUnknown, nil
}

// number reads a decimal number up to most, with leading spaces, and returns what follows it.
func number(b []byte, most uint64) (n uint64, rest []byte, ok bool) {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
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

const maxU32 = 1<<32 - 1

// uint32s reads numbers that fill a line, and reports whether it is so.
func uint32s(b []byte, into ...*uint32) bool {
	for _, to := range into {
		n, rest, ok := number(b, maxU32)
		if !ok {
			return false
		}
		*to, b = uint32(n), rest
	}
	return len(b) == 0
}

// idOf reads a job's id, and returns what follows it.
func idOf(b []byte) (id engine.ID, rest []byte, ok bool) {
	n, rest, ok := number(b, 1<<64-1)
	return engine.ID(n), rest, ok
}

// onlyID reads a job's id that fills the line.
func onlyID(b []byte) (id engine.ID, ok bool) {
	id, rest, ok := idOf(b)
	return id, ok && len(rest) == 0
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

// fromHTTP reports whether a line is of an HTTP request: a web page could send commands in its
// body.
func fromHTTP(line []byte) bool {
	if n := len(line) - len(" HTTP/1.1"); n >= 0 && bytes.HasPrefix(line[n:], []byte(" HTTP/1.")) {
		return true
	}
	return len(line) >= 5 && bytes.EqualFold(line[:5], []byte("host:"))
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
