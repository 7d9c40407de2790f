package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const headerLine = "order_id,purchased_at,approved_at,review_asked_at,review_answered_at\n"

// TestBadInput gives the program what it cannot use: one line that says why, and
// exit code 2.
func TestBadInput(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"empty", "", "line 1: the file is empty"},
		{"missing column", "order_id,purchased_at,approved_at,review_asked_at\n", "line 1: the column review_answered_at is missing"},
		{"column twice", "approved_at," + headerLine, "line 1: the column approved_at is there twice"},
		{"no time", headerLine + "a,,,,\nb,yesterday,,,\n", `line 3: purchased_at: "yesterday" is not a time`},
		{"no zone", headerLine + "a,,2018-03-01T12:00:00,,\n", "line 2: approved_at: "},
		{"no such day", headerLine + "a,,,2018-02-30T12:00:00Z,\n", "line 2: review_asked_at: "},
		{"blank in a time", headerLine + "a,,,, 2018-03-01T12:00:00Z\n", "line 2: review_answered_at: "},
		{"very long time", headerLine + "a," + strings.Repeat("9", 5000) + ",,,\n", "line 2: purchased_at: "},
		{"too late a year", headerLine + "a,9999-12-31T23:59:59Z,,,\n", "line 2: purchased_at: the year 9999"},
		{"too early a year", headerLine + "a,1970-01-01T00:00:00+01:00,,,\n", "line 2: purchased_at: the year 1969"},
		{"duplicate", headerLine + "a,,,,\nb,,,,\na,,,,\n", `line 4: the order_id "a" was on line 2 already`},
		{"duplicate after a field of two lines", "note," + headerLine + "\"x\ny\",a,,,,\n,a,,,,\n", `line 4: the order_id "a" was on line 2 already`},
		{"no id", headerLine + ",,,,\n", "line 2: the order_id is empty"},
		{"long id", headerLine + strings.Repeat("x", 513) + ",,,,\n", "line 2: the order_id has 513 bytes"},
		{"id that is no key", headerLine + "..,,,,\n", `line 2: the order_id ".." cannot be`},
		{"id that is no text", headerLine + "a\xff,,,,\n", "line 2: the order_id "},
		{"too few fields", headerLine + "a,,,,\nb,,,\n", "line 3: the line has not as many fields"},
		{"too many fields", headerLine + "a,,,,,\n", "line 2: the line has not as many fields"},
		{"open quote", headerLine + "\"a,,,,\n", "line 2: "},
		{"bare quote", headerLine + "a\"b,,,,\n", "line 2: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "orders.csv")
			if err := os.WriteFile(name, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			checkFails(t, exitUsage, tt.want, "--file", name)
		})
	}
}

func TestWrongUsage(t *testing.T) {
	checkFails(t, exitUsage, "--file")
	checkFails(t, exitUsage, "no such file", "--file", filepath.Join(t.TempDir(), "none.csv"))
	checkFails(t, exitUsage, "is a directory", "--file", t.TempDir())
	checkFails(t, exitUsage, "-colour", "--file", smallFile, "--colour")
	checkFails(t, exitUsage, `"extra"`, "--file", smallFile, "extra")
}

// checkFails runs the program, which must end with the code and print one line
// with want in it on standard error, and nothing else.
func checkFails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := &program{stdout: &stdout, stderr: &stderr}
	if got := p.run(t.Context(), args); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	line := stderr.String()
	if !strings.Contains(line, want) || strings.Count(line, "\n") != 1 || len(line) > 400 {
		t.Errorf("standard error has %q, want one line with %q", line, want)
	}
	if stdout.Len() > 0 {
		t.Errorf("standard output has %q, want nothing", &stdout)
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	p := &program{stdout: &stdout, stderr: &stderr}
	if code := p.run(t.Context(), []string{"--help"}); code != 0 || stdout.String() != usage || stderr.Len() > 0 {
		t.Errorf("exit code %d, standard output %q, standard error %q", code, &stdout, &stderr)
	}
}

// TestGoodInput reads files that look odd and are not wrong.
func TestGoodInput(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		orders        int
	}{
		{"header only", headerLine, 0},
		{"no newline at the end", headerLine + "a,,,,", 1},
		{"carriage returns", strings.ReplaceAll(headerLine+"a,,,,\nb,2018-03-01T12:00:00Z,,,\n", "\n", "\r\n"), 2},
		{"byte order mark", "\ufeff" + headerLine + "a,,,,\n", 1},
		{"other columns, other order", "x,review_answered_at,review_asked_at,approved_at,purchased_at,order_id,x\n1,,,,,a,2\n", 1},
		{"blanks around column names", "order_id, purchased_at , approved_at, review_asked_at, review_answered_at\na,,,,\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := readInput(strings.NewReader(tt.content))
			if err != nil {
				t.Fatal(err)
			}
			if len(in.orders) != tt.orders {
				t.Errorf("%d orders, want %d", len(in.orders), tt.orders)
			}
		})
	}
}

func FuzzReadInput(f *testing.F) {
	f.Add([]byte(headerLine + "a,2018-03-01T12:00:00Z,,2018-03-01T12:00:00.123456789+14:00,\n"))
	f.Add([]byte(headerLine + "\"a\nb\",,,,\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		in, err := readInput(bytes.NewReader(content))
		if err != nil {
			return
		}
		for i, e := range timeline(in.orders) {
			if e.at.IsZero() || e.at.Nanosecond()%1e6 != 0 {
				t.Errorf("event %d is at %v", i, e.at)
			}
		}
	})
}
