package beanstalk

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"put 1": "put", "put": "", "PUT 1": "", "reserve": "reserve", "reserveX": "reserve", "reserve-with-timeout": "reserve",
		"reserve-with-timeout 0": "reserve-with-timeout", "reserve-job 1": "reserve-job", "peek 1": "peek", "peek-readyX": "peek-ready", "peek": "",
		"stats": "stats", "stats-tube": "stats", "stats-tube a": "stats-tube", "stats-job 1": "stats-job", "list-tubes": "list-tubes",
		"list-tube-used": "list-tube-used", "list-tubes-watched": "list-tubes-watched", "quitX": "quit", "kick 1": "kick", "kick-job 1": "kick-job", "": "",
	} {
		got := ""
		if v, _ := parse([]byte(line)); v != nil {
			got = v.name()
		}
		if got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"7": "7", "  007 8": "7", "4294967295": "4294967295", "4294967296": "", "+7": "", "-7": "", "": "", " ": "", "a": "", "99999999999999999999999": "",
	} {
		n, _, ok := number([]byte(in), maxU32)
		if got := strconv.FormatUint(n, 10); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %s, %v; want %s", in, got, ok, want)
		}
	}
	for in, want := range map[string]int64{"5": 5, "1abc": 1, "-1": maxU32, "+2": 2, "\t3": 3, "4294967296": 0, "18446744073709551615": maxU32} {
		if n, ok := count([]byte(in)); !ok || int64(n) != want {
			t.Errorf("kick %q: %d, %v; want %d", in, n, ok, want)
		}
	}
	for _, in := range []string{"", "abc", "- 1", "18446744073709551616", "+-1"} {
		if n, ok := count([]byte(in)); ok {
			t.Errorf("kick %q: %d", in, n)
		}
	}
	if d, rest, ok := delayOf([]byte(" 1500ms 3"), maxU32); d != 1500*time.Millisecond || string(rest) != " 3" || !ok {
		t.Errorf("%s, %q, %v", d, rest, ok)
	}
}

func TestLinesOfBrowsers(t *testing.T) {
	for line, want := range map[string]bool{
		"GET / HTTP/1.1": true, "POST /x HTTP/1.0": true, "Host: localhost": true, "host:a": true, " HTTP/1.1": true, "\x16\x03\x01x": true, "x\x16\x03": false,
		"use HTTP/1.1x": false, "use HTTP/1.1": true, "put 0 0 0 0": false, "": false, "HTTP/1.1": false,
	} {
		if got := fromBrowser([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// FuzzCommand: a line that is taken says what it must say when it is written again.
func FuzzCommand(f *testing.F) {
	f.Add([]byte("put 0 0 60 1"))
	f.Add([]byte("kick -1"))
	f.Add([]byte("pause-tube a 1"))
	f.Fuzz(func(t *testing.T, line []byte) {
		v, rest := parse(line)
		if v == nil {
			return
		}
		if !bytes.HasSuffix(line, rest) {
			t.Fatalf("%q leaves %q", line, rest)
		}
		if a, ok := put.arguments(rest); ok && (a.size < 0 || a.size > maxU32 || a.ttr < time.Second || a.delay < 0 || !bytes.HasSuffix(rest, a.rest)) {
			t.Errorf("%q: %+v", line, a)
		}
		ofJob := verb{args: []arg{anID}}
		if a, ok := ofJob.arguments(rest); ok {
			if n, err := strconv.ParseUint(string(bytes.TrimLeft(rest, " ")), 10, 64); err != nil || engine.ID(n) != a.id {
				t.Errorf("%q is %d, %v", rest, a.id, err)
			}
		}
		if tubeName(rest) != (engine.CheckQueue("", string(rest)) == nil) {
			t.Errorf("%q is the name of a tube: %v", rest, tubeName(rest))
		}
		v.arguments(rest)
		count(rest)
	})
}

func TestParsingAllocatesNothing(t *testing.T) {
	line := []byte("put 1024 0 60 200")
	if n := testing.AllocsPerRun(100, func() {
		v, rest := parse(line)
		if _, ok := v.arguments(rest); !ok {
			t.Error("it is not taken")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
