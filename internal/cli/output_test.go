package cli

import (
	"errors"
	"strings"
	"testing"
)

var errFull = errors.New("no space left on device")

// full takes some bytes, and then no more.
type full int

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), int(*f))
	*f -= full(n)
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// What cannot be written makes a command fail, and ends a long list early.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		room := full(10_000)
		p := world{}.program(&room, nil)
		p.json = asJSON
		o, rows := p.printer(), 0
		o.head("NUMBER", "TEXT")
		for ; rows < 100_000 && o.page() == nil; rows++ {
			o.row(map[string]int{"number": rows}, rows, strings.Repeat("x", 20))
		}
		if rows > 2000 {
			t.Errorf("json %v: %d rows were made", asJSON, rows)
		}
		o.row(nil, "after it")
		if err := o.flush(); !errors.Is(err, errFull) {
			t.Errorf("json %v: %v", asJSON, err)
		}
	}
	room := full(0)
	w, _ := served(t, "mem:")
	for _, args := range [][]string{{"push", "mail", "x"}, {"queues"}, {"queues", "--json"}, {"get", "mail", "--id", "1"}, {"status"}, {"version"}} {
		var stderr strings.Builder
		if code := w.program(&room, &stderr, args...).Run(t.Context()); code == exitOK {
			t.Errorf("tarry %s: exit code 0\n%s", strings.Join(args, " "), &stderr)
		}
	}
}
